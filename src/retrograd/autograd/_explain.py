"""explain: does a gradient flow from one tensor to another, along which lines, and if not, where was the path cut?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import raw_leaf
from .._graph.cuts import Cut, recent_cuts
from .._graph.node import Freed, Node, Slot
from .._places import line_of
from ..tensor import _base
from ..tensor._base import edge_of
from ..tensor._creation import ones_like
from .engine import Capture, run_backward


@dataclass(frozen=True)
class Step:
    """One operation on the path, with the norm of the gradient that arrives at its output."""

    operation: str
    place: str | None
    norm: float | None


class Explanation:
    """What `explain` found. Printing it tells the story; `connected` says whether a gradient flows."""

    def __init__(self, connected: bool, path: list[Step], cuts: list[Cut], reason: str) -> None:
        self.connected = connected
        self.path = path
        self.cuts = cuts
        self.reason = reason

    def __repr__(self) -> str:
        lines = [self.reason]
        for step in self.path:
            norm = "" if step.norm is None else f"|grad| = {step.norm:.4g}"
            lines.append(f"  {step.operation:<24} {norm:<20} {step.place or ''}".rstrip())
        for cut in self.cuts:
            lines += [f"  {cut.how}:", *(f"  {line}" for line in cut.place.splitlines())]
        return "\n".join(lines)


def explain(output: Any, input: Any) -> Explanation:
    """Say how the gradient of `output` reaches `input`: the path with the norms along it, or where it was cut.

    Cuts are detach(), .data, tensor(...), casts to integers, no_grad and inference_mode blocks, as far as they are
    among the last few hundred.
    """
    for name, value in (("output", output), ("input", input)):
        if not isinstance(value, _base.Tensor):
            raise TypeError(f"explain(): {name} must be a Tensor, not {type(value).__name__}")
    if input._edge is None:
        return Explanation(False, [], [], _NOT_RECORDED.format(what="input"))
    target = _node(edge_of(input))
    if output._edge is not None:
        path = _path(_node(edge_of(output)), target)
        if path is not None:
            norms = _norms(output, path)
            steps = [_step(node, norm) for node, norm in zip(path, norms, strict=True)]
            return Explanation(True, steps, [], "A gradient flows from output to input:" + _remark(norms))
    return _where_it_was_cut(output, target)


def _where_it_was_cut(output: Any, target: Any) -> Explanation:
    """Name the calls that took values depending on the target out of the graph, or those that may have."""
    recent = recent_cuts()
    calls = [cut for cut in recent if cut.source is not None]
    certain = [cut for cut in calls if _depends(cut.source(), target)]
    if certain:
        return Explanation(False, [], certain, f"{_NO_PATH} Values that depend on input left the graph here:")
    since = _number(target)
    perhaps = [cut for cut in calls if cut.source() is None and cut.number > since]
    blocks = [cut for cut in recent if cut.source is None and cut.number > since]
    found = sorted([*perhaps, *blocks], key=lambda cut: cut.number)[-5:]
    if found:
        return Explanation(
            False,
            [],
            found,
            f"{_NO_PATH} These took values out of the graph, or switched gradients off; the graphs behind them are gone, so which of "
            "them is the reason cannot be told:",
        )
    if output._edge is None:
        return Explanation(False, [], [], _NOT_RECORDED.format(what="output"))
    return Explanation(False, [], [], f"{_NO_PATH} output does not depend on it.")


_NO_PATH = "No gradient flows from output to input."
_NOT_RECORDED = "{what} requires no grad: nothing is recorded for it. requires_grad_() switches it on."


def _node(edge: Any) -> Any:
    return edge.node if type(edge) is Slot else edge


def _number(node: Any) -> int:
    return node.seq if isinstance(node, Node) else 0


def _followers(node: Any) -> list[Any]:
    return [_node(edge) for edge in getattr(node, "_edges", ()) if edge is not None] if isinstance(node, Node) else []


def _path(start: Any, target: Any) -> list[Any] | None:
    """Return the nodes of a shortest path, the output's first, the target's last."""
    before: dict[int, Any] = {id(start): None}
    line = [start]
    for node in line:
        if node is target:
            path = [node]
            while before[id(path[-1])] is not None:
                path.append(before[id(path[-1])])
            return path[::-1]
        for following in _followers(node):
            if id(following) not in before:
                before[id(following)] = node
                line.append(following)
    return None


def _depends(node: Any, target: Any) -> bool:
    return node is not None and _path(node, target) is not None


def _norms(output: Any, path: list[Any]) -> list[float | None]:
    """Return the norm of the gradient that arrives at each node of a path, for a gradient of ones at the output."""
    if any(isinstance(node, Node) and type(node.guard) is Freed for node in path):
        return [None] * len(path)
    edges = [Slot(node, 0) if isinstance(node, Node) and node.num_outputs != 1 else node for node in path]
    capture = Capture(edges[1:])
    run_backward([edge_of(output)], [ones_like(output)], graph=False, keep=True, capture=capture)
    found = capture.results()
    arrays = [None if g is None else np.asarray(raw_leaf(g._array)) for g in found]
    seed = float(np.sqrt(output.numel()))
    return [
        seed,
        *(None if a is None else float(np.sqrt((np.abs(a.astype(np.complex128)) ** 2).sum())) for a in arrays),
    ]


def _remark(norms: list[float | None]) -> str:
    last = norms[-1]
    if norms[0] is None:
        return " a backward has freed the graph, so there are no norms."
    if last is not None and np.isnan(last):
        return " it is NaN when it arrives."
    if last == 0:
        return " but it is zero when it arrives."
    return ""


def _step(node: Any, norm: float | None) -> Step:
    if not isinstance(node, Node):
        return Step("input", None, norm)
    where = None if node.code is None else f"{node.code.co_filename}:{line_of(node.code, node.lasti)}"
    return Step(node.name(), where, norm)
