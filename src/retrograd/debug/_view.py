"""`record` and `view`: pictures of a computation that open in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .._graph.node import Freed, Node
from .._graph.walk import graph_of
from .._places import cell_of, user_frame
from .._readable import counted
from ..autograd._observing import Observer
from ..autograd.engine import Capture, run_backward
from ..tensor import _base
from ..tensor._base import edge_of
from ..tensor._functions.creation import ones_like
from ._boxes import Boxes
from ._findings import find_all, of_error, of_unused
from ._page import inline, page_of
from ._recorder import Recorder
from ._trace import ALL, NONE, SAVED, Trace
from ._variables import name_of
from ._watcher import Watcher

FILE = "retrograd-view.html"
LIMIT = 50_000


class Recording:
    """What was recorded, and the page that shows it. A notebook shows the page itself.

    `path` is the file it was written to, or None.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.path: Path | None = None

    def html(self) -> str:
        """Return the page: one HTML text that needs nothing from the net."""
        return page_of(self.trace)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, and return the file's path."""
        self.path = Path(path).absolute()
        self.path.write_text(self.html(), encoding="utf-8")
        return self.path

    def open(self) -> None:
        """Show the page in the browser; it is written first, if it is not in a file yet."""
        webbrowser.open((self.path or self.save(FILE)).as_uri())

    @property
    def findings(self) -> list[str]:
        """Return what stands out: NaN, gradients that vanish, are cut or missing, parameters that are never used, an error."""
        return [str(one) for one in self.trace.findings]

    def _repr_html_(self, height: int = 720) -> str:
        return inline(self.html(), height)

    def __repr__(self) -> str:
        trace = self.trace
        where = "" if self.path is None else f" in {self.path}"
        return f"<Recording of {counted(len(trace.operations), 'operation')} and {counted(len(trace.steps), 'event')}{where}>"


class record(Recording):  # noqa: N801 - it is used like a function
    """Record what a block computes, forward and backward, and write a page that shows it.

    Args:
        path: The HTML file to write when the block ends, also if an error ends it; None: none is written.
        steps: End the recording after so many steps of optimizers; None: at the end of the block.
        statistics: Whether to describe the values and gradients of every operation, which takes most of the time.
        limit: End the recording after so many events (operations, backwards of nodes, steps of optimizers).

    The results of the block are those that it would have without. The page has the graph, grouped by module or by line of the
    program, and a slider through all events with the memory at each. One thread is recorded; an optimizer's step is one event.

    Example:
        >>> import retrograd
        >>> model = retrograd.nn.Linear(3, 1)
        >>> with retrograd.debug.record(path=None) as recording:
        ...     model(retrograd.ones(2, 3)).sum().backward()
        >>> [operation.name for operation in recording.trace.operations if operation.kind == "operation"]
        ['ones', 'linear', 'sum']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = FILE,
        *,
        steps: int | None = None,
        statistics: bool = True,
        limit: int = LIMIT,
    ) -> None:
        for name, value in (("steps", steps), ("limit", limit)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(f"record(): {name} must be a positive integer, but got {value!r}")
        super().__init__(Trace(values=ALL if statistics else NONE))
        self._target = path
        self._recorder = Recorder(self.trace, limit=limit, steps=steps, statistics=statistics, when_full=self._finish)
        self._done = False

    def __enter__(self) -> Self:
        frame = user_frame(sys._getframe(1))
        self.trace.title = _title_of(frame.f_code.co_filename)
        self._start(frame)
        return self

    def _start(self, until: Any) -> None:
        if self._done:
            raise RuntimeError("record(): this recording has ended\nHint: make another one: with record(...):")
        self._recorder.start(until)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finish(error)

    def _finish(self, error: BaseException | None = None) -> None:
        """End, look for what stands out and write the page; the second time, nothing."""
        self._recorder.stop()
        if self._done:
            return
        self._done = True
        trace, watcher = self.trace, self._recorder.watcher
        if error is not None and not isinstance(error, SystemExit):
            trace.findings.append(of_error(trace, error))
        find_all(trace, watcher.roots, watcher.reached, watcher.unreached, self._recorder.stepped())
        trace.is_whole = error is None and not self._recorder.is_cut_off
        if trace.is_whole:  # else what would have used them may not have run
            trace.findings += of_unused(self._recorder.unused())
        if self._target is not None:
            self.save(self._target)


def view(*outputs: Any, path: str | os.PathLike[str] | None = FILE, gradients: bool = True) -> Recording:
    """Show the graph behind tensors in a page: every node, what it saved, the line it comes from.

    Args:
        outputs: Tensors that require grad, as a loss.
        path: The HTML file to write; None: none is written.
        gradients: Whether to compute the gradients of the outputs' sum, to show them at every node. No `.grad` changes and the graph
            stays as it is, but hooks are called.

    Values are known only of what the graph has saved: `record` knows more. In a notebook, the result shows itself.

    Example:
        >>> import retrograd
        >>> x = retrograd.ones(3, requires_grad=True)
        >>> recording = retrograd.debug.view((x * x).sum(), path=None)
        >>> [operation.name for operation in recording.trace.operations]
        ['x', 'mul', 'sum', 'backward']
    """
    if not outputs:
        raise TypeError("view(): expected at least one tensor")
    for output in outputs:
        if not isinstance(output, _base.Tensor):
            raise TypeError(
                f"view(): expected tensors, but got {type(output).__name__}\nHint: give them one by one: view(*outputs)."
            )
        if output._edge is None:
            raise RuntimeError(
                "view(): a tensor does not require grad, so there is no graph behind it\n"
                "Hint: retrograd.autograd.explain(output, input) says where it was cut; debug.record() shows all operations."
            )
    frame = user_frame(sys._getframe(1))
    recording = Recording(Trace(_title_of(frame.f_code.co_filename)))
    trace = recording.trace
    trace.values = SAVED
    boxes = Boxes(trace, statistics=True, name=lambda tensor: name_of(tensor, frame))
    edges = [edge_of(output) for output in outputs]
    boxes.sources(outputs)
    nodes, leaves = graph_of(edges)
    for node in nodes:
        boxes.describe_saved_output(node)
    watcher = Watcher(boxes, lambda: True, until=lambda: frame)
    if any(isinstance(node, Node) and type(node.guard) is Freed for node in nodes):
        trace.notes.append("A backward has freed the graph: there are no saved values and no gradients to show.")
    elif gradients:
        _run_backward(edges, outputs, leaves, watcher)
    boxes.close()
    find_all(trace, watcher.roots, watcher.reached, watcher.unreached)
    if path is not None:
        recording.save(path)
    return recording


def _title_of(file: str) -> str:
    """Return what a page about a program is called: its file, or the cell of a notebook."""
    return cell_of(file) or os.path.basename(file)


def _run_backward(edges: list[Any], outputs: tuple[Any, ...], leaves: set[Any], watcher: Watcher) -> None:
    if Observer.running is not None:
        raise RuntimeError(
            "view(): a recording is running\nHint: call view() after the block of record(), or view(..., gradients=False)."
        )
    capture = Capture(list(leaves))
    Observer.running = watcher
    try:
        run_backward(edges, [ones_like(output) for output in outputs], graph=False, keep=True, capture=capture)
    finally:
        Observer.running = None
