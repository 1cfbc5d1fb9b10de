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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .._core import primitive as core
from .._core.arrays import LevelArray, levels_of
from .._modes import current_mode, using
from .._places import Place
from ..tensor import _base
from ..tensor._base import LEAF, wrap
from ..tensor._views import fit
from .._graph.node import Node, Slot

_state = threading.local()
REENTRANT_LIMIT = 60  # nested backward calls on one Python stack; deeper ones move to a fresh thread


class Task:
    """One run of the engine, as hooks may ask for it."""

    __slots__ = ("__weakref__", "callbacks", "counts")

    def __init__(self, counts: dict[Any, int]) -> None:
        self.counts = counts
        self.callbacks: list[Any] = []


def run_backward(
    roots: Sequence[Any],
    seeds: Sequence[Any],
    *,
    graph: bool,
    keep: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: bool = True,
    place: Place | None = None,
) -> list[Any] | None:
    """Pull `seeds` (Tensors) back from the edges `roots`; fill `.grad` of leaves, or return gradients of `inputs`.

    `roots` and `inputs` are edges. With `accumulate` and `inputs`, only those leaves are filled.
    """
    depth = getattr(_state, "depth", 0)
    if depth and depth % REENTRANT_LIMIT == 0:
        return _in_fresh_thread(roots, seeds, graph, keep, inputs, accumulate, place, depth)
    _state.depth = depth + 1
    try:
        with using(grad=graph), core.engine_running():
            return _run(roots, seeds, graph, keep, inputs, accumulate, place)
    finally:
        _state.depth = depth


def _in_fresh_thread(
    roots: Any, seeds: Any, graph: bool, keep: bool, inputs: Any, accumulate: bool, place: Any, depth: int
) -> Any:
    from contextvars import copy_context

    result: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        _state.depth = depth + 1
        try:
            with using(grad=graph), core.engine_running():
                result.append(_run(roots, seeds, graph, keep, inputs, accumulate, place))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,))
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def _count(roots: Sequence[Any], wanted: set[int] | None) -> tuple[dict[Any, int], set[Any] | None]:
    """Count the gradients each node and leaf waits for; with `wanted`, also find what lies on a path to it."""
    counts: dict[Any, int] = {}
    stack = []
    for root in roots:
        node = root.node if type(root) is Slot else root
        if node not in counts:
            counts[node] = 0
            stack.append(node)
    order = []
    get = counts.get
    tensor_type = _base.Tensor
    while stack:
        node = stack.pop()
        if isinstance(node, tensor_type):
            continue
        order.append(node)
        for edge in node.edges:
            if edge is None:
                continue
            if type(edge) is Slot:
                edge = edge.node
            seen = get(edge)
            if seen is None:
                counts[edge] = 1
                if isinstance(edge, Node):
                    stack.append(edge)
            else:
                counts[edge] = seen + 1
    if wanted is None:
        return counts, None
    return counts, _needed(order, wanted, counts)


def _needed(order: list[Any], wanted: set[int], counts: dict[Any, int]) -> set[Any]:
    """Return the ids of nodes from which a wanted node or leaf can be reached."""
    consumers: dict[int, list[Any]] = {}
    for node in order:
        for edge in node.edges:
            if edge is not None:
                target = edge.node if type(edge) is Slot else edge
                consumers.setdefault(id(target), []).append(node)
    needed: set[Any] = set()
    stack = [i for i in wanted]
    while stack:
        one = stack.pop()
        for node in consumers.get(one, ()):
            if id(node) not in needed:
                needed.add(id(node))
                stack.append(id(node))
    return needed


