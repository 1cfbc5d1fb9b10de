"""torch.save: torch's own format, a zip file of one pickle and one file for each memory.

The pickle names torch's functions and types, so both libraries read what either has written.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from ... import _device, _dtypes, _size
from ...overrides import declared, refusing
from .._object.devices import on_host
from .._object.return_types import NamedResult
from .._storage.storages import UntypedStorage
from .._storage.typed_storages import NAMES, OLD_STORAGES, TypedStorage
from . import options as options
from .archives import ArchiveWriter
from .locations import location_tag
from .old_files import module_class, source_of, write_old
from .replacing import Replacement

DEFAULT_PROTOCOL = 2
TWO_TYPES = "Cannot save multiple tensors or storages that view the same data as different types"
PACKAGE = __name__.partition(".")[0]
SHARED = ("_C", "_tensor", "_utils")  # private modules that torch has, too


class TorchName:
    """Stands in a pickle for something of torch's."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} stands for torch's")  # pickle wants something to call


SIZE, DEVICE = TorchName("torch", "Size"), TorchName("torch", "device")
LAYOUT = TorchName("torch.serialization", "_get_layout")
_DTYPE_NAMES = {each: TorchName("torch", each.name) for each in (*_dtypes.IN_MEMORY, *_dtypes.NAMES_ONLY)}


def torch_name(obj: Any) -> TorchName | None:
    """Return the name under which torch has a class or function of this package; None for what is not of it.

    What is written in a private file is looked for in the public modules that hand it on, the innermost one first.
    """
    module, name = getattr(obj, "__module__", None) or "", getattr(obj, "__qualname__", "")
    first, _, rest = module.partition(".")
    path = f"{PACKAGE}.{rest}" if rest else PACKAGE
    if first not in (PACKAGE, "torch") or (first == "torch" and _held_by(path, name) is not obj):
        return None
    owner, _, last = name.rpartition(".")
    if owner:
        known = torch_name(_held_by(path, owner))
        return known and TorchName(known.module, f"{known.name}.{last}")
    if "._" in path and rest not in SHARED:
        homes = [(at.count("."), at, one) for at, held in _public_modules() for one in _names_in(held, name, obj)]
        if homes:
            _, path, name = max(homes)
    if rest not in SHARED and _held_by(path, name) is not obj:
        return None
    return TorchName("torch" + path.removeprefix(PACKAGE), name)


def _held_by(path: str, name: str) -> Any:
    """Return what a module has under a name, which may have dots; None if it has nothing."""
    try:
        return attrgetter(name)(import_module(path))
    except (AttributeError, ModuleNotFoundError):
        return None


def _public_modules() -> list[tuple[str, Any]]:
    return [
        (path, held)
        for path, held in list(sys.modules.items())
        if path.partition(".")[0] == PACKAGE and "._" not in path
    ]


def _names_in(module: Any, name: str, obj: Any) -> list[str]:
    """Return the name under which a public module hands an object on: its own one, else any that is listed."""
    held = vars(module)
    listed = held.get("__all__")
    if held.get(name) is obj and (listed is None or name in listed):
        return [name]
    return [other for other in listed or () if held.get(other) is obj][:1]


# ---- pickling ----
class StorageKeeper:
    """The part of a pickler that collects the storages of an object instead of writing them."""

    with_source = False  # whether the classes of modules are written with their source, as in the old format

    storages: dict[str, tuple[Any, int]]  # by key: the storage, and the size of its elements

    def persistent_id(self, obj: Any) -> Any:
        """Return what stands in the pickle for a storage; None for what is pickled as usual."""
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            return self._storage_id(obj)
        if self.with_source and isinstance(obj, type) and (module := module_class()) and issubclass(obj, module):
            seen = self.__dict__.setdefault("classes", set())
            if obj not in seen:
                seen.add(obj)
                return ("module", obj, *source_of(obj))
        return None

    def _storage_id(self, storage: Any) -> tuple[Any, ...]:
        if not hasattr(self, "storages"):
            self.storages = {}
            self.keys: dict[int, tuple[str, Any]] = {}
        untyped = storage.untyped()
        name = storage.dtype.name if isinstance(storage, TypedStorage) else None
        key, first = self.keys.setdefault(id(untyped._memory), (str(len(self.keys)), name or "uint8"))
        if first != (name or "uint8"):
            raise RuntimeError(TWO_TYPES)
        self.storages.setdefault(key, (storage, storage.element_size()))
        kind = UntypedStorage if name is None else OLD_STORAGES[NAMES[name]]
        found = ("storage", kind, key, location_tag(untyped), storage.size())
        return (*found, None) if self.with_source else found


