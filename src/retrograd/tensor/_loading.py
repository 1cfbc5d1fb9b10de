"""torch.load: reads what torch.save of either library has written."""

from __future__ import annotations

import _codecs
import collections
import os
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _device, _dtypes, _size
from . import _base
from ._base import Storage
from ._copying import rebuild
from ._saving import STORAGES, torch_name

UNSAFE = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, \x1b[1mdo those steps only if "
    "you trust the source of the checkpoint\x1b[0m. \n\t(1) In PyTorch 2.6, we changed the default value of the "
    "`weights_only` argument in `torch.load` from `False` to `True`. Re-running `torch.load` with `weights_only` set to "
    "`False` will likely succeed, but it can result in arbitrary code execution. Do it only if you got the file from a "
    "trusted source.\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the "
    "following error message.\n\tWeightsUnpickler error: {}\n\nCheck the documentation of torch.load to learn more about "
    "types accepted by default with weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)
NOT_ALLOWED = (
    "Unsupported global: GLOBAL {0} was not an allowed global by default. Please use "
    "`torch.serialization.add_safe_globals([{0}])` or the `torch.serialization.safe_globals([{0}])` context manager to "
    "allowlist this global if you trust this class/function."
)
OLD_FORMAT = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # how files begin that are no zip files


class _StorageType:
    """One of torch's storage types, which here only says the dtype."""

    def __init__(self, dtype: _dtypes.dtype) -> None:
        self.dtype = dtype


class _Memory:
    """A memory read from the file, and the version counter of the tensors on it."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.storage = Storage()


def _rebuild_tensor(
    memory: _Memory, offset: int, size: Any, stride: Any, requires_grad: bool = False, hooks: Any = None, *rest: Any
) -> Any:
    tensor = rebuild(_base.Tensor, memory.array, offset, tuple(size), tuple(stride), requires_grad, {})
    tensor._storage = memory.storage
    if rest and rest[0] and rest[0].get("conj"):  # a view in torch, which shows the conjugate of what is stored
        return tensor.conj()
    return tensor


def _rebuild_parameter(data: Any, requires_grad: bool, hooks: Any) -> Any:
    return _base.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, hooks: Any, state: dict[str, Any]) -> Any:
    parameter = _base.Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


SAFE: dict[str, Any] = {
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "torch.Size": _size.Size,
    "torch.device": _device.device,
    "torch.nn.parameter.Parameter": None,  # the classes themselves, which exist when something is loaded
    "torch.Tensor": None,
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "collections.defaultdict": collections.defaultdict,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.complex": complex,
    "_codecs.encode": _codecs.encode,
}
SAFE |= {f"torch.{each.name}": each for each in _dtypes.ALL_DTYPES}
SAFE |= {f"torch.{storage}": _StorageType(_dtypes.dtype_named(name)) for name, storage in STORAGES.items()}
_more_safe: dict[str, Any] = {}


def add_safe_globals(safe_globals: Any) -> None:
    """Allow classes and functions in files read with `weights_only`."""
    for one in safe_globals:
        _more_safe[f"{one.__module__}.{one.__qualname__}"] = one
        if (known := torch_name(one)) is not None:  # under which files have it
            _more_safe[f"{known.module}.{known.name}"] = one


def get_safe_globals() -> list[Any]:
    """Return what the user has allowed."""
    return list(dict.fromkeys(_more_safe.values()))


def clear_safe_globals() -> None:
    """Take back what the user has allowed."""
    _more_safe.clear()


@contextmanager
def safe_globals(allowed: Any) -> Iterator[None]:
    """Allow classes and functions while a block runs."""
    before = dict(_more_safe)
    add_safe_globals(allowed)
    try:
        yield
    finally:
        _more_safe.clear()
        _more_safe.update(before)


class Unpickler(pickle.Unpickler):
    """Reads tensors, and of classes and functions only what is safe, unless told to trust the file."""

    def __init__(self, archive: zipfile.ZipFile, root: str, weights_only: bool, encoding: str) -> None:
        super().__init__(archive.open(f"{root}data.pkl"), encoding=encoding)
        self.archive = archive
        self.root = root
        self.weights_only = weights_only
        self.memories: dict[str, _Memory] = {}

    def find_class(self, module: str, name: str) -> Any:
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        if full in SAFE:
            classes = {"torch.Tensor": _base.Tensor, "torch.nn.parameter.Parameter": _base.Parameter}
            return classes.get(full, SAFE[full])
        if full in _more_safe:
            return _more_safe[full]
        if self.weights_only:
            raise pickle.UnpicklingError(UNSAFE.format(NOT_ALLOWED.format(full)))
        if module == "torch" or module.startswith("torch."):
            module = "retrograd" + module[len("torch") :]
        return super().find_class(module, name)

    def persistent_load(self, identity: Any) -> Any:
        kind, storage, key, _, _ = identity
        if kind != "storage":
            raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' but got '{kind}'")
        if key not in self.memories:
            data = bytearray(self.archive.read(f"{self.root}data/{key}"))
            self.memories[key] = _Memory(np.frombuffer(data, storage.dtype.numpy))
        return self.memories[key]


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that torch.save has written; `weights_only` refuses classes that could run code."""
    if not isinstance(f, (str, os.PathLike)) and not (hasattr(f, "read") and hasattr(f, "seek")):
        raise AttributeError(
            "'" + type(f).__name__ + "' object has no attribute 'seek'. You can only torch.load from a file that is "
            "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise _not_a_zip_file(f) from None
    with archive:
        root = next((name[: -len("data.pkl")] for name in archive.namelist() if name.endswith("/data.pkl")), None)
        if root is None:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        encoding = pickle_load_args.get("encoding", "utf-8")
        loaded = Unpickler(archive, root, weights_only is not False, encoding).load()
    return loaded if map_location is None else _moved(loaded, map_location)


def _not_a_zip_file(f: Any) -> Exception:
    """Return the error for a file that is none of torch.save's, or an old one."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            start = file.read(len(OLD_FORMAT))
    else:
        f.seek(0)
        start = f.read(len(OLD_FORMAT))
    if start == OLD_FORMAT:
        return NotImplementedError(
            "retrograd does not read torch's old file format (before torch 1.6, or _use_new_zipfile_serialization=False)\n"
            "Hint: convert the file with torch once: torch.save(torch.load(path), path)."
        )
    if not start:
        return EOFError("Ran out of input\nHint: the file is empty.")
    if start[:2] == b"PK":
        return RuntimeError("PytorchStreamReader failed reading zip archive: not a ZIP archive")
    if start[:1] == pickle.PROTO:
        return RuntimeError("Invalid magic number; corrupt file?\nHint: this is a pickle; pickle.load reads it.")
    return pickle.UnpicklingError(
        f"invalid load key, {start[:1].decode('latin-1')!r}.\nHint: this is no file that torch.save has written."
    )


def _moved(value: Any, place: Any) -> Any:
    """Bring the tensors of nested containers to a device."""
    if isinstance(place, dict):
        place = place.get("cpu", "cpu")
    if callable(place) and not isinstance(place, _device.device):
        return value  # a function of storages: everything is on the CPU already
    if isinstance(value, _base.Tensor):
        moved = value.detach().to(place)
        if moved.device == value.device:
            return value
        return _base.Parameter(moved, value.requires_grad) if isinstance(value, _base.Parameter) else moved
    if isinstance(value, dict):
        for key in value:
            value[key] = _moved(value[key], place)
        return value
    if isinstance(value, list):
        return [_moved(one, place) for one in value]
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_moved(one, place) for one in value)
    return value
