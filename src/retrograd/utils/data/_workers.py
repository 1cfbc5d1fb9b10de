"""One epoch over a DataLoader with worker processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
import warnings
import weakref
from collections import deque
from multiprocessing.connection import wait
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, NoReturn

from ..._warnings import warn
from ._iterators import _BaseDataLoaderIter
from ._utils.channel import GONE, HAS_FILES_IN_MEMORY, Channel, Packed
from ._utils.exceptions import ExceptionWrapper
from ._utils.worker import CHECK_INTERVAL, RESUME, Job, _IterableDatasetStopIteration, _worker_loop

if TYPE_CHECKING:
    from .dataloader import DataLoader


def _end_workers(processes: list[Any], channels: list[Channel], owner: int) -> None:
    """Close the channels, on which workers end by themselves, and end those that do not in time."""
    if os.getpid() != owner:
        return  # a forked process has a copy of the iterator, but these are not its children
    for channel in channels:
        channel.close()
    limit = time.monotonic() + CHECK_INTERVAL
    for process in processes:
        process.join(max(0.0, limit - time.monotonic()))
    for process in processes:
        if process.is_alive():
            process.terminate()
            process.join(CHECK_INTERVAL)
        if process.is_alive():
            process.kill()
            process.join()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Gives out tasks to the workers in turn, a few ahead, and hands on their batches in order.

    A task is a number and an index. `_tasks` holds those not handed on yet and their worker, `_arrived` the batches that
    came before their turn.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._prefetch_factor: int = loader.prefetch_factor or 0
        self._worker_init_fn = loader.worker_init_fn
        self._in_order = loader.in_order
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._workers: list[Any] = []
        self._channels: list[Channel] = []
        self._lost = [False] * self._num_workers  # died, or ended after their stream
        # Called when nobody holds the iterator any more. Python itself ends workers, which are daemons, at its exit.
        self._finish = weakref.finalize(self, _end_workers, self._workers, self._channels, os.getpid())
        self._finish.atexit = False
        try:
            self._start_workers(loader)
            self._reset(loader, first_iter=True)
        except BaseException:
            self._finish()
            raise

    def _start_workers(self, loader: DataLoader[Any]) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        for number in range(self._num_workers):
            own, other = context.Pipe(duplex=True)
            self._channels.append(Channel(own, of_main_process=True))
            job = Job(
                self._dataset_kind,
                self._dataset,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
                self._base_seed,
                self._worker_init_fn,
                number,
                self._num_workers,
            )
            process = context.Process(target=_worker_loop, args=(job, other), daemon=True)
            try:
                with warnings.catch_warnings():
                    # Python warns of threads in a process that is forked: BLAS's, which are ready for that, and ours.
                    warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
                    process.start()
            except (TypeError, AttributeError, PicklingError):
                warn(
                    "Got pickle error when attempting to start a worker Process. This might be because the worker Process "
                    "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX "
                    "platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can also "
                    "try multiprocessing.set_start_method('fork')."
                )
                raise
            finally:
                other.close()
            self._workers.append(process)

    def _shutdown_workers(self) -> None:
        """End the workers; what they have on the way is lost."""
        self._finish()

    # ---- what programs that stop or resume an epoch read of torch's iterator ----
    @property
    def _shutdown(self) -> bool:
        return not self._finish.alive

    @property
    def _tasks_outstanding(self) -> int:
        return len(self._tasks) - len(self._arrived)

    @property
    def _task_info(self) -> dict[int, tuple[Any, ...]]:
        return {n: (of, self._arrived[n]) if n in self._arrived else (of,) for n, of in self._tasks.items()}

    # ---- tasks ----
    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0  # the number of the next task
        self._rcvd_idx = 0  # the number of the batch to hand on next
        self._tasks: dict[int, int] = {}
        self._arrived: dict[int, Any] = {}
        self._workers_status = [not lost for lost in self._lost]  # still has samples in this epoch
        self._counts = [0] * self._num_workers  # tasks whose batches have not been handed on
        self._unanswered = [0] * self._num_workers  # tasks that a worker has received
        self._waiting: list[deque[Packed]] = [deque() for _ in range(self._num_workers)]
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._resume_workers()
        for _ in range(self._prefetch_factor * self._num_workers):
            self._give_task()

    def _resume_workers(self) -> None:
        """Let persistent workers begin an epoch; what is on the way from one that was left early is thrown away."""
        for worker, lost in enumerate(self._lost):
            if lost:
                self._fail(worker)
        resume = Packed(RESUME, None)
        answering = set(range(self._num_workers))
        for worker in answering:
            self._waiting[worker].append(resume)
            self._send_waiting(worker)
        while answering:
            worker, number, _ = self._receive()
            if number == RESUME:
                answering.discard(worker)

    def _give_task(self) -> None:
        """Give the next index to the next worker that takes one."""
        most = self._prefetch_factor * self._num_workers
        index = next(self._sampler_iter, self)
        if index is self:
            return  # no more indices
        for worker in itertools.islice(self._worker_queue_idx_cycle, self._num_workers):
            # Out of order, a slow worker gets no more than its share.
            if self._workers_status[worker] and (
                self._in_order or self._counts[worker] < most // sum(self._workers_status)
            ):
                break
        else:
            return
        self._waiting[worker].append(Packed(self._send_idx, index))
        self._tasks[self._send_idx] = worker
        self._counts[worker] += 1
        self._send_idx += 1
        self._send_waiting(worker)

    def _send_waiting(self, worker: int) -> None:
        """Send what a worker has room for. The main process never waits for a worker that may be waiting for it."""
        channel, messages = self._channels[worker], self._waiting[worker]
        try:
            while messages and channel.can_send_now():
                if not (messages[0].is_small or HAS_FILES_IN_MEMORY) and self._unanswered[worker]:
                    return  # this one fills the socket: only a worker that reads may get it
                self._unanswered[worker] += 1
                channel.send(messages.popleft())
        except GONE:
            messages.clear()  # reading from it will tell

    # ---- batches ----
    def _next_data(self) -> Any:
        while True:
            self._skip_lost_tasks()
            if self._rcvd_idx == self._send_idx:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if self._rcvd_idx in self._arrived:
                return self._handed_on(self._rcvd_idx, self._arrived.pop(self._rcvd_idx))
            worker, number, data = self._receive()
            if isinstance(data, _IterableDatasetStopIteration):
                self._workers_status[worker] = False
                if not self._persistent_workers:
                    self._lost[worker] = True
                    self._channels[worker].close()
                self._give_task()
            elif number == self._rcvd_idx or not self._in_order:
                return self._handed_on(number, data)
            else:
                self._arrived[number] = data

    def _skip_lost_tasks(self) -> None:
        """Go on to the next task that is answered or will be."""
        while self._rcvd_idx < self._send_idx:
            worker = self._tasks.get(self._rcvd_idx)
            if worker is not None:
                if self._workers_status[worker] or self._rcvd_idx in self._arrived:
                    return
                del self._tasks[self._rcvd_idx]
            self._rcvd_idx += 1

    def _handed_on(self, number: int, data: Any) -> Any:
        self._counts[self._tasks.pop(number)] -= 1
        if number == self._rcvd_idx:
            self._rcvd_idx += 1
        self._give_task()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _receive(self) -> tuple[int, int, Any]:
        """Wait for the next message: its worker, its task's number, its data."""
        limit = time.monotonic() + self._timeout if self._timeout > 0 else None
        connections = {self._channels[k].connection: k for k in range(self._num_workers) if not self._lost[k]}
        while True:
            patience = CHECK_INTERVAL if limit is None else min(CHECK_INTERVAL, max(0.0, limit - time.monotonic()))
            for ready in wait(list(connections), patience):
                worker = connections[ready]
                try:
                    number, data = self._channels[worker].receive()
                except GONE:
                    self._fail(worker)
                self._unanswered[worker] -= 1
                self._send_waiting(worker)
                return worker, number, data
            for connection, worker in connections.items():
                # A process that the worker has started may hold the channel open.
                if not self._workers[worker].is_alive() and not connection.poll(0):
                    self._fail(worker)
            if limit is not None and time.monotonic() >= limit:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _fail(self, worker: int) -> NoReturn:
        """Raise torch's errors for a worker that has died; the others go on if the caller does."""
        self._lost[worker] = True
        self._workers_status[worker] = False
        process = self._workers[worker]
        process.join(CHECK_INTERVAL)
        code = process.exitcode
        cause = None
        if code is not None and code < 0:
            cause = RuntimeError(
                f"DataLoader worker (pid {process.pid}) is killed by signal: {signal.strsignal(-code)}. "
            )
        elif code:
            cause = RuntimeError(
                f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. Details are lost due to "
                "multiprocessing. Rerunning with num_workers=0 may give better error trace."
            )
        raise RuntimeError(f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly") from cause
