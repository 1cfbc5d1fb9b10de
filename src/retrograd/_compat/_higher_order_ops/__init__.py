"""torch._higher_order_ops: operations that take functions; they run as they come."""

from __future__ import annotations

from retrograd._absent import finder

from .cond import cond
from .while_loop import while_loop

__getattr__ = finder("torch._higher_order_ops")
__all__ = ["cond", "while_loop"]
