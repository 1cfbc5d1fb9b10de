"""The engine: one iterative loop under `backward`, `grad` and every transform.

Note [The order of nodes]
A pass over the graph counts, for every node, how many gradients will arrive; a node runs when the last one is in. Among
nodes that are ready, leaves come first, then the newest node, which is torch's order. The node that just became ready is
usually the next one, so it is kept in hand instead of going through the heap.

Note [Who owns a gradient]
A gradient that somebody else may hold is never written to, and never becomes `.grad` as it is. The engine owns what is in
`owned`: the sums it has made, and new memory from a rule. A rule of ours (`Node.makes_gradients`) returns new memory, the
gradient that it was given, or a view of that; never a saved value (`tests/ops/test_gradient_owners.py` asks all of
them). The gradient that a node was given stays the engine's (`mine`) if one edge alone gets it. What users' functions
return and what hooks have seen is not the engine's.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from contextvars import copy_context
from heapq import heappop, heappush, heappushpop
from typing import Any

import numpy as np

from .._core import primitive as core
from .._core.arrays import NO_LEVELS, LevelArray, levels_of
from .._graph.large_backward import add_into, sum_of
from .._graph.node import Freed, Node, Slot
from .._graph.node import install as install_in_nodes
from .._modes import current_mode, restore_mode, set_grad
from .._ops.levels import add_levels, enter_dual
from .._places import Place
from .._thresholds import NATIVE
from ..tensor import _base
from ..tensor._aliasing.view_nodes import fit
from ..tensor._base import LEAF
from ..tensor._object.leaves import LeafDtypes
from ._accumulate import accumulate_raw, in_leaf_dtypes
from ._capture import Capture
from ._gathered import gather
from ._hooks import as_given, as_tensor, finish_leaf, run_after, run_before, run_late_hooks, without_gradient
from ._observing import Observer, Profiling
from .anomaly_mode import run_watched
from .forward_ad import MADE_BY_USER

_state = core.engine_state
NDARRAY = np.ndarray
REENTRANT_LIMIT = 60  # nested backward calls on one Python stack; deeper ones move to a fresh thread


_numbers = itertools.count()


class Task:
    """One run of the engine, as hooks may ask for it."""

    __slots__ = (
        "__weakref__", "callbacks", "capture", "counts", "gathered", "keep", "keep_levels", "needed", "node", "number", "pending", "root",
        "unreached",
    )  # fmt: skip

    def __init__(
        self,
        counts: dict[Any, int],
        pending: dict[Any, Any],
        roots: Sequence[Any],
        capture: Any,
        needed: Any,
        keep: bool,
        keep_levels: frozenset[Any],
    ) -> None:
        self.counts, self.pending = (
            counts,
            pending,
        )  # gradients still to come, and those that are there, by nodes and leaves
        self.keep = keep  # whether saved values stay
        self.keep_levels = keep_levels
        self.node: Any = None  # or leaf whose backward may call a user's function just now
        self.root = roots[0] if len(roots) == 1 else None  # torch does not count a single root among the nodes
        self.capture = capture
        self.needed = needed
        self.gathered: dict[Any, Any] = {}  # by nodes and leaves, see `_gathered.py`
        self.callbacks: list[Any] = []
        self.number = next(_numbers)
        self.unreached: set[Any] = set()  # nodes to which edges lead, but no way from a root: as if they were not there

    def leads_nowhere(self, node: Any) -> bool:
        """Tell whether no way leads over an edge of a node that hands on no gradient: no hook is called for it."""
        return node.holds_several or node in self.unreached

    def gather(self, bias: Any, weights: Any, left: Any, right: Any) -> bool:
        """Take the rows of a use of weights instead of its gradients, unless that is not worth it."""
        return gather(self, bias, weights, left, right)


def run_backward(
    roots: Sequence[Any],
    seeds: Sequence[Any],
    *,
    graph: bool,
    keep: bool,
    capture: Capture | None = None,
    place: Place | None = None,
) -> None:
    """Pull `seeds` (Tensors) back from the edges `roots`: fill `.grad` of leaves, or what `capture` asks for."""
    depth = _state.depth
    if depth and depth % REENTRANT_LIMIT == 0 and not _state.fresh:
        _in_fresh_thread(roots, seeds, graph, keep, capture, place, depth)
        return
    graph = graph and not current_mode().inference
    # A seed that requires grad goes through as it is, even where no graph is made: then gradients are Tensors too.
    tensors = graph or any(s.requires_grad for s in seeds)
    before = current_mode()
    try:
        _state.depth = depth + 1
        _state.fresh = False
        set_grad(graph)
        _run(roots, seeds, tensors, keep, capture, place)
    finally:  # the depth first: after a call there can be an interrupt
        _state.depth = depth
        restore_mode(before)


def _in_fresh_thread(*arguments: Any) -> None:
    """Go on in a thread with an empty Python stack; what it raises is raised here."""
    *call, depth = arguments
    failure: list[BaseException] = []

    def work() -> None:
        _state.depth, _state.fresh = depth, True
        roots, seeds, graph, keep, capture, place = call
        try:
            run_backward(roots, seeds, graph=graph, keep=keep, capture=capture, place=place)
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,))
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


# How many gradients a node waits for, so encoded that the common case of one consumer is told from the last of many.
SINGLE, STEP, LAST = 1, 2, 2  # one consumer: 1; k > 1 consumers: 2 k, counted down by 2


def _is_own_view(view: Any, given: Any, mine: bool) -> bool:
    """Tell whether a rule has returned a dense view of memory that is the engine's: new, or that of a gradient that is."""
    base = view.base
    return view.flags.carray and (mine or (base is not given and base is not getattr(given, "base", None)))


