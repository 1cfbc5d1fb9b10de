"""What a pickle keeps of tensors and storages, and the functions by which it makes them again: torch's, under torch's names.

Note [Names in pickles]
`torch.save` writes torch's name for everything of this package (see `saving.py`). A plain pickle writes the name that
an object says it has: "torch..." while `import torch` means this package, so that torch can read the pickle, and
"retrograd..." otherwise. In the second case the memory of tensors is pickled as NumPy arrays, which protocol 5 can hand
over without a copy. Functions of the package and methods of Tensor have their public names from the table of names
(`tensor/_table.py`).
"""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from operator import index
from types import FrameType
from typing import Any

from ... import _dtypes
from .. import _base
from .._storage.deep_copies import memory_of, need_inside, rebuild, steps_of, warn_of_hooks
from .._storage.storages import UntypedStorage, storage_on
from .._storage.typed_storages import NAMES, TypedStorage, typed_storage

PACKAGE = __name__.partition(".")[0]


def is_torch() -> bool:
    """Tell whether `import torch` means this package."""
    return sys.modules.get("torch") is sys.modules[PACKAGE]


def named(function: Any, module: str) -> Any:
    """Return a function that says it is of a public module. See Note [Names in pickles]."""
    function.__module__ = f"{'torch' if is_torch() else PACKAGE}.{module}"
    return function


# ---- making tensors again ----
# Hooks are not saved: what files have in their place, `backward_hooks`, is empty.
def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    """Make a tensor on a storage."""
    return _rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict[str, bool] | None = None,
) -> Any:
    """Make a tensor on a storage that knows its dtype."""
    if not isinstance(storage, TypedStorage):
        raise AttributeError(f"'torch.storage.{type(storage).__name__}' object has no attribute 'dtype'")
    return _tensor_on(storage.untyped(), storage.dtype, storage_offset, size, stride, requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: _dtypes.dtype,
    metadata: dict[str, bool] | None = None,
) -> Any:
    """Make a tensor of a dtype for which there is no kind of storage."""
    if not isinstance(storage, (TypedStorage, UntypedStorage)) or not isinstance(dtype, _dtypes.dtype):
        kinds = f"{type(storage).__name__} and {type(dtype).__name__}"
        raise TypeError(f"a tensor is made of a storage and a torch.dtype, not of {kinds}")
    return _tensor_on(storage.untyped(), dtype, storage_offset, size, stride, requires_grad, metadata)


