"""The engine: one iterative loop under `backward`, `grad` and every transform.

Note [The order of nodes]
A pass over the graph counts, for every node, how many gradients will arrive; a node runs when the last one is in. Among
nodes that are ready, leaves come first, then the newest node, which is torch's order. The node that just became ready is
usually the next one, so it is kept in hand instead of going through the heap.

Note [Who owns a gradient]
A gradient that somebody else may hold is never written to. The engine owns a sum it has made, and adds to it in place.
What a rule returns is fresh unless it is the incoming gradient or a view; only fresh gradients become `.grad` as they
are, others are copied.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from contextvars import copy_context
from heapq import heappop, heappush
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _errors
from .._core import primitive as core
from .._core.arrays import NO_LEVELS, LevelArray, levels_of
from .._modes import current_mode, restore_mode, set_grad
from .._ops.levels import enter_dual
from .._places import Place
from ..tensor import _base
from ..tensor._base import LEAF, wrap
from ..tensor._layout import is_dense
from ..tensor._views import check_inplace, fit, wrote
from .._graph.node import Freed, Node, Slot
from .forward_ad import MADE_BY_USER

_state = core.engine_state
NDARRAY = np.ndarray
REENTRANT_LIMIT = 60  # nested backward calls on one Python stack; deeper ones move to a fresh thread


class Task:
    """One run of the engine, as hooks may ask for it."""

    __slots__ = ("__weakref__", "callbacks", "capture", "counts", "needed", "root")

    def __init__(self, counts: dict[Any, int], roots: Sequence[Any], capture: Any, needed: Any) -> None:
        self.counts = counts
        self.root = roots[0] if len(roots) == 1 else None  # torch does not count a single root among the nodes
        self.capture = capture
        self.needed = needed
        self.callbacks: list[Any] = []


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
    _state.depth = depth + 1
    _state.fresh = False
    graph = graph and not current_mode().inference
    # A seed that requires grad goes through as it is, even where no graph is made: then gradients are Tensors too.
    tensors = graph or any(seed.requires_grad for seed in seeds)
    previous = set_grad(graph)
    try:
        _run(roots, seeds, tensors, keep, capture, place)
    finally:
        restore_mode(previous)
        _state.depth = depth


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
SMALL = 4096  # elements; below, a new array is quicker than adding in place
SINGLE, STEP, LAST = 1, 2, 2  # one consumer: 1; k > 1 consumers: 2 k, counted down by 2


def _count(roots: Sequence[Any]) -> dict[Any, int]:
    """Count the gradients that each node and leaf will receive."""
    counts: dict[Any, int] = {}
    stack = []
    for root in roots:
        node = root.node if type(root) is Slot else root
        if node not in counts:
            counts[node] = 0
            stack.append(node)
    get = counts.get
    push, pop = stack.append, stack.pop
    while stack:
        for edge in pop()._edges:
            if edge is not None:
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
    return counts


def _run(
    roots: Sequence[Any], seeds: Sequence[Any], graph: bool, keep: bool, capture: Capture | None, place: Place | None
) -> None:
    counts = _count(roots)
    if capture is not None and not graph:
        capture.seen.update({id(seed._array): seed for seed in seeds})
    needed = None if capture is None else capture.needed(counts)
    keep_levels = _kept_levels(roots, seeds)
    pending: dict[Any, Any] = {}
    sums: set[Any] = set()  # targets whose pending gradient is a sum made here
    ready: list[tuple[int, int, Any]] = []
    _start(roots, seeds, counts, pending, sums, ready, graph)
    freed = Freed(place)
    task, outer = Task(counts, roots, capture, needed), _state.task
    _state.task = task
    watched = current_mode().anomaly or bool(keep_levels)
    leaf_types = _base.leaf_types
    node = g = grad = None
    try:
        while True:
            if node is None:
                if not ready:
                    break
                node = heappop(ready)[2]
                g = pending.pop(node, None)
            if type(node) in leaf_types:  # a root that is a leaf
                if g is not None:
                    _finish_leaf(node, g, graph, capture, root=len(roots) == 1)
                node = None
                continue
            if capture is not None and not capture.passes(node, g, graph, needed, len(roots) == 1):
                node = None
                continue
            extra = node.extra
            if type(g) is list:
                g = tuple(g) if any(part is not None for part in g) else None
            if g is None:
                if extra is None and not node.runs_without_gradient:
                    grads: Any = (None,) * len(node._edges)
                else:
                    g, grads = _without_gradient(node, extra, graph)
            else:
                if extra is not None:
                    g = _before(node, extra, g, graph)
                if capture is not None and capture.ends_at(node, needed):
                    node.touch(graph)
                    grads = (None,) * len(node._edges)
                else:
                    grads = node.pull_back(g, graph) if not watched else _watched(node, g, graph, keep_levels)
            if not keep and node.saves:
                node.release(freed)
            if extra is not None and extra.hooks:
                grads = _after(node, extra, _fit_all(node, grads, keep_levels), g, graph)
            elif node.meta is not None:
                grads = _fit_all(node, grads, keep_levels)
            following = g = None
            for edge, grad in zip(node._edges, grads):  # noqa: B905 - the keyword costs 100 ns
                if edge is None:
                    continue
                if type(edge) is Slot:
                    if grad is not None:
                        _add(pending, sums, edge, grad, graph)
                    edge, grad = edge.node, None
                left = counts[edge]
                if left != SINGLE:
                    if grad is not None:
                        if (held := pending.get(edge)) is None:
                            pending[edge] = grad
                        elif edge in sums and type(held) is NDARRAY and held.size > SMALL and not graph:
                            np.add(held, grad, out=held)
                        else:
                            pending[edge] = held + grad
                            sums.add(edge)
                            held = None
                    if left != LAST:
                        counts[edge] = left - STEP
                        continue
                    if type(edge) not in leaf_types or edge in pending:
                        grad = pending.pop(edge, None)
                if type(edge) in leaf_types:  # leaves come first: optimizer steps in backward depend on it
                    if grad is None:
                        if (extra := edge._extra) is not None and extra.hooked:
                            _finish_leaf(edge, None, graph, capture)
                    else:
                        if capture is None and not graph and ((extra := edge._extra) is None or not extra.hooked):
                            accumulate_raw(edge, grad)
                        else:
                            _finish_leaf(edge, grad, graph, capture)
                    continue
                if capture is not None and id(edge) not in needed and id(edge) not in capture.wanted:  # type: ignore[operator]
                    continue
                if following is None and edge not in pending:
                    following, g = edge, grad  # in hand: it is usually the next one
                else:
                    if grad is not None:
                        _add(pending, sums, edge, grad, graph)
                    heappush(ready, (-edge.seq, id(edge), edge))
            if following is not None and ready:
                if g is not None:
                    pending[following] = g
                heappush(ready, (-following.seq, id(following), following))
                following = g = None
            node = following
    finally:
        _state.task = outer
    for callback in task.callbacks:
        callback()


def _start(
    roots: Sequence[Any], seeds: Sequence[Any], counts: Any, pending: Any, sums: Any, ready: Any, graph: bool
) -> None:
    """Put the seeds in place, and the roots that wait for nothing on the heap."""
    for root, seed in zip(roots, seeds, strict=True):
        _add(pending, sums, root, seed if graph else seed._array, graph)
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


class Capture:
    """The gradients that `grad` returns, or the tensors that `backward(inputs=...)` fills."""

    __slots__ = ("accumulate", "found", "inputs", "seen", "wanted")

    def __init__(self, inputs: Sequence[Any], accumulate: bool = False) -> None:
        self.inputs = inputs
        self.accumulate = accumulate
        self.seen: dict[int, Any] = {}  # id of an array -> its Tensor: what passes unchanged is one tensor
        self.found: dict[tuple[int, int], Any] = {}
        self.wanted = {id(edge.node if type(edge) is Slot else edge) for edge in inputs}

    def needed(self, counts: dict[Any, int]) -> set[int]:
        """Return the ids of nodes that run: a wanted node or leaf can be reached from them."""
        consumers: dict[int, list[Any]] = {}
        for node in counts:
            for edge in node._edges:
                if edge is not None:
                    target = edge.node if type(edge) is Slot else edge
                    consumers.setdefault(id(target), []).append(node)
        found: set[int] = set(self.wanted) if self.accumulate else set()  # to fill `.grad`, torch runs the node itself
        stack = list(self.wanted)
        while stack:
            for node in consumers.get(stack.pop(), ()):
                if id(node) not in found:
                    found.add(id(node))
                    stack.append(id(node))
        return found

    def passes(self, node: Any, g: Any, graph: bool, needed: Any, single: bool) -> bool:
        """Keep the gradient of a wanted node; tell whether the node runs. One that does not runs its hooks here.

        Of several roots torch does not even visit those that are not needed.
        """
        runs = id(node) in needed
        if not runs and node.extra is not None and (single or id(node) in self.wanted):
            g = _tensor_hooks(node.extra, g, graph)
        if id(node) in self.wanted and not self.accumulate:
            for slot, part in enumerate(g if type(g) in (list, tuple) else (g,)):
                if part is not None:
                    self.keep(node, slot, part, graph)
        return runs

    def ends_at(self, node: Any, needed: Any) -> bool:
        """Tell whether nothing below a node is wanted: its hooks run, but it computes nothing."""
        if not self.accumulate or id(node) not in self.wanted:
            return False
        targets = [edge.node if type(edge) is Slot else edge for edge in node._edges if edge is not None]
        return not any(id(target) in needed for target in targets)

    def keep(self, node: Any, slot: int, g: Any, graph: bool) -> None:
        """Keep a gradient that was asked for."""
        tensor = g if graph else self.seen.get(id(g))
        if tensor is None:
            tensor = self.seen[id(g)] = wrap(g)
            if current_mode().inference:
                _base.storage_of(tensor).inference = True
        self.found[(id(node), slot)] = tensor

    def results(self) -> list[Any]:
        """Return what was found, in the order of the inputs."""
        keys = [(id(e.node), e.index) if type(e) is Slot else (id(e), 0) for e in self.inputs]
        return [self.found.get(key) for key in keys]


def _add(pending: dict[Any, Any], sums: set[Any], edge: Any, grad: Any, graph: bool) -> None:
    """Add a gradient to what a node or leaf has received. See Note [Who owns a gradient]."""
    if type(edge) is Slot:
        node = edge.node
        slots = pending.get(node)
        if slots is None:
            slots = pending[node] = [None] * node.num_outputs
        held = slots[edge.index]
        slots[edge.index] = grad if held is None else held + grad
        return
    held = pending.get(edge)
    if held is None:
        pending[edge] = grad
    elif not graph and edge in sums and type(held) is NDARRAY and type(grad) is NDARRAY:
        np.add(held, grad, out=held)
    else:
        pending[edge] = held + grad
        sums.add(edge)


def _fit_all(node: Any, grads: Any, keep_levels: frozenset[Any]) -> list[Any]:
    meta = node.meta
    if meta is None:
        return list(grads)
    return [
        g if g is None or facts is None else fit(g, facts, meta.rule_levels, keep_levels)
        for g, facts in zip(grads, meta.inputs, strict=False)
    ]


# ---- hooks ----
def _as_tensor(g: Any, graph: bool) -> Any:
    return g if g is None or graph else wrap(g)


def _as_given(value: Any, graph: bool) -> Any:
    if value is None or graph:
        return value
    return value._array


def call_tensor_hooks(hooks: dict[int, Any], tensor: Any) -> Any:
    """Run tensor hooks in the order of registration; each may replace the gradient, but not make one of None."""
    for hook in list(hooks.values()):
        result = hook(tensor)
        if result is not None:
            if not isinstance(result, _base.Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            _check_hook_result(hook, tensor, result)
            tensor = result
    return tensor


def _name(hook: Any) -> str:
    return f"'{getattr(hook, '__name__', '<unknown>')}'"


def _check_hook_result(hook: Any, before: Any, after: Any) -> None:
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if tuple(before._array.shape) != tuple(after._array.shape):
        raise RuntimeError(f"hook {_name(hook)} has changed the size of value")
    if before._array.dtype != after._array.dtype:
        was, got = (_errors._TYPE_NAMES[t._array.dtype.name] for t in (before, after))
        raise RuntimeError(f"hook {_name(hook)} has changed the type of value (was {was} got {got})")


def _without_gradient(node: Any, extra: Any, graph: bool) -> tuple[Any, Any]:
    """Run a node to which no gradient came: hooks see None, and so does a custom Function (or zeros)."""
    g: Any = None if node.num_outputs == 1 else (None,) * node.num_outputs
    if extra is not None:
        g = _before(node, extra, g, graph)
    if node.runs_without_gradient or (any(part is not None for part in g) if type(g) is tuple else g is not None):
        return g, node.pull_back(g, graph)
    return g, (None,) * len(node._edges)


def _tensor_hooks(extra: Any, g: Any, graph: bool) -> Any:
    """Run the hooks of the tensors that are a node's outputs, then fill `.grad` of those that retain it."""
    if not extra.tensor_hooks and not extra.retained:
        return g
    many = type(g) in (tuple, list)
    tensors = [_as_tensor(part, graph) for part in (g if many else (g,))]
    for slot, hooks in (extra.tensor_hooks or {}).items():
        tensors[slot] = call_tensor_hooks(hooks, tensors[slot])
    for slot, reference in (extra.retained or {}).items():
        owner = reference()
        if owner is not None and tensors[slot] is not None:
            _retain(owner, tensors[slot])
    values = tuple(_as_given(t, graph) for t in tensors)
    return values if many else values[0]


