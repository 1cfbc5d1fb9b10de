"""Where values leave the graph: the last few hundred places, for `autograd.explain`.

A value that was detached has no link to where it came from. So each call that cuts a value off notes its own place and, weakly,
the node of the value and the result: half a microsecond. Calls that are made on purpose (detach) and reading numbers (item), which may
happen often, are kept apart. Of operations without a gradient (argmax, a comparison) only that they were called is noted, which takes
a tenth of a microsecond: where, `explain` finds in the source.
"""

from __future__ import annotations

import sys
from collections import deque
from types import CodeType
from typing import Any, NamedTuple
from weakref import ref

from .._core.levels import creation_numbers
from .._places import OWN_TEXT, PACKAGE_FOLDER, describe, is_own, user_frame, users_files
from .node import Node, Slot

KEPT = 512
PASSING = (
    OWN_TEXT,
    *(
        f"{PACKAGE_FOLDER}{name}.py"
        for name in ("_watching", "overrides", "_dispatch/__init__", "tensor/_object/overriding", "debug/_recorder")
    ),
)


class Cut(NamedTuple):
    """One call that took a value out of the graph, or a block in which nothing is recorded (`source` is None then)."""

    how: str
    source: Any  # a weak reference to the value's node, or to the leaf itself
    result: Any  # a weak reference to the tensor that was made, if that may stand in a graph again
    code: CodeType | None
    offset: int
    number: int
    where: str = ""  # the place, if it was found in the source

    @property
    def place(self) -> str:
        """Return the file, the line and the source of the call."""
        return self.where if self.code is None else describe(self.code, self.offset)


_on_purpose: deque[tuple[Any, ...]] = deque(maxlen=KEPT)
_note_on_purpose, _frame_at = _on_purpose.append, sys._getframe
_readings: deque[tuple[Any, ...]] = deque(maxlen=KEPT)
_operations: deque[tuple[str, Any, int]] = deque(maxlen=KEPT)


def recent_cuts() -> list[Cut]:
    """Return the last cuts, the oldest first; those of operations have no place."""
    found = [Cut(*each) for each in (*_on_purpose, *_readings)]
    found += [Cut(name, source, None, None, 0, number) for name, source, number in _operations]
    return sorted(found, key=lambda cut: cut.number)


def note_cut(how: str, tensor: Any, edge: Any, result: Any, depth: int = 2) -> None:
    """Remember that a user's call took a tensor's value out of the graph; `depth`: how many frames up the call stands."""
    frame = sys._getframe(depth)
    code = frame.f_code
    if code.co_filename not in users_files:
        while code.co_filename.startswith(PASSING) and frame.f_back is not None:
            frame = frame.f_back  # the text of a public function, and what looks for modes before it
            code = frame.f_code
        if is_own(code.co_filename):
            return  # the library's own use of the call
    source = edge.node if type(edge) is Slot else edge if isinstance(edge, Node) else tensor
    _on_purpose.append((how, ref(source), ref(result), code, frame.f_lasti, creation_numbers()))


def note_operation(name: str, source: Any) -> None:
    """Remember that an operation without a gradient used a value, which is given by its edge, or the leaf itself."""
    _operations.append((name, ref(source.node if type(source) is Slot else source), creation_numbers()))


def note_reading(how: str, source: Any) -> None:
    """Remember that a user's call made numbers of a value."""
    frame = sys._getframe(2)
    if (code := frame.f_code).co_filename not in users_files:
        frame = user_frame(frame)
        code = frame.f_code
    if type(source) is Slot:
        source = source.node
    _readings.append((how, ref(source), None, code, frame.f_lasti, creation_numbers()))


def note_block(how: str) -> None:
    """Remember the beginning of a block that records nothing."""
    frame = _frame_at(2)
    code = frame.f_code
    if code.co_filename not in users_files and is_own(code.co_filename):
        if (function := frame.f_locals.get("function")) is None or _is_own(function):
            return  # the library's own block; else a user's function that is decorated
        frame = user_frame(frame)
        code = frame.f_code
    _note_on_purpose((how, None, None, code, frame.f_lasti, creation_numbers()))


def _is_own(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and is_own(code.co_filename)