@cache
def pickler_class(module: Any) -> Any:
    """Return a class of picklers that write as torch does, made of the one of `pickle` or of a module like it.

    Names can be translated where the pickler is written in Python, as pickle's and dill's are. One in C writes those that the objects
    say they have, which are torch's while `import torch` means this package.
    """
    base: Any = pickle._Pickler if module is None or module is pickle else module.Pickler
    if not issubclass(base, pickle._Pickler):
        return type("Pickler", (StorageKeeper, base), {})

    class Pickler(StorageKeeper, base):  # type: ignore[misc]
        dispatch: ClassVar[dict[Any, Any]] = dict(base.dispatch)

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.storages = {}
            self.keys = {}

        def _save_torch_name(self, obj: TorchName) -> None:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            self.memoize(obj)

        dispatch[TorchName] = _save_torch_name

        def _write_name(self, obj: Any) -> bool:
            """Write torch's name for what is of this package; tell whether it is."""
            known = torch_name(obj)
            if known is None:
                return False
            owner, _, name = known.name.rpartition(".")
            if owner:
                self.save_reduce(getattr, (TorchName(known.module, owner), name), obj=obj)
            else:
                self.write(pickle.GLOBAL + f"{known.module}\n{known.name}\n".encode())
                self.memoize(obj)
            return True

        def save_global(self, obj: Any, name: str | None = None) -> None:
            """Write a class or function by its name."""
            if name is None and self._write_name(obj):
                return
            if "<locals>" in (local := getattr(obj, "__qualname__", "")) and base is pickle._Pickler:
                raise AttributeError(f"Can't pickle local object {local!r}")
            base.save_global(self, obj, name)

        def _save_function(self, obj: Any) -> None:
            if not self._write_name(obj):
                own = base.dispatch.get(FunctionType)
                (own if own is not None and base is not pickle._Pickler else type(self).save_global)(self, obj)

        dispatch[FunctionType] = _save_function

        def _save_class(self, obj: Any) -> None:
            if torch_name(obj) is None:
                # which knows the types of None, of ... and of NotImplemented
                base.dispatch[type](self, obj)
            else:
                self.save_global(obj)

        dispatch[type] = _save_class

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, _size.Size):
                return SIZE, (tuple(obj),)
            if isinstance(obj, _device.device):
                return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
            if isinstance(obj, _device.layout):
                return LAYOUT, (repr(obj),)
            if isinstance(obj, NamedResult):
                return TorchName("torch.return_types", type(obj).__name__), (tuple(obj), {})
            return NotImplemented

        def _save_dtype(self, obj: _dtypes.dtype) -> None:
            self.save(_DTYPE_NAMES[obj])  # which looks among what is written already

        dispatch[_dtypes.dtype] = _save_dtype

        def _save_memory_format(self, obj: _device.memory_format) -> None:
            self._save_torch_name(TorchName("torch", obj.name))

        dispatch[_device.memory_format] = _save_memory_format

    return Pickler


# ---- files ----
@refusing
@declared(seen=False)
def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save an object with its tensors into a file, in torch's format.

    Args:
        obj: tensors, state_dicts, lists, dicts; anything that can be pickled
        f: a path, or an open file
        pickle_module: the module that pickles
        pickle_protocol: its protocol

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"x": torch.tensor([1, 2])}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'x': tensor([1, 2])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    made = pickler_class(pickle_module)
    if not _use_new_zipfile_serialization:
        if options.skip_data.is_on():
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        content = io.BytesIO()
        write_old(obj, content, made, pickle_protocol)
        with Replacement(f) if is_path else nullcontext(f) as file:
            file.write(content.getbuffer())
        return
    data = io.BytesIO()
    pickler = made(data, protocol=pickle_protocol)
    pickler.dump(obj)
    root = (Path(f).stem or "archive") if is_path else "archive"
    with _created(f) if is_path else nullcontext(f) as file, ArchiveWriter(file, root) as archive:
        archive.write("data.pkl", data.getbuffer())
        archive.write("byteorder", sys.byteorder.encode())
        for key, (storage, _) in getattr(pickler, "storages", {}).items():
            row = on_host(storage.untyped()._row)
            archive.write(f"data/{key}", np.zeros_like(row) if options.skip_data.is_on() else row)
        archive.write("version", b"3\n")


def _created(path: Any) -> Replacement:
    try:
        return Replacement(path)
    except OSError as error:
        parent = Path(path).parent
        if not parent.is_dir():
            raise RuntimeError(f"Parent directory {parent} does not exist.") from None
        raise RuntimeError(f"open file failed with strerror: {error.strerror}\nHint: the path is {path}.") from None
