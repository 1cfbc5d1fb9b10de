"""Compiled kernels on disk. It is code that will run: only the user's own files are read, and only whole ones.

`RETROGRAD_CACHE=0` switches it off, any other value is the folder (else `retrograd/kernels` in the user's cache folder). Files are
named by a digest of the text, the processor and the versions; each begins with a digest of the rest. They are written beside and
renamed, so that a reader never sees half of one. Beyond LIMIT bytes the oldest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

LIMIT = 256 << 20
_SUFFIX = ".kernel"


def folder() -> Path | None:
    """Return where kernels are kept; None if they are not."""
    named = os.environ.get("RETROGRAD_CACHE")
    if named == "0" or not hasattr(os, "getuid"):
        return None
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "retrograd" / "kernels"
    except RuntimeError:  # no home
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Tell whether a file or a folder is the user's and nobody else can write to it."""
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read(digest: str) -> bytes | None:
    """Return the code under a digest; None if there is none that can be trusted."""
    where = folder()
    if where is None:
        return None
    try:
        if not _is_ours(where.stat()):
            return None
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe does not let us wait
        handle = os.open(where / (digest + _SUFFIX), flags)
    except OSError:
        return None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
        os.close(handle)
        return None
    with open(handle, "rb") as file:
        content = file.read()
    check, code = content[:32], content[32:]
    return code if len(check) == 32 and hashlib.sha256(digest.encode() + code).digest() == check else None


def write(digest: str, code: bytes) -> None:
    """Keep code under a digest. A cache that cannot be written is no error: the next process compiles again."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(where.stat()):
            return
        handle, name = tempfile.mkstemp(_SUFFIX, dir=where)
        try:
            with open(handle, "wb") as file:
                file.write(hashlib.sha256(digest.encode() + code).digest() + code)
            os.chmod(name, 0o600)
            os.replace(name, where / (digest + _SUFFIX))
        except OSError:
            os.unlink(name)
            raise
        if digest.startswith("00"):  # one in 256: the folder may hold ten thousands of files
            _make_room(where)


def _make_room(where: Path) -> None:
    with os.scandir(where) as entries:  # closed where another process has just removed a file, too
        # the folder may be one that the user named, and have other files
        ours = [entry for entry in entries if entry.name.endswith(_SUFFIX)]
        found = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in ours]
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= LIMIT:
            return
        os.unlink(path)
        total -= size
