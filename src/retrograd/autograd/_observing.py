"""Who watches the engine: `retrograd.debug.record` does, and profilers do.

An observer sees every node run, by the same code as without it: gradients keep their bits, and memory its owners. The engine looks
for one when a backward begins, so that nodes pay nothing where nobody watches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from ._profiling import Recorder


class NodeRun(Protocol):
    """The run of one node."""

    pairs: Any  # what it gave: edges, each with its gradient


class Observer:
    """What the engine tells of its runs, if there is somebody to tell."""

    running: ClassVar[Observer | None] = None

    def backward_begins(self, roots: Sequence[Any], counts: Mapping[Any, int]) -> Self | None:
        """Be told that a run begins, and which nodes and leaves it will reach; return None to see none of it."""
        raise NotImplementedError

    def node(self, node: Any, g: Any, released: Any) -> AbstractContextManager[NodeRun]:
        """Return the block in which a node runs; `released`: None if it keeps what it saved."""
        raise NotImplementedError

    def backward_ends(self, roots: Sequence[Any]) -> None:
        """Be told that a run has ended, or was left by an error."""
        raise NotImplementedError


class Profiling:
    """The profiler that records, if one does: the engine asks at every backward, and most programs never load one."""

    running: ClassVar[Recorder | None] = None