def _are_new(pairs: Any, given: tuple[Any, ...]) -> bool:
    """Tell whether the gradients that a node returned have no memory of those of its several outputs."""
    memories = [one for part in given for one in (part, getattr(part, "base", None)) if one is not None]
    grads = [one for _, grad in pairs for one in (grad, getattr(grad, "base", None)) if one is not None]
    return not any([one is memory for one in grads for memory in memories])


def _sum(held: Any, grad: Any) -> Any:
    """Add two gradients into new memory; the first one decides on its layout, as in torch."""
    if type(held) is NDARRAY is type(grad) and held.dtype is grad.dtype:
        return sum_of(held, grad)
    return held + grad


def _count(roots: Sequence[Any]) -> tuple[dict[Any, int], list[Any]]:
    """Count the gradients that each node and leaf will receive; list those from which none goes on."""
    counts: dict[Any, int] = {}
    ends: list[Any] = []
    found = []
    for root in roots:
        node = root.node if type(root) is Slot else root
        if node not in counts:
            counts[node] = 0
            found.append(node)
    get, push = counts.get, found.append
    for node in found:  # which grows meanwhile
        goes_on = False
        for edge in node._edges:
            if edge is not None:
                goes_on = True
                if type(edge) is Slot:
                    edge = edge.node
                seen = get(edge)
                if seen is None:
                    counts[edge] = SINGLE
                    push(edge)
                elif seen == SINGLE:
                    counts[edge] = 2 * STEP
                else:
                    counts[edge] = seen + STEP
        if not goes_on:
            ends.append(node)
    return counts, ends


def _meets_classes(found: Iterable[Any], seeds: Sequence[Any]) -> bool:
    """Tell whether a class with a `__torch_dispatch__` took part in a graph, which is given by its nodes and leaves."""
    types = _base.dispatch_types
    return any(type(one) in types or getattr(type(one), "of_dispatch", False) for one in (*seeds, *found))


def _choose_dtypes(found: Iterable[Any]) -> bool:
    """Tell whether a leaf of a graph has chosen the dtype of its gradient (`Tensor.grad_dtype`)."""
    leaves = [one._extra for one in found if type(one) in _base.leaf_types and one._extra is not None]
    return any(getattr(extra, "grad_dtype", LEAF) is not LEAF for extra in leaves)


