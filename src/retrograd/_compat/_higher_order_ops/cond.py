"""torch._higher_order_ops.cond: one of two functions."""

from __future__ import annotations

from retrograd._control_flow import CondOp, cond, cond_op

__all__ = ["CondOp", "cond", "cond_op"]