def _run(
    roots: Sequence[Any], seeds: Sequence[Any], graph: bool, keep: bool, inputs: Any, accumulate: bool, place: Any
) -> Any:
    tensor_type = _base.Tensor
    captured: dict[tuple[int, int], Any] | None = None
    wanted: set[int] | None = None
    capture_ids: set[int] = set()
    if inputs is not None:
        captured = {}
        wanted = set()
        for edge in inputs:
            target = edge.node if type(edge) is Slot else edge
            wanted.add(id(target))
        if not accumulate:
            capture_ids = wanted
    counts, needed = _count(roots, wanted)
    keep_levels: frozenset[Any] = frozenset()
    for seed in seeds:
        keep_levels |= levels_of(seed._array)
    for root in roots:
        keep_levels |= _root_levels(root)

    pending: dict[Any, Any] = {}
    owned: set[Any] = set()
    for root, seed in zip(roots, seeds, strict=True):
        _add(pending, owned, root, seed if graph else seed._array, graph)
    ready: list[tuple[int, int, Any]] = []
    for root in dict.fromkeys(r.node if type(r) is Slot else r for r in roots):
        if counts[root] == 0:
            heappush(ready, (_priority(root), id(root), root))
    task = _push_task(counts)
    anomaly = current_mode().anomaly
    try:
        in_hand = None
        while True:
            if in_hand is not None:
                node, in_hand = in_hand, None
            elif ready:
                node = heappop(ready)[2]
            else:
                break
            g = pending.pop(node, None)
            if isinstance(node, tensor_type):
                if g is not None:
                    _finish_leaf(node, g, node in owned, graph, captured, capture_ids, wanted, accumulate)
                continue
            if captured is not None:
                here = id(node)
                if here in wanted:  # type: ignore[operator]
                    _capture(node, g, graph, captured, capture_ids, accumulate)
                if here not in needed:  # type: ignore[operator]
                    continue
            extra = node.extra
            if type(g) is list:
                g = tuple(g)
            if extra is not None and g is not None:
                g = _before(node, extra, g, graph)
            if g is None or (type(g) is tuple and all(part is None for part in g) and not node.runs_without_gradient):
                grads: Any = (None,) * len(node.edges)
                if node.runs_without_gradient:
                    grads = node.pull_back(g, graph)
            else:
                grads = node.pull_back(g, graph) if not anomaly else _watched(node, g, graph)
            if not keep:
                node.release(place)
            meta = node.meta
            if extra is not None and extra.hooks:
                grads = _fit_all(node, grads, keep_levels)
                meta = None
                grads = _after(node, extra, grads, g, graph)
            facts = None if meta is None else meta.inputs
            i = 0
            for edge in node.edges:
                if edge is None:
                    i += 1
                    continue
                grad = grads[i]
                target = edge.node if type(edge) is Slot else edge
                if grad is not None:
                    if facts is not None and facts[i] is not None:
                        grad = fit(grad, facts[i], meta.out_levels, keep_levels)
                    if target in pending or type(edge) is Slot:
                        _add(pending, owned, edge, grad, graph)
                    else:
                        pending[target] = grad
                        if grad is not g and type(grad) is np.ndarray and grad.base is None and _alone(grads, i):
                            owned.add(target)
                i += 1
                left = counts[target] = counts[target] - 1
                if not left:
                    if captured is not None and id(target) not in needed and id(target) not in wanted:  # type: ignore[operator]
                        continue
                    if in_hand is None and not ready:
                        in_hand = target
                    else:
                        if in_hand is not None:
                            heappush(ready, (_priority(in_hand), id(in_hand), in_hand))
                            in_hand = None
                        heappush(ready, (_priority(target), id(target), target))
    finally:
        _state.tasks.pop()
    for callback in task.callbacks:
        callback()
    if captured is None or accumulate:
        return None
    results = []
    for edge in inputs:
        key = (id(edge.node), edge.index) if type(edge) is Slot else (id(edge), 0)
        results.append(captured.get(key))
    return results


def _alone(grads: Any, i: int) -> bool:
    """Tell whether a rule gave this array to one input only."""
    return len(grads) == 1 or all(j == i or other is not grads[i] for j, other in enumerate(grads))


def _priority(node: Any) -> int:
    return -node.seq if isinstance(node, Node) else -(1 << 62)


def _root_levels(root: Any) -> frozenset[Any]:
    node = root.node if type(root) is Slot else root
    if isinstance(node, Node):
        return frozenset() if node.meta is None else node.meta.out_levels
    return levels_of(node._array)


def _add(pending: dict[Any, Any], owned: set[Any], edge: Any, grad: Any, graph: bool) -> None:
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
        owned.discard(edge)
    elif not graph and edge in owned and type(held) is np.ndarray and type(grad) is np.ndarray:
        np.add(held, grad, out=held)
    else:
        total = held + grad
        pending[edge] = total
        if type(total) is np.ndarray:
            owned.add(edge)


