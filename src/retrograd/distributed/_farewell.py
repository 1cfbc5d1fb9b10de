"""Processes that do not work on: who has died or left, and how a process leaves.

Note [Processes that have left]
A process may end well while others still wait: for each other, or for what it has sent. So that one has left is no reason to give up.
Rule 1. At its end a process says how many collectives it has called in each group. Who waits for a later one waits in vain.
Rule 2. Who waits for a message of one that has left waits in vain, too, unless it is under way: that has a second to come.
Rule 3. Who has joined through a store says so to the process manager (`_pmi.py`), which knows the dead as well, and need not stay.
Rule 4. What mpiexec has started must stay until all end, as MPI demands. Until then it answers those that wait and ask. The dead need no
        answer: mpiexec ends the job.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _mpi
from ._dist_errors import DistNetworkError, ranks_in_words
from ._work import Line, Waiter

FAREWELL_SECONDS = 5.0  # how long a process that ends waits for the others to end, too
ANSWER_SECONDS = 0.002  # how often a process that ends looks for questions
UNDER_WAY_SECONDS = 1.0  # how long what a process has sent before it left may be under way
ASK_TAG, ANSWER_TAG = 2, 3


class Lost(NamedTuple):
    """The numbers of processes that do not work on, as far as that is known."""

    dead: list[int]
    stopped: list[int]  # those whom the death of another has ended
    left: dict[int, dict[str, int]]  # those that have ended well: how many collectives they have called in each group


ledger: dict[
    str, Any
] = {}  # every group that there was, by the name that all processes have for it; of closed ones the count
_first_seen: dict[int, float] = {}  # when this process learnt that others have left


def _own_counts() -> str:
    return " ".join(f"{name}={one if isinstance(one, int) else one.called}" for name, one in ledger.items())


def _counts(words: list[str]) -> dict[str, int]:
    return {name: int(count) for name, _, count in (word.rpartition("=") for word in words)}


def lost_ranks() -> Lost:
    """Return which processes have died or left, the latter so long ago that nothing of theirs is under way."""
    found = _Manager.lost() if is_joined() else Lost([], [], _Questions.answers())
    now = time.monotonic()
    for_good = {
        rank: counts
        for rank, counts in found.left.items()
        if now - _first_seen.setdefault(rank, now) >= UNDER_WAY_SECONDS
    }
    return found._replace(left=for_good)


def lost_in_words(what: str, is_awaited: Callable[[int, dict[str, int] | None], bool]) -> str:
    """Say who of those that are awaited has died or left; nothing if all may still come.

    `is_awaited` is asked for the number of a process and, of one that has left, the counts of its collectives.
    """
    lost = lost_ranks()
    left = [rank for rank, counts in lost.left.items() if is_awaited(rank, counts)]
    dead, stopped = ([rank for rank in some if is_awaited(rank, None)] for some in (lost.dead, lost.stopped))
    if dead or (stopped and not left):
        _mpi.note_failure()
        note_stopped()
        return f"{what}: {ranks_in_words(dead or stopped)} died"
    if not left:
        return ""
    _mpi.note_failure()
    if is_joined():
        _tell_manager("stopped")
    else:
        _Questions.give_up(left)
    return f"{what}: {ranks_in_words(left)} {'has' if len(left) == 1 else 'have'} left"


# ---- processes that have joined through a store: the manager knows ----
class _Manager:
    address = ("", 0)
    descriptor = -1  # of the connection on which MPI speaks PMI
    is_stopped = False

    @classmethod
    def lost(cls) -> Lost:
        try:
            dead, stopped, left = (part.split() for part in " ".join(["", *ask_manager("dead"), ""]).split("|"))
        except (OSError, DistNetworkError):
            return Lost([], [], {})
        said: dict[int, list[str]] = {}
        for words in left:
            rank, _, count = words.partition("/")
            said.setdefault(int(rank), []).append(count)
        return Lost(
            [int(rank) for rank in dead],
            [int(rank) for rank in stopped],
            {rank: _counts(every) for rank, every in said.items()},
        )


def set_manager(address: tuple[str, int], descriptor: int = -1) -> None:
    """Say where the process manager of the job is, and what connects MPI with it."""
    _Manager.address, _Manager.descriptor = address, descriptor
    if descriptor >= 0:
        _mpi.set_farewell(_leave_manager)


def is_joined() -> bool:
    """Tell whether this process has joined the others through a store."""
    return _Manager.descriptor >= 0


def ask_manager(question: str) -> list[str]:
    """Return the words that the process manager answers."""
    with socket.create_connection(_Manager.address, timeout=10) as connection:
        connection.sendall(f"{question}\n".encode())
        return line_of(connection).split()


def line_of(connection: socket.socket) -> str:
    """Return the next line of what is sent, and read no more than that: what follows is for MPI."""
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(1)
        if not more:
            raise DistNetworkError("The process manager of the job has gone.")
        data += more
    return data.decode().strip()


def note_stopped() -> None:
    """Tell the others that this process fails because another has died: they shall not name it as the cause."""
    _Manager.is_stopped = True
    _tell_manager("stopped")


def _tell_manager(words: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_Manager.descriptor, f"cmd={words}\n".encode())


def is_stopped() -> bool:
    """Tell whether this process fails because another has died."""
    return _Manager.is_stopped


def _leave_manager() -> None:
    """End together with the others, so that none waits for a message that is still here; not if one has died."""
    _tell_manager(f"leaving {_own_counts()}")
    request = _mpi.load().COMM_WORLD.Ibarrier()
    until = time.monotonic() + FAREWELL_SECONDS
    Waiter(Line(), FAREWELL_SECONDS, "", lambda *_: TimeoutError()).wait_until(
        lambda: request.Test() or time.monotonic() > until
    )
    _tell_manager("leave")  # MPI's own end would say so, but it waits for everybody


# ---- processes that mpiexec has started: they ask each other ----
class _Questions:
    channel: Any = None
    asked: list[Any] | None = None  # requests
    heard: dict[int, dict[str, int]] = {}  # noqa: RUF012 - of this process
    lock = threading.Lock()

    @classmethod
    def answers(cls) -> dict[int, dict[str, int]]:
        """Return what others have answered, who are asked at the first call."""
        channel = cls.channel
        if channel is None:
            return {}
        MPI = _mpi.load()  # noqa: N806 - mpi4py's name
        others = [rank for rank in range(channel.Get_size()) if rank != channel.Get_rank()]
        with cls.lock:
            if cls.asked is None:
                cls.asked = [channel.Isend([b"?", MPI.BYTE], rank, ASK_TAG) for rank in others]
            status = MPI.Status()
            while channel.Iprobe(MPI.ANY_SOURCE, ANSWER_TAG, status):
                text = bytearray(status.Get_count(MPI.BYTE))
                channel.Recv([text, MPI.BYTE], status.Get_source(), ANSWER_TAG)
                cls.heard[status.Get_source()] = _counts(text.decode().split())
            return dict(cls.heard)

    @classmethod
    def give_up(cls, ranks: list[int]) -> None:
        """Tell processes that have come to their end that this one fails: they need not stay for it."""
        for rank in ranks:
            cls.channel.Isend([b"!", _mpi.load().BYTE], rank, ASK_TAG).Wait()

    @classmethod
    def answer(cls) -> bool:
        """Tell those who ask that this process has come to its end; return whether one fails."""
        MPI = _mpi.load()  # noqa: N806 - mpi4py's name
        status, text, question = MPI.Status(), _own_counts().encode(), bytearray(1)
        while cls.channel.Iprobe(MPI.ANY_SOURCE, ASK_TAG, status):
            cls.channel.Recv([question, MPI.BYTE], status.Get_source(), ASK_TAG)
            if question == b"!":
                return True
            cls.channel.Isend([text, MPI.BYTE], status.Get_source(), ANSWER_TAG).Wait()
        return False


def set_channel(channel: Any) -> None:
    """Say on which communicator of all processes this one can be asked, if nobody else can be."""
    if not is_joined() and _Questions.channel is None:
        _Questions.channel = channel
        _mpi.set_farewell(_leave_started)


def _leave_started() -> None:
    """Wait for the others, who may ask, and end MPI. If one of them fails, mpiexec ends the job, and srun leaves that to the processes."""
    request = _Questions.channel.Ibarrier()
    while not request.Test():
        if _Questions.answer():
            time.sleep(FAREWELL_SECONDS)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(1)  # with 0 the job might seem to have ended well
        time.sleep(ANSWER_SECONDS)
    _mpi.load().Finalize()


__all__ = ["is_joined", "is_stopped", "ledger", "lost_in_words", "note_stopped", "set_channel", "set_manager"]
