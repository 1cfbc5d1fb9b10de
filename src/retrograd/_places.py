"""Places: where in the user's program an operation was called.

A place is a code object and an instruction offset: no frame is kept alive, and the line is looked up only when an
error is written.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

PACKAGE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
COMMAND_FOLDER = PACKAGE_FOLDER + "cli" + os.sep
OWN_TEXT = "<retrograd: "


class Place:
    """A code object and an instruction offset in it."""

    __slots__ = ("code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset

    def __str__(self) -> str:
        return describe(self.code, self.offset)


# `file in users_files` takes 25 ns, a test of the file's beginning 60: what was tested is remembered.
own_files: set[str] = set()
users_files: set[str] = set()


def is_own(file: str) -> bool:
    """Tell whether a file, or a text that was compiled, is the package's."""
    if file in own_files or file in users_files:
        return file in own_files
    own = file.startswith((PACKAGE_FOLDER, OWN_TEXT))
    (own_files if own else users_files).add(file)
    return own


def own_text(what: str) -> str:
    """Return a file name for code that the package writes itself, which counts as the package's."""
    return f"{OWN_TEXT}{what}>"


def user_frame(frame: FrameType) -> FrameType:
    """Return the nearest caller outside this package, beginning with `frame` itself."""
    while (file := frame.f_code.co_filename) in own_files or (file not in users_files and is_own(file)):
        if (back := frame.f_back) is None:
            break
        frame = back
    return _called_over(frame) if may_be_taken_over else frame


may_be_taken_over = (
    False  # whether calls may come from what took others over: see Note [What a mode sees] in `_watching.py`
)
HANDLERS = ("__torch_dispatch__", "__torch_function__")


def _called_over(frame: FrameType) -> FrameType:
    """Return the caller whose call was taken over, if a frame is in what did so or in a function that it called."""
    above: FrameType | None = frame
    for _ in range(4):
        if above is None or is_own(above.f_code.co_filename):
            break
        if above.f_code.co_name in HANDLERS:
            return frame if above.f_back is None else user_frame(above.f_back)
        above = above.f_back
    return frame


def program_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Return a frame and its callers, the innermost first, without the package's, up to what has started the program, or a cell."""
    while frame is not None and not frame.f_code.co_filename.startswith(COMMAND_FOLDER):
        if not is_own(frame.f_code.co_filename):
            yield frame
            if frame.f_code.co_name == "<module>" and cell_of(frame.f_code.co_filename) is not None:
                return
        frame = frame.f_back


def user_stack(depth: int = 1) -> Any:
    """Return the lines of the program down to the nearest caller outside this package."""
    from traceback import extract_stack  # for anomaly mode, which few programs use

    return extract_stack(user_frame(sys._getframe(depth + 1)))


def user_place(depth: int = 1) -> Place | None:
    """Return the place of the nearest caller outside this package."""
    frame = user_frame(sys._getframe(depth))
    return Place(frame.f_code, frame.f_lasti)


def line_of(code: CodeType, offset: int) -> int:
    """Return the line of the instruction at `offset`."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            return number
    return line


def describe(code: CodeType, offset: int) -> str:
    """Write a place as Python's tracebacks do: file, line, function and the source line."""
    return written(code.co_filename, line_of(code, offset), code.co_name)


def cell_of(file: str) -> str | None:
    """Return what a notebook calls the cell whose code is in a file, such as `Cell In[3]`; None if it is no cell."""
    shell = None if (notebook := sys.modules.get("IPython")) is None else notebook.get_ipython()
    words = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return None if words is None else " ".join(words)


def written(file: str, line: int, name: str) -> str:
    """Write a line of a function as Python's tracebacks do, or those of notebooks."""
    if (cell := cell_of(file)) is None:
        text = f'  File "{file}", line {line}, in {name}'
    else:
        text = f"  {cell}, line {line}" + ("" if name == "<module>" else f", in {name}")
    source = linecache.getline(file, line).strip()
    return f"{text}\n    {source}" if source else text


def at_line(file: str, line: int, *, short: bool = False) -> str:
    """Write a line: `/home/me/train.py:12`, in short `train.py:12`; of a notebook `Cell In[3], line 12`."""
    if (cell := cell_of(file)) is not None:
        return f"{cell}, line {line}"
    return f"{os.path.basename(file) if short else file}:{line}"


def definition(function: Any) -> str | None:
    """Write where a user's function is defined; None for the package's own, and for what is not written in Python."""
    while (inner := getattr(function, "__wrapped__", None) or getattr(function, "func", None)) is not None:
        function = inner  # of a decorator, of functools.partial
    method = type(function).__call__ if callable(function) else None
    code = getattr(function, "__code__", None) or getattr(method, "__code__", None)
    if code is None or is_own(code.co_filename):
        return None
    line = code.co_firstlineno
    while linecache.getline(code.co_filename, line).strip().startswith("@"):
        line += 1
    return written(code.co_filename, line, code.co_name)
