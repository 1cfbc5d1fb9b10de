"""torch.multiprocessing.pool: Python's pool of processes; what its workers hold of tensors goes with them."""

from __future__ import annotations

import gc
import multiprocessing.pool
from multiprocessing.queues import SimpleQueue
from typing import Any


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """Work, and then let go of everything."""
    multiprocessing.pool.worker(*args, **kwargs)  # type: ignore[attr-defined]
    gc.collect()


def Pool(*args: Any, **kwargs: Any) -> multiprocessing.pool.Pool:  # noqa: N802 - torch's name
    """Start processes that wait for work."""
    return multiprocessing.Pool(*args, **kwargs)


__all__ = ["Pool", "SimpleQueue", "clean_worker"]
