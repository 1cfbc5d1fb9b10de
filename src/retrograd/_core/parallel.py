"""Elementwise work on large arrays, split over threads.

NumPy's loops let other threads run, so two halves of an array are computed at the same time, and so do kernels.
Workers sleep on a lock between calls; a call that finds them busy (another of the user's threads) does its work alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np

from .. import _thresholds
from .._settings import get_num_threads

WIDE, BLOCK = _thresholds.WIDE, _thresholds.BLOCK


class _Worker(threading.Thread):
    """A thread that runs one job after another."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="retrograd-worker")
        self.ready, self.done = threading.Lock(), threading.Lock()
        self.ready.acquire()
        self.done.acquire()
        self.job: Callable[[], None] | None = None
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        np.seterr(all="ignore")  # as in every thread that computes
        while True:
            self.ready.acquire()
            job, self.job = self.job, None
            try:
                job()  # type: ignore[misc]
            except BaseException as error:  # raised again in the thread that waits
                self.failure = error
            del job
            self.done.release()


_busy = threading.Lock()
_workers: list[_Worker] = []


def _forget_workers() -> None:
    """Begin anew in a forked process, where threads do not go."""
    global _busy
    _busy = threading.Lock()
    _workers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def over_ranges(work: Callable[[int, int], None], size: int) -> None:
    """Call `work(start, end)` for parts of a range, at the same time."""
    count = get_num_threads()
    if count == 1 or not _busy.acquire(blocking=False):
        work(0, size)
        return
    try:
        while len(_workers) < count - 1:
            _workers.append(_Worker())
        step = -(-size // count)
        helpers = _workers[: count - 1]
        for k, worker in enumerate(helpers, 1):
            start, end = min(k * step, size), min((k + 1) * step, size)
            worker.job = lambda start=start, end=end: work(start, end)
            worker.ready.release()
        try:
            work(0, step)
        finally:
            failures = []
            for worker in helpers:
                worker.done.acquire()
                failures.append(worker.failure)
                worker.failure = None
    finally:
        _busy.release()
    for failure in failures:
        if failure is not None:
            raise failure


def over_blocks(work: Callable[[int, int], None], size: int, block: int, threads: bool) -> None:
    """Call `work(start, end)` for the blocks of a range, on several threads if asked: one that comes late finds fewer."""
    starts = iter(range(0, size, block))

    def some(_start: int, _end: int) -> None:
        for at in starts:
            work(at, min(at + block, size))

    if threads:
        over_ranges(some, size)
    else:
        some(0, size)
