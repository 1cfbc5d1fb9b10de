"""Recording an operation of one plain tensor: what views, reductions and shape functions cost.

The general way of `_record.py` looks at every argument for levels, dtypes and versions. With one raw float array there is
little to look at, and this does just that: half the time of a small view.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._core.levels import creation_numbers
from .._core.numpy_namespace import numpy_namespace
from .._core.primitive import ELEMENTWISE, Primitive
from .._graph.node import Guard, node_class
from .._places import user_frame
from ._base import LEAF, wrap

NDARRAY = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
get_frame = sys._getframe


def laid_out(out: Any) -> Any:
    """Give results dense memory."""
    if type(out) is tuple:
        return tuple(laid_out(part) for part in out)
    return np.ascontiguousarray(out) if type(out) is NDARRAY and not out.flags.c_contiguous else out


class Plan:
    """What the node of a one-input primitive keeps: names of parameters, and whether shape, dtype, input, output."""

    __slots__ = ("cls", "dtype", "out", "params", "shape", "simple", "x")

    def __init__(self, primitive: Primitive, name: str | None) -> None:
        cls: Any = node_class(primitive, name)
        self.cls = cls
        first = primitive.inputs[0]
        known = {first, "out", f"{first}_shape", f"{first}_dtype", *primitive.statics}
        self.simple = (
            len(primitive.inputs) == 1
            and primitive.outputs == 1
            and not primitive.variadic
            and primitive.kind != ELEMENTWISE
            and set(cls.array_names) | set(cls.static_names) <= known
        )
        self.params = tuple(n for n in cls.static_names if n in primitive.statics)
        self.shape = f"{first}_shape" if f"{first}_shape" in cls.static_names else None
        self.dtype = f"{first}_dtype" if f"{first}_dtype" in cls.static_names else None
        self.x = first if first in cls.array_names else None
        self.out = "out" in cls.array_names


_plans: dict[tuple[Primitive, str | None], Plan] = {}


def record_one(
    primitive: Primitive, tensor: Any, params: dict[str, Any], name: str | None, tracking: bool, shown: Any
) -> Any:
    """Run and record, or return None where the general way must."""
    x = tensor._array
    if type(x) is not NDARRAY or not ((dtype := x.dtype) is F32 or dtype is F64) or primitive.implementation is None:
        return None
    edge = tensor._edge if tracking else None  # unread where nothing is recorded: a ForbiddenView would raise
    if edge is None or not primitive.differentiable:
        if primitive.outputs != 1:
            return None
        out = primitive.implementation(numpy_namespace, x, **params)
        return wrap(laid_out(out) if primitive.dense else out)
    plan = _plans.get((primitive, name))
    if plan is None:
        plan = _plans[(primitive, name)] = Plan(primitive, name)
    if not plan.simple or (plan.x is not None and tensor._storage is not None and tensor._storage.inference):
        return None
    out = primitive.implementation(numpy_namespace, x, **params)
    if primitive.dense:
        out = laid_out(out)
    if out.dtype is not dtype:
        return None
    node = plan.cls()
    node._edges = (tensor if edge is LEAF else edge,)
    node.meta = node.guard = node.extra = node._storage = None
    for key in plan.params:
        setattr(node, key, params[key])
    if plan.shape is not None:
        setattr(node, plan.shape, x.shape)
    if plan.dtype is not None:
        setattr(node, plan.dtype, dtype)
    if plan.x is not None:
        setattr(node, plan.x, x)
        if tensor._storage is not None:
            node.guard = Guard()
            node.guard.versions[plan.x] = (tensor._storage, tensor._storage.version)
    if plan.out:
        node.out = out
    if shown is not None:
        node.shown = shown
    frame = user_frame(get_frame(1))
    node.code, node.lasti = frame.f_code, frame.f_lasti
    node.seq = creation_numbers()
    return wrap(out, node)
