"""torch.load: reads what torch.save of either library has written."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..._dtypes import uint8
from ..._warnings import warn
from ...overrides import declared, refusing
from .._storage.storages import UntypedStorage, storage_on
from .._storage.typed_storages import OLD_STORAGES, typed_storage
from . import options as options
from .archives import BEGINNING, ArchiveReader, bytes_left
from .locations import restorer
from .old_files import read_old
from .safe_pickles import SAFE, SafeUnpickler, allowed_by_user, full_name, is_one_of

PACKAGE = __name__.partition(".")[0]
YES = ("1", "y", "yes", "true")  # in the environment
NOT_SEEKABLE = (
    " You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to "
    "load from it instead."
)
OLD_AND_MAPPED = (
    "mmap can only be used with files saved with `torch.save({}_use_new_zipfile_serialization=True), please torch.save your "
    "checkpoint with this option in order to use mmap."
)
SCRIPTED = (
    "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``.\nHint: torch.jit.load reads them; or "
    "save the model's state_dict with torch, and load that."
)
DISPATCHED = (
    "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call 'torch.jit.load' "
    "directly to silence this warning)"
)


@cache
def _trusting_class(module: Any) -> Any:
    """Return a class of unpicklers that do everything a pickle says, made of the one of `pickle` or of a module like it."""

    class Unpickler(module.Unpickler):  # type: ignore[misc]
        storage_of: Any = None  # what makes a storage of a persistent id

        def find_class(self, name_of_module: str, name: str) -> Any:
            full = full_name(name_of_module, name)
            found = SAFE.get(full)
            if found is None:
                found = allowed_by_user().get(full)
            if found is not None:
                return found
            if name_of_module == "torch" or name_of_module.startswith("torch."):
                return self._find_in_torch(PACKAGE + name_of_module[len("torch") :], name)
            return super().find_class(name_of_module, name)

        def _find_in_torch(self, path: str, name: str) -> Any:
            """Find what torch has in a file of its own; here it may stand in the module around that, or without underscores."""
            try:
                return super().find_class(path, name)
            except (AttributeError, ModuleNotFoundError) as error:
                for place in (path, path.rpartition(".")[0]):
                    with suppress(AttributeError, ModuleNotFoundError):
                        return super().find_class(place, name.lstrip("_"))
                raise error

        def persistent_load(self, identity: Any) -> Any:
            if self.storage_of is None:
                raise pickle.UnpicklingError("A load persistent id instruction was encountered, where none should be.")
            return self.storage_of(identity)

    return Unpickler


@refusing
@declared(seen=False)
def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that torch.save has written; unless `weights_only` is False, classes that could run code are refused.

    Args:
        f: a path, or an open file
        map_location: a device, or what says where each tensor goes: a dict or a function
        pickle_module: the module that unpickles
        weights_only: False trusts the file: unpickling runs whatever code it contains
        mmap: read tensors from the file when they are used
        **pickle_load_args: for the unpickler

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save(torch.tensor([1.0, 2.0]), file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        tensor([1., 2.])
    """
    is_safe = _is_safe(weights_only, pickle_module)
    if is_safe and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if is_safe and pickle_load_args:
        warn("pickle_load_args only works if `weights_only=False`.")
    arguments = {"encoding": "utf-8"} | pickle_load_args
    kind = SafeUnpickler if is_safe else _trusting_class(pickle if pickle_module is None else pickle_module)

    def unpickler_class(file: Any) -> Any:
        return kind(file, **arguments)

    with _opened(f) as file:
        restore, path = restorer(map_location), f if isinstance(f, (str, os.PathLike)) else None
        if mmap and path is None and _begins_as_archive(file):
            raise ValueError("f must be a file path in order to use the mmap argument")
        if _begins_as_archive(file):
            return _read_archive(ArchiveReader(file, path), unpickler_class, restore, bool(mmap), is_safe)
        if mmap:
            raise RuntimeError(OLD_AND_MAPPED.format("" if path is None else f"{path}, "))
        if is_safe:
            _refuse_nothing(file)
        return read_old(file, unpickler_class, restore, _empty_storage)


def _is_safe(weights_only: bool | None, pickle_module: Any) -> bool:
    """Tell whether classes and functions are looked at before they are used: by default, and if the environment says so."""
    unsafe, safe = (os.environ.get(f"TORCH_FORCE_{what}WEIGHTS_ONLY_LOAD", "").lower() in YES for what in ("NO_", ""))
    if unsafe and safe:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if safe:
        return True
    if weights_only is not None:
        return bool(weights_only)
    if unsafe:
        warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly "
            "passed to `torch.load`, forcing weights_only=False.",
        )
        return False
    return pickle_module is None


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(f"'{type(f).__name__}' object has no attribute '{name}'.{NOT_SEEKABLE}")
    yield f


