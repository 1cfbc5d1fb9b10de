"""Several processes that run one function, each with its number."""

from __future__ import annotations

import contextlib
import copyreg
import multiprocessing
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any

from .._public import set_all
from .._tracebacks import guarded, shorten
from .._warnings import warn

PATIENCE = 30.0  # seconds that a process has to obey before it is killed


class ProcessException(Exception):  # noqa: N818 - torch's name
    """A process has ended badly."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (type(self), self.msg), self.__dict__  # type: ignore[attr-defined]


class ProcessRaisedException(ProcessException):
    """The function has raised an error; its traceback is in the message."""


class ProcessExitedException(ProcessException):
    """A process has gone by a signal, or with an exit code of its own."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _work(report: Connection, fn: Any, args: tuple[Any, ...]) -> None:
    """Call the function, in the new process; tell the first one what it raises."""
    try:
        fn(*args)
    except KeyboardInterrupt:
        return  # which the first process shows, too
    except Exception as error:
        shorten(error)
        report.send("".join(traceback.format_exception(error)))
        if (mpi := sys.modules.get("retrograd.distributed._mpi")) is not None:
            mpi.note_failure()  # so that the process ends at once: the others may wait for it
        sys.exit(1)


class _Child:
    """A process that has been started, and what is heard of it."""

    def __init__(self, number: int, context: Any, fn: Any, args: tuple[Any, ...], daemon: bool) -> None:
        self.number = number
        self.text: str | None = None
        self._report, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(theirs, fn, (number, *args)), daemon=daemon)
        self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def signs(self) -> list[Any]:
        """Return what becomes ready when the process has something to say, or ends."""
        return [self.process.sentinel, *([] if self._report.closed else [self._report])]

    def has_ended(self) -> bool:
        """Tell whether the process has gone, or says why it goes."""
        self._listen()
        return self.text is not None or not self.process.is_alive()

    def _listen(self) -> None:
        """Take a text out of the pipe, in which the process could not leave a long one behind."""
        if self._report.closed or not self._report.poll():
            return
        with self._report, contextlib.suppress(EOFError):  # it may go without a word
            self.text = self._report.recv()

    def failure(self) -> ProcessException | None:
        """Wait for the process to go; return an error unless it went well."""
        self.process.join()
        self._listen()
        number, pid, code = self.number, self.process.pid, self.process.exitcode
        if self.text is not None:
            message = f"\n\n-- Process {number} terminated with the following error:\n{self.text}"
            return ProcessRaisedException(message, number, pid)
        if code == 0:
            return None
        if code > 0:
            return ProcessExitedException(f"process {number} terminated with exit code {code}", number, pid, code)
        known = {one.value: one.name for one in signal.Signals}
        name = known.get(-code, f"<Unknown signal {-code}>")
        return ProcessExitedException(f"process {number} terminated with signal {name}", number, pid, code, name)


class ProcessContext:
    """Processes that have been started together: if one fails, the others are ended."""

    def __init__(self, children: list[_Child]) -> None:
        self.processes = [child.process for child in children]
        self._running = list(children)

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [process.pid for process in self.processes]

    @guarded
    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends; tell whether all have. If it failed, end the others and raise its error.

        The others have `grace_period` seconds to end by themselves, and then as many to obey.
        """
        for child in self._next_to_end(timeout):
            self._running.remove(child)
            failure = child.failure()
            if failure is not None:
                self._end_all(grace_period)
                raise failure
        return not self._running

    def _next_to_end(self, timeout: float | None) -> list[_Child]:
        until = _moment(timeout)
        ended: list[_Child] = []
        while self._running and not ended:
            if not wait([sign for child in self._running for sign in child.signs()], _left(until)):
                break
            ended = [child for child in self._running if child.has_ended()]
        return ended

    def _end_all(self, grace_period: float | None) -> None:
        patience = PATIENCE if grace_period is None else grace_period
        for order, seconds in ((None, grace_period or 0.0), ("terminate", patience), ("kill", None)):
            alive = [process for process in self.processes if process.is_alive()]
            if order is not None:
                for process in alive:
                    getattr(process, order)()
            until = _moment(seconds)
            for process in alive:
                process.join(_left(until))


def _moment(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


SpawnContext = ProcessContext


@guarded
def start_processes(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Start processes that call `fn(number, *args)`, and wait for them unless `join` is False."""
    context = multiprocessing.get_context(start_method)
    started = ProcessContext([_Child(number, context, fn, args, daemon) for number in range(nprocs)])
    if not join:
        return started
    while not started.join():
        pass
    return None


@guarded
def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Start new processes that call `fn(number, *args)`, and wait for them unless `join` is False."""
    if start_method != "spawn":
        advice = "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)"
        warn(f"This method only supports start_method=spawn (got: {start_method}).\n{advice}", FutureWarning)
    return start_processes(fn, args, nprocs, join, daemon)


set_all(globals())
