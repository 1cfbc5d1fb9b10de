"""torch._higher_order_ops.while_loop: a function again and again."""

from __future__ import annotations

from retrograd._control_flow import WhileLoopOp, while_loop, while_loop_op

__all__ = ["WhileLoopOp", "while_loop", "while_loop_op"]
