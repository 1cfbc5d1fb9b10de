"""Elementwise work on large arrays, split over threads.

NumPy's loops let other threads run, so two halves of an array are computed at the same time. A rule of several steps runs in blocks
that stay in the processor's cache: it reads and writes memory once, where whole arrays would go through memory at every step.
Workers sleep on a lock between calls; a call that finds them busy (another of the user's threads) does its work alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _thresholds
from .._settings import get_num_threads

WIDE, BLOCK, RULE_BLOCK = _thresholds.WIDE, _thresholds.BLOCK, _thresholds.RULE_BLOCK
NDARRAY = np.ndarray


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


def _flat(array: Any, shape: tuple[int, ...]) -> Any:
    """Return an array as one row; None if it is not dense or has another shape. Numbers stay."""
    if type(array) is not NDARRAY:
        return array
    if array.shape != shape or not array.flags.c_contiguous:
        return None if array.ndim else array
    return array.reshape(-1)


def split(function: Any) -> Any:
    """Return what computes a ufunc of large dense float arrays on several threads; other functions stay.

    Comparisons and what has two results are others, too.
    """
    kept = "f" * (function.nin if isinstance(function, np.ufunc) else 0) + "->f"
    if not isinstance(function, np.ufunc) or kept not in function.types:
        return function

    def call(*arrays: Any) -> Any:
        first = arrays[0]
        flat = [_flat(a, first.shape) for a in arrays]
        if any(a is None for a in flat):
            return function(*arrays)
        out = np.empty(first.shape, first.dtype)
        result = out.reshape(-1)

        def work(start: int, end: int) -> None:
            function(*[a[start:end] if type(a) is NDARRAY and a.ndim else a for a in flat], out=result[start:end])

        over_ranges(work, result.size)
        return out

    return call


def rules_in_blocks(xp: Any, g: Any, *tasks: Any, reuse: bool = False) -> list[Any]:
    """Evaluate the rules of an elementwise operation on large arrays, block by block on several threads.

    A task is a rule, what it comes to on plain arrays (or None), and the values it reads, or the gradient if a rule hands that on;
    all of them run over a block while the gradient is in the cache. `reuse`: nobody needs the gradient any more, and the last rule may
    write into its memory, which is at hand where new memory is not.
    """
    whole = _flat(g, g.shape)
    reuse = reuse and whole is not None and not any(task is g for task in tasks)
    outs: list[Any] = []
    jobs: list[tuple[Any, Any, list[Any], Any]] = []
    for at, task in enumerate(tasks):
        if task is None or task is g:
            outs.append(task)
            continue
        rule, plain, values = task
        flat = [_flat(a, g.shape) for a in values]
        if whole is None or any(a is None for a in flat):
            outs.append(rule(xp, g, *values))
            reuse = False  # this may be the gradient itself, or a view of it
            continue
        if plain is not None and any(
            type(a) is not NDARRAY or not a.ndim or a.dtype is not g.dtype for a in (g, *flat)
        ):
            plain = None
        if reuse and not any(later is not None for later in tasks[at + 1 :]):
            out = g
            plain = plain if isinstance(plain, np.ufunc) else None  # others write before they have read
        else:
            out = np.empty(g.shape, g.dtype)
        outs.append(out)
        jobs.append((rule, plain, flat, out.reshape(-1)))

    def work(start: int, end: int) -> None:
        part = whole[start:end]
        for rule, plain, flat, out in jobs:
            values = [a[start:end] if type(a) is NDARRAY and a.ndim else a for a in flat]
            if plain is not None:
                plain(part, *values, out[start:end])
            else:
                out[start:end] = rule(xp, part, *values)

    if jobs:
        over_blocks(work, whole.size, RULE_BLOCK // len(jobs), True)
    return outs
