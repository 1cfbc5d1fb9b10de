"""Which of the processes that mpiexec or srun has started on this machine run: MPI's own start waits for all of them, however long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from ._dist_errors import DistStoreError, ranks_in_words

GONE_SECONDS = 5.0  # how long a process must be missing: mpiexec starts them one after the other


def running_ranks(variable: str) -> set[int] | None:
    """Return the numbers, by a variable of their starter, of the processes that descend from it; None where systems do not tell."""
    if not os.path.isdir("/proc/self"):
        return None
    parents = {int(name): _parent(name) for name in os.listdir("/proc") if name.isdecimal()}
    numbers = {pid: _number(pid, variable) for pid in parents}
    starter = os.getpid()
    while (
        numbers.get(starter) is not None
    ):  # shells and wrappers between the starter and this process have its number, too
        starter = parents[starter]
    return {number for pid, number in numbers.items() if number is not None and _descends(pid, starter, parents)}


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:  # it has ended since
        return 0


def _number(pid: int, variable: str) -> int | None:
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            words = dict(word.partition("=")[::2] for word in file.read().split("\0"))
    except OSError:  # another user's, or ended since
        return None
    found = words.get(variable, "")
    return int(found) if found.isdecimal() else None


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor


def watching(variable: str, expected: range, seconds: float) -> Callable[[], None]:
    """Return what is called now and then while MPI starts: it raises if a process has gone, or the time is over.

    `expected` are the numbers that the processes of this machine have if the starter has dealt them out in order.
    """
    began = time.monotonic()
    all_there = began  # when all were last seen to run
    gone: set[int] = set()  # who was missing after that: others may go because of it

    def watch() -> None:
        nonlocal all_there, gone
        now = time.monotonic()
        running = running_ranks(variable)
        if running is None or len(running) >= len(expected):
            all_there, gone = now, set()
        elif not gone:
            gone = set(expected) - running
        elif now - all_there > GONE_SECONDS:
            in_order = running <= set(expected)
            who = ranks_in_words(sorted(gone)) if in_order else "a process of this machine"
            raise DistStoreError(
                f"init_process_group: {who} left before calling it\n"
                "Hint: all processes that mpiexec or srun has started must call it."
            )
        if now - began > seconds:
            raise DistStoreError(
                f"Timed out after {seconds:g} seconds waiting for clients.\nHint: processes that mpiexec or srun has started run, but "
                "not all of them have called init_process_group."
            )

    return watch
