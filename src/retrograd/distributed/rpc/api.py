"""torch.distributed.rpc.api: where torch writes what `rpc` hands on. It is not there, and says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..._absent import finder
from .constants import DEFAULT_RPC_TIMEOUT_SEC, UNSET_RPC_TIMEOUT

__getattr__ = finder("torch.distributed.rpc.api")
__all__ = ["DEFAULT_RPC_TIMEOUT_SEC", "UNSET_RPC_TIMEOUT"]


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function be called only where other processes run functions: it refuses, as torch's does before `init_rpc`."""

    @wraps(func)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return refuse
