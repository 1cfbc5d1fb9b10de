"""Where values leave the graph: the last few hundred places, for `autograd.explain`.

A value that was detached has no link to where it came from. So each call that cuts a value off notes its own place and, weakly,
the node of the value: half a microsecond, for calls that are made on purpose.
"""

from __future__ import annotations

import sys
from collections import deque
from types import CodeType
from typing import Any
from weakref import ref

from .._core.levels import creation_numbers
from .._places import describe, library_files, user_frame
from .node import Node, Slot

KEPT = 512


class Cut:
    """One call that took a value out of the graph, or a block in which nothing is recorded (`source` is None then)."""

    __slots__ = ("_code", "_offset", "how", "number", "source")

    def __init__(self, how: str, source: Any, code: CodeType, offset: int) -> None:
        self.how = how
        self.source = None if source is None else ref(source)
        self.number = creation_numbers()
        self._code = code
        self._offset = offset

    @property
    def place(self) -> str:
        """Return the file, the line and the source of the call."""
        return describe(self._code, self._offset)


recent: deque[Cut] = deque(maxlen=KEPT)


def note_cut(how: str, tensor: Any, edge: Any, depth: int = 2) -> None:
    """Remember that a user's call took a tensor's value out of the graph; `depth`: how many frames up the call stands."""
    frame = sys._getframe(depth)
    while frame.f_code.co_filename.startswith("<retrograd") and frame.f_back is not None:
        frame = frame.f_back  # the text of a public function
    if frame.f_code.co_filename in library_files:
        return  # the library's own use of the call
    source = edge.node if type(edge) is Slot else edge if isinstance(edge, Node) else tensor
    recent.append(Cut(how, source, frame.f_code, frame.f_lasti))


def note_block(how: str) -> None:
    """Remember the beginning of a block that records nothing."""
    frame = user_frame(sys._getframe(2))
    recent.append(Cut(how, None, frame.f_code, frame.f_lasti))