def _fit_all(node: Any, grads: Any, keep_levels: frozenset[Any]) -> list[Any]:
    meta = node.meta
    if meta is None:
        return list(grads)
    return [
        g if g is None or facts is None else fit(g, facts, meta.out_levels, keep_levels)
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
    """Run tensor hooks in the order of registration; each may replace the gradient."""
    for hook in list(hooks.values()):
        result = hook(tensor)
        if result is not None:
            if not isinstance(result, _base.Tensor):
                raise TypeError(f"hook {_name(hook)} has returned a value of type {type(result).__name__}, expected Tensor")
            _check_hook_result(hook, tensor, result)
            tensor = result
    return tensor


def _name(hook: Any) -> str:
    return f"'{getattr(hook, '__name__', '<unknown>')}'"


def _check_hook_result(hook: Any, before: Any, after: Any) -> None:
    if tuple(before._array.shape) != tuple(after._array.shape):
        raise RuntimeError(f"hook {_name(hook)} has changed the size of value")
    if before._array.dtype != after._array.dtype:
        raise RuntimeError(f"hook {_name(hook)} has changed the type of value")


def _before(node: Any, extra: Any, g: Any, graph: bool) -> Any:
    """Run tensor hooks, pre-hooks and retained gradients of a node's outputs."""
    many = type(g) is tuple
    tensors = [_as_tensor(part, graph) for part in (g if many else (g,))]
    if extra.tensor_hooks:
        for slot, hooks in extra.tensor_hooks.items():
            if tensors[slot] is not None:
                tensors[slot] = call_tensor_hooks(hooks, tensors[slot])
    if extra.pre_hooks:
        for hook in list(extra.pre_hooks.values()):
            result = hook(tuple(tensors))
            if result is not None:
                result = (result,) if isinstance(result, _base.Tensor) else tuple(result)
                if len(result) != len(tensors):
                    raise RuntimeError(f"hook {_name(hook)} has returned an incorrect number of values (got {len(result)}, but expected {len(tensors)})")  # fmt: skip
                tensors = list(result)
    if extra.retained:
        for slot, reference in extra.retained.items():
            owner = reference()
            if owner is not None and tensors[slot] is not None:
                _retain(owner, tensors[slot])
    values = tuple(_as_given(t, graph) for t in tensors)
    return values if many else values[0]


def _retain(owner: Any, grad: Any) -> None:
    extra = owner._need_extra()
    extra.grad = wrap(_copied(grad._array), grad._edge, None) if extra.grad is None else extra.grad + grad


def _after(node: Any, extra: Any, grads: Any, g: Any, graph: bool) -> Any:
    """Run a node's hooks on what it computed."""
    outputs = tuple(_as_tensor(part, graph) for part in (g if type(g) is tuple else (g,)))
    tensors = tuple(_as_tensor(part, graph) for part in grads)
    for hook in list(extra.hooks.values()):
        result = hook(tensors, outputs)
        if result is not None:
            result = (result,) if isinstance(result, _base.Tensor) else tuple(result)
            if len(result) != len(tensors):
                raise RuntimeError(f"hook {_name(hook)} has returned an incorrect number of values (got {len(result)}, but expected {len(tensors)})")  # fmt: skip
            for before, after in zip(tensors, result, strict=True):
                if before is None and after is not None:
                    raise RuntimeError(f"can't replace a None gradient with a non-None value in hook {_name(hook)}")
                if before is not None and after is not None:
                    _check_hook_result(hook, before, after)
            tensors = result
    return [_as_given(t, graph) for t in tensors]


def _capture(node: Any, g: Any, graph: bool, captured: Any, capture_ids: set[int], accumulate: bool) -> None:
    """Keep the gradient of a node that is an input of `grad`, after its hooks."""
    extra = node.extra
    parts = list(g) if type(g) in (list, tuple) else [g]
    for slot, part in enumerate(parts):
        if part is None:
            continue
        tensor = _as_tensor(part, graph)
        if extra is not None and extra.tensor_hooks and slot in extra.tensor_hooks:
            tensor = call_tensor_hooks(extra.tensor_hooks[slot], tensor)
        if accumulate:
            captured_for(node, slot, tensor)
        captured[(id(node), slot)] = tensor


@contextmanager
def nonleaf_targets(targets: dict[tuple[int, int], Any]) -> Iterator[None]:
    """Name the non-leaf tensors whose `.grad` a backward fills."""
    before = getattr(_state, "targets", None)
    _state.targets = targets
    try:
        yield
    finally:
        _state.targets = before


def captured_for(node: Any, slot: int, tensor: Any) -> None:
    """Fill `.grad` of non-leaf tensors named in `backward(inputs=...)`."""
    targets = getattr(_state, "targets", None)
    if targets:
        owner = targets.get((id(node), slot))
        if owner is not None:
            extra = owner._need_extra()
            extra.grad = tensor if extra.grad is None else extra.grad + tensor


# ---- leaves ----
def _finish_leaf(
    leaf: Any, g: Any, owned: bool, graph: bool, captured: Any, capture_ids: Any, wanted: Any, accumulate: bool
) -> None:
    """Hand a leaf its summed gradient: capture it, or add it to `.grad`."""
    extra = leaf._extra
    if extra is not None and extra.hooks:
        tensor = call_tensor_hooks(extra.hooks, _as_tensor(g, graph))
        g, owned = _as_given(tensor, graph), False
    if captured is not None and id(leaf) in capture_ids:
        captured[(id(leaf), 0)] = _as_tensor(g, graph)
        return
    if wanted is not None and id(leaf) not in wanted:
        return
    if not accumulate or leaf._edge is not LEAF:
        return
    if extra is not None and extra.accumulator_pre_hooks:
        for hook in list(extra.accumulator_pre_hooks.values()):
            result = hook((_as_tensor(g, graph),))
            if result is not None:
                result = result if isinstance(result, _base.Tensor) else result[0]
                g, owned = _as_given(result, graph), False
    accumulate_grad(leaf, g, owned, graph)
    extra = leaf._extra
    if extra.post_hooks:
        for hook in list(extra.post_hooks.values()):
            hook(leaf)
    if extra.accumulator_hooks:
        for hook in list(extra.accumulator_hooks.values()):
            hook((), (_as_tensor(g, graph),))


_accumulate_lock = threading.Lock()


def accumulate_grad(leaf: Any, g: Any, owned: bool, graph: bool) -> None:
    """Add a gradient to a leaf's `.grad`."""
    with _accumulate_lock:
        extra = leaf._need_extra()
        held = extra.grad
        if held is None:
            if graph:
                extra.grad = g if g._edge is not None else wrap(_copied(g._array))
            else:
                extra.grad = wrap(g if owned else _copied(g))
        elif graph:
            extra.grad = held + g
        elif (
            type(g) is np.ndarray
            and type(held._array) is np.ndarray
            and held._edge is None
            and held._array.dtype is g.dtype
            and held._array.shape == g.shape
        ):
            np.add(held._array, g, out=held._array)
            if held._storage is not None:
                held._storage.written(1)
            else:
                _base.storage_of(held).written(1)
        elif held._edge is None and isinstance(g, (np.ndarray, np.generic)):
            _base.materialise(held)
            held._array[...] += g
            _base.storage_of(held).written(1)
        else:
            extra.grad = held + wrap(g)


def _copied(array: Any) -> Any:
    """Copy a gradient into dense memory of its own; NumPy scalars are values already."""
    if isinstance(array, np.generic):
        return array
    if isinstance(array, np.ndarray):
        return np.array(array, order="C") if array.ndim else np.array(array)
    return array if isinstance(array, LevelArray) else array.copy()


# ---- anomaly mode, single nodes, callbacks ----
def _watched(node: Any, g: Any, graph: bool) -> Any:
    from .anomaly_mode import run_watched

    return run_watched(node, g, graph)


def call_node(node: Any, grads: tuple[Any, ...]) -> Any:
    """Apply one node's backward to Tensors, as torch's `grad_fn(grad)`."""
    graph = current_mode().grad
    many = node.num_outputs != 1
    g: Any = tuple(_as_given(t, graph) for t in grads)
    with core.engine_running():
        results = node.pull_back(g if many else g[0], graph)
        results = _fit_all(node, results, frozenset())
    out = tuple(_as_tensor(r, graph) for r in results)
    return out[0] if len(out) == 1 else out


def _push_task(counts: dict[Any, int]) -> Task:
    tasks = getattr(_state, "tasks", None)
    if tasks is None:
        tasks = _state.tasks = []
    task = Task(counts)
    tasks.append(task)
    return task


def current_task() -> Task:
    """Return the run of the engine that is calling a hook."""
    tasks = getattr(_state, "tasks", None)
    if not tasks:
        raise RuntimeError("no backward is running in this thread")
    return tasks[-1]  # type: ignore[no-any-return]


def will_reach(edge: Any) -> bool:
    """Tell whether the running backward passes a node or leaf."""
    return (edge.node if type(edge) is Slot else edge) in current_task().counts


def queue_callback(callback: Any) -> None:
    """Run `callback` when the backward now running has finished."""
    tasks = getattr(_state, "tasks", None)
    if not tasks:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    tasks[0].callbacks.append(callback)


__all__ = ["queue_callback", "run_backward"]
