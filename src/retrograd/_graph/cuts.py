"""Where values leave the graph: the last few hundred places, for `autograd.explain`.

A value that was detached has no link to where it came from. So each call that cuts a value off notes its own place and, weakly,
the node of the value: half a microsecond, for calls that are made on purpose.
"""

from __future__ import annotations

import sys
from collections import deque
from types import CodeType
from typing import Any, NamedTuple
from weakref import ref

from .._core.levels import creation_numbers
from .._places import describe, library_files, user_frame
from .node import Node, Slot

KEPT = 512


class Cut(NamedTuple):
    """One call that took a value out of the graph, or a block in which nothing is recorded (`source` is None then)."""

    how: str
    source: Any  # a weak reference to the value's node, or to the leaf itself
    code: CodeType
    offset: int
    number: int

    @property
    def place(self) -> str:
        """Return the file, the line and the source of the call."""
        return describe(self.code, self.offset)


_recent: deque[tuple[Any, ...]] = deque(maxlen=KEPT)


def recent_cuts() -> list[Cut]:
    """Return the last cuts, the oldest first."""
    return [Cut(*each) for each in _recent]


def note_cut(how: str, tensor: Any, edge: Any, depth: int = 2) -> None:
    """Remember that a user's call took a tensor's value out of the graph; `depth`: how many frames up the call stands."""
    frame = sys._getframe(depth)
    code = frame.f_code
    if code.co_filename in library_files:
        while code.co_filename.startswith("<retrograd") and frame.f_back is not None:
            frame = frame.f_back  # the text of a public function
            code = frame.f_code
        if code.co_filename in library_files:
            return  # the library's own use of the call
    source = edge.node if type(edge) is Slot else edge if isinstance(edge, Node) else tensor
    _recent.append((how, ref(source), code, frame.f_lasti, creation_numbers()))


def note_block(how: str) -> None:
    """Remember the beginning of a block that records nothing."""
    frame = user_frame(sys._getframe(2))
    _recent.append((how, None, frame.f_code, frame.f_lasti, creation_numbers()))
