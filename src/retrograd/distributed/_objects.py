"""Objects of Python that processes give each other, as bytes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .._public import set_all
from .._tracebacks import guard_listed as _guard_listed
from ._collectives import Rank, is_outside, need_list, need_root, root_in, run, wrong_size
from ._groups import ProcessGroup, get_global_rank, need_group
from ._messages import NOT_FROM_ITSELF, NOT_TO_ITSELF


def _packed(value: Any) -> Any:
    return np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8).copy()


def _unpacked(data: Any) -> Any:
    return pickle.loads(data.tobytes())


def _run(group: ProcessGroup, what: str, issue: Any) -> None:
    run(group, what, issue, [], None, False)


def _all_sizes(group: ProcessGroup, what: str, size: int) -> Any:
    sizes = np.zeros(group.size(), np.int64)
    _run(group, what, lambda: group._engine.all_gather(sizes, np.array([size], np.int64)))
    return sizes


def _exchanged(group: ProcessGroup, what: str, parts: list[Any]) -> list[Any]:
    """Give each process one part, of any length, and return what all have given this one."""
    lengths = np.array([len(one) for one in parts], np.int64)
    found = np.zeros(group.size(), np.int64)
    ones = [1] * group.size()
    _run(group, what, lambda: group._engine.all_to_all(found, ones, lengths, ones))
    counts = found.tolist()
    out = np.empty(int(found.sum()), np.uint8)
    given = np.concatenate(parts)
    _run(group, what, lambda: group._engine.all_to_all(out, counts, given, lengths.tolist()))
    return np.split(out, np.cumsum(found)[:-1])


_NOTHING = np.zeros(0, np.uint8)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all processes into every one's list.

    Args:
        object_list: a list with a place for each process
        obj: what this process gives
        group: which processes; all unless it is given

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> names = [None]
        >>> torch.distributed.all_gather_object(names, "first")
        >>> names
        ['first']
        >>> torch.distributed.destroy_process_group()
    """
    if is_outside(group, "all_gather_object"):
        return
    group = need_group(group)
    data = _packed(obj)
    sizes = _all_sizes(group, "all_gather_object", len(data))
    most = int(sizes.max())
    out = np.empty(most * group.size(), np.uint8)
    given = np.zeros(most, np.uint8)
    given[: len(data)] = data
    _run(group, "all_gather_object", lambda: group._engine.all_gather(out, given))
    for at, size in enumerate(sizes):
        object_list[at] = _unpacked(out[at * most : at * most + size])


def gather_object(
    obj: Any, object_gather_list: Any = None, dst: Rank = None, group: Any = None, group_dst: Rank = None
) -> None:
    """Put the objects of all processes into one's list."""
    if is_outside(group, "gather_object"):
        return
    group = need_group(group)
    root = root_in(group, dst, group_dst, 0)
    need_list(group, object_gather_list, "gather_list", root, "destination", "gather")
    data = _packed(obj)
    received = _exchanged(group, "gather_object", [data if at == root else _NOTHING for at in range(group.size())])
    if root == group.rank():
        for at, one in enumerate(received):
            object_gather_list[at] = _unpacked(one)


def broadcast_object_list(
    object_list: Any, src: Rank = None, group: Any = None, device: Any = None, group_src: Rank = None
) -> None:
    """Put the objects of one process into every one's list; they need no device to travel on.

    Args:
        object_list: what is sent, or where it is written
        src: the rank of the process that sends
        group: which processes; all unless it is given
        device: accepted
        group_src: the sender's number within the group, instead of `src`

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> settings = ["adam", 0.1]
        >>> torch.distributed.broadcast_object_list(settings, src=0)
        >>> settings
        ['adam', 0.1]
        >>> torch.distributed.destroy_process_group()
    """
    if is_outside(group, "broadcast_object_list"):
        return
    group = need_group(group)
    root = root_in(group, src, group_src, 0)
    need_root(group, root, "broadcast")
    here = root == group.rank()
    data = _packed(list(object_list)) if here else _NOTHING
    size = np.array([len(data)], np.int64)
    _run(group, "broadcast_object_list", lambda: group._engine.broadcast(size, root))
    flat = data if here else np.empty(int(size[0]), np.uint8)
    _run(group, "broadcast_object_list", lambda: group._engine.broadcast(flat, root))
    received = _unpacked(flat)
    for at, one in enumerate(received[: len(object_list)]):
        object_list[at] = one


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Any = None,
    src: Rank = None,
    group: Any = None,
    group_src: Rank = None,
) -> None:
    """Give each process one of the objects of one process's list."""
    if is_outside(group, "scatter_object_list"):
        return
    group = need_group(group)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = root_in(group, src, group_src, 0)
    need_root(group, root, "broadcast")
    parts = [_NOTHING] * group.size()
    if root == group.rank():
        if not scatter_object_input_list:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        if len(scatter_object_input_list) != group.size():
            raise RuntimeError(wrong_size("scatter", "input").format(len(scatter_object_input_list), size=group.size()))
        parts = [_packed(one) for one in scatter_object_input_list]
    scatter_object_output_list[0] = _unpacked(_exchanged(group, "scatter_object_list", parts)[root])


def send_object_list(
    object_list: Any, dst: Rank = None, group: Any = None, device: Any = None, group_dst: Rank = None, **others: Any
) -> None:
    """Send objects to another process."""
    if is_outside(group, "send_object_list"):
        return
    group = need_group(group)
    to = root_in(group, dst, group_dst)
    if to == group.rank():
        raise ValueError(NOT_TO_ITSELF)
    data = _packed(list(object_list))
    requests = (group._engine.send(part, to, 0) for part in (np.array([len(data)], np.int64), data))
    for request in list(requests):
        _wait_for(group, "send_object_list", request)


def recv_object_list(
    object_list: Any, src: Rank = None, group: Any = None, device: Any = None, group_src: Rank = None, **others: Any
) -> int:
    """Receive objects of another process, of any if none is named; return whose they were."""
    if is_outside(group, "recv_object_list"):
        return -1
    group = need_group(group)
    source = None if src is None and group_src is None else root_in(group, src, group_src)
    if source == group.rank() or group.size() == 1:
        raise ValueError(NOT_FROM_ITSELF)
    size = np.zeros(1, np.int64)
    source = _received(group, size, source)
    data = np.empty(int(size[0]), np.uint8)
    _received(group, data, source)
    for at, one in enumerate(_unpacked(data)[: len(object_list)]):
        object_list[at] = one
    return get_global_rank(group, source)


def _wait_for(group: ProcessGroup, what: str, request: Any) -> None:
    run(group, what, lambda: request, [], None, False, ordered=False)


def _received(group: ProcessGroup, flat: Any, source: int | None) -> int:
    request = group._engine.receive(flat, source, 0)
    _wait_for(group, "recv_object_list", request)
    return int(request.source)


set_all(globals())
_guard_listed(globals())