def _run(
    roots: Sequence[Any], seeds: Sequence[Any], graph: bool, keep: bool, capture: Capture | None, place: Place | None
) -> None:
    counts, ends = _count(roots)
    dispatched = bool(current_mode().dispatch_modes) or (bool(_base.dispatch_types) and _meets_classes(counts, seeds))
    graph = graph or dispatched  # so that operations are seen: Note [Below autograd] in `_dispatch/__init__.py`
    if capture is not None and not graph:
        capture.seen.update({id(seed._array): seed for seed in seeds})
    selecting = capture is not None and not capture.wants_all(ends)
    needed = None if capture is None else capture.needed(counts) if selecting else set(map(id, counts))
    keep_levels = _kept_levels(roots, seeds)
    pending: dict[Any, Any] = {}
    owned: set[Any] = set()  # nodes and leaves whose pending gradient is the engine's
    ready: list[tuple[int, int, Any]] = []
    _start(roots, seeds, counts, pending, owned, ready, graph)
    freed = Freed(place)
    task, outer = Task(counts, pending, roots, capture, needed, keep, keep_levels), _state.task
    _state.task = task
    watched = current_mode().anomaly or bool(keep_levels) or Profiling.running is not None or dispatched
    plain = capture is None and not graph and not current_mode().inference
    # the common case, with the fewest questions
    straight = not (graph or watched or selecting or current_mode().inference)
    if straight and LeafDtypes.wanted:
        straight = not _choose_dtypes(counts)
    observer = None if Observer.running is None else Observer.running.backward_begins(roots, counts)
    observed_straight, straight = straight, straight and observer is None
    released = None if keep else freed
    leaf_types, gathered = _base.leaf_types, task.gathered
    node = g = None
    mine = False  # whether `g` is the engine's
    try:
        while True:
            if node is None:
                if not ready:
                    break
                node = heappop(ready)[2]
                g = pending.pop(node, None)
                mine = node in owned
                if type(node) in leaf_types:  # a root that is a leaf, before all nodes
                    if g is not None:
                        finish_leaf(node, g, graph, capture, root=len(roots) == 1)
                    node = None
                    continue
            if type(g) is list:
                g = tuple(g)
            pairs = node.straight(g, released, mine) if straight and g is not None else None
            makes = pairs is not None
            if pairs is None:
                if selecting and not capture.passes(node, g, graph, needed, len(roots) == 1):  # type: ignore[union-attr]
                    node = None
                    continue
                if observer is None:
                    pairs = _pull_back(node, g, graph, released, task, selecting, watched)
                else:
                    with observer.node(node, g, released) as seen:
                        pairs = node.straight(g, released, mine) if observed_straight and g is not None else None
                        makes = pairs is not None
                        if pairs is None:
                            pairs = _pull_back(node, g, graph, released, task, selecting, watched)
                        seen.pairs = pairs
            given, handed_on = g, mine and len(pairs) == 1
            if type(given) is tuple:
                makes = makes and _are_new(pairs, given)
            following = g = None
            for edge, grad in pairs:
                if edge is None:
                    continue
                if type(edge) is Slot:
                    slot, edge = edge, edge.node
                    if grad is not None:
                        if (parts := pending.get(edge)) is None:
                            parts = pending[edge] = [None] * edge.num_outputs
                        at = slot.index
                        parts[at] = grad if (held := parts[at]) is None else held + grad
                        grad = None
                left = counts[edge]
                if left != SINGLE:
                    if grad is not None:
                        if (held := pending.get(edge)) is None:
                            pending[edge] = grad
                            if (
                                makes
                                and type(grad) is NDARRAY
                                and grad.base is None
                                and (handed_on or grad is not given)
                            ):
                                owned.add(edge)
                        elif edge in owned and type(grad) is NDARRAY and held.dtype is grad.dtype:
                            if held.size < NATIVE:
                                held += grad
                            else:
                                add_into(held, grad)
                        elif (
                            makes
                            and type(held) is NDARRAY is type(grad)
                            and grad.base is None
                            and grad is not given
                            and held.dtype is grad.dtype
                            and (held.ndim < 2 or held.strides == grad.strides)  # the first one decides on the layout
                        ):
                            if grad.size < NATIVE:
                                grad += held
                            else:
                                add_into(grad, held)
                            pending[edge] = grad
                            owned.add(edge)
                        else:
                            held = pending[edge] = _sum(held, grad)
                            if type(held) is NDARRAY:
                                owned.add(edge)
                            else:  # a number, which has no memory to add to
                                owned.discard(edge)
                    if left != LAST:
                        counts[edge] = left - STEP
                        continue
                    if gathered and edge in gathered:
                        _add(pending, owned, edge, gathered.pop(edge).gradient_of(edge), graph)
                        owned.add(edge)
                    if type(edge) not in leaf_types or edge in pending:
                        grad = pending.pop(edge, None)
                    own = edge in owned
                else:
                    own = makes and type(grad) is NDARRAY and grad.base is None and (handed_on or grad is not given)
                if type(edge) in leaf_types:  # leaves come first: optimizer steps in backward depend on it
                    if grad is None:
                        if (extra := edge._extra) is not None and extra.hooked and not task.leads_nowhere(node):
                            finish_leaf(edge, None, graph, capture)
                    else:
                        if plain and ((extra := edge._extra) is None or not extra.hooked):
                            if not own and left == SINGLE and makes and type(grad) is NDARRAY and grad.base is not None:
                                own = _is_own_view(grad, given, handed_on)
                            accumulate_raw(edge, grad, own)
                        else:
                            finish_leaf(edge, grad, graph, capture)
                    continue
                if selecting and id(edge) not in needed and id(edge) not in capture.wanted:  # type: ignore[operator,union-attr]
                    continue
                if grad is None and edge not in pending and task.leads_nowhere(node):
                    task.unreached.add(edge)
                if following is None and edge not in pending:
                    following, g, mine = edge, grad, own  # in hand: it is usually the next one
                else:
                    if grad is not None:
                        if edge in pending:  # a root is a node below another one
                            _add(pending, owned, edge, grad, graph)
                        else:
                            pending[edge] = grad
                            if own:
                                owned.add(edge)
                    heappush(ready, (-edge.seq, id(edge), edge))
            node = following
            if node is not None and ready and (seq := -node.seq) > ready[0][0]:  # another one is newer
                if g is not None:
                    pending[node] = g
                    if mine:
                        owned.add(node)
                node = heappushpop(ready, (seq, id(node), node))[2]
                g = pending.pop(node, None)
                mine = node in owned
        task.node = None
        for callback in task.callbacks:  # which may queue others
            callback()
    except Exception as error:
        _tell_place(error, node)
        raise
    finally:
        _state.task = outer
        if observer is not None:
            observer.backward_ends(roots)


