"""torch._higher_order_ops: operations that take functions; they run as they come."""

from __future__ import annotations

from importlib import import_module

from retrograd._absent import finder

import_module(".cond", __name__)  # before the functions, which hide the modules of their names
import_module(".while_loop", __name__)
from retrograd._control_flow import cond, while_loop  # noqa: E402

__getattr__ = finder("torch._higher_order_ops")
__all__ = ["cond", "while_loop"]
