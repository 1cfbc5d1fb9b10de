"""torch.cuda.graphs: work that is recorded once and replayed by the device. retrograd does not record work."""

from __future__ import annotations

from typing import Any, NoReturn

from .._tracebacks import guard_public as _guard_public
from . import is_current_stream_capturing

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.cuda.{name} needs a device that replays recorded work, which retrograd does not use yet\n"
        "Hint: the program computes the same without a graph."
    )


class CUDAGraph:
    """Work of a device that can be repeated: cannot be made here."""

    def __new__(cls, keep_graph: bool = False) -> NoReturn:
        """Refuse."""
        _refuse(cls.__name__)


class graph:  # noqa: N801 - torch's name
    """A block whose work is written down: cannot be entered here."""

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        _refuse("graph")


def graph_pool_handle() -> NoReturn:
    """Refuse."""
    _refuse("graph_pool_handle")


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse."""
    _refuse("make_graphed_callables")


_guard_public(globals())
