"""What one process sends to another, and a barrier that says who is missing."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .._public import set_all
from .._tracebacks import guard_listed as _guard_listed
from . import _mpi
from ._buffers import joined, room_for
from ._collectives import Rank, is_outside, need_tensor, root_in, run
from ._dist_errors import ranks_in_words
from ._groups import ProcessGroup, get_global_rank, need_group
from ._work import Waiter, Work, seconds_of

NOT_TO_ITSELF = "Invalid destination rank: destination rank should not be the same as the rank of the current process."
NOT_FROM_ITSELF = "Invalid source rank: source rank should not be the same as the rank of the current process."
TAGS = 1 << 20  # those of programs; the barrier has the next


def isend(tensor: Any, dst: Rank = None, group: Any = None, tag: int = 0, group_dst: Rank = None) -> Work | None:
    """Begin to send a tensor to another process."""
    return _send(tensor, dst, group, tag, group_dst, "isend", True)


def send(tensor: Any, dst: Rank = None, group: Any = None, tag: int = 0, group_dst: Rank = None) -> None:
    """Send a tensor to another process."""
    _send(tensor, dst, group, tag, group_dst, "send", False)


def irecv(tensor: Any, src: Rank = None, group: Any = None, tag: int = 0, group_src: Rank = None) -> Work | None:
    """Begin to receive a tensor of another process, of any if none is named."""
    return _receive(tensor, src, group, tag, group_src, "irecv")


def recv(tensor: Any, src: Rank = None, group: Any = None, tag: int = 0, group_src: Rank = None) -> int:
    """Receive a tensor of another process, of any if none is named; return whose it was."""
    work = _receive(tensor, src, group, tag, group_src, "recv")
    if work is None:
        return -1
    work.wait()
    return get_global_rank(group, work.source_rank())


def _send(tensor: Any, dst: Rank, group: Any, tag: int, group_dst: Rank, what: str, async_op: bool) -> Work | None:
    group = _group_of(group)
    to = root_in(group, dst, group_dst)
    if to == group.rank():
        raise ValueError(NOT_TO_ITSELF)
    need_tensor(tensor, "tensor")
    if is_outside(group, what):
        return None
    _need_peer(group, to, "destination")
    engine = group.engine_for(tensor)
    flat = joined([tensor], engine.on_host)
    return run(group, what, lambda: engine.send(flat, to, tag), [], flat, async_op, ordered=False, peer=to)


def _receive(tensor: Any, src: Rank, group: Any, tag: int, group_src: Rank, what: str) -> Work | None:
    need_tensor(tensor, "tensor")
    group = _group_of(group)
    if is_outside(group, what):
        return None
    source = None if src is None and group_src is None else root_in(group, src, group_src)
    if source == group.rank() or group.size() == 1:
        raise ValueError(NOT_FROM_ITSELF)
    if source is not None:
        _need_peer(group, source, "source")
    engine = group.engine_for(tensor)
    flat = room_for([tensor], engine.on_host)
    held: list[Any] = []

    def issue() -> Any:
        held.append(engine.receive(flat, source, tag))
        return held[0]

    work = run(group, what, issue, [tensor], flat, True, ordered=False, peer=source)
    assert work is not None
    work._sender = held[0]
    return work


def _group_of(group: Any) -> Any:
    return group if group is not None and not isinstance(group, ProcessGroup) else need_group(group)


def _need_peer(group: ProcessGroup, rank: int, role: str) -> None:
    if not 0 <= rank < group.size():
        raise ValueError(f"Invalid {role} rank: {rank} is not a rank of a group of {group.size()} processes")


class P2POp:
    """Something to be sent or received with others, by `batch_isend_irecv`."""

    def __init__(
        self, op: Any, tensor: Any, peer: Rank = None, group: Any = None, tag: int = 0, group_peer: Rank = None
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        need_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, need_group(group), tag
        self.group_peer = root_in(self.group, peer, group_peer)
        self.peer = self.group._ranks[self.group_peer] if self.group_peer < self.group.size() else self.group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Begin to send and receive several tensors."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    return [one.op(one.tensor, one.peer, one.group, one.tag) for one in p2p_op_list]


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here; the first of the group names those that do not come in time.

    With `wait_all_ranks` it names all of them, otherwise the first.
    """
    if is_outside(group, "monitored_barrier"):
        return
    group = need_group(group)
    if group.size() == 1:
        return
    limit = seconds_of(timeout or group.timeout)
    word = np.zeros(1, np.uint8)
    engine = group._engine
    if group.rank() != 0:
        engine.send(word, 0, TAGS + 1)
        group.waiter("monitored_barrier", limit + 1).run(lambda: engine.receive(word, 0, TAGS + 2))
        return
    waiting = {rank: engine.receive(np.zeros(1, np.uint8), rank, TAGS + 1) for rank in range(1, group.size())}
    until = time.monotonic() + limit

    def all_here() -> bool:
        for rank in [one for one, request in waiting.items() if request.Test()]:
            del waiting[rank]
        return not waiting or time.monotonic() > until

    Waiter(group.line, limit + 1, "monitored_barrier", lambda *_: RuntimeError(), group._check).wait_until(all_here)
    if waiting:
        missing = [group._ranks[rank] for rank in waiting]
        _mpi.note_failure()
        raise RuntimeError(_missing_words(missing, limit, wait_all_ranks))
    for rank in range(1, group.size()):
        engine.send(word, rank, TAGS + 2)


def _missing_words(missing: list[int], limit: float, wait_all_ranks: bool) -> str:
    milliseconds = int(limit * 1000)
    if wait_all_ranks:
        return (
            f"[Rank 0]: Ranks {', '.join(map(str, missing))} failed to pass monitoredBarrier in {milliseconds} ms\n"
            f"Hint: missing {ranks_in_words(missing)}."
        )
    return (
        f"Rank {missing[0]} failed to pass monitoredBarrier in {milliseconds} ms\n"
        f"Hint: missing {ranks_in_words(missing)}; wait_all_ranks=True names all in the first line."
    )


set_all(globals())
_guard_listed(globals())
