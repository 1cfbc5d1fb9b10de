"""A file that takes the place of another one when it is whole.

Note [A save that is cut off]
What is written lies beside the old file, reaches the disk, and is then given its name: whoever looks, at any time and also after
a crash, finds the old file or the new one. Where the system can, the new file has no name until then, so that a process that is
killed leaves nothing behind. Other names of the old file (hard links) keep the old content.

Pipes, terminals and other things that are no files are written to as they are. So is a file in a folder where nothing new may be
made: it cannot be replaced, and a write that is cut off there loses it.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import Any

_OPEN_FILES = "/proc/self/fd"
_UNNAMED = getattr(os, "O_TMPFILE", None) if os.path.isdir(_OPEN_FILES) else None
_DEVICES = ("/dev/", "/proc/")  # where the names of open files stand, which cannot be replaced


class Replacement:
    """A file to write to, as a context: it replaces the one at a path unless the block fails."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.target = os.path.realpath(path)  # what a link points at is replaced, not the link
        self.written: str | None = None  # the name of the new file while it has one of its own
        try:
            self.old: os.stat_result | None = os.stat(path)
        except FileNotFoundError:
            self.old = None
        self.in_place = os.path.abspath(path).startswith(_DEVICES) or not self._is_file()
        if self.in_place:
            self.file: Any = open(path, "wb")  # noqa: SIM115 - closed by __exit__
            return
        if self.old is not None:
            os.close(os.open(self.target, os.O_WRONLY))  # which says so if it may not be written to
        try:
            self.file = self._new_file()
        except PermissionError:
            if self.old is None:
                raise
            self.in_place, self.file = True, open(self.target, "wb")  # noqa: SIM115

    def _is_file(self) -> bool:
        return self.old is None or stat.S_ISREG(self.old.st_mode)

    def _beside(self) -> str:
        return os.path.join(os.path.dirname(self.target), f".saving-{secrets.token_hex(8)}")

    def _new_file(self) -> Any:
        if _UNNAMED is not None:
            with suppress(OSError):  # some file systems do not know it
                folder = os.path.dirname(self.target)
                return open(os.open(folder, _UNNAMED | os.O_WRONLY, 0o666), "wb")
        self.written = self._beside()
        return open(self.written, "xb")

    def __enter__(self) -> Any:
        return self.file

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and not self.in_place:
                self._take_place()
        finally:
            self.file.close()
            if self.written is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self.written)

    def _take_place(self) -> None:
        self.file.flush()
        number = self.file.fileno()
        if self.old is not None:
            with suppress(OSError, AttributeError):  # only its owner, and Unix, know whose a file is
                os.fchown(number, self.old.st_uid, self.old.st_gid)
            os.chmod(number if os.chmod in os.supports_fd else self.written or "", stat.S_IMODE(self.old.st_mode))
        os.fsync(number)
        if self.written is None:
            self.written = self._beside()
            files = os.open(_OPEN_FILES, os.O_RDONLY)
            try:
                os.link(str(number), self.written, src_dir_fd=files, follow_symlinks=True)
            finally:
                os.close(files)
        else:
            self.file.close()  # Windows renames no open file
        os.replace(self.written, self.target)
        self.written = None
        with suppress(OSError):  # a folder that cannot be opened, as on Windows
            folder = os.open(os.path.dirname(self.target), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
