"""torch's old types: FloatTensor, LongTensor and their kin, which construct and answer isinstance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _device, _dtypes, _size
from ..._dtypes import CPP_NAMES
from ..._signatures import none_of, own_signature, parsed, type_name
from ..._warnings import warn_once
from ...overrides import declared
from .. import _base
from .._functions.creation import empty, tensor
from .._functions.shape import alias

# "FloatTensor" and so on, after torch's names of the dtypes
_DTYPES = {f"{each._scalar_name}Tensor": each for each in _dtypes.IN_MEMORY}


# What torch.Tensor and the old types take.
SIZES = own_signature("new", ("(ints size, *, device device=None)",))
FORMS = own_signature(
    "new",
    (
        "(*, device device=None)",
        "(Storage storage)",
        "(Tensor other)",
        "(ints size, *, device device=None)",
        "(object data, *, device device=None)",
    ),
)


def construct(wanted: _dtypes.dtype | None, /, *args: Any, device: Any = None, **named: Any) -> Any:
    """Build a tensor from sizes, from another tensor or from data, in a dtype; None: the default one, or that of the tensor."""
    if not args and len(named) == 1 and next(iter(named)) in ("data", "other", "size", "storage"):
        args = (_size.Size(named["size"]),) if "size" in named else tuple(named.values())
        named = {}
    if named or (len(args) > 1 and not isinstance(args[0], (int, np.integer))):
        given = named if device is None else {**named, "device": device}
        raise TypeError(f"{none_of(FORMS, args, given)}{_HINT if named else ''}")
    if device is not None and (kind := _device.device(device).type) != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {kind} was passed")
    dtype = wanted or _dtypes.get_default_dtype()
    if not args:
        return empty(0, dtype=dtype)
    first = args[0]
    if isinstance(first, _base.Tensor):
        own = _base.dtype_of(first)
        if wanted is not None and own is not wanted:
            options = "device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default)"
            texts = (f"(dtype={CPP_NAMES[d.name]}, {options}, memory_format=(nullopt))" for d in (wanted, own))
            raise TypeError("expected TensorOptions{} (got TensorOptions{})".format(*texts))
        return alias(first)
    if hasattr(first, "untyped"):  # a storage
        return empty(0, dtype=dtype).set_(first)
    if isinstance(first, _size.Size) or (isinstance(first, (int, np.integer)) and type(first) is not bool):
        if (reason := parsed(SIZES, args, {})) is not None:
            raise reason
        return empty(*args, dtype=dtype)
    if not isinstance(first, str) and (not hasattr(first, "__len__") or isinstance(first, (dict, set))):
        raise TypeError(f"new(): data must be a sequence (got {type_name(first)})")
    return tensor(first, dtype=dtype)


_HINT = "Hint: torch.tensor(data) takes dtype= and requires_grad=."


class tensortype(type):  # noqa: N801 - torch's name
    """The class of the old types: an instance is any Tensor of the dtype."""

    dtype: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return construct(cls.dtype, *args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _base.Tensor) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


_DOC = """Make a tensor of {dtype} from sizes or data, as programs did before `dtype=`; an instance is any tensor of that dtype.

>>> isinstance(torch.zeros(2, dtype=torch.{dtype}), torch.{name})
True
>>> torch.{name}([1, 0]).dtype
torch.{dtype}
"""


def _make(name: str) -> Any:
    dtype = _DTYPES[name]
    doc = _DOC.format(dtype=dtype.name, name=name)
    return tensortype(name, (), {"dtype": dtype, "is_cuda": False, "__module__": "retrograd", "__doc__": doc})


FloatTensor, DoubleTensor, HalfTensor = _make("FloatTensor"), _make("DoubleTensor"), _make("HalfTensor")
BFloat16Tensor, BoolTensor, ByteTensor = _make("BFloat16Tensor"), _make("BoolTensor"), _make("ByteTensor")
CharTensor, ShortTensor, IntTensor = _make("CharTensor"), _make("ShortTensor"), _make("IntTensor")
LongTensor = _make("LongTensor")


def old_name(dtype: _dtypes.dtype) -> str:
    """Return the name that `Tensor.type()` gives a dtype."""
    return f"torch.{dtype._scalar_name}Tensor"


def dtype_of_old_name(name: Any) -> _dtypes.dtype:
    """Return the dtype of an old type or of its name."""
    if isinstance(name, tensortype):
        return name.dtype  # type: ignore[no-any-return]
    if name is _base.Tensor or name == "torch.Tensor":
        return _dtypes.get_default_dtype()
    known = {f"torch.{one}": dtype for one, dtype in _DTYPES.items()}
    if name not in known:
        raise ValueError(f"invalid type: {name!r}")
    return known[name]


@declared(seen=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by an old type."""
    dtype = dtype_of_old_name(t)
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    _dtypes.set_default_dtype(dtype)