def _tell_place(error: Exception, node: Any) -> None:
    """Note in an error of a backward where its operation was called, unless its words say so."""
    place = node.place() if isinstance(node, Node) else None
    if place is not None and place not in str(error):
        note = f"In the backward of {node.name()}, which was recorded here:\n{place}"
        if note not in getattr(error, "__notes__", ()):  # of a backward inside of this one
            error.add_note(note)


def _pull_back(node: Any, g: Any, graph: bool, freed: Freed | None, task: Task, selecting: bool, watched: bool) -> Any:
    """Run a node and its hooks, and let go of its saved values unless `freed` is None: edges with their gradients."""
    task.node = node
    extra, capture, needed, keep_levels = node.extra, task.capture, task.needed, task.keep_levels
    mask = grads = None
    seen: Any = ()  # the gradients that hooks see which come while the node computes
    if g is None and node in task.unreached:  # nobody is asked, and it keeps what it has saved
        return [(edge, None) for edge in node._edges]
    if g is None:
        if extra is not None or node.runs_without_gradient:
            g, grads = without_gradient(node, extra, graph)
            seen = g if extra is not None and extra.hooks else ()
        else:
            node.touch(graph)
    else:
        if extra is not None:
            g = run_before(node, extra, g, graph)
            seen = g if extra.hooks else ()
        if selecting and capture.ends_at(node, needed):
            node.touch(graph)
        else:
            if selecting and node.takes_mask:
                mask = capture.mask(node, needed)
            if watched:
                grads = _watched(node, g, graph, keep_levels, mask)
            else:
                grads = node.pull_back_some(g, graph, mask) if node.takes_mask else node.pull_back(g, graph)
    if grads is None:
        grads = (None,) * len(node._edges)
    if freed is not None and node.saves:
        node.release(freed)
    if (extra := node.extra) is not None and extra.hooks:
        if capture is not None:
            grads = capture.masked(node, grads, needed)
        grads = run_after(node, extra, _fit_all(node, grads, keep_levels), seen, graph)
    elif node.meta is not None or LeafDtypes.wanted:
        grads = _fit_all(node, grads, keep_levels)
    if watched and current_mode().dispatch_modes:  # torch adds to what has come before any leaf takes its gradient
        pairs = zip(node._edges, grads, strict=False)
        return sorted(pairs, key=lambda one: one[0] is None or type(one[0]) is Slot or task.counts[one[0]] == SINGLE)
    return [*zip(node._edges, grads)]  # noqa: B905 - the keyword costs 100 ns


