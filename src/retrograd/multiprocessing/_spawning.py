"""Several processes that run one function, each with its number."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any


class ProcessException(Exception):  # noqa: N818 - torch's name
    """A process has ended badly."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function has raised an error; its traceback is in the message."""


class ProcessExitedException(ProcessException):
    """A process has gone by a signal, or with an exit code of its own."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], number: int, args: tuple[Any, ...], report: Connection) -> None:
    """Call the function in the new process, and send what it raises."""
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass  # the parent says so, too
    except Exception:
        report.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that have been started together: if one fails, the others are ended."""

    def __init__(self, processes: list[Any], reports: list[Connection]) -> None:
        self.processes = processes
        self._reports = reports
        self._running = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends; tell whether all have. If it failed, end the others and raise its error."""
        if not self._running:
            return True  # a wait for nothing would have no end
        ready = wait(self._running.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            number = self._running.pop(sentinel)
            process = self.processes[number]
            process.join()
            if process.exitcode != 0:
                failed = number
                break
        if failed is None:
            return not self._running
        self._end_the_others(grace_period)
        self._complain(failed)
        return False

    def _end_the_others(self, grace_period: float | None) -> None:
        if grace_period:
            until = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0.0, until - time.monotonic()))
        for end in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            for process in self.processes:
                process.join(30)

    def _complain(self, number: int) -> None:
        process, report = self.processes[number], self._reports[number]
        text = _received(report)
        if text is not None:
            message = f"\n\n-- Process {number} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, number, process.pid)
        code = process.exitcode
        if code < 0:
            name = {each.value: each.name for each in signal.Signals}.get(-code, f"<Unknown signal {-code}>")
            raise ProcessExitedException(
                f"process {number} terminated with signal {name}", number, process.pid, code, name
            )
        raise ProcessExitedException(f"process {number} terminated with exit code {code}", number, process.pid, code)


SpawnContext = ProcessContext


def _received(report: Connection) -> str | None:
    try:
        return report.recv() if report.poll() else None
    except EOFError:
        return None


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes that call `fn(number, *args)`, and wait for them unless `join` is False."""
    context: Any = multiprocessing.get_context(start_method)
    processes, reports = [], []
    for number in range(nprocs):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, number, args, theirs), daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        reports.append(mine)
    started = ProcessContext(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start new processes that call `fn(number, *args)`, and wait for them unless `join` is False."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            f"To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")


__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]
