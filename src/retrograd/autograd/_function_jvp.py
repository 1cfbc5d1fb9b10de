"""Custom Functions on dual tensors: their `jvp`. See Note [A Function inside a level] in _function_run.py."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._core.arrays import LevelArray, levels_of
from .._core.levels import BATCH, DUAL
from .._core.primitive import vocabulary
from .._modes import current_mode, using
from ..tensor._aliasing.entering import base_of
from ..tensor._base import wrap
from ..tensor._tensor import Tensor
from ._function_attributes import delete_by_user, read_by_user, set_by_user, users_attributes
from ._function_run import CONSTANT, DIRTY, GIVEN, VIEW, join, new_node, run_forward
from ._function_vmap import has_own_rule, run_batched
from .forward_ad import check_dual, keep_tangent, parts_of


class _Duals(NamedTuple):
    """How gradients come to primals and tangents: the level, and which outputs have a tangent."""

    level: Any
    outputs: list[bool]

    def gradients(self, parts: Any) -> list[Any]:
        level = self.level
        primals: list[Any] = []
        tangents: list[Any] = []
        for part, dual in zip(parts, self.outputs, strict=True):
            if part is None or not dual:
                primals.append(part)
                tangents.append(None)
                continue
            moves = level in levels_of(getattr(part, "_array", part))
            primals.append(vocabulary.dual_eps(part, level=level) if moves else None)
            tangents.append(vocabulary.dual_plain(part, level=level))
        return primals + tangents


def run(cls: Any, args: tuple[Any, ...], two_part: bool, ctx_wanted: bool = False) -> tuple[Any, Any]:
    """Run a Function on values of any levels. Returns the output and ctx, which is complete if it is wanted."""
    arrays = [a._array for a in args if isinstance(a, Tensor) and isinstance(a._array, LevelArray)]
    if arrays:
        levels = frozenset().union(*map(levels_of, arrays))
        top = max(levels, key=lambda one: one.number)
        if top.kind == BATCH and two_part and has_own_rule(cls):
            return run_batched(cls, top, args, ctx_wanted)
        duals = [one for one in levels if one.kind == DUAL]
        if duals:
            level = max(duals, key=lambda one: one.number)
            if level.alive:
                return _run_dual(cls, level, args, two_part, ctx_wanted)
            return run(cls, tuple([_without(a, level) for a in args]), two_part, ctx_wanted)
    return run_forward(cls, args, two_part)


def _without(arg: Any, level: Any) -> Any:
    return vocabulary.dual_plain(arg, level=level) if isinstance(arg, Tensor) else arg


def _run_dual(cls: Any, level: Any, args: tuple[Any, ...], two_part: bool, ctx_wanted: bool) -> tuple[Any, Any]:
    """Run the Function on primals and its jvp on tangents, and join the results."""
    primals: list[Any] = []
    tangents: list[Any] = []
    for arg in args:
        if isinstance(arg, Tensor) and level in levels_of(arg._array):
            primal, tangent = parts_of(arg, level)
            primals.append(primal)
            tangents.append(tangent)
        else:
            primals.append(arg)
            tangents.append(None)
    mode = current_mode()
    node = new_node(cls, args, mode)  # before forward may write into the arguments
    output, inner = run(cls, tuple(primals), two_part, ctx_wanted=True)
    outs = output if isinstance(output, tuple) else (output,)
    pushed = _pushed(cls, level, inner, args, primals, tangents, outs)
    tracked = mode.grad and any(isinstance(t, Tensor) and t._edge is not None for t in (*args, *outs, *pushed))
    raw = tuple(
        [
            args[made.source] if made.kind is DIRTY else _joined(out, t, level, tracked and made.kind is not CONSTANT)
            for out, t, made in zip(outs, pushed, inner.outputs_made, strict=True)
        ]
    )
    for out, t, made in zip(outs, pushed, inner.outputs_made, strict=True):
        if made.kind is DIRTY and t is not None:
            args[made.source]._array = _joined(out, t, level, False)._array
    if tracked or ctx_wanted:
        _set_up(cls, node, inner, args, primals, raw, outs, isinstance(output, tuple), two_part)
        duals = [isinstance(o, Tensor) and level in levels_of(o._array) for o in raw]
        raw = join(node, _Duals(level, duals), args, raw, (*outs, *pushed), tracked, mode)
    for one, t in zip(raw, pushed, strict=True):
        keep_tangent(one, t)
    inner.of_forward = ()
    return raw if isinstance(output, tuple) else raw[0], node


def _joined(out: Any, tangent: Any, level: Any, always: bool) -> Any:
    """Return a new tensor outside the graph: a dual, or a copy of what has no tangent."""
    if not isinstance(out, Tensor):
        return out
    with using(grad=False):
        if tangent is None and not always:
            return wrap(out._array, None, out._storage)
        return vocabulary.enter_dual(out, vocabulary.zeros_like(out) if tangent is None else tangent, level=level)


def _set_up(
    cls: Any, node: Any, inner: Any, args: Any, primals: Any, raw: Any, outs: Any, many: bool, two_part: bool
) -> None:
    """Fill the ctx of duals: by `setup_context`, or from what forward left in the ctx of primals."""
    if two_part:
        with using(grad=False, saved_hooks=()):
            cls.setup_context(node, args, raw if many else raw[0])
        return
    dual_of = {id(p): a for p, a in zip(primals, args, strict=True)} | {
        id(o): r for o, r in zip(outs, raw, strict=True)
    }

    def lifted(tensors: Any) -> Any:
        return None if tensors is None else tuple([dual_of.get(id(t), t) for t in tensors])

    node.to_save, node.saved_for_forward = map(lifted, inner.of_forward)
    node.dirty_tensors = tuple([r for r, made in zip(raw, inner.outputs_made, strict=True) if made.kind is DIRTY])
    node.non_differentiable = tuple(
        [r for r, made in zip(raw, inner.outputs_made, strict=True) if made.kind is CONSTANT]
    )
    node._materialize = inner._materialize
    for name, value in users_attributes(inner).items():
        set_by_user(node, name, value)


class _JvpContext:
    """ctx as jvp sees it: attributes of the node, saved tensors of the forward pass."""

    def __init__(self, node: Any) -> None:
        _, for_forward = node.of_forward
        self.__dict__["_node"] = node
        self.__dict__["saved_tensors"] = () if for_forward is None else for_forward

    def __getattr__(self, name: str) -> Any:
        return read_by_user(self._node, name)

    def __setattr__(self, name: str, value: Any) -> None:
        set_by_user(self._node, name, value)

    def __delattr__(self, name: str) -> None:
        delete_by_user(self._node, name)


def _pushed(
    cls: Any, level: Any, node: Any, args: tuple[Any, ...], primals: Any, tangents: Any, outs: Any
) -> tuple[Any, ...]:
    """Call the user's jvp and check what it returns."""
    from ..tensor._functions.creation import zeros_like

    given = tangents
    if node._materialize:
        given = [
            zeros_like(p) if t is None and isinstance(p, Tensor) and p._array.dtype.kind in "fcV" else t
            for p, t in zip(primals, tangents, strict=True)
        ]
    versions = [None if t is None else t._version for t in tangents]
    returned = cls.jvp(_JvpContext(node), *given)
    pushed = returned if isinstance(returned, tuple) else (returned,)
    if len(pushed) != len(outs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(pushed)})"
        )
    follows_views = any(t.kind == "dual_level" and t.level is level for t in current_mode().transforms)
    checked: list[Any] = []
    for i, (out, t, made) in enumerate(zip(outs, pushed, node.outputs_made, strict=True)):
        if not isinstance(out, Tensor):
            checked.append(None)
            continue
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
        if made.kind is CONSTANT and t is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        if made.kind is DIRTY and made.source is not None and tangents[made.source] is not None:
            _check_written(t, tangents[made.source], versions[made.source])
        elif made.kind in (GIVEN, VIEW) and t is not None and follows_views:
            _check_view(t, tangents[made.source], args[made.source])
        if t is not None:
            if t._array.dtype.kind not in "fcV":
                raise RuntimeError("Expected both tensor and its forward grad to be floating point or complex")
            check_dual(out, t)
        checked.append(t)
    return tuple(checked)


def _check_written(tangent: Any, given: Any, version: Any) -> None:
    """See that the tangent of an input that forward wrote into was written into, too."""
    if tangent is None or tangent._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying "
            "an input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(tangent: Any, given: Any, arg: Any) -> None:
    """See that the tangent of a view of an input is a view of that input's tangent."""
    view = None if tangent._extra is None else tangent._extra.view
    if view is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    if view.base is not base_of(given):
        of = "the given grad input" if base_of(arg) is arg else "the same base as the given grad input"
        raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {of}.")
