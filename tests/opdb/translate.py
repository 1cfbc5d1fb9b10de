"""From torch to retrograd: tensors, arguments, and the functions that op_db's entries call.

torch's entries call `torch.add`, a method, or a lambda over those. A builtin is found again by its path; a Python function is
rebuilt with retrograd in the place of `torch` among its globals and in its closure, so that both libraries run the same code.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import torch

import retrograd
from retrograd.tensor import _base

MODULES = {
    "": torch,
    "linalg": torch.linalg,
    "fft": torch.fft,
    "special": torch.special,
    "masked": torch.masked,
    "signal.windows": torch.signal.windows,
    "nn.functional": torch.nn.functional,
    "Tensor": torch.Tensor,
}
# functions that op_db calls by their internal names
INTERNAL = {"aten::slice": "slice_copy", "aten::native_dropout_backward": "native_dropout_backward"}


@functools.cache
def paths() -> dict[int, str]:
    """Return the public path of every function of torch, by identity."""
    found: dict[int, str] = {}
    for prefix, module in MODULES.items():
        for name in dir(module):
            value = getattr(module, name, None)
            if callable(value):
                found.setdefault(id(value), f"{prefix}.{name}".lstrip("."))
    return found


def named(path: str) -> Any:
    """Return retrograd's object of a path, such as `linalg.inv` or `Tensor.add_`."""
    value: Any = retrograd
    for part in path.split("."):
        value = getattr(value, part)
    return value


@contextlib.contextmanager
def frozen_random_state() -> Iterator[None]:
    """Stand in for torch's `freeze_rng_state`."""
    state = retrograd.get_rng_state()
    try:
        yield
    finally:
        retrograd.set_rng_state(state)


def function(value: Callable[..., Any] | None) -> Any:
    """Return retrograd's counterpart of a function of torch."""
    if value is None:
        return None
    path = paths().get(id(value))
    if path is not None:
        return named(path)
    if isinstance(value, functools.partial):
        return functools.partial(function(value.func), *arguments(value.args), **arguments(value.keywords))
    if isinstance(value, types.FunctionType):
        return _rebuilt(value)
    schema = str(getattr(value, "_schema", "")).split("(")[0].split(".")[0]
    if schema in INTERNAL:
        return named(INTERNAL[schema])
    raise AttributeError(f"no counterpart of {value!r}")


_made: dict[int, tuple[Any, Any]] = {}  # by identity; the function itself is kept, or its number would be given again


def _rebuilt(value: types.FunctionType) -> Any:
    if id(value) in _made:
        return _made[id(value)][1]
    namespace = _Globals(value.__globals__)
    cells = None
    if value.__closure__:
        cells = tuple(types.CellType(_translated_global(cell.cell_contents)) for cell in value.__closure__)
    made = types.FunctionType(value.__code__, namespace, value.__name__, value.__defaults__, cells)
    made.__kwdefaults__ = value.__kwdefaults__
    _made[id(value)] = (value, made)
    for name in value.__code__.co_names:  # globals are looked up in the dictionary itself, not by __missing__
        if name in value.__globals__:
            namespace[name] = _translated_global(value.__globals__[name])
    for constant in value.__code__.co_consts:
        if isinstance(constant, types.CodeType):
            for name in constant.co_names:
                if name in value.__globals__:
                    namespace[name] = _translated_global(value.__globals__[name])
    return made


class _Globals(dict[str, Any]):
    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__({"__builtins__": given.get("__builtins__", __builtins__)})


def _translated_global(value: Any) -> Any:
    if value is torch:
        return retrograd
    if getattr(value, "__name__", "") == "freeze_rng_state":
        return frozen_random_state
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
        return named(value.__name__.removeprefix("torch."))
    if callable(value) and (id(value) in paths() or isinstance(value, (types.FunctionType, functools.partial))):
        return function(value)
    return arguments(value)


# ---- values ----
NUMPY = {torch.bfloat16: ml_dtypes.bfloat16}
# how other classes are translated; tests.moduledb adds its own
OTHERS: dict[type, Callable[[Any], Any]] = {
    torch.nn.PairwiseDistance: lambda module: retrograd.nn.PairwiseDistance(module.norm, module.eps, module.keepdim)
}


def array(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor's values as an array with the tensor's strides and memory of its own."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    size = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0
    flat = tensor.as_strided((size,), (1,)).clone()
    values = flat.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if tensor.dtype is torch.bfloat16 else flat.numpy()
    steps = [s * values.itemsize for s in tensor.stride()]
    return np.lib.stride_tricks.as_strided(values, tensor.shape, steps)


def tensor(value: torch.Tensor) -> Any:
    """Return retrograd's tensor with the same values, strides and requires_grad."""
    made = _base.wrap(array(value))
    return made.requires_grad_() if value.requires_grad else made


def dtype(value: torch.dtype) -> Any:
    return getattr(retrograd, str(value).removeprefix("torch."))


def arguments(value: Any) -> Any:
    """Translate an argument, or a container of them."""
    for kind, translated in OTHERS.items():
        if isinstance(value, kind):
            return translated(value)
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return dtype(value)
    if isinstance(value, torch.device):
        return retrograd.device(str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        return getattr(retrograd, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return retrograd.Size(value)
    if isinstance(value, torch.Generator):
        return retrograd.Generator().manual_seed(value.initial_seed())
    if isinstance(value, slice):
        return slice(arguments(value.start), arguments(value.stop), arguments(value.step))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(arguments(v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(arguments(v) for v in value)
    if isinstance(value, dict):
        return {k: arguments(v) for k, v in value.items()}
    if id(value) in paths() or isinstance(value, types.FunctionType):
        return function(value)
    return value
