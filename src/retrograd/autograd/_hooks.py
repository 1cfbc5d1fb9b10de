"""Hooks of tensors and nodes, as the engine runs them."""

from __future__ import annotations

import functools
from typing import Any

from .. import _errors
from .._core.primitive import engine_state
from .._modes import current_mode
from ..tensor import _base
from ..tensor._base import LEAF, wrap
from ._accumulate import accumulate_grad, check_leaf, copied


def as_tensor(g: Any, graph: bool) -> Any:
    return g if g is None or graph else wrap(g)


def as_given(value: Any, graph: bool) -> Any:
    if value is None or graph:
        return value
    return value._array


def call_tensor_hooks(hooks: dict[int, Any], tensor: Any) -> Any:
    """Run tensor hooks in the order of registration; each may replace the gradient, but not make one of None."""
    for hook in list(hooks.values()):
        result = hook(tensor)
        if result is not None:
            _check_hook_result(hook, tensor, result)
            tensor = result
    return tensor


def of_transform(hook: Any) -> Any:
    """Return a hook on a value inside a transform: to torch that value is a wrapper, which no gradient of an outer transform meets."""
    running = current_mode().transforms
    if not running:
        return hook
    transform = running[-1]

    @functools.wraps(hook, assigned=("__name__", "__doc__", "__module__"), updated=())
    def of_wrapper(grad: Any) -> Any:
        return hook(grad) if transform.alive or engine_state.asked_by is transform else None

    return of_wrapper


def _name(hook: Any) -> str:
    return f"'{getattr(hook, '__name__', '<unknown>')}'"


def _check_hook_result(hook: Any, before: Any, after: Any) -> None:
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(after, _base.Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if before._array.dtype != after._array.dtype:
        was, got = (_errors._TYPE_NAMES[t._array.dtype.name] for t in (before, after))
        text = f"hook {_name(hook)} has changed the type of value (was {was} got {got})"
        raise _errors.of_hook(text, hook, "what it returns must have the dtype of what it was given")
    if tuple(before._array.shape) != tuple(after._array.shape):
        was, got = (_errors.sizes(t._array.shape) for t in (before, after))
        text = f"hook {_name(hook)} has changed the size of value"
        raise _errors.of_hook(text, hook, f"it was given {was} and returned {got}, which must be the same")


def without_gradient(node: Any, extra: Any, graph: bool) -> tuple[Any, Any]:
    """Run a node to which no gradient came: hooks see None, and so does a custom Function (or zeros)."""
    g: Any = None if node.num_outputs == 1 else (None,) * node.num_outputs
    if extra is not None:
        g = run_before(node, extra, g, graph)
    if node.runs_without_gradient or (any(part is not None for part in g) if type(g) is tuple else g is not None):
        return g, node.pull_back(g, graph)
    node.touch(graph)
    return g, (None,) * len(node._edges)


def run_tensor_hooks(node: Any, g: Any, graph: bool) -> Any:
    """Run the hooks of the tensors that are a node's outputs, then fill `.grad` of those that retain it."""
    extra = node.extra
    if not extra.tensor_hooks and not extra.retained:
        return g
    many = type(g) in (tuple, list)
    tensors = [as_tensor(part, graph) for part in (g if many else (g,))]
    apart = node.holds_several and any(part is not None for part in tensors)  # what got none was not on the way
    for slot, hooks in (extra.tensor_hooks or {}).items():
        if apart and tensors[slot] is None:
            continue
        tensors[slot] = call_tensor_hooks(hooks, tensors[slot])
    for slot, reference in (extra.retained or {}).items():
        owner = reference()
        if owner is not None and tensors[slot] is not None:
            _retain(owner, tensors[slot])
    values = tuple(as_given(t, graph) for t in tensors)
    return values if many else values[0]


def run_before(node: Any, extra: Any, g: Any, graph: bool) -> Any:
    """Run tensor hooks, then the node's pre-hooks. A hook sees None where no gradient has arrived."""
    g = run_tensor_hooks(node, g, graph)
    if extra.pre_hooks:
        many = type(g) is tuple
        tensors = tuple(as_tensor(part, graph) for part in (g if many else (g,)))
        seen, rest = tensors[: node.hooked_outputs], tensors[len(tensors[: node.hooked_outputs]) :]
        for hook in list(extra.pre_hooks.values()):
            seen = _replaced(hook, hook(seen), seen)
        values = tuple(as_given(t, graph) for t in (*seen, *rest))
        g = values if many else values[0]
    return g


def _replaced(hook: Any, result: Any, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a node's hook made of gradients, after torch's checks."""
    if result is None:
        return tensors
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(tensors):
        text = (
            f"hook {_name(hook)} has returned an incorrect number of values (got {len(result)}, but expected "
            f"{len(tensors)})"
        )
        raise _errors.of_hook(text, hook, "it must return as many gradients as it was given, or None")
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
    extra.grad._array = copied(extra.grad._array)


def run_after(node: Any, extra: Any, grads: Any, g: Any, graph: bool) -> Any:
    """Run a node's hooks on what it computed."""
    outputs = tuple(as_tensor(part, graph) for part in (g if type(g) is tuple else (g,)))[: node.hooked_outputs]
    tensors = tuple(as_tensor(part, graph) for part in node.shown_of(grads))
    for hook in list(extra.hooks.values()):
        tensors = _replaced(hook, hook(tensors, outputs), tensors)
    given = [as_given(t, graph) for t in tensors]
    if node.visible is None:
        return given
    full = list(grads)
    for at, value in zip(node.visible, given, strict=True):
        full[at] = value
    return full


def run_late_hooks(node: Any, grads: Any) -> Any:
    """Run the hooks of a node that came while it computed: they see no outputs, as in torch."""
    return run_after(node, node.extra, grads, (), False) if node.extra.hooks else grads


def finish_leaf(leaf: Any, g: Any, graph: bool, capture: Any, root: bool = False) -> None:
    """Hand a leaf its summed gradient: capture it, or add it to `.grad`."""
    engine_state.task.node = leaf
    extra = leaf._extra
    skipped = capture is not None and id(leaf) not in capture.wanted
    if skipped and not root:
        return
    if extra is not None and extra.hooks:
        g = as_given(call_tensor_hooks(extra.hooks, as_tensor(g, graph)), graph)
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
            before = (as_tensor(g, graph),)
            g = as_given(_replaced(hook, hook(before), before)[0], graph)
    if g is not None and leaf._edge is LEAF:
        accumulate_grad(leaf, g, graph)
    extra = leaf._need_extra()
    if extra.post_hooks and call_tensor_hooks(extra.post_hooks, leaf) is not leaf:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if extra.accumulator_hooks:
        for hook in list(extra.accumulator_hooks.values()):
            _replaced(hook, hook((), (as_tensor(g, graph),)), ())
