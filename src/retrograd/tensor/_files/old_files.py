"""torch's old file format: pickles one after the other, then the memories. torch pickles storages in it to this day.

It is: a number, the version, facts about the machine, the object, the keys of its storages, and then for each of them the number of its
elements and their bytes. Classes of modules stand there with their source, which is compared when the file is read.
"""

from __future__ import annotations

import inspect
import io
import pickle
import struct
import sys
from typing import Any

from ..._warnings import warn
from .._object.devices import on_host, place_array
from .archives import bytes_left, fill

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
MACHINE = {"protocol_version": VERSION, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


class SourceChangeWarning(Warning):
    """The class of a module in a file had another source."""

    __module__ = "retrograd.serialization"


# ---- writing ----
def write_old(obj: Any, file: Any, pickler_class: Any, protocol: int) -> None:
    """Save an object in the old format."""
    content = io.BytesIO()
    pickler = pickler_class(content, protocol=protocol)
    pickler.with_source = True
    pickler.dump(obj)
    for one in (MAGIC, VERSION, MACHINE):
        pickle.dump(one, file, protocol=protocol)
    file.write(content.getbuffer())
    pickle.dump(list(pickler.storages), file, protocol=protocol)
    for storage, itemsize in pickler.storages.values():
        row = on_host(storage.untyped()._row)
        file.write(struct.pack("<q", row.size // itemsize))
        file.write(row.data)


def storage_bytes(storage: Any) -> bytes:
    """Return a storage as the bytes of an old file, as plain pickles have it."""
    from .saving import pickler_class

    file = io.BytesIO()
    write_old(storage, file, pickler_class(None), 2)
    return file.getvalue()


def source_of(cls: type) -> tuple[str | None, str | None]:
    """Return the file and the source of a module's class; nothing for those of this package, whose source is not torch's."""
    if cls.__module__.partition(".")[0] in (__name__.partition(".")[0], "torch"):
        return None, None
    try:
        return inspect.getsourcefile(cls), inspect.getsource(cls)
    except (OSError, TypeError):
        warn(
            f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for correctness upon "
            "loading.",
        )
        return None, None


def module_class() -> Any:
    """Return the class of modules, if any can exist."""
    return getattr(sys.modules.get("retrograd.nn.modules.module"), "Module", None)


# ---- reading ----
def read_old(file: Any, unpickler_class: Any, restore: Any, storage_of_size: Any) -> Any:
    """Read an object in the old format; the first pickle has not been read yet."""
    if unpickler_class(file).load() != MAGIC:
        raise RuntimeError(
            "Invalid magic number; corrupt file?\nHint: if this is a plain pickle, pickle.load reads it."
        )
    version = unpickler_class(file).load()
    if version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    machine = unpickler_class(file).load()
    storages: dict[str, Any] = {}
    left = bytes_left(file)
    unpickler = unpickler_class(file)

    def persistent_load(identity: Any) -> Any:
        kind, *rest = identity
        if kind == "module":
            _compare_source(*rest)
            return rest[0]
        if kind != "storage":
            raise RuntimeError(f"Unknown saved id type: {kind}")
        storage_type, key, location, count, view = rest
        if key not in storages:
            made = storage_of_size(storage_type, count, left)
            placed = restore(made.untyped(), location)
            storages[key] = made, placed
        made, placed = storages[key]
        whole = made if placed is made.untyped() else _typed_like(made, placed)
        if view is None:
            return whole
        _, offset, length = view
        return _typed_like(made, placed[offset * made.element_size() : (offset + length) * made.element_size()])

    unpickler.storage_of = persistent_load
    result = unpickler.load()
    for key in unpickler_class(file).load():
        made, placed = storages[key]
        _read_storage(file, made, placed, bool(machine.get("little_endian", True)))
    return result


def _typed_like(made: Any, untyped: Any) -> Any:
    from .._storage.typed_storages import typed_storage

    return untyped if made is made.untyped() else typed_storage(untyped, made.dtype)


def _read_storage(file: Any, made: Any, placed: Any, is_little: bool) -> None:
    header = bytearray(8)
    fill(file, header)
    count, own = struct.unpack("<q" if is_little else ">q", header)[0], made.untyped()
    if count * made.element_size() != own.nbytes():
        raise RuntimeError(f"Attempted to set the storage of a tensor of {own.nbytes()} bytes from {count} elements")
    fill(file, own._row)
    if is_little != (sys.byteorder == "little") and made is not own:
        own.byteswap(made.dtype)
    if placed is not own:
        placed._row[...] = place_array(own._row, placed.device)


def _compare_source(cls: Any, path: str | None, source: str | None) -> None:
    if not path or not source or source_of(cls)[1] in (None, source):
        return
    warn(
        f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed. you can retrieve the original source code by "
        "accessing the object's source attribute or set `torch.nn.Module.dump_patches = True` and use the patch tool to revert "
        "the changes.",
        SourceChangeWarning,
    )
