"""torch.utils.data.dataloader: batches of a dataset, loaded in this process or by workers."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from pickle import PicklingError
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

from ..._absent import finder
from ..._tracebacks import guard_public as _guard_public
from ..._tracebacks import hide
from ..._warnings import warn
from ...cuda import is_available as has_cuda
from ._utils.channel import GONE, HAS_FILES_IN_MEMORY, Channel, Packed
from ._utils.collate import default_collate, default_convert
from ._utils.exceptions import ExceptionWrapper
from ._utils.pin_memory import pin_memory
from ._utils.worker import (
    CHECK_INTERVAL,
    RESUME,
    Job,
    _DatasetKind,
    _IterableDatasetStopIteration,
    _worker_loop,
    get_worker_info,
)
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, drawn_seed

T_co = TypeVar("T_co", covariant=True)
FIXED = frozenset(["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])


class _InfiniteConstantSampler(Sampler[None]):
    """Stands in for the indices of a stream, which has none."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def _check_numbers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_samplers(
    is_stream: bool, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if is_stream:
        given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


class Samples(Protocol[T_co]):
    """What a loader takes: a Dataset, or anything else that has samples by key."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches.

    The order and the random numbers drawn for it are torch's: each epoch takes a seed for the workers from `generator`
    (by default the default stream), then shuffling takes its own.

    Args:
        dataset: samples by index, or an iterable of them
        batch_size: how many samples a batch has; None gives them one by one
        shuffle: a new random order in each epoch
        sampler: what gives the order instead
        batch_sampler: what gives lists of indices, a batch each
        num_workers: how many processes load the data; 0 loads it here
        collate_fn: makes a batch of samples
        pin_memory: for torch's sake
        drop_last: leave out the last batch if it is smaller
        timeout: how many seconds to wait for a worker
        worker_init_fn: called in each worker with its number
        multiprocessing_context: how workers are started
        generator: the stream of random numbers
        prefetch_factor: how many batches each worker prepares
        persistent_workers: keep the workers between epochs
        pin_memory_device: for torch's sake
        in_order: give the batches in their order

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.arange(5))
        >>> for (batch,) in torch.utils.data.DataLoader(data, batch_size=2):
        ...     print(batch)
        tensor([0, 1])
        tensor([2, 3])
        tensor([4])
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __init__(
        self,
        dataset: Samples[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_numbers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        is_stream = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if is_stream else _DatasetKind.Map
        _check_samplers(is_stream, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            source: Any = dataset  # whose length the samplers ask for when they need it
            if is_stream:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(source, generator=generator)
            else:
                sampler = SequentialSampler(source)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn: Any = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in FIXED:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started; None for Python's way."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._multiprocessing_context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors to run them."""
        is_exact = hasattr(os, "sched_getaffinity")
        available = len(os.sched_getaffinity(0)) if is_exact else os.cpu_count()
        if not self.num_workers or (available is not None and self.num_workers <= available):
            return
        if available is None:
            advice = "DataLoader is not able to compute a suggested max number of worker in current system."
        else:
            advice = (
                f"Our suggested max number of worker in current system is {available}"
                f"{'' if is_exact else ' (`cpuset` is not taken into account)'}, which is smaller than what this DataLoader "
                "is going to create."
            )
        warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {advice} Please be aware that "
            "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid "
            "potential slowness/freeze if necessary."
        )


_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]

__getattr__ = finder("torch.utils.data.dataloader")


# ---- one epoch: what all iterators do, and the one that loads in the main process ----
class _BaseDataLoaderIter:
    """Draws indices and counts batches; a subclass knows where batches come from."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = bool(loader.pin_memory) and _can_pin(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = drawn_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def __iter__(self) -> Self:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begin an epoch anew."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        try:
            batch = self._next_data()
            self._num_yielded += 1
            promised = self._IterableDataset_len_called
            if promised is not None and self._dataset_kind == _DatasetKind.Iterable and self._num_yielded > promised:
                self._warn_of_length(promised)
            return pin_memory(batch) if self._pin_memory else batch
        except Exception as error:
            hide(error)
            raise

    def _warn_of_length(self, promised: int) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), but "
            f"{self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                "replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warn(text)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _can_pin(loader: DataLoader[Any]) -> bool:
    """Tell whether there is a device to pin memory for; say so if there is none."""
    if loader.pin_memory_device:
        warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
            f"pin_memory_device='{loader.pin_memory_device}'."
        )
    if has_cuda():
        return True
    warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.")
    return False


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads each batch when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(next(self._sampler_iter))


# ---- one epoch with worker processes ----
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


__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


_guard_public(globals())
