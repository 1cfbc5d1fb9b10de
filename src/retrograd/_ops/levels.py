"""Entering and leaving the array types of transforms, as operations with derivatives.

Note [Entering and leaving]
For batches the two are each other's vjp. For duals, cotangents are paired by the eps-coefficient of the product: the
cotangent of a dual is a dual, the seed of a tangent output is 1 + 0 eps, of a primal output 0 + 1 eps, and entering
hands the eps-part to the primal input and the plain part to the tangent input. Every ordinary vjp rule, run in dual
arithmetic, is then the right reverse-over-forward rule.
All of these are linear, so an array of a higher level is treated part by part, and a lower one is data.
A dual whose tangent alone is a batch (every Jacobian in forward mode) has a primal without that level. The gradient of
such a primal is a sum over the batch; `add_levels` turns it into a gradient of the dual that has this sum.
"""

from __future__ import annotations

import numpy as np

from .._core.arrays import Batched, Dual, LevelArray, raw_leaf
from .._core.primitive import LINEAR, Primitive, engine_state, front, linear, raw_namespace, unmoved, vocabulary


class LevelPrimitive(Primitive):
    """An operation on one level: other array types are looked through, and the rules settle levels themselves."""

    def __init__(self, name, inputs, statics, on_array, *, enters=False, may_alias=True):
        super().__init__(name, LINEAR, inputs, statics, may_alias=may_alias, dense=False)
        self.on_array = on_array
        self.enters = enters

    def bind(self, args, params):
        level = params["level"]
        above = [a for a in args if isinstance(a, LevelArray) and a.level.number > level.number]
        if not above:
            return self.on_array(*args, **params)
        outer = max((a.level for a in above), key=lambda one: one.number)
        if isinstance(next(a for a in above if a.level is outer), Dual):
            mine = [isinstance(a, Dual) and a.level is outer for a in args]
            primal = self.bind([a.primal if m else a for a, m in zip(args, mine, strict=True)], params)
            if all(a.tangent is None for a, m in zip(args, mine, strict=True) if m):
                return primal
            parts = [
                (
                    vocabulary.zeros_like(a)
                    if not m
                    else vocabulary.zeros_like(a.primal)
                    if a.tangent is None
                    else a.tangent
                )
                for a, m in zip(args, mine, strict=True)
            ]
            return Dual(outer, primal, self.bind(parts, params))
        mine = [isinstance(a, Batched) and a.level is outer for a in args]
        inner = [front(a.array if m else a, m, outer.size) for a, m in zip(args, mine, strict=True)]
        if "axis" in params:
            params = params | {"axis": params["axis"] + 1}
        return Batched(outer, self.bind(inner, params))


def _move(array, source, target):
    order = [i for i in range(array.ndim) if i != source]
    order.insert(target, source)
    if order == list(range(array.ndim)):
        return array
    return vocabulary.permute_dims(array, axes=tuple(order))


def _enter(x, *, level, axis):
    return Batched(level, _move(x, axis, 0))


def _leave(x, *, level, axis):
    inside = isinstance(x, Batched) and x.level is level
    return _move(x.array if inside else front(x, False, level.size), 0, axis)


def _total(x, *, level):
    if isinstance(x, Batched) and x.level is level:
        return vocabulary.sum(x.array, axis=(0,), keepdims=False)
    return x * level.size


def _plain(x, *, level):
    return x.primal if isinstance(x, Dual) and x.level is level else x


def _eps(x, *, level):
    if isinstance(x, Dual) and x.level is level:
        return vocabulary.zeros_like(x.primal) if x.tangent is None else x.tangent
    return vocabulary.zeros_like(x)


enter_batch = LevelPrimitive("enter_batch", ("x",), ("level", "axis"), _enter, enters=True)
leave_batch = LevelPrimitive("leave_batch", ("x",), ("level", "axis"), _leave)
sum_level = LevelPrimitive("sum_level", ("x",), ("level",), _total, may_alias=False)
enter_dual = LevelPrimitive("enter_dual", ("x", "y"), ("level",), lambda x, y, *, level: Dual(level, x, y), enters=True)
dual_plain = LevelPrimitive("dual_plain", ("x",), ("level",), _plain)
dual_eps = LevelPrimitive("dual_eps", ("x",), ("level",), _eps, may_alias=False)
as_dual = LevelPrimitive("as_dual", ("x",), ("level",), lambda x, *, level: Dual(level, x, None), enters=True)
times_eps = LevelPrimitive(
    "times_eps",
    ("x",),
    ("level",),
    lambda x, *, level: Dual(level, vocabulary.zeros_like(x), x),
    enters=True,
    may_alias=False,
)

enter_batch.vjp("x")(lambda xp, g, level, axis: vocabulary.leave_batch(g, level=level, axis=axis))
leave_batch.vjp("x")(lambda xp, g, level, axis: vocabulary.enter_batch(g, level=level, axis=axis))
sum_level.vjp("x")(lambda xp, g: g)
enter_dual.vjp("x")(lambda xp, g, level: vocabulary.dual_eps(g, level=level))
enter_dual.vjp("y")(lambda xp, g, level: vocabulary.dual_plain(g, level=level))
dual_plain.vjp("x")(lambda xp, g, level: vocabulary.times_eps(g, level=level))
dual_eps.vjp("x")(lambda xp, g, level: vocabulary.as_dual(g, level=level))  # says what its own transpose is
as_dual.vjp("x")(lambda xp, g, level: vocabulary.dual_eps(g, level=level))
times_eps.vjp("x")(lambda xp, g, level: vocabulary.dual_plain(g, level=level))


@linear(batch=unmoved)
def seen_behind(xp, x, *, transform):
    """What transforms around a grad or vjp see of a value that is a constant to that one itself."""
    return x[...]


@seen_behind.vjp("x")
def seen_behind_dx(xp, g, transform):
    return None if transform.alive or engine_state.asked_by is transform else g


def remove_level(g, level):
    """Drop a level that a gradient's input does not have: sum over the batch, or take the eps-part, if there is any."""
    if level.kind == "vmap":
        return vocabulary.sum_level(g, level=level)
    array = g._array if hasattr(g, "_array") else g
    return vocabulary.dual_eps(g, level=level) if _has_tangent(array, level) else None


def _has_tangent(array, level):
    if isinstance(array, Batched):
        return _has_tangent(array.array, level)
    if not isinstance(array, Dual):
        return False
    if array.level is level:
        return array.tangent is not None
    return _has_tangent(array.primal, level) or _has_tangent(array.tangent, level)


def add_levels(g, levels):
    """Give a gradient levels that its value has lost: removing them again gives the same gradient."""
    if g is None:
        return None
    for level in sorted(levels, key=lambda one: one.number):
        if level.kind == "vmap":
            xp = raw_namespace(raw_leaf(g._array if hasattr(g, "_array") else g))
            first = xp.zeros(shape=(level.size,), dtype=np.dtype(bool))
            first[:1] = True
            g = vocabulary.where(Batched(level, first), g, 0)
        else:
            g = vocabulary.times_eps(g, level=level)
    return g
