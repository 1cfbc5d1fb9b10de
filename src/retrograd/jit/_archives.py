"""The zip archives of traced, scripted and exported programs: a record in torch's format, and a mark that tells what it is."""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any

from ..fx.graph import Graph
from ..fx.graph_module import _records, graph_from_records
from ._script import ScriptFunction
from ._sources import Texts, restored

FOLDER = "archive"
VERSION = 1
BROKEN = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. "
    "This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving."
)
NOT_READ = {"/models/": "a program exported by torch"}


class Archive:
    """A kind of file, by the mark that it has."""

    def __init__(self, mark: str) -> None:
        self.mark = f"{FOLDER}/{mark}"

    def write(self, f: Any, program: Any, texts: list[dict[str, Any]], extra_files: dict[str, Any] | None) -> None:
        """Write a record, and other files beside it."""
        from ..serialization import save

        buffer = io.BytesIO()
        save({"program": program, "texts": texts}, buffer)
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.writestr(self.mark, str(VERSION))
            for name, content in (extra_files or {}).items():
                archive.writestr(f"{FOLDER}/extra/{name}", content)
        if isinstance(f, (str, os.PathLike)):
            with open(f, "wb") as file:
                file.write(buffer.getvalue())
        else:
            f.write(buffer.getvalue())

    def read(self, f: Any, map_location: Any, extra_files: dict[str, Any] | None) -> tuple[Any, list[dict[str, Any]]]:
        """Read what `write` wrote; `extra_files` gets the contents of the files that it names."""
        content = content_of(f)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _read_extra(archive, extra_files)
            if self.mark not in archive.namelist():
                raise _not_ours(archive.namelist())
            version = int(archive.read(self.mark))
        if version > VERSION:
            raise RuntimeError(
                f"the file is of version {version} of retrograd's record; this retrograd reads {VERSION}"
            )
        from ..serialization import load

        record = load(io.BytesIO(content), map_location=map_location, weights_only=False)
        return record["program"], record["texts"]


def content_of(f: Any) -> bytes:
    """Return what a zip archive holds, or torch's error for what is none."""
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
        with open(f, "rb") as file:
            content = file.read()
    else:
        content = f.read()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: not a ZIP archive. {BROKEN}")
    return content


def is_torchscript(content: bytes, extra_files: dict[str, Any] | None) -> bool:
    """Tell whether torch.jit.save has written an archive; `extra_files` gets the contents of the files that it names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = any(name.endswith("/constants.pkl") for name in archive.namelist())
        if found:
            _read_extra(archive, extra_files)
    return found


def _read_extra(archive: zipfile.ZipFile, extra_files: dict[str, Any] | None) -> None:
    for one in archive.namelist():
        _, inside, name = one.partition("/extra/")
        if extra_files is not None and inside and name in extra_files:
            extra_files[name] = archive.read(one)


def _not_ours(names: list[str]) -> Exception:
    for part, what in NOT_READ.items():
        if any(part in name for name in names):
            return NotImplementedError(
                f"the file holds {what}, which retrograd does not read yet\nHint: load it with torch, save its state_dict() by "
                "torch.save, and load that into a module of the same class."
            )
    return RuntimeError(
        f"PytorchStreamReader failed locating file constants.pkl: file not found. {BROKEN}\n"
        "Hint: torch.load reads files of torch.save."
    )


# ---- graphs ----
def graph_nodes(graph: Graph, texts: Texts) -> list[tuple[Any, ...]]:
    """Return the nodes of a graph as a file holds them."""
    return [
        (op, name, target if isinstance(target, str) else _target_record(target, texts), args, kwargs, kind)
        for op, name, target, args, kwargs, kind in _records(graph)
    ]


def graph_of_nodes(nodes: list[tuple[Any, ...]], texts: list[dict[str, Any]]) -> Graph:
    """Return the graph of nodes from a file."""
    return graph_from_records(
        [(op, name, _target(held, texts), args, kwargs, kind) for op, name, held, args, kwargs, kind in nodes]
    )


def _target_record(target: Any, texts: Texts) -> Any:
    if not isinstance(target, ScriptFunction):
        return texts.record(target)
    from ._serialization import function_record

    return ("script", function_record(target, texts))


def _target(held: Any, texts: list[dict[str, Any]]) -> Any:
    if isinstance(held, str):
        return held
    if held[0] != "script":
        return restored(held, texts)
    from ._serialization import function_from_record

    return function_from_record(held[1], texts)
