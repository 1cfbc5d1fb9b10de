"""Timing libraries that have a process each, of which only one runs at a time.

In one process, threads of one library that wait for work take a core from the other, and both share memory that is mapped
already. Here a script starts itself once for each library (`--serve NAME`), asks them in turns, and stops all but the one
that answers. With one thread, processor time is measured: what else the machine does meanwhile does not count. With several
it is the time on the clock.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import timeit
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

STOP, GO = getattr(signal, "SIGSTOP", None), getattr(signal, "SIGCONT", None)
REST = 0.25  # seconds until idle threads sleep, where a process cannot be stopped (Windows)

Calls = dict[str, Callable[[], object]]


class NotMeasuredError(Exception):
    """Says why a library could not answer."""


class Library:
    """A script that serves one library in a process of its own."""

    def __init__(self, script: str, name: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, script, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask()  # until it is imported

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._send(GO)
        self.process.kill()
        self.process.wait()

    def ask(self, **question: Any) -> Any:
        """Let the process run until it has answered."""
        self._send(GO)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.name} has ended")
        self._send(STOP)
        answer = json.loads(line)
        if "error" in answer:
            raise NotMeasuredError(f"{self.name}: {answer['error']}")
        return answer["answer"]

    def _send(self, message: signal.Signals | None) -> None:
        if message is not None:
            self.process.send_signal(message)
        elif self.process.poll() is None:
            time.sleep(REST)


def serve(name: str, make: Callable[..., tuple[Calls, Any]]) -> None:
    """Answer questions from the standard input for one library.

    `make(lib, **what)` returns the calls that can be timed, and what the asking process wants to know of them.
    """
    warnings.simplefilter("ignore")
    lib = importlib.import_module(name)
    calls: Calls = {}
    numbers: dict[tuple[str, int], int] = {}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = None
            if "make" in question:
                calls.clear(), numbers.clear()  # their memory is free before more is taken
                gc.collect()
                made, answer = make(lib, **question["make"])
                calls.update(made)
            elif "time" in question:
                answer = _seconds(lib, calls, numbers, question)
            reply = {"answer": answer}
        except Exception as error:  # told to the one who asks, who goes on with the next question
            reply = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
        print(json.dumps(reply), flush=True)


def _seconds(lib: Any, calls: Calls, numbers: dict[tuple[str, int], int], question: dict[str, Any]) -> float:
    """Return the time of one call, measured over about as many seconds as asked for."""
    call, threads = calls[question["time"]], question["threads"]
    clock = time.process_time if threads == 1 else time.perf_counter
    if hasattr(lib, "set_num_threads") and lib.get_num_threads() != threads:
        lib.set_num_threads(threads)
    call()  # wakes the threads, fills the cache
    key = question["time"], threads
    if key not in numbers:
        once = min(timeit.repeat(call, number=1, repeat=3))
        numbers[key] = max(1, int(question["seconds"] / max(once, 1e-7)))
    return timeit.timeit(call, number=numbers[key], timer=clock) / numbers[key]


def machine_load() -> float:
    """Return how many programs want to run, in the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def warn_if_busy(threads: int) -> None:
    """Say so where other programs run and several threads are to be timed."""
    load = machine_load()
    if threads > 1 and load > 0.5:
        print(f"the machine is busy (load {load:.1f}): figures of {threads} threads mean nothing until it is idle\n")


def race(
    libraries: Iterable[Library], call: str, threads: int, rounds: int, seconds: float = 0.02
) -> list[list[float]]:
    """Time what all libraries have made, in turns; return the times of each, round by round."""
    turns = [[lib.ask(time=call, threads=threads, seconds=seconds) for lib in libraries] for _ in range(rounds)]
    return [list(times) for times in zip(*turns, strict=True)]
