"""retrograd: PyTorch's automatic differentiation in Python, on NumPy and CuPy."""

from __future__ import annotations

import importlib
from functools import cache
from math import e, inf, nan, pi
from types import ModuleType
from typing import Any

from . import _all_parts  # isort: skip - before the others: the collector waits while they load
from . import _absent, _dtypes, _layer_names, _ops, _settings, _tracebacks, autograd
from ._device import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    get_default_device,
    jagged,
    layout,
    memory_format,
    preserve_format,
    set_default_device,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ._dtypes import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._size import Size
from .autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .tensor import Parameter, Tensor, find, functions, later_functions

__version__ = "0.1.0"
__path__.append(f"{__path__[0]}/_compat")  # torch's private modules and absent devices: `_compat/_C` is `retrograd._C`

_layer_names.install()
globals().update(functions())
globals().update({name: getattr(_settings, name) for name in _settings.PUBLIC})
globals().update({each.name: each for each in (*_dtypes.IN_MEMORY, *_dtypes.NAMES_ONLY)})
globals().update(_dtypes.ALIASES)
newaxis = None


_absent_name = _absent.finder("torch", by_torchs_name=True)


def __getattr__(name: str) -> Any:
    try:
        function = find(name)
        if function is not None:
            globals()[name] = function
            return function
        if name == "as_torch":  # which torch does not have
            return importlib.import_module("._as_torch", __package__).as_torch
        if name in _submodules():  # most programs do not use them: they are loaded when asked for
            return importlib.import_module(f"{__package__}.{name}")
        return importlib.import_module(__package__) if name == "torch" else _absent_name(name)
    except Exception as error:
        _tracebacks.hide(error)
        raise


def __dir__() -> list[str]:
    from . import _elsewhere  # when somebody asks

    return sorted({*globals(), *later_functions, *_submodules(), *_elsewhere.table()["torch"], "as_torch"})


@cache
def _submodules() -> frozenset[str]:
    from pkgutil import iter_modules  # when a name is first looked for

    return frozenset(module.name for module in iter_modules(__path__))


__all__ = sorted(
    {name for name, value in globals().items() if name[0] != "_" and not isinstance(value, ModuleType)}
    - {"Any", "ModuleType", "annotations", "cache", "find", "functions", "later_functions"}
    | {"as_torch", "autograd", "set_printoptions", "vmap", *functions(), *later_functions}
)
_ = _all_parts, _ops  # imported for what they do: the latter fills the table of primitives
