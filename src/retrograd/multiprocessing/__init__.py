"""torch.multiprocessing: Python's own, whose queues and pipes carry tensors and share their memory."""

from __future__ import annotations

import multiprocessing as _standard
from importlib import import_module
from multiprocessing import *  # noqa: F403 - the module is that one, and a little more
from typing import Any

from . import reductions
from .reductions import init_reductions
from .spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

init_reductions()

_STRATEGIES = ("file_descriptor", "file_system")
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept torch's choice of how to share memory: it goes by descriptors in any case."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {get_all_sharing_strategies()}"
        )
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """Return the choice."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """Return what may be chosen."""
    return set(_STRATEGIES)


def __getattr__(name: str) -> Any:
    if name in ("pool", "queue"):  # when asked for
        return import_module(f"{__name__}.{name}")
    if name == "_set_thread_name":
        return import_module("._private_helpers", __name__.partition(".")[0])._set_thread_name
    return getattr(_standard, name)


__all__ = [
    *_standard.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