def _start(
    roots: Sequence[Any], seeds: Sequence[Any], counts: Any, pending: Any, owned: Any, ready: Any, graph: bool
) -> None:
    """Put the seeds in place, and the roots that wait for nothing on the heap."""
    for root, seed in zip(roots, seeds, strict=True):
        _add(pending, owned, root, seed if graph else seed._array, graph)
        node = root.node if type(root) is Slot else root
        if counts[node] == 0:
            counts[node] = -1  # on the heap already
            priority = -node.seq if isinstance(node, Node) else -(1 << 62)
            heappush(ready, (priority, id(node), node))


def _kept_levels(roots: Sequence[Any], seeds: Sequence[Any]) -> frozenset[Any]:
    """Return the levels of the roots, which gradients keep."""
    levels: frozenset[Any] = frozenset()
    for root, seed in zip(roots, seeds, strict=True):
        if isinstance(seed._array, LevelArray):
            levels |= levels_of(seed._array)
        node = root.node if type(root) is Slot else root
        if isinstance(node, Node):
            levels |= NO_LEVELS if node.meta is None else node.meta.out_levels
        else:
            levels |= levels_of(node._array)
    return levels


def _add(pending: dict[Any, Any], owned: set[Any], edge: Any, grad: Any, graph: bool) -> None:
    """Add a gradient to what a node or leaf has received. See Note [Who owns a gradient]."""
    if type(edge) is Slot:
        _add_part(pending, edge, grad)
        return
    held = pending.get(edge)
    if held is None:
        pending[edge] = grad
    elif not graph and edge in owned and type(grad) is NDARRAY and held.dtype is grad.dtype:
        add_into(held, grad)
    else:
        held = pending[edge] = _sum(held, grad)
        if type(held) is NDARRAY:
            owned.add(edge)
        else:
            owned.discard(edge)


def _add_part(pending: dict[Any, Any], slot: Slot, grad: Any) -> None:
    """Add a gradient to what one output of a node has received."""
    parts = pending.get(slot.node)
    if parts is None:
        parts = pending[slot.node] = [None] * slot.node.num_outputs
    held = parts[slot.index]
    parts[slot.index] = grad if held is None else held + grad


