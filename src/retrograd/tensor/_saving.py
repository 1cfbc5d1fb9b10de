"""torch.save: torch's own format, a zip file of one pickle and one file for each memory.

The pickle names torch's functions and types, so both libraries read what either has written.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

from .. import _device, _dtypes, _size
from . import _base
from ._copying import memory_of, steps_of, warn_of_hooks

STORAGES = {
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "bool": "BoolStorage",
}
DEFAULT_PROTOCOL = 2


class TorchName:
    """Stands in a pickle for something of torch's."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} stands for torch's")  # pickle wants something to call


REBUILD_TENSOR = TorchName("torch._utils", "_rebuild_tensor_v2")
REBUILD_PARAMETER = TorchName("torch._utils", "_rebuild_parameter")
SIZE, DEVICE = TorchName("torch", "Size"), TorchName("torch", "device")
_STORAGE_NAMES = {name: TorchName("torch", storage) for name, storage in STORAGES.items()}
_DTYPE_NAMES = {each: TorchName("torch", each.name) for each in _dtypes.ALL_DTYPES}


def torch_name(obj: Any) -> TorchName | None:
    """Return the name under which torch has a class or function of this package; None for what is not of it.

    What is written in a private file is looked for in the public modules that hand it on, the innermost one first.
    """
    package = __name__.partition(".")[0]
    module, name = getattr(obj, "__module__", None) or "", getattr(obj, "__qualname__", "")
    if module.partition(".")[0] != package:
        return None
    if module == package or "._" in module:
        holders = [
            path
            for path, held in list(sys.modules.items())
            if path.startswith(f"{package}.") and "._" not in path and vars(held).get(name) is obj
        ]
        module = max(holders, key=lambda path: path.count("."), default=module)
    return TorchName("torch" + module.removeprefix(package), name)


class _Memory:
    """A memory that tensors of the pickle lie on: pickled as a persistent id."""

    def __init__(self, identity: tuple[Any, ...]) -> None:
        self.identity = identity


_in_python: Any = pickle._Pickler  # whose methods are unknown to the type checker


class Pickler(pickle._Pickler):  # the one in Python, whose steps can be changed
    """Writes tensors as torch does, and collects their memories."""

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)

    write: Any  # of the class in Python, unknown to the type checker
    memoize: Any

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.memories: dict[int, tuple[_Memory, Any]] = {}

    def persistent_id(self, obj: Any) -> Any:
        return obj.identity if type(obj) is _Memory else None

    def _save_torch_name(self, obj: TorchName) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[TorchName] = _save_torch_name

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function by its name; what is of this package under torch's, so that torch finds its own."""
        if name is None and (known := torch_name(obj)) is not None:
            self.write(pickle.GLOBAL + f"{known.module}\n{known.name}\n".encode())
            self.memoize(obj)
            return
        _in_python.save_global(self, obj, name)

    dispatch[FunctionType] = save_global

    def _save_class(self, obj: Any) -> None:
        if torch_name(obj) is None:
            _in_python.dispatch[type](self, obj)  # which knows the types of None, of ... and of NotImplemented
        else:
            self.save_global(obj)

    dispatch[type] = _save_class

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _base.Parameter):
            return REBUILD_PARAMETER, (obj.detach(), obj.requires_grad, OrderedDict())
        if type(obj) is _base.Tensor:
            warn_of_hooks(obj)
            return REBUILD_TENSOR, self._parts(obj)
        if isinstance(obj, _size.Size):
            return SIZE, (tuple(obj),)
        if isinstance(obj, _device.device):
            return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    def _save_dtype(self, obj: _dtypes.dtype) -> None:
        self._save_torch_name(_DTYPE_NAMES[obj])

    dispatch[_dtypes.dtype] = _save_dtype

    def _parts(self, tensor: Any) -> tuple[Any, ...]:
        tensor_on_cpu = tensor.detach().cpu()
        owner, offset = memory_of(tensor_on_cpu)
        found = self.memories.get(id(owner))
        if found is None:
            storage = _STORAGE_NAMES[_base.dtype_of(tensor).name]
            memory = _Memory(("storage", storage, str(len(self.memories)), "cpu", int(owner.size)))
            found = self.memories[id(owner)] = (memory, owner)
        shape, steps = tuple(tensor._array.shape), steps_of(tensor_on_cpu, owner)
        return found[0], offset, shape, steps, tensor.requires_grad, OrderedDict()


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save an object with its tensors into a file, in torch's format."""
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError(
            "retrograd does not write torch's old file format (_use_new_zipfile_serialization=False)\nHint: leave the "
            "argument out; every torch since 1.6 reads the zip format."
        )
    data = io.BytesIO()
    pickler = Pickler(data, pickle_protocol)
    pickler.dump(obj)
    named = isinstance(f, (str, os.PathLike))
    root = (Path(f).stem or "archive") if named else "archive"
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{root}/data.pkl", data.getvalue())
        archive.writestr(f"{root}/byteorder", "little")
        for memory, owner in pickler.memories.values():
            order = "C" if owner.flags.c_contiguous else "F"
            archive.writestr(f"{root}/data/{memory.identity[2]}", owner.tobytes(order))
        archive.writestr(f"{root}/version", "3\n")
