"""`Work`: what processes do together while the program goes on; the order in which it starts; waiting, with a limit."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

from .._tracebacks import guard_methods
from ..futures import Future
from ._dist_errors import DistBackendError

SPIN_SECONDS = 1.0  # how long a process asks without a pause: messages move only while somebody asks
EAGER = 20  # how often it asks before it gives way to others: a few microseconds, in which small messages come
NAP = 1e-4  # the pause between questions after that
THREAD_NAP = 5e-5  # the pause between the questions of the thread that asks while the program computes

Steps = Generator[Any, None, None]  # each step is a request; the next may start once it has ended


# Note [The order of collectives]
# MPI pairs the n-th collective that a process starts on a communicator with the n-th of every other process. So:
# Rule 1. Collectives of a group start in the order in which the program calls them, also those with async_op=True.
# Rule 2. Most are one request and start at once, however many are under way.
# Rule 3. One that takes several requests, one after the other (a generator), must end before the next one of its group starts:
#         when its second request starts depends on time, and processes would differ in what comes first.
# Rule 4. Messages from one process to another are paired by tags and start at once.
class Line:
    """What a group has under way."""

    def __init__(self) -> None:
        self.waiting: deque[Work] = deque()
        self.running: list[Work] = []

    def is_idle(self) -> bool:
        """Tell whether nothing is under way."""
        return not self.running and not self.waiting

    def start(self, work: Work, ordered: bool) -> None:
        """Start a piece of work, or let it wait for its turn."""
        with _lock:
            if ordered:
                self.waiting.append(work)
            else:
                self.running.append(work)
                work._begin()
            _lines.add(self)
        self.advance()

    def advance(self) -> None:
        """Ask what is under way for its state, and start what has its turn."""
        ended: list[Work] = []
        with _lock:
            changed = True
            while changed:
                changed = False
                while self.waiting and not any(work._steps is not None for work in self.running):
                    work = self.waiting.popleft()
                    self.running.append(work)
                    work._begin()
                for work in [one for one in self.running if one._is_over()]:
                    self.running.remove(work)
                    ended.append(work)
                    changed = True
            if self.is_idle():
                _lines.discard(self)
        for work in ended:
            work._tell()


abandoned: list[Any] = []  # what processes gave up waiting for: MPI may still write into its memory
_lock = threading.RLock()
_lines: set[Line] = set()
_called = threading.Event()  # set while a thread is wanted that asks while the program computes
_threads: list[threading.Thread] = []


def work_in_background() -> None:
    """Let a thread move messages while the program computes. It ends with the process."""
    if not _threads or not _threads[0].is_alive() or _threads[0].name != _thread_name():
        thread = threading.Thread(target=_move_messages, name=_thread_name(), daemon=True)
        _threads[:] = [thread]
        thread.start()
    _called.set()


def _thread_name() -> str:
    return f"torch.distributed of process {os.getpid()}"  # a forked process has none


def _move_messages() -> None:
    while True:
        _called.wait()
        with _lock:
            lines = list(_lines)
            if not lines:
                _called.clear()
        for line in lines:
            line.advance()
        time.sleep(THREAD_NAP)


class Work:
    """Something that processes do together. `issue` starts it, `finish` is called when it has ended."""

    __module__ = "retrograd.distributed.distributed_c10d"

    def __init__(self, issue: Callable[[], Any], finish: Callable[[], None], result: list[Any], waiter: Waiter) -> None:
        self._issue, self._finish, self._result, self._waiter = issue, finish, result, waiter
        self._request: Any = None
        self._steps: Steps | None = None
        self._completed = False
        self._error: Exception | None = None
        self._future: Any = None
        self._sender: Any = None  # of a message: what knows its sender

    # ---- its states, all under the lock ----
    def _begin(self) -> None:
        try:
            begun = self._issue()
            if hasattr(begun, "Test"):
                self._request = begun
            else:
                self._steps = begun
                self._request = next(self._steps)
        except StopIteration:
            self._end()
        except Exception as error:
            self._end(error)

    def _is_over(self) -> bool:
        try:
            while not self._completed and self._request.Test():
                if self._steps is None:
                    self._end()
                else:
                    self._request = next(self._steps)
        except StopIteration:
            self._end()
        except Exception as error:
            self._end(error)
        return self._completed

    def _end(self, error: Exception | None = None) -> None:
        self._steps = self._request = None
        try:
            if error is None:
                self._finish()
        except Exception as raised:
            error = raised
        if error is not None:
            abandoned.append((self._issue, self._finish))
            error = _explained(error, self._waiter.what)
        self._error = error
        self._completed = True
        del self._issue, self._finish  # and what they hold

    def _tell(self) -> None:
        future = self._future
        if future is not None and not future.done():
            if self._error is None:
                future.set_result(self._result)
            else:
                future.set_exception(self._error)

    # ---- what programs ask ----
    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is done; raise if it failed, or if the time is over."""
        if not self._completed:
            waiter = self._waiter if timeout in (None, timedelta(0)) else self._waiter.within(timeout)
            waiter.wait_until(self._looked_at)
        if self._error is not None:
            raise self._error
        return True

    def _looked_at(self) -> bool:
        self._waiter.line.advance()
        return self._completed

    def synchronize(self) -> None:
        """Wait until it is done."""
        self.wait()

    def is_completed(self) -> bool:
        """Tell whether it is done."""
        if not self._completed:
            self._waiter.line.advance()
        return self._completed

    def is_success(self) -> bool:
        """Tell whether it is done, without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """Return the error that came, if one did."""
        return self._error

    def result(self) -> Any:
        """Return the tensors that were written."""
        return self._result

    def source_rank(self) -> int:
        """Return the number of the process from which a message came."""
        return -1 if self._sender is None else int(self._sender.source)

    def get_future(self) -> Any:
        """Return a Future of the tensors that are written."""
        with _lock:
            if self._future is None:
                self._future = Future()
            future, over = self._future, self._completed
        if over:
            self._tell()
        else:
            work_in_background()  # nobody may ever wait for the work itself
        return future


guard_methods(Work, "wait", "synchronize")


class Waiter:
    """How long processes wait for each other in a collective of a group, and what is said when the time is over."""

    def __init__(
        self,
        line: Line,
        seconds: float,
        what: str,
        late: Callable[[str, float], Exception],
        check: Callable[[str], None] | None = None,
        is_patient: bool = False,  # in the background: it leaves Python's lock to the program
    ) -> None:
        self.line, self.seconds, self.what, self.late, self.check = line, seconds, what, late, check
        self.is_patient = is_patient

    def within(self, limit: Any) -> Waiter:
        """Return the same with another limit."""
        return Waiter(self.line, seconds_of(limit), self.what, self.late, self.check, self.is_patient)

    def run(self, issue: Callable[[], Any]) -> None:
        """Start something and wait for it, where nothing else is under way."""
        begun: Any = None
        try:
            begun = issue()
            for request in (begun,) if hasattr(begun, "Test") else begun:
                if not request.Test():
                    self.wait_until(request.Test)
        except BaseException as error:
            abandoned.append((issue, begun))
            raise (_explained(error, self.what) if isinstance(error, RuntimeError) else error) from None

    def wait_until(self, is_over: Callable[[], bool]) -> None:
        """Ask until the answer is yes. Other processes that share the core come first."""
        for _ in range(EAGER):
            if is_over():
                return
        began = looked = time.monotonic()
        give_way = os.sched_yield if hasattr(os, "sched_yield") and not self.is_patient else _nap
        while True:
            for _ in range(50):
                if is_over():
                    return
                give_way()
            now = time.monotonic()
            if now - began > self.seconds:
                raise self.late(self.what, self.seconds)
            if now - looked > SPIN_SECONDS:
                give_way, looked = _nap, now
                if self.check is not None:
                    self.check(self.what)


def _nap() -> None:
    time.sleep(NAP)


def _explained(error: Exception, what: str) -> Exception:
    """Say of an error of MPI what it may come from; leave others as they are."""
    if not type(error).__module__.startswith("mpi4py"):
        return error
    return DistBackendError(
        f"{what}: {error}\nHint: processes may have given tensors of different sizes or called different collectives; with "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment these are compared."
    )


def seconds_of(limit: Any) -> float:
    """Return the seconds of a timedelta, or of a number of them."""
    return float(limit.total_seconds()) if isinstance(limit, timedelta) else float(limit)
