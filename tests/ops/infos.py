"""The table of operations: every public name that has a derivative, and some that have none."""

from __future__ import annotations

from tests.ops import infos_index, infos_inner, infos_matrix, infos_pointwise, infos_reduce, infos_shape
from tests.ops.opinfo import Op

OPS: list[Op] = [
    *infos_pointwise.OPS,
    *infos_reduce.OPS,
    *infos_shape.OPS,
    *infos_matrix.OPS,
    *infos_index.OPS,
    *infos_inner.OPS,
]
DIFFERENTIABLE = [op for op in OPS if op.differentiable]

# Other names of operations of the table: they are the same function.
ALIASES = {
    "negative": "neg",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "absolute": "abs",
    "fix": "trunc",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "clip": "clamp",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
