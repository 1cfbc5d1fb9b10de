"""explain: does a gradient flow from one tensor to another, along which lines, and if not, where was the path cut?"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from .._core.arrays import owner_of_memory, raw_leaf
from .._graph.cuts import Cut, recent_cuts
from .._graph.node import Freed, Node
from .._graph.walk import graph_of, node_of, path_between
from .._places import at_line, line_of, user_frame
from ..tensor import _base
from ..tensor._base import edge_of
from ..tensor._functions.creation import ones_like
from ._explain_source import Way
from .engine import Capture, run_backward

LONGEST_CYCLE = 20  # steps of a loop's body that are recognised when they repeat
REPEATS = 3  # of equal steps are shown; more are counted
MOST_PATHS = 8  # that are tried if no gradient comes on the shortest
ENDS = 20  # steps at both ends of a path that is shown


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
        width = max([len(step.operation) for step in self.path], default=0)
        lines = [self.reason, *_shortened(self.path, width)]
        for cut in self.cuts:
            lines += [f"  {cut.how}{':' if cut.place else ''}", *(f"  {line}" for line in cut.place.splitlines())]
        return "\n".join(lines)


def explain(output: Any, input: Any) -> Explanation:
    """Say how the gradient of `output` reaches `input`: the path with the norms along it, or where it was cut.

    Cuts are detach(), .data, Parameter(...), tensor(...), item(), tolist() and the like, casts to integers, comparisons, argmax and
    other operations without a gradient, grad() without create_graph, no_grad and inference_mode blocks, as far as they are among
    the last few hundred. Which of them lead to output is read from the source around the call, where there is one.

    Args:
        output: a tensor
        input: a tensor that it may have been computed from

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> y = (x * 2).detach()
        >>> print(str(torch.autograd.explain((x + y).sum(), x)).splitlines()[0])
        A gradient flows from output to input:
    """
    for name, value in (("output", output), ("input", input)):
        if not isinstance(value, _base.Tensor):
            raise TypeError(f"explain(): {name} must be a Tensor, not {type(value).__name__}")
    if input._edge is None:
        return Explanation(False, [], [], _NOT_RECORDED)
    target = edge_of(input)
    path = None if output._edge is None else path_between(edge_of(output), target)
    if path is None:
        reason, cuts = why_not(output, target, user_frame(sys._getframe(1)))
        return Explanation(False, [], cuts, reason)
    if any(isinstance(node, Node) and type(node.guard) is Freed for node in map(node_of, path)):
        return _explanation(path, [], ". A backward has freed the graph, so there are no norms")
    try:
        path, norms = _followed(output, path, target)
    except Exception as error:  # of a hook, of a backward: nothing to do with the question
        if runs_again(graph_of([edge_of(output)])[0]):
            return _explanation(path, [], f". {REENTRANT}, which backward() alone can run, so there are no norms")
        words = str(error).splitlines()[0] if str(error) else ""
        return _explanation(path, [], f". There are no norms because backward raises {type(error).__name__}: {words}")
    last = norms[-1]
    if last is None:
        return _ends_before(path, norms)
    remark = (
        ", but it is NaN when it arrives" if np.isnan(last) else ", but it is zero when it arrives" if not last else ""
    )
    return _explanation(path, norms, remark)


_NOT_RECORDED = (
    "input requires no grad: nothing is recorded for it. requires_grad_() switches it on, if it is called before output is "
    "computed."
)


def _explanation(path: list[Any], norms: list[float | None], remark: str) -> Explanation:
    return Explanation(True, _steps(path, norms), [], f"A gradient flows from output to input{remark}:")


def _steps(path: list[Any], norms: list[float | None]) -> list[Step]:
    norms = norms or [None] * len(path)
    steps = [_step(node_of(edge), norm) for edge, norm in zip(path, norms, strict=True)]
    steps[-1] = Step("input", steps[-1].place, norms[-1])
    return steps


def _step(node: Any, norm: float | None) -> Step:
    if not isinstance(node, Node):
        return Step("input", None, norm)
    where = None if node.code is None else at_line(node.code.co_filename, line_of(node.code, node.lasti))
    return Step(node.name(), where, norm)


def _ends_before(path: list[Any], norms: list[float | None]) -> Explanation:
    """Say which operation hands no gradient on: a custom Function whose backward returns None."""
    end = next(i for i, norm in enumerate(norms) if norm is None)
    steps = _steps(path, norms)
    giver = steps[end - 1]
    reason = (
        f"No gradient arrives at input: {giver.operation} passes none on, because its backward returns None. The path, as far as "
        "the gradient goes:"
    )
    return Explanation(False, steps[:end], [], reason)


def _followed(output: Any, path: list[Any], target: Any) -> tuple[list[Any], list[float | None]]:
    """Return a path and the norms on it; another one if a gradient arrives that does not come on the shortest."""
    norms = _norms(output, path)
    found, others, passed_by = norms, path, set[int]()
    while found[-1] is not None and None in found and len(passed_by) < MOST_PATHS:
        passed_by.add(id(node_of(others[found.index(None)])))
        shorter = path_between(path[0], target, set(passed_by))
        if shorter is None:
            break
        others, found = shorter, _norms(output, shorter)
        if None not in found:
            return others, found
    return path, norms


def _norms(output: Any, path: list[Any]) -> list[float | None]:
    """Return the norm of the gradient that arrives at each node of a path, for a gradient of ones at the output."""
    capture = Capture(path[1:])
    run_backward([path[0]], [ones_like(output)], graph=False, keep=True, capture=capture)
    return (
        [float(np.sqrt(output.numel())), *map(_norm, capture.results())]
        if len(path) > 1
        else [_norm(ones_like(output))]
    )


def _norm(grad: Any) -> float | None:
    if grad is None:
        return None
    array = np.asarray(raw_leaf(grad._array))
    return float(np.sqrt((np.abs(array.astype(np.complex128)) ** 2).sum()))


# ---- writing ----
def _shortened(path: list[Step], width: int) -> list[str]:
    """Write the steps of a path; what a loop repeats is written a few times and then counted."""
    rows: list[str] = []
    at = 0
    while at < len(path):
        length, times = _cycle(path, at)
        shown = min(times, REPEATS)
        rows += [_row(step, width) for step in path[at : at + length * shown]]
        if times > shown:
            what = "the same line" if length == 1 else f"the same {length} lines"
            rows.append(f"  ... {what} {times - shown} more times ...")
        at += length * times
    if len(rows) > 2 * ENDS:
        rows[ENDS:-ENDS] = [f"  ... {len(rows) - 2 * ENDS} more lines ..."]
    return rows


def _cycle(path: list[Step], at: int) -> tuple[int, int]:
    """Return how many steps from here on repeat, and how often."""
    keys = [(step.operation, step.place) for step in path[at:]]
    for length in range(1, min(LONGEST_CYCLE, len(keys) // 2) + 1):
        times = 1
        while keys[times * length : (times + 1) * length] == keys[:length]:
            times += 1
        if times > REPEATS:
            return length, times
    return 1, 1


def _row(step: Step, width: int) -> str:
    norm = "" if step.norm is None else f"|grad| = {step.norm:.4g}"
    return f"  {step.operation:<{width}}  {norm:<18}  {step.place or ''}".rstrip()


# ---- which of the cuts that were noted stand between two tensors ----
MOST = 8  # cuts that are shown
NO_PATH = "No gradient flows from output to input"


def why_not(output: Any, target: Any, frame: FrameType) -> tuple[str, list[Cut]]:
    """Say why no path leads from a tensor to an edge; `frame` asks. Returns words, and the cuts they introduce."""
    nodes, leaves = graph_of([] if output._edge is None else [edge_of(output)])
    way = Way(frame)
    surely, perhaps = _sorted_out(_possible(target), way, _Links(output, nodes, leaves))
    held = [cut for cut in surely if cut.source is not None and cut.source() is not None]
    if not held and (surely or perhaps) and way.never_reads(target):
        return f"{NO_PATH}: input was never used in what led to output.", []
    if surely:
        return f"{NO_PATH}. On the way from input to output, values left the graph here:", surely[-MOST:]
    taken_in = [] if output._edge is None else [node.seq for node in nodes if _takes_values_in(node)]
    if output._edge is None or taken_in:
        perhaps = [cut for cut in perhaps if not taken_in or cut.number < max(taken_in)]
        if perhaps:
            return (
                f"{NO_PATH}. These lines took values out of the graph, or switched gradients off; it is not known whether output was "
                "computed from such values:",
                perhaps[-MOST:],
            )
    if output._edge is not None:
        hidden = (
            f" {REENTRANT}, and what that uses besides its arguments is not in the graph." if runs_again(nodes) else ""
        )
        return (
            f"{NO_PATH}: output does not depend on it according to its graph, which begins at other leaves.{hidden}",
            [],
        )
    if output._array.dtype.kind not in "fcV":
        return f"{NO_PATH}: output is {output.dtype}, and only floating point and complex tensors have gradients.", []
    return f"{NO_PATH}: output requires no grad. {_FROM_NOTHING}", []


def _sorted_out(possible: list[Cut], way: Way, links: _Links) -> tuple[list[Cut], list[Cut]]:
    """Return which cuts lead to the output for sure, and which perhaps do."""
    surely, perhaps = [], []
    for cut in possible:
        if cut.code is None:
            how = f"{cut.how}(), which has no gradient"
            places = way.places_of(cut.how)
            surely += [cut._replace(how=how, where=where) for where in places or ()]
            perhaps += [cut._replace(how=how)] if places is None else []
            continue
        leads = way.leads_through(cut.code, cut.offset)
        if leads or links.has(cut):
            surely.append(cut)
        elif leads is None:
            perhaps.append(cut)
    return surely, perhaps


def why_none(output: Any, frame: FrameType) -> str:
    """Say why a tensor requires no grad, in lines for an error: where values left the graph, or that none was ever in it."""
    surely, perhaps = _sorted_out(_possible(None), Way(frame), _Links(output, set(), set()))
    if surely:
        return "values left the graph here:\n" + _written(surely)
    if output._array.dtype.kind not in "fcV":
        return f"it is {output.dtype}, and only floating point and complex tensors have gradients."
    if perhaps:
        return (
            "nothing that it was computed from requires grad, or it has left the graph, perhaps at one of these lines:\n"
            + _written(perhaps)
        )
    return (
        "nothing that it was computed from requires grad. Call requires_grad_() on what you want gradients of, or make it with "
        "requires_grad=True, before you compute with it."
    )


def _written(cuts: list[Cut]) -> str:
    lines = [(f"{cut.how}:", *cut.place.splitlines()) if cut.place else (cut.how,) for cut in cuts[-MOST:]]
    return "\n".join(f"  {line}" for some in lines for line in some)


_FROM_NOTHING = "None of the values it was computed from does, or they were integers, as indices are."


REENTRANT = "There is a reentrant checkpoint on the way"


def runs_again(nodes: Iterable[Any]) -> bool:
    """Tell whether a reentrant checkpoint is among nodes."""
    return any(type(node).__name__ == "CheckpointFunctionBackward" for node in nodes)


def _possible(target: Any) -> list[Cut]:
    """Return the cuts of values that depend on the target, or may have, one for each place, the oldest first. None: of any."""
    since = 0 if target is None else node_of(target).seq if isinstance(node_of(target), Node) else 0
    fruitless: set[int] = set()
    found: dict[Any, Cut] = {}
    for cut in recent_cuts():
        if cut.number <= since:
            continue
        source = None if cut.source is None else cut.source()
        if source is None or target is None or path_between(source, target, fruitless) is not None:
            key = (cut.code, cut.offset, cut.how)
            found.pop(key, None)
            found[key] = cut
    return list(found.values())


class _Links:
    """What a graph holds of the results of cuts: leaves made of them, and their memory among saved values."""

    def __init__(self, output: Any, nodes: set[Any], leaves: set[Any]) -> None:
        self.tensors = {id(output), *map(id, leaves)}
        self.memory = {id(owner_of_memory(raw_leaf(leaf._array))) for leaf in leaves}
        for node in nodes:
            for name in node.array_names:
                value = getattr(node, name, None)
                if isinstance(value, np.ndarray):
                    self.memory.add(id(owner_of_memory(value)))

    def has(self, cut: Cut) -> bool:
        result = None if cut.result is None else cut.result()
        if result is None:
            return False
        array = result._array
        return id(result) in self.tensors or (
            isinstance(array, np.ndarray) and id(owner_of_memory(array)) in self.memory
        )


def _takes_values_in(node: Any) -> bool:
    """Tell whether an operation may have used a tensor that is not in the graph."""
    if node.primitive is None:
        given = getattr(node, "is_tensor_input", (True,) * len(node._edges))
        return any(edge is None and tensor for edge, tensor in zip(node._edges, given, strict=False))
    names = node.primitive.inputs
    for i, edge in enumerate(node._edges):
        if edge is None:
            value = getattr(node, names[i], None) if i < len(names) else None
            if value is None or not isinstance(value, (bool, int, float, complex)):
                return True
    return False