def _before(node: Any, extra: Any, g: Any, graph: bool) -> Any:
    """Run tensor hooks, then the node's pre-hooks. A hook sees None where no gradient has arrived."""
    g = _tensor_hooks(extra, g, graph)
    if extra.pre_hooks:
        many = type(g) is tuple
        tensors = tuple(_as_tensor(part, graph) for part in (g if many else (g,)))
        seen, rest = tensors[: node.hooked_outputs], tensors[len(tensors[: node.hooked_outputs]) :]
        for hook in list(extra.pre_hooks.values()):
            seen = _replaced(hook, hook(seen), seen)
        values = tuple(_as_given(t, graph) for t in (*seen, *rest))
        g = values if many else values[0]
    return g


def _replaced(hook: Any, result: Any, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a node's hook made of gradients, after torch's checks."""
    if result is None:
        return tensors
    result = (result,) if isinstance(result, _base.Tensor) else tuple(result)
    if len(result) != len(tensors):
        raise RuntimeError(
            f"hook {_name(hook)} has returned an incorrect number of values (got {len(result)}, but expected "
            f"{len(tensors)})"
        )
    for before, after in zip(tensors, result, strict=True):
        if after is not None:
            _check_hook_result(hook, before, after)
    return result


def _retain(owner: Any, grad: Any) -> None:
    extra = owner._need_extra()
    if extra.grad is not None:
        extra.grad = extra.grad + grad
        return
    extra.grad = grad.clone()
    extra.grad._array = _copied(extra.grad._array)


def _after(node: Any, extra: Any, grads: Any, g: Any, graph: bool) -> Any:
    """Run a node's hooks on what it computed."""
    outputs = tuple(_as_tensor(part, graph) for part in (g if type(g) is tuple else (g,)))[: node.hooked_outputs]
    tensors = tuple(_as_tensor(part, graph) for part in node.shown_of(grads))
    for hook in list(extra.hooks.values()):
        tensors = _replaced(hook, hook(tensors, outputs), tensors)
    given = [_as_given(t, graph) for t in tensors]
    if node.visible is None:
        return given
    full = list(grads)
    for at, value in zip(node.visible, given, strict=True):
        full[at] = value
    return full


# ---- leaves ----
def _holders(g: Any) -> int:
    return getrefcount(g)


def _one_holder() -> int:
    """Return what `getrefcount` says in `accumulate_raw` of a gradient that only the engine's loop holds.

    The same loop as the engine's, because what counts (the tuple, zip's own, the loop variable, the argument) differs
    between Pythons.
    """
    grads = (np.empty(1),)
    for _, grad in zip((None,), grads):  # noqa: B905 - as in the engine
        count = _holders(grad)
    return count


ONE_HOLDER = _one_holder()


def accumulate_raw(leaf: Any, g: Any) -> None:
    """Add a raw gradient to `.grad` of a leaf without hooks; a first one is taken as it is if nobody else sees it."""
    if leaf._edge is not LEAF:
        check_leaf(leaf)
        return
    with _accumulate_lock:  # another thread may have the same leaf
        extra = leaf._extra
        if extra is None:
            extra = leaf._extra = _base.Extra()
        held = extra.grad
        if held is None and type(g) is NDARRAY and g.base is None and getrefcount(g) <= ONE_HOLDER and g.flags.c_contiguous:
            extra.grad = wrap(g)
        else:
            accumulate_grad(leaf, g, False)


def _finish_leaf(leaf: Any, g: Any, graph: bool, capture: Capture | None, root: bool = False) -> None:
    """Hand a leaf its summed gradient: capture it, or add it to `.grad`."""
    extra = leaf._extra
    skipped = capture is not None and id(leaf) not in capture.wanted
    if skipped and not root:
        return
    if extra is not None and extra.hooks:
        g = _as_given(call_tensor_hooks(extra.hooks, _as_tensor(g, graph)), graph)
    if capture is not None:
        if skipped:
            return
        if not capture.accumulate:
            if g is not None:
                capture.keep(leaf, 0, g, graph)
            return
    if leaf._edge is not LEAF:
        check_leaf(leaf)
    elif extra is not None and extra.accumulator_pre_hooks:
        for hook in list(extra.accumulator_pre_hooks.values()):
            result = hook((_as_tensor(g, graph),))
            if result is not None:
                result = result if isinstance(result, _base.Tensor) else result[0]
                g = _as_given(result, graph)
    if g is not None and leaf._edge is LEAF:
        accumulate_grad(leaf, g, graph)
    extra = leaf._need_extra()
    if extra.post_hooks:
        for hook in list(extra.post_hooks.values()):
            hook(leaf)
    if extra.accumulator_hooks:
        for hook in list(extra.accumulator_hooks.values()):
            hook((), (_as_tensor(g, graph),))


def check_leaf(leaf: Any) -> None:
    """Raise torch's error for a tensor that was a leaf when it was used, and has a node now."""
    if leaf.requires_grad and not leaf.is_leaf:
        raise RuntimeError("leaf variable has been moved into the graph interior")


_accumulate_lock = threading.RLock()


def accumulate_grad(leaf: Any, g: Any, tensors: bool) -> None:
    """Add a gradient to a leaf's `.grad`, which never shares memory with anything else."""
    with _accumulate_lock:
        extra = leaf._need_extra()
        held = extra.grad
        if held is None:
            extra.grad = _first_gradient(g if tensors else wrap(g))
        elif current_mode().grad or isinstance(held._array, LevelArray) or isinstance(g, LevelArray):
            extra.grad = held + _as_tensor(g, tensors)
            if isinstance(extra.grad._array, np.ndarray) and not extra.grad._array.flags.c_contiguous:
                check_layout(extra.grad, leaf)
        else:
            array = _base.materialise(held)
            np.add(array, g._array if tensors else g, out=array, casting="unsafe")
            check_inplace(held)  # for inference tensors; torch, too, has added by then
            wrote(held, 3)
            if not array.flags.c_contiguous or not _base.materialise(leaf).flags.c_contiguous:
                check_layout(held, leaf)


def check_layout(grad: Any, leaf: Any) -> None:
    """Warn, as torch, of a gradient whose memory is ordered otherwise than the leaf's."""
    pairs = zip(leaf.shape, grad.stride(), leaf.stride(), strict=True)
    if is_dense(leaf._array) and any(n != 1 and a != b for n, a, b in pairs):
        warnings.warn(
            "grad and param do not obey the gradient layout contract. This is not an error, but may impair "
            f"performance.\ngrad.sizes() = {list(grad.shape)}, strides() = {list(grad.stride())}\nparam.sizes() = "
            f"{list(leaf.shape)}, strides() = {list(leaf.stride())}",
            stacklevel=2,
        )


def _first_gradient(g: Any) -> Any:
    """Copy a gradient for `.grad`, by torch's steps: new memory, then `copy_`."""
    grad = wrap(_copied(g._array))
    storage = _base.storage_of(grad)
    storage.version = 1
    storage.inference = current_mode().inference
    if g._edge is not None and current_mode().grad:
        from .._ops.shape import overwrite
        from ..tensor._record import record

        grad._edge = record(overwrite, (wrap(grad._array), g), {}, "CopyBackwards", 2)._edge
    return grad


def _copied(array: Any) -> Any:
    """Copy a gradient into dense memory of its own; NumPy scalars are values already."""
    if isinstance(array, np.generic):
        return array
    if isinstance(array, np.ndarray):
        return np.array(array, order="C")
    return array if isinstance(array, LevelArray) else array.copy()


# ---- anomaly mode, single nodes, callbacks ----
def _watched(node: Any, g: Any, graph: bool, keep_levels: frozenset[Any]) -> Any:
    """Run a node under anomaly detection, or where gradients keep levels."""
    if node.primitive is enter_dual and node.level in keep_levels and getattr(node, "shown", None) is MADE_BY_USER:
        return g, None  # the root is a dual itself: its gradient is that of the primal, tangents and all
    if not current_mode().anomaly:
        return node.pull_back(g, graph)
    from .anomaly_mode import run_watched

    return run_watched(node, g, graph)


def call_node(node: Any, grads: tuple[Any, ...]) -> Any:
    """Apply one node's backward to Tensors, as torch's `grad_fn(grad)`."""
    graph = current_mode().grad
    many = node.num_outputs != 1
    g: Any = tuple(_as_given(t, graph) for t in grads)
    _state.depth += 1
    try:
        results = _fit_all(node, node.pull_back(g if many else g[0], graph), NO_LEVELS)
    finally:
        _state.depth -= 1
    out = tuple(_as_tensor(r, graph) for r in results)
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


_base.Tensor._execution_engine = SimpleNamespace(queue_callback=queue_callback)  # torch.autograd.Variable's


__all__ = ["queue_callback", "run_backward"]
