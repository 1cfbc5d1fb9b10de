"""Run many programs in processes of their own: torch crashes in some, and then the next process goes on behind them."""

from __future__ import annotations

import json
import os
import select
import signal
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

import retrograd
from tests.random_programs import building, operations
from tests.random_programs.comparing import difference
from tests.random_programs.known import kind_of
from tests.random_programs.programs import Program
from tests.random_programs.shrinking import script, shrunk

SILENCE = 120  # seconds after which a process is given up
AT_ONCE = 1000  # programs of a process


def judged(program: Program, library: Any, shrink: bool = True) -> dict[str, Any] | None:
    """Return what differs in a program: its kind, None where that is new, with the smallest program."""
    found = difference(program, library)
    if found is None:
        return None
    kind = kind_of(program, found)
    small, smaller_found = shrunk(program, found, library) if shrink and kind is None else (program, found)
    kind = kind or kind_of(small, smaller_found)
    return {
        "number": program.number,
        "reading": program.reading,
        "operations": sorted({step.operation for step in small.steps}),
        "kind": kind,
        **smaller_found._asdict(),
        "script": script(small, smaller_found) if shrink and kind is None else None,
    }


def prepare() -> None:
    """Read all samples once; forked processes share them."""
    torch.set_num_threads(1)
    for name in operations.operations():
        operations.forms(name)


def run_batch(seed: int, numbers: Sequence[int], shrink: bool = True) -> Iterator[dict[str, Any]]:
    """Run programs in a forked process; a crash is told as one, and the rest goes on in the next process."""
    start = 0
    while start < len(numbers):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _serve(seed, numbers[start:], shrink, os.fdopen(writer, "w"))
            os._exit(0)
        os.close(writer)
        at = numbers[start]
        for line in _awaited(reader, child):
            told = json.loads(line)
            if "at" in told:
                at = told["at"]
            else:
                yield told
        os.close(reader)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            yield {"number": at, "crash": signal.Signals(os.WTERMSIG(status)).name}
            start = numbers.index(at) + 1
        elif status:
            raise RuntimeError(f"the process ended with {status} at program {at}")
        else:
            return


def _awaited(reader: int, child: int) -> Iterator[bytes]:
    """Return the lines that a process writes; one that waits for itself, where no alarm of its own wakes it, is ended."""
    rest = b""
    while True:
        if not select.select([reader], [], [], SILENCE)[0]:
            os.kill(child, signal.SIGKILL)
        got = os.read(reader, 1 << 16)
        if not got:
            return
        *lines, rest = (rest + got).split(b"\n")
        yield from lines


def _serve(seed: int, numbers: Sequence[int], shrink: bool, out: Any) -> None:
    used: Counter[str] = Counter()
    for number in numbers:
        out.write(json.dumps({"at": number}) + "\n")
        out.flush()
        try:
            program = building.program(seed, number)
            used.update(program.operations)
            told = judged(program, retrograd, shrink)
        except Exception:
            told = {"number": number, "broken": traceback.format_exc()}
        if told is not None:
            out.write(json.dumps(told) + "\n")
    out.write(json.dumps({"used": used}) + "\n")
    out.flush()