def _begins_as_archive(file: Any) -> bool:
    place = file.tell()
    start = file.read(len(BEGINNING))
    if isinstance(start, str):
        raise TypeError("must be str, not bytes\nHint: open the file in binary mode: open(path, 'rb').")
    file.seek(place)
    return bool(start == BEGINNING)


def _refuse_nothing(file: Any) -> None:
    """Refuse an empty file."""
    if not bytes_left(file):
        raise EOFError("Ran out of input\nHint: the file is empty.")


# ---- storages ----
def _dtype_of(storage_type: Any) -> Any:
    """Return the dtype of a storage's class, None for one that has bytes."""
    if storage_type is UntypedStorage:
        return None
    if not is_one_of(storage_type, OLD_STORAGES.values()):
        raise TypeError(f"a file names {storage_type} where the class of a storage should be")
    return storage_type.dtype


def _empty_storage(storage_type: Any, count: int, left: int) -> Any:
    """Make a storage of a number of elements, whose values come later from the `left` bytes of a file."""
    dtype = _dtype_of(storage_type)
    nbytes = count * (1 if dtype is None else dtype.itemsize)
    if nbytes > left:
        raise RuntimeError(f"unexpected EOF, expected {nbytes - left} more bytes. The file might be corrupted.")
    memory = storage_on(np.empty(count, np.uint8 if dtype is None else dtype.numpy))
    return memory if dtype is None else typed_storage(memory, dtype)


def _read_archive(
    archive: ArchiveReader, unpickler_class: Callable[[Any], Any], restore: Any, is_mapped: bool, is_safe: bool
) -> Any:
    if not archive.has("constants.pkl"):
        return read_pickle(archive, "data", unpickler_class, restore, is_mapped)
    if is_safe:
        raise RuntimeError(SCRIPTED)
    warn(DISPATCHED)
    return import_module(f"{PACKAGE}.jit._torchscript").program_of(archive, restore)


def read_pickle(
    archive: ArchiveReader, name: str, unpickler_class: Callable[[Any], Any], restore: Any, is_mapped: bool = False
) -> Any:
    """Read a pickle of an archive, `name.pkl`, whose storages lie in the folder `name`."""
    import io

    swaps = _byte_order(archive) != sys.byteorder
    storages: dict[str, UntypedStorage] = {}

    def storage_of(identity: Any) -> Any:
        kind, storage_type, key, location, count = identity
        if kind != "storage":
            raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' but got '{kind}'")
        dtype = _dtype_of(storage_type)
        if key not in storages:
            memory = _memory(archive, f"{name}/{key}", count * (1 if dtype is None else dtype.itemsize), is_mapped)
            made = storage_on(memory if dtype is None else memory.view(dtype.numpy))
            if swaps and dtype is not None:
                made.byteswap(dtype)
            storages[key] = restore(made, location)
        return _typed(storages[key], uint8 if dtype is None else dtype)

    unpickler = unpickler_class(io.BytesIO(archive.read(f"{name}.pkl")))
    unpickler.storage_of = storage_of
    return unpickler.load()


def _typed(untyped: Any, dtype: Any) -> Any:
    if not isinstance(untyped, UntypedStorage):
        raise TypeError(
            "TypedStorage.__init__ received an invalid combination of arguments. Argument 'wrap_storage' must be UntypedStorage, "
            f"but got {type(untyped)}\nHint: map_location returned it."
        )
    return typed_storage(untyped, dtype)


def _memory(archive: ArchiveReader, name: str, nbytes: int, is_mapped: bool) -> Any:
    if options.skip_data.is_on():
        return np.empty(nbytes, np.uint8)
    if is_mapped:
        return archive.mapped_array(name, nbytes, options.get_default_mmap_options())
    return archive.read_array(name, nbytes)


def _byte_order(archive: ArchiveReader) -> str:
    if archive.has("byteorder"):
        found = archive.read("byteorder").decode()
        if found not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {found}")
        return found
    chosen = options.get_default_load_endianness()
    little, big = options.LoadEndianness.LITTLE, options.LoadEndianness.BIG
    return {little: "little", big: "big"}.get(chosen or options.LoadEndianness.NATIVE, sys.byteorder)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return what a file names that is in none of the lists."""
    import io
    import pickletools

    with _opened(f) as file:
        if not _begins_as_archive(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        content = ArchiveReader(file).read("data.pkl")
    named: list[str] = []
    texts: list[str] = []
    for code, argument, _ in pickletools.genops(io.BytesIO(content)):
        if code.name == "GLOBAL" and isinstance(argument, str):
            named.append(full_name(*argument.split(" ", 1)))
        elif code.name == "STACK_GLOBAL":
            named.append(full_name(*texts[-2:]))
        elif isinstance(argument, str):
            texts.append(argument)
    allowed = SAFE.keys() | allowed_by_user().keys()
    return [name for name in dict.fromkeys(named) if name not in allowed]
