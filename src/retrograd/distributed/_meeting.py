"""Being there together before MPI does what nobody can interrupt.

Note [Meetings]
What makes communicators (MPI_Comm_split, MPI_Comm_create_group) returns when all its processes have called it, and otherwise never.
So they meet first, by messages, which can be waited for with a limit: each tells the first of them what it is about to do, the first
compares, and answers all. If one does not come, those that did hear which.
"""

from __future__ import annotations

from typing import Any

from . import _mpi
from ._dist_errors import DistBackendError, ranks_in_words
from ._farewell import lost_in_words
from ._work import Line, Waiter

MEET_TAG = 4
ROOM = 4000  # bytes of what a process says
MORE_SECONDS = 5.0  # how much longer the others wait for the first one, which may just be giving up


def meet(channel: Any, ranks: list[int], what: str, words: str, seconds: float) -> None:
    """Wait until all of some processes are about to do the same; raise if one does not come, or does something else."""
    if len(ranks) > 1:
        _Meeting(channel, ranks, what, words, seconds).hold()


class _Meeting:
    def __init__(self, channel: Any, ranks: list[int], what: str, words: str, seconds: float) -> None:
        self.channel, self.ranks, self.what, self.words, self.seconds = channel, ranks, what, words, seconds
        self.rank = channel.Get_rank()
        self.byte = _mpi.load().BYTE
        self.awaited: dict[int, tuple[Any, bytearray]] = {}  # requests, and where what they bring will be
        self.came: dict[int, str] = {}

    def hold(self) -> None:
        first, *others = self.ranks
        if self.rank == first:
            self._receive(others, self.seconds)
            error = self._disagreement()
            self._answer("" if error is None else str(error))
            if error is not None:
                raise error
            return
        self._send(first, self.words)
        self._receive([first], self.seconds + MORE_SECONDS)
        if self.came[first]:
            _mpi.note_failure()
            raise DistBackendError(self.came[first])

    def _send(self, rank: int, text: str) -> None:
        said = text.encode()[:ROOM].ljust(ROOM)
        self.channel.Isend([said, self.byte], rank, MEET_TAG).Wait()  # it is small: MPI takes it at once

    def _receive(self, ranks: list[int], seconds: float) -> None:
        for rank in ranks:
            text = bytearray(ROOM)
            self.awaited[rank] = self.channel.Irecv([text, self.byte], rank, MEET_TAG), text
        Waiter(Line(), seconds, self.what, self._late, self._check).wait_until(self._all_came)

    def _all_came(self) -> bool:
        for rank, (request, text) in list(self.awaited.items()):
            if request.Test():
                self.came[rank] = text.decode(errors="replace").strip()
                del self.awaited[rank]
        return not self.awaited

    # ---- what goes wrong ----
    def _disagreement(self) -> Exception | None:
        for rank, words in self.came.items():
            if words != self.words:
                return RuntimeError(
                    f"Detected mismatch between collectives on ranks. Rank {self.rank} is running collective: {self.what}({self.words}), "
                    f"but Rank {rank} is running collective: {self.what}({words}).\n"
                    "Hint: all processes make the same groups in the same order."
                )
        return None

    def _late(self, what: str, seconds: float) -> Exception:
        return self._failed(
            f"Timed out waiting {int(self.seconds * 1000)}ms for {what} operation to complete on rank {self.rank}\n"
            f"Hint: {ranks_in_words(list(self.awaited))} did not reach it. "
            "A longer limit: init_process_group(timeout=timedelta(...))."
        )

    def _check(self, what: str) -> None:
        lost = lost_in_words(what, lambda rank, _: rank in self.awaited)
        if lost:
            raise self._failed(
                f"{lost} (ranks {self.ranks})\nHint: all processes must make the same groups, in the same order."
            )

    def _failed(self, text: str) -> Exception:
        """Tell those who came what is wrong, and return it as an error."""
        _mpi.note_failure()
        self._answer(text)
        return DistBackendError(text)

    def _answer(self, text: str) -> None:
        if self.rank == self.ranks[0]:
            for rank in self.came:
                self._send(rank, text)


__all__ = ["meet"]