def _fit_all(node: Any, grads: Any, keep_levels: frozenset[Any]) -> list[Any]:
    meta = node.meta
    inputs = None if meta is None else meta.inputs
    if LeafDtypes.wanted:
        grads, inputs = in_leaf_dtypes(node, grads, inputs)
    if meta is None or inputs is None:
        return list(grads)
    levels = meta.rule_levels
    if meta.loses_levels:
        grads = [
            g if g is None or facts is None else add_levels(g, facts.levels - levels - keep_levels)
            for g, facts in zip(grads, meta.inputs, strict=False)
        ]
    fitted = []
    for g, facts in zip(grads, inputs, strict=False):
        if g is None or facts is None:
            fitted.append(g)
        elif (
            (levels is facts.levels or levels <= keep_levels) and g.shape == facts.shape and g.dtype is facts.dtype
        ):  # most gradients within a transform
            fitted.append(g)
        else:
            fitted.append(fit(g, facts, levels, keep_levels))
    return fitted


install_in_nodes(fit_all=_fit_all, run_late_hooks=run_late_hooks)


# ---- anomaly mode, single nodes, callbacks ----
def _watched(node: Any, g: Any, graph: bool, keep_levels: frozenset[Any], mask: Any = None) -> Any:
    """Run a node under anomaly detection, for a profiler, or where gradients keep levels."""
    recorder = Profiling.running
    if recorder is None:
        return _run_watched(node, g, graph, keep_levels, mask)
    entry, grads = recorder.begin_node(node), ()
    try:
        grads = _run_watched(node, g, graph, keep_levels, mask)
        return grads
    finally:
        recorder.end_node(entry, g, grads)


def _run_watched(node: Any, g: Any, graph: bool, keep_levels: frozenset[Any], mask: Any = None) -> Any:
    if node.primitive is enter_dual and node.level in keep_levels and getattr(node, "shown", None) is MADE_BY_USER:
        return g, None  # the root is a dual itself: its gradient is that of the primal, tangents and all
    if not current_mode().anomaly:
        seen = current_mode().dispatch_modes or type(g) in _base.dispatch_types
        if seen and (node.primitive is not None or hasattr(node, "operation")):
            return _base.dispatch_layer(".recording").pull_back_plain(node, g, mask)
        return node.pull_back_some(g, graph, mask) if node.takes_mask else node.pull_back(g, graph)
    return run_watched(node, g, graph)


def call_node(node: Any, grads: tuple[Any, ...]) -> Any:
    """Apply one node's backward to Tensors, as torch's `grad_fn(grad)`."""
    expected = node.num_outputs if node.hooked_outputs is None else node.hooked_outputs
    if len(grads) != expected:
        raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
    for i, one in enumerate(grads):
        if one is not None and not isinstance(one, core.tensor_type):
            raise TypeError(f"argument {i} is not a Variable")
    if all(one is None for one in grads):
        nothing = (None,) * len(node.shown_of(node._edges))
        return None if len(nothing) == 1 else nothing
    graph = current_mode().grad
    many = node.num_outputs != 1
    g: Any = tuple(as_given(t, graph) for t in grads) + (None,) * (node.num_outputs - expected)
    _state.depth += 1
    try:
        results = _fit_all(node, node.pull_back(g if many else g[0], graph), NO_LEVELS)
    finally:
        _state.depth -= 1
    out = tuple(as_tensor(r, graph) for r in results)
    return out[0] if len(out) == 1 else out


def current_task() -> Task:
    """Return the run of the engine that is calling a hook."""
    task = _state.task
    if task is None:
        raise RuntimeError("no backward is running in this thread")
    return task  # type: ignore[no-any-return]


def will_reach(edge: Any) -> bool:
    """Tell whether the running backward passes a node or leaf."""
    task = current_task()
    node, root = (one.node if type(one) is Slot else one for one in (edge, task.root))
    if node not in task.counts or node is root:
        return False
    if task.capture is None:
        return True
    if id(node) in task.capture.wanted and not isinstance(node, Node) and not task.capture.accumulate:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    return id(node) in task.needed or id(node) in task.capture.wanted


def queue_callback(callback: Any) -> None:
    """Run `callback` when the backward now running has finished."""
    if _state.task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _state.task.callbacks.append(callback)


__all__ = ["queue_callback", "run_backward"]
