"""Elementwise work on large arrays, split over threads.

NumPy's loops let other threads run, so two halves of an array are computed at the same time, and so do kernels.
Workers sleep between calls; a call that finds them busy (another of the user's threads) does its work alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .. import _thresholds
from .._settings import get_num_threads

if TYPE_CHECKING:
    from queue import SimpleQueue

WIDE, BLOCK = _thresholds.WIDE, _thresholds.BLOCK


class _Job:
    """A part of some work: whoever claims it does it, a worker or the thread that waits for it."""

    __slots__ = ("claim", "done", "end", "failure", "finished", "start", "work")

    def __init__(self, work: Callable[[int, int], None], start: int, end: int) -> None:
        self.work, self.start, self.end = work, start, end
        self.claim, self.done = threading.Lock(), threading.Lock()
        self.done.acquire()
        self.finished = False
        self.failure: BaseException | None = None

    def run(self) -> None:
        if not self.claim.acquire(blocking=False):
            return
        try:
            self.work(self.start, self.end)
        except BaseException as error:  # raised again in the thread that waits
            self.failure = error
        self.finished = True
        self.done.release()

    def wait(self) -> None:
        """Return when the job is done: memory that it reads and writes must not go before. Interrupts are kept for later."""
        self.run()  # nobody has begun
        while not self.finished:
            try:
                self.done.acquire()
            except BaseException as error:
                self.failure = error


class _Worker(threading.Thread):
    """A thread that runs one job after another, and sleeps between them."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="retrograd-worker")
        from queue import SimpleQueue  # with the first large array

        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.start()

    def run(self) -> None:
        np.seterr(all="ignore")  # as in every thread that computes
        while True:
            job = self.jobs.get()
            job.run()
            del job


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
        jobs = [_Job(work, min(k * step, size), min((k + 1) * step, size)) for k in range(1, count)]
        try:
            for worker, job in zip(_workers, jobs):  # noqa: B905 - there may be more workers
                worker.jobs.put(job)
            work(0, step)
        finally:
            for job in jobs:
                job.wait()
    finally:
        _busy.release()
    for job in jobs:
        if job.failure is not None:
            raise job.failure


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
