"""Files by masks, and streams that know whether they are closed."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any

from ....._warnings import warn


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Refuse columns that are more, or fewer, than a function takes."""
    try:
        signature = inspect.signature(fn)
    except ValueError:  # a function of C
        return
    columns = input_col if isinstance(input_col, (list, tuple)) else [input_col]
    kinds = [one for one in signature.parameters.values()]
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in kinds)
    positional = [one for one in kinds if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in positional if one.default is one.empty]
    named = [one.name for one in kinds if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    name = getattr(fn, "__name__", str(functools.partial))
    if named:
        raise ValueError(
            f"The function {name} takes {len(named)} non-default keyword-only parameters, which is not allowed."
        )
    if len(columns) < len(needed):
        raise ValueError(
            f"The function {name} takes {len(needed)} non-default parameters, but {len(columns)} are required."
        )
    if len(columns) > len(positional) and not takes_any:
        raise ValueError(f"The function {name} takes {len(positional)} parameters, but {len(columns)} are required.")


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Tell whether a name fits one of some masks; no mask fits all."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, one) for one in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False
) -> Iterator[str]:
    """Return the files below a folder, or the one file, in the order of their names."""

    def unreadable(error: OSError) -> None:
        warn(f"{error.filename} : {error.strerror}")
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for path, folders, files in os.walk(root, onerror=unreadable):
        place = os.path.abspath(path) if abspath else path
        if not non_deterministic:
            files.sort()
            folders.sort()
        yield from (os.path.join(place, name) for name in files if match_masks(name, masks))
        if not recursive:
            return


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str] | str, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Open files by their names."""
    how = f"r{mode}" if mode in ("b", "t") else mode
    for one in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(one, str):
            raise TypeError(f"Expected string type for pathname, but got {type(one)}")
        yield one, StreamWrapper(open(one, how, encoding=encoding))  # noqa: SIM115 - whoever reads it closes it


def validate_pathname_binary_tuple(data: tuple[str, IOBase]) -> None:
    """Refuse what is no name with a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            f"binary stream within the tuple should have IOBase or StreamWrapper, but it is type {type(data[1])}"
        )


class StreamWrapper:
    """A stream that is closed with the last who holds it."""

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.name, self.closed = file_obj, name, False

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close all streams in nested values."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for one in v.values():
                cls.close_streams(one, depth + 1)
        elif isinstance(v, (list, tuple)):
            for one in v:
                cls.close_streams(one, depth + 1)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the stream."""
        self.file_obj.close(*args, **kwargs)
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )
