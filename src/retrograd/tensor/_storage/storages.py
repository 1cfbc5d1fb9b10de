"""The memory under a tensor, as programs ask for it: its bytes, how large it is, where it is, and who shares it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ... import _dtypes
from ..._core.arrays import Batched, LevelArray, is_meta
from ..._device import device as device_type
from .. import _base
from .._aliasing.entering import memory_under
from .._object.devices import device_of_array, on_host, place_array
from .._object.layout import address
from .deep_copies import memory_of, row_of

FORMS = """
 * (*, int allocator = None, torch.device device = None)
 * (int size, *, int allocator = None, torch.device device = None)
 * (object sequence, *, int allocator = None, torch.device device = None)
"""
BYTE_ORDERS = {"big": ">", "little": "<", "native": "="}


class AnyStorage:
    """What storages do alike, whether they know the dtype of their elements or not."""

    __slots__ = ()

    def __iter__(self: Any) -> Iterator[Any]:
        return iter(self.tolist())

    def _place(self: Any, index: Any) -> int:
        if not hasattr(index, "__index__"):
            raise TypeError(self._cannot_index(index))
        if not -len(self) <= (place := index.__index__()) < len(self):
            raise IndexError(f"index {place} out of range for storage of size {len(self)}")
        return int(place)

    def cpu(self: Any) -> Any:
        """Return the storage on the CPU: itself, if it is there."""
        return self.to(device="cpu")

    def _shown(self: Any, name: str) -> str:
        elements = "..." if self.device.type == "meta" else " " + "\n ".join(str(one) for one in self)
        return f"{elements}\n[{name} of size {len(self)}]"

    def __reduce__(self: Any) -> Any:
        from .._files.pickling import pickled_storage

        return pickled_storage(self)


class UntypedStorage(AnyStorage):
    """The bytes that a tensor and its views share."""

    __module__ = "retrograd.storage"
    __slots__ = ("__weakref__", "_has_tensors", "_memory", "filename")

    _memory: Any  # a dense array of any shape and dtype
    _has_tensors: bool  # whether tensors may lie on it, so that it cannot be replaced
    filename: str | None

    is_sparse = is_sparse_csr = is_hpu = False

    def __init__(self, *args: Any, device: Any = None, **others: Any) -> None:
        if len(args) > 1 or others:
            given = [type(one).__name__ for one in args]
            given += [f"{name}={_type_name(value)}" for name, value in others.items()]
            raise TypeError(
                f"torch.UntypedStorage() received an invalid combination of arguments - got ({', '.join(given)}), but "
                f"expected one of:{FORMS}"
            )
        memory = _bytes_of(args[0] if args else 0)
        self._start(memory if device is None else place_array(memory, device_type(device)))

    def _start(self, memory: Any) -> None:
        self._memory = memory
        self._has_tensors = False
        self.filename = None

    # ---- what it is ----
    @property
    def device(self) -> device_type:
        return device_of_array(self._memory)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """Return the number of the CUDA device, -1 for the CPU."""
        return -1 if self.device.index is None else self.device.index

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._memory.nbytes)

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Return the size of an element: a byte."""
        return 1

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        if hasattr(self._memory, "place"):
            raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")
        return address(self._memory) if self._memory.size and not is_meta(self._memory) else 0

    def is_shared(self) -> bool:
        """Tell whether other processes see the memory."""
        from .sharing import place_of

        return self.is_cuda or place_of(self._memory) is not None

    def share_memory_(self) -> UntypedStorage:
        """Move the memory to where other processes see it, and that of all tensors on it."""
        from .sharing import share_storage

        share_storage(self)
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Tell whether the memory is pinned, which it never is here."""
        return False

    def resizable(self) -> bool:
        """Tell whether `resize_` is possible: not where a tensor lies on the memory."""
        return not self._has_tensors

    def untyped(self) -> UntypedStorage:
        """Return itself."""
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the class."""
        return "torch.storage.UntypedStorage"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    # ---- its bytes ----
    @property
    def _row(self) -> Any:
        return row_of(self._memory, np.dtype(np.uint8))

    def tolist(self) -> list[int]:
        """Return the bytes as numbers."""
        return on_host(self._row).tolist()  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return storage_on(self._row[index])
        return int(self._row[self._place(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index if isinstance(index, slice) else self._place(index)] = value & 255

    def fill_(self, value: int) -> UntypedStorage:
        """Write one byte everywhere."""
        self._row[...] = value & 255
        return self

    def copy_(self, src: Any, non_blocking: bool = False) -> UntypedStorage:
        """Take over the bytes of another storage of the same size."""
        if not isinstance(src, UntypedStorage) and not hasattr(src, "_untyped_storage"):
            raise TypeError(f"copy_(): argument 'src' (position 1) must be torch.Storage, not {_type_name(src)}")
        source = src.untyped()
        if source.nbytes() != self.nbytes():
            sizes = f"self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            raise RuntimeError(f"size does not match, {sizes}")
        self._row[...] = place_array(source._row, self.device)
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Change the number of bytes; those that fit stay."""
        if size < 0:
            raise RuntimeError(f"alloc_cpu() seems to have been called with negative number: {size}")
        if self.nbytes() == size:
            return self
        if self._has_tensors:
            raise NotImplementedError(
                "retrograd cannot resize memory that tensors use: NumPy's arrays keep theirs\nHint: give the tensor "
                "new memory instead: x.data = torch.empty(...), or x.set_(...)."
            )
        memory = place_array(np.zeros(size, np.uint8), self.device)
        kept = min(size, self.nbytes())
        memory[:kept] = self._row[:kept]
        self._memory = memory
        return self

    def byteswap(self, dtype: _dtypes.dtype) -> None:
        """Turn round the bytes of every element of a dtype."""
        part = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self._row.reshape(-1, part)[...] = self._row.reshape(-1, part)[:, ::-1].copy()

    # ---- copies ----
    def clone(self) -> UntypedStorage:
        """Copy the memory."""
        return storage_on(self._row.copy())

    def new(self) -> UntypedStorage:
        """Return an empty storage."""
        return UntypedStorage(device=self.device)

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """Return the storage on a device: itself, if it is there."""
        wanted = device_type(device)
        if wanted.type == "cuda" and wanted.index is None and self.is_cuda:
            return self
        return self if wanted == self.device else storage_on(place_array(self._row, wanted))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return the storage on a CUDA device."""
        index = device if device is None or isinstance(device, int) else device_type(device).index
        return self.to(device="cuda" if index is None else device_type("cuda", index))

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        key: Any = ("memory", id(self._memory))  # as tensors have theirs
        if key not in memo:
            memo[key] = (self._memory.copy(order="K"), _base.Storage(), self._memory)
        return storage_on(memo[key][0])

    # ---- memory of others ----
    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = None
    ) -> UntypedStorage:
        """Copy elements of a dtype from an object with Python's buffer protocol."""
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        item = dtype.itemsize
        if byte_order is None and item > 1 and dtype.name != "bool":
            raise TypeError("function missing required argument 'byte_order' (pos 2)")
        row = np.frombuffer(buffer, np.uint8)
        if offset < 0 or offset > row.size:
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({row.size}), but got {offset}"
            )
        if count < 0:
            if (row.size - offset) % item:
                raise ValueError(f"buffer size ({row.size}) must be a multiple of element size ({item})")
            count = (row.size - offset) // item
        if offset + count * item > row.size:
            raise ValueError(
                f"buffer has only {row.size - offset} elements after offset {offset}, but specified a size of {count}"
            )
        made = storage_on(row[offset : offset + count * item].copy())
        if byte_order is not None and np.dtype(BYTE_ORDERS[byte_order] + "i2").isnative is False:
            made.byteswap(dtype)
        return made

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Map a file; writes go into it if it is shared, else they stay in this process."""
        made = storage_on(map_file(filename, shared, nbytes))
        made.filename = str(filename)
        return made

    # ---- leaving ----
    def __repr__(self) -> str:
        return self._shown(f"torch.storage.UntypedStorage(device={self.device})")

    def _cannot_index(self, index: Any) -> str:
        return f"can't index a torch.UntypedStorage with {_type_name(index)}"


CONVERSIONS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "complex_float": "complex64",
    "complex_double": "complex128",
}


def conversion(dtype: _dtypes.dtype) -> Any:
    """Make a method of storages that converts the elements."""

    def convert(self: Any) -> Any:
        if isinstance(self, UntypedStorage):
            from .typed_storages import as_bytes

            self = as_bytes(self)
        return self._to(dtype)

    convert.__doc__ = f"Convert the elements, bytes if they have no dtype, to {dtype}."
    return convert


for _name, _dtype in CONVERSIONS.items():
    setattr(UntypedStorage, _name, conversion(_dtypes.dtype_named(_dtype)))

_known: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


def storage_on(memory: Any) -> UntypedStorage:
    """Return the storage of a memory; the same as long as somebody holds it."""
    found = _known.get(id(memory))
    if found is None or found._memory is not memory:
        found = object.__new__(UntypedStorage)
        found._start(memory)
        _known[id(memory)] = found
    return found


def untyped_storage(self: Any) -> UntypedStorage:
    """Return the memory under a tensor."""
    if isinstance(array := memory_under(self), LevelArray):
        kind = "BatchedTensorImpl" if isinstance(array, Batched) else "TensorWrapper"
        raise NotImplementedError(f"Cannot access storage of {kind}")
    found = storage_on(memory_of(self)[0])
    found._has_tensors = True
    return found


def map_file(filename: Any, shared: bool, nbytes: int) -> Any:
    """Map the first bytes of a file, which is made longer if it is shared and too short."""
    path = Path(filename)
    try:
        with open(path, ("r+b" if path.exists() else "w+b") if shared else "rb") as file:
            length = file.seek(0, 2)
            if length < nbytes and not shared:
                raise RuntimeError(
                    f"file <{filename}> size <{length}> is smaller than the required mapping size <{nbytes}>"
                )
            if length < nbytes:
                file.truncate(nbytes)
            if not nbytes:
                return np.empty(0, np.uint8)
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            return np.frombuffer(mmap.mmap(file.fileno(), nbytes, access=access), np.uint8)
    except OSError as error:
        kind = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {kind} mode: {error.strerror} ({error.errno})"
        ) from None


def _bytes_of(given: Any) -> Any:
    """Return the memory that a constructor's argument asks for: a number of bytes, or their values."""
    if hasattr(given, "__index__") and not isinstance(given, _base.Tensor):
        if given.__index__() < 0:
            raise RuntimeError(f"alloc_cpu() seems to have been called with negative number: {given}")
        return np.empty(given.__index__(), np.uint8)
    if not isinstance(given, Sequence):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {_type_name(given)}")
    for one in given:
        if not isinstance(one, (int, np.integer)):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({_type_name(given)}), but one of the "
                f"items was of type {_type_name(one)} instead of int"
            )
    return np.array([one & 255 for one in given], np.uint8)


def _type_name(value: Any) -> str:
    name = type(value).__name__
    return "torch.dtype" if isinstance(value, _dtypes.dtype) else name
