"""torch.utils.data._utils.worker: what a worker process does."""

from __future__ import annotations

import multiprocessing
import os
import random
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import numpy as np

from .... import _settings
from ...._absent import finder
from ....tensor._functions.generators import manual_seed
from .channel import GONE, Channel, Packed
from .exceptions import ExceptionWrapper
from .fetch import _IterableDatasetFetcher, _MapDatasetFetcher

CHECK_INTERVAL = 5.0  # seconds between looks at whether the other process is alive, where nothing else would tell
RESUME = -1  # in place of a task's number: begin the next epoch


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker this is, of how many, with which seed and which copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what a worker knows about itself; None in the main process.

    Example:
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Says that a worker's stream has ended."""

    worker_id: int


class _DatasetKind:
    """Whether samples come by index or from a stream."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        """Return what takes batches out of a dataset."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class Job(NamedTuple):
    """What a worker gets to know when it starts."""

    kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Any
    worker_id: int
    num_workers: int

    def fetcher(self) -> Any:
        """Begin an epoch."""
        return _DatasetKind.create_fetcher(
            self.kind, self.dataset, self.auto_collation, self.collate_fn, self.drop_last
        )

    def caught(self) -> ExceptionWrapper:
        """Wrap the exception that is being handled."""
        return ExceptionWrapper(where=f"in DataLoader worker process {self.worker_id}")


def seed_everything(base_seed: int, worker_id: int) -> int:
    """Seed Python's, NumPy's and the default stream of a worker as torch does; return the worker's seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    # NumPy has the same generator as Python: its seed is mixed, lest the two give the same numbers.
    mixed = np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0])
    np.random.seed(mixed.generate_state(4))
    return seed


def _worker_loop(job: Job, connection: Any) -> None:
    """Answer the main process's tasks until it closes the channel, or is gone."""
    global _worker_info
    try:
        _settings.set_num_threads(1)
        seed = seed_everything(job.base_seed, job.worker_id)
        _worker_info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
        _answer_tasks(job, Channel(connection))
    except (*GONE, KeyboardInterrupt):
        pass  # the main process has ended the channel, or has been interrupted itself and says so


def _answer_tasks(job: Job, channel: Channel) -> None:
    fetcher: Any = None
    failure: ExceptionWrapper | None = None
    try:
        if job.init_fn is not None:
            job.init_fn(job.worker_id)
        fetcher = job.fetcher()
    except Exception:
        failure = job.caught()
    ended = False  # the stream of this epoch
    while _has_message(channel):
        number, index = channel.receive()
        if number == RESUME:
            ended = False
            if fetcher is not None:
                failure = None
                try:
                    fetcher = job.fetcher()
                except Exception:
                    failure = job.caught()
            channel.send(Packed(RESUME, None))
            continue
        if ended:
            continue
        answer: Any = index if isinstance(index, ExceptionWrapper) else failure
        if answer is None:
            answer, ended = _fetched(job, fetcher, index)
        channel.send(_packed(job, number, answer))
        del answer  # the memory of a batch, while the next is made


def _fetched(job: Job, fetcher: Any, index: Any) -> tuple[Any, bool]:
    """Return a batch, or what came instead of it, and whether the stream has ended."""
    try:
        return fetcher.fetch(index), False
    except StopIteration:
        if job.kind == _DatasetKind.Iterable:
            return _IterableDatasetStopIteration(job.worker_id), True
        return job.caught(), False
    except Exception:
        return job.caught(), False


def _packed(job: Job, number: int, answer: Any) -> Packed:
    """Pack an answer; one that cannot be pickled becomes the error that says so."""
    try:
        return Packed(number, answer)
    except Exception:
        if isinstance(answer, ExceptionWrapper):
            return Packed(number, answer.without_class())
        return Packed(number, job.caught())


def _has_message(channel: Channel) -> bool:
    """Wait for the next message; False if the main process has died without closing the channel."""
    parent = multiprocessing.parent_process()
    watched = [channel.connection] + ([] if parent is None else [parent.sentinel])
    started_by = os.getppid()
    while not (ready := wait(watched, CHECK_INTERVAL)):
        if os.getppid() != started_by:
            return False
    return channel.connection in ready


__getattr__ = finder("torch.utils.data._utils.worker")
