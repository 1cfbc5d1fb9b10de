"""Storages that know the dtype of their elements: torch's older kind, which its files still name."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ... import _dtypes
from ..._warnings import warn_once
from ...overrides import declared
from .. import _base
from .._functions.creation import as_dtype, finish, options_of
from .._object.devices import on_host
from .deep_copies import row_of
from .storages import CONVERSIONS, AnyStorage, UntypedStorage, conversion, storage_on, untyped_storage

NAMES = {name: f"{_dtypes.dtype_named(name)._scalar_name}Storage" for name in CONVERSIONS.values()}
DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
    "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)
_FORMS = """
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""
_OLD_FORMS = """
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""


def as_bytes(untyped: UntypedStorage) -> TypedStorage:
    """Return the bytes of a storage as elements, for a program that asks the bytes to be converted."""
    warn_once(DEPRECATED)
    return typed_storage(untyped, _dtypes.uint8)


class TypedStorage(AnyStorage):
    """The elements that a tensor and its views share."""

    __module__ = "retrograd.storage"
    __slots__ = ("__weakref__", "_untyped_storage", "dtype")

    _untyped_storage: UntypedStorage
    dtype: _dtypes.dtype
    is_sparse = is_hpu = False

    def _get_legacy_storage_class(self) -> Any:
        """Return the old class of storages of this dtype, or None."""
        return OLD_STORAGES.get(NAMES.get(self.dtype.name, ""))

    def __init__(self, *args: Any, device: Any = None, dtype: Any = None, wrap_storage: Any = None) -> None:
        warn_once(DEPRECATED)
        self._start(args, device, _dtypes.get_default_dtype() if dtype is None else dtype, wrap_storage)

    def _start(self, args: tuple[Any, ...], device: Any, dtype: _dtypes.dtype, wrapped: Any) -> None:
        problem = None
        if len(args) > 1 or (args and wrapped is not None):
            problem = (
                "Too many positional arguments"
                if len(args) > 1
                else "No positional arguments may go with 'wrap_storage'"
            )
        elif wrapped is not None and not isinstance(wrapped, UntypedStorage):
            problem = f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrapped)}"
        if problem is not None:
            raise TypeError(
                f"TypedStorage.__init__ received an invalid combination of arguments. Expected one of:{_FORMS}{problem}"
            )
        self.dtype = dtype
        if wrapped is None:
            first: Any = args[0] if args else 0
            values = (
                np.empty(first, dtype.numpy)
                if hasattr(first, "__index__")
                else np.array(list(first)).astype(dtype.numpy)
            )
            wrapped = storage_on(values)
            wrapped = wrapped if device is None else wrapped.to(device=device)
        self._untyped_storage = wrapped

    # ---- what it is ----
    def untyped(self) -> UntypedStorage:
        """Return the bytes."""
        return self._untyped_storage

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped_storage.is_cuda

    @property
    def filename(self) -> str | None:
        return self._untyped_storage.filename

    def size(self) -> int:
        """Return the number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return self.dtype.itemsize

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return torch's name for storages of this dtype, or convert the elements."""
        if dtype is None:
            return f"torch.{'cuda.' if self.is_cuda else ''}{self.pickle_storage_type()}"
        return self._to(next(each for each in OLD_STORAGES.values() if dtype in (each, f"torch.{each.__name__}")).dtype)

    def pickle_storage_type(self) -> str:
        """Return the name of the class under which torch's files have it."""
        if self.dtype.name not in NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return NAMES[self.dtype.name]

    # ---- its elements ----
    @property
    def _row(self) -> Any:
        return row_of(self._untyped_storage._memory, self.dtype.numpy)

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        row = on_host(self._row)
        return (row.astype(np.float32) if row.dtype.kind == "V" else row).tolist()  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        value = on_host(self._row[self._place(index)])
        return float(value) if self.dtype.is_floating_point else value.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index if isinstance(index, slice) else self._place(index)] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Write one number everywhere."""
        self._row[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Take over the elements of another storage, converted."""
        if isinstance(source, TypedStorage):
            self._row[...] = source.to(device=self.device)._row.astype(self.dtype.numpy)
        else:
            self._untyped_storage.copy_(source)
        return self

    def resize_(self, size: int) -> None:
        """Change the number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes see it, and that of all tensors on it."""
        self._untyped_storage.share_memory_()
        return self

    # ---- copies ----
    def _to(self, dtype: _dtypes.dtype) -> TypedStorage:
        return typed_storage(storage_on(self._row.astype(dtype.numpy)), dtype)

    def clone(self) -> TypedStorage:
        """Copy the memory."""
        return typed_storage(self._untyped_storage.clone(), self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return typed_storage(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Return the storage on a device."""
        return typed_storage(self._untyped_storage.to(device=device), self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Return the storage on a CUDA device."""
        return typed_storage(self._untyped_storage.cuda(device), self.dtype)

    # ---- leaving ----
    def __repr__(self) -> str:
        return self._shown(f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})")

    def _cannot_index(self, index: Any) -> str:
        return f"can't index a {type(self)} with {type(index)}"


def _asks_the_bytes(name: str) -> Any:
    def method(self: TypedStorage, *args: Any) -> Any:
        return getattr(self._untyped_storage, name)(*args)

    method.__name__, method.__doc__ = name, getattr(UntypedStorage, name).__doc__
    return method


for _name in ["data_ptr", "nbytes", "get_device", "is_shared", "is_pinned", "resizable"]:
    setattr(TypedStorage, _name, _asks_the_bytes(_name))

_known: WeakValueDictionary[tuple[int, str], TypedStorage] = WeakValueDictionary()


def typed_storage(untyped: UntypedStorage, dtype: _dtypes.dtype) -> TypedStorage:
    """Return a storage's elements as a dtype; the same object as long as somebody holds it, so that pickle knows it again."""
    key = id(untyped), dtype.name
    found = _known.get(key)
    if found is None or found._untyped_storage is not untyped:
        found = object.__new__(TypedStorage)
        found.dtype, found._untyped_storage = dtype, untyped
        _known[key] = found
    return found


def storage(self: Any) -> TypedStorage:
    """Return the elements under a tensor and its views."""
    warn_once(DEPRECATED)
    made: TypedStorage = _typed_storage(self)
    return made


@declared(seen=False)
def is_storage(obj: Any) -> bool:
    """Tell whether an object is a storage."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


@declared(forms="method")
def _typed_storage(self: Any) -> TypedStorage:
    """Return the elements under a tensor and its views, without the warning."""
    return typed_storage(untyped_storage(self), _base.dtype_of(self))


# ---- torch.FloatStorage and its kin ----
class OldStorageMeta(type):
    """The class of the old classes: an instance is any storage of the dtype."""

    dtype: _dtypes.dtype

    def __call__(cls, *args: Any, wrap_storage: Any = None, **others: Any) -> Any:
        warn_once(DEPRECATED)
        problem = "Too many positional arguments" if len(args) > 1 else None
        if others:
            problem = f"Keyword argument '{next(iter(others))}' cannot be specified"
        if problem is not None:
            raise RuntimeError(
                f"{cls!r}.__new__ received an invalid combination of arguments. Expected one of:{_OLD_FORMS}{problem}"
            )
        made = object.__new__(TypedStorage)
        made._start(args, None, cls.dtype, wrap_storage)
        return made

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    def from_buffer(cls, *args: Any, **options: Any) -> TypedStorage:
        """Copy elements from an object with Python's buffer protocol."""
        warn_once(DEPRECATED)
        return typed_storage(UntypedStorage.from_buffer(*args, **options, dtype=cls.dtype), cls.dtype)

    def _from_buffer(cls, *args: Any, **options: Any) -> TypedStorage:
        """`from_buffer` under its older, private name."""
        return cls.from_buffer(*args, **options)

    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """Map a file."""
        warn_once(DEPRECATED)
        return typed_storage(UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize), cls.dtype)


OLD_STORAGES: dict[str, Any] = {
    name: OldStorageMeta(name, (), {"dtype": _dtypes.dtype_named(dtype), "__module__": "retrograd", "is_cuda": False})
    for dtype, name in NAMES.items()
}
globals().update(OLD_STORAGES)
Storage = declared(OLD_STORAGES["FloatStorage"], forms="function")

for _name, _dtype in CONVERSIONS.items():
    setattr(TypedStorage, _name, conversion(_dtypes.dtype_named(_dtype)))


@declared(seen=False)
def from_file(filename: str, shared: bool | None = None, size: int | None = 0, **options: Any) -> Any:
    """Make a vector on the bytes of a file; writes go into the file if it is shared."""
    _, dtype, device, requires_grad = options_of("from_file", options, out=False)
    if not isinstance(filename, str):
        raise TypeError(f"from_file(): argument 'filename' (position 1) must be str, not {type(filename).__name__}")
    wanted = _dtypes.get_default_dtype() if dtype is None else as_dtype(dtype, "from_file")
    if requires_grad and not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    mapped = UntypedStorage.from_file(filename, bool(shared), (size or 0) * wanted.itemsize)
    return finish(row_of(mapped._memory, wanted.numpy), device, requires_grad)