def _tensor_on(
    storage: UntypedStorage,
    dtype: _dtypes.dtype,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    metadata: dict[str, bool] | None,
) -> Any:
    size, stride, offset = tuple(map(index, size)), tuple(map(index, stride)), index(offset)
    need_inside(size, stride, offset, dtype.itemsize, storage.nbytes())
    tensor = rebuild(_base.Tensor, storage._memory, offset, size, stride, requires_grad, {}, dtype.numpy)
    storage._has_tensors = True
    if metadata:
        from .._aliasing.signs import show

        show(tensor, tensor._array, (bool(metadata.get("conj")), bool(metadata.get("neg"))))
    return tensor


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    """Make a tensor on the meta device."""
    from ..._core.meta_arrays import with_strides

    tensor = _base.wrap(with_strides(tuple(size), tuple(stride), dtype.numpy))
    return tensor.requires_grad_(requires_grad)


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    """Make a Parameter."""
    return _base.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """Make a Parameter that has attributes."""
    return _set_obj_state(_base.Parameter(data, requires_grad), state)


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: int, layout: Any, device: Any, requires_grad: bool
) -> Any:
    """Make a tensor of a class that wraps others."""
    return _base.make_wrapper_subclass(
        cls, size, stride, storage_offset, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def _rebuild_from_type_v2(func: Callable[..., Any], new_type: Any, args: tuple[Any, ...], state: Any) -> Any:
    """Make a tensor that has attributes, or is of a subclass."""
    made = func(*args)
    if not isinstance(made, _base.Tensor):
        raise AttributeError(f"'{type(made).__name__}' object has no attribute 'as_subclass'")
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if hasattr(type(made), "__setstate__"):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


def _get_obj_state(obj: Any) -> Any:
    """Return the attributes of a tensor: those of its dictionary and, if its class has slots, those beside them."""
    own_way: Any = type(obj).__getstate__
    if own_way is not object.__getstate__:
        return obj.__getstate__()
    own = [name for cls in type(obj).__mro__ if not _is_ours(cls) for name in _slots(cls)]
    slots = {name: getattr(obj, name) for name in own if hasattr(obj, name)}
    return (dict(obj.__dict__), slots) if slots else dict(obj.__dict__) or None


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give a tensor its attributes; never those by which this package or Python itself finds its memory and its methods."""
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        attributes, slots = state
    else:
        attributes, slots = state, None
    set_attributes(obj, attributes or {})
    for name, value in (slots or {}).items():
        if any(name in _slots(cls) for cls in type(obj).__mro__ if not _is_ours(cls)):
            setattr(obj, name, value)
        else:
            set_attributes(obj, {name: value})
    return obj


def set_attributes(obj: Any, attributes: dict[str, Any]) -> None:
    """Set attributes that a pickle brings. NumPy, for one, would believe an `__array_interface__` among them."""
    for name in attributes:
        if not isinstance(name, str) or (name.startswith("__") and name.endswith("__")):
            raise pickle.UnpicklingError(f"Invalid serialized state: it has the attribute {name!r}")
    obj.__dict__.update(attributes)


def _is_ours(cls: type) -> bool:
    return cls is object or issubclass(_base.Parameter, cls)


def _slots(cls: type) -> list[str]:
    found = cls.__dict__.get("__slots__", ())
    names = [found] if isinstance(found, str) else list(found)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


# ---- taking tensors apart ----
def reduced(tensor: Any) -> Any:
    """Return what pickle keeps of a tensor: a leaf, whatever it was; between processes it must be one."""
    if tensor._edge is not None and not tensor.is_leaf and _goes_to_another_process():
        from .._storage.sharing import NOT_ACROSS_PROCESSES

        raise RuntimeError(NOT_ACROSS_PROCESSES)
    if issubclass(type(tensor), _base.Parameter):  # isinstance would say so of a tensor that is only marked
        data, state = _base.wrap(_base.materialise(tensor)), _get_obj_state(tensor)
        arguments: tuple[Any, ...] = (data, tensor.requires_grad, OrderedDict())
        if not state:
            return named(_rebuild_parameter, "_utils"), arguments
        return named(_rebuild_parameter_with_state, "_utils"), (*arguments, state)
    warn_of_hooks(tensor)
    kind: Any = type(tensor)
    state = _get_obj_state(tensor)
    if kind in _base.signed_types:
        from .._aliasing.signs import as_stored

        function, parts = _parts(as_stored(tensor))
        signs = {"conj": kind.conjugated, "neg": kind.negated}
        parts, kind = (*parts, {name: True for name, given in signs.items() if given}), _base.Tensor
    elif hasattr(tensor._array, "place"):
        function = named(_rebuild_wrapper_subclass, "_utils")
        looks = (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.layout)
        parts = (kind, *looks, tensor.device, tensor.requires_grad)
    else:
        function, parts = _parts(tensor)
    if kind is _base.Tensor and not state:
        return function, parts
    return named(_rebuild_from_type_v2, "_tensor"), (function, kind, parts, state)


def _goes_to_another_process() -> bool:
    """Tell whether the pickler is multiprocessing's own, which knows nothing of tensors until `multiprocessing` here is loaded."""
    standard = sys.modules.get("multiprocessing.reduction")
    if standard is None:
        return False
    picklers = (standard.ForkingPickler.dumps.__func__.__code__, standard.dump.__code__)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith((f"{PACKAGE}.", "torch.")):
        frame = frame.f_back
    return frame is not None and frame.f_code in picklers


def _parts(tensor: Any) -> tuple[Any, tuple[Any, ...]]:
    if tensor.is_meta:
        facts = (_base.dtype_of(tensor), tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
        return named(_rebuild_meta_tensor_no_storage, "_utils"), facts
    _base.materialise(tensor)
    owner, offset = memory_of(tensor)
    storage, dtype = storage_on(owner), _base.dtype_of(tensor)
    storage._has_tensors = True
    place = (offset, tuple(tensor._array.shape), steps_of(tensor, owner))
    rest: tuple[Any, ...] = (tensor._edge is not None, OrderedDict())
    if dtype.name in NAMES:
        return named(_rebuild_tensor_v2, "_utils"), (typed_storage(storage, dtype), *place, *rest)
    return named(_rebuild_tensor_v3, "_utils"), (storage, *place, *rest, dtype)


# ---- storages ----
def _load_from_bytes(b: bytes) -> Any:
    """Read a storage from the bytes of one of torch's older files."""
    import io

    from .loading import load

    return load(io.BytesIO(b), weights_only=False)


def _of_array(array: Any, dtype: str | None) -> Any:
    """Make a storage of an array."""
    storage = storage_on(array)
    return storage if dtype is None else typed_storage(storage, _dtypes.dtype_named(dtype))


def pickled_storage(storage: Any) -> Any:
    """Return what a plain pickle keeps of a storage. See Note [Names in pickles]."""
    if is_torch():
        from .old_files import storage_bytes

        return named(_load_from_bytes, "storage"), (storage_bytes(storage),)
    dtype = storage.dtype.name if isinstance(storage, TypedStorage) else None
    return named(_of_array, "storage"), (storage.untyped()._memory, dtype)
