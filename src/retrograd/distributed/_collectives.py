"""What the processes of a group do together. There is one: what it gives, it gets."""

from __future__ import annotations

import copy
from enum import IntEnum
from typing import Any

from .. import _errors
from .._modes import using
from .._public import set_all
from ..tensor import Tensor
from ._groups import need_group


class ReduceOp(IntEnum):
    """How values of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined] # where torch has the members a second time
reduce_op = ReduceOp
OF_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
Rank = int | None
NOT_TO_ITSELF = "Invalid destination rank: destination rank should not be the same as the rank of the current process."
NOT_FROM_ITSELF = "Invalid source rank: source rank should not be the same as the rank of the current process."
# the name of what is done, the role of the process that has a list, and what the list is
GATHER = ("gather", "destination", "output")
SCATTER = ("scatter", "source", "input")


class Work:
    """Something that has been done."""

    __module__ = "retrograd.distributed.distributed_c10d"

    def __init__(self, result: Any) -> None:
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        """Return at once: it is done."""
        return True

    def is_completed(self) -> bool:
        """Tell whether it is done."""
        return True

    is_success = is_completed

    def result(self) -> Any:
        """Return the tensors that were written."""
        return self._result


def _done(async_op: bool, *tensors: Any) -> Work | None:
    return Work(list(tensors)) if async_op else None


def _need_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} "
            "instead."
        )


def _need_tensors(value: Any, name: str) -> None:
    if not isinstance(value, list) or not all(isinstance(one, Tensor) for one in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
            f"{type(value)} instead."
        )


def _root(rank: Rank, in_group: Rank, default: Rank = None) -> int:
    """Return the number of the process that is meant, which may be given among all processes or in the group."""
    if rank is not None and in_group is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    for number in (rank, in_group, default):
        if number is not None:
            return number
    raise ValueError("Must specify global_rank or group_rank")


def _need_this_process(root: int, name: str) -> None:
    if root != 0:
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {root}")


def _need_list(values: Any, name: str, root: int, role: str, action: str) -> None:
    """Check what only one process has: the list from which all receive, or into which all give."""
    if root != 0:
        if values:
            raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")
        _need_this_process(root, action)
    if not values:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")


def _need_op(tensor: Any, op: Any) -> None:
    if op in OF_BITS and (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")


def _only(values: Any, error: str) -> Any:
    """Return the value for the one process; raise an error that may tell how many there are."""
    if len(values) != 1:
        raise RuntimeError(error.format(len(values)))
    return values[0]


def _need_same_dtype(expected: Any, found: Any) -> None:
    if expected.dtype is not found.dtype:
        raise ValueError(f"Invalid usage of tensors with different dtypesFound {expected.dtype} and  {found.dtype}")


def _need_alike(expected: Any, found: Any, name: str) -> None:
    _need_same_dtype(expected, found)
    if expected.shape != found.shape:
        wanted, got = (_errors.sizes(one.shape)[1:-1] for one in (expected, found))
        sizes = f"expected ({wanted}), got ({got})"
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid tensor size at index 0 ({sizes})")


def _pair(tensor: Any, tensors: Any, root: tuple[Rank, Rank], group: Any, action: tuple[str, str, str]) -> Any:
    """Return a process's tensor and the one for it in the list that only the root has."""
    name, role, side = action
    _need_tensor(tensor, "tensor")
    if tensors:
        _need_tensors(tensors, f"{name}_list")
        for one in tensors:
            _need_same_dtype(tensor, one)
    need_group(group)
    _need_list(tensors, f"{name}_list", _root(*root, 0), role, name)
    listed = _only(tensors, _wrong_size(name, side))
    _need_alike(tensor, listed, name)
    return tensor, listed


def _wrong_size(name: str, side: str) -> str:
    rule = f"{side.capitalize()} list size should be 1, same as size of the process group."
    return f"ProcessGroupGloo::{name}: Incorrect {side} list size {{}}. {rule}"


def _give(given: Any, out: Any, async_op: bool) -> Work | None:
    """Write what this process gives into the tensor where it receives it."""
    with using(grad=False):
        out.copy_(given)
    return _done(async_op, out)


# ---- tensors ----
def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the sum over the processes, or what else is wanted, into every process's tensor."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_op(tensor, op)
    return _done(async_op, tensor)


def reduce(
    tensor: Any,
    dst: Rank = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: Rank = None,
) -> Work | None:
    """Put the sum over the processes into the tensor of one of them."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_this_process(_root(dst, group_dst), "reduce")
    _need_op(tensor, op)
    return _done(async_op, tensor)


def broadcast(
    tensor: Any, src: Rank = None, group: Any = None, async_op: bool = False, group_src: Rank = None
) -> Work | None:
    """Put the tensor of one process into that of every one."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_this_process(_root(src, group_src), "broadcast")
    return _done(async_op, tensor)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the tensors of all processes into every one's list."""
    _need_tensors(tensor_list, "tensor_list")
    _need_tensor(tensor, "tensor")
    for one in tensor_list:
        _need_same_dtype(one, tensor)
    need_group(group)
    out = _only(
        tensor_list, "ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 1, got {})"
    )
    _need_alike(tensor, out, "allgather")
    return _give(tensor, out, async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes one after the other into every one's tensor."""
    _need_tensor(input_tensor, "input_tensor")
    _need_tensor(output_tensor, "output_tensor")
    need_group(group)
    _need_alike(input_tensor, output_tensor, "allgather")
    return _give(input_tensor, output_tensor, async_op)


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: Rank = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: Rank = None,
) -> Work | None:
    """Put the tensors of all processes into one's list."""
    given, out = _pair(tensor, gather_list, (dst, group_dst), group, GATHER)
    return _give(given, out, async_op)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: Rank = None,
    group: Any = None,
    async_op: bool = False,
    group_src: Rank = None,
) -> Work | None:
    """Put each tensor of one process's list into the tensor of one process."""
    out, given = _pair(tensor, scatter_list, (src, group_src), group, SCATTER)
    return _give(given, out, async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Add up the lists of all processes; each gets one of the sums."""
    _need_tensor(output, "output")
    _need_tensors(input_list, "input_list")
    need_group(group)
    given = _only(input_list, "invalid input tensor list size, must be world size")
    _need_op(output, op)
    _need_alike(output, given, "reduce_scatter")
    return _give(given, output, async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Add up the tensors of all processes; each gets a part of the sum."""
    _need_tensor(output, "output")
    _need_tensor(input, "input")
    return reduce_scatter(output, [input], op, group, async_op)


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Send each tensor of a list to one process, and get one from each."""
    _need_tensors(output_tensor_list, "output_tensor_list")
    _need_tensors(input_tensor_list, "input_tensor_list")
    need_group(group)
    out, given = (
        _only(tensors, f"ProcessGroupGloo::alltoall: {side} tensor list size {{}} does not match world size 1")
        for side, tensors in (("output", output_tensor_list), ("input", input_tensor_list))
    )
    _need_alike(given, out, "alltoall")
    return _give(given, out, async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each part of a tensor to one process, and get a part from each."""
    _need_tensor(output, "output")
    _need_tensor(input, "input")
    need_group(group)
    for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
        if sizes and _only(sizes, "Number of tensor splits not equal to group size") != tensor.shape[0]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    if input.numel() == output.numel():  # only the numbers are sent
        input = input.reshape(output.shape)
    return all_to_all([output], [input], group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here: the one is, on whatever devices."""
    need_group(group)
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here: the one is, in whatever time."""
    need_group(group)


def send(tensor: Any, dst: Rank = None, group: Any = None, tag: int = 0, group_dst: Rank = None) -> None:
    """Send a tensor to another process; there is none."""
    need_group(group)
    _root(dst, group_dst)
    raise ValueError(NOT_TO_ITSELF)


def recv(tensor: Any, src: Rank = None, group: Any = None, tag: int = 0, group_src: Rank = None) -> int:
    """Receive a tensor from another process; there is none."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    raise ValueError(NOT_FROM_ITSELF)


isend, irecv = send, recv


class P2POp:
    """Something to be sent or received with others, by `batch_isend_irecv`."""

    def __init__(
        self, op: Any, tensor: Any, peer: Rank = None, group: Any = None, tag: int = 0, group_peer: Rank = None
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        _need_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, need_group(group), tag
        self.peer = self.group_peer = _root(peer, group_peer)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Send and receive several tensors, which one process cannot."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    return [one.op(one.tensor, one.peer, one.group, one.tag) for one in p2p_op_list]


def _broadcast_coalesced(group: Any, tensors: list[Any], buffer_size: int, src: int = 0) -> None:
    """Give all processes several tensors of one."""
    need_group(group)
    _need_this_process(src, "broadcast")


# ---- other objects ----
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all processes into every one's list."""
    need_group(group)
    object_list[0] = copy.deepcopy(obj)


def gather_object(
    obj: Any, object_gather_list: Any = None, dst: Rank = None, group: Any = None, group_dst: Rank = None
) -> None:
    """Put the objects of all processes into one's list."""
    need_group(group)
    _need_list(object_gather_list, "gather_list", _root(dst, group_dst, 0), "destination", "gather")
    object_gather_list[0] = copy.deepcopy(obj)


def broadcast_object_list(
    object_list: Any, src: Rank = None, group: Any = None, device: Any = None, group_src: Rank = None
) -> None:
    """Put the objects of one process into every one's list; they need no device to travel on."""
    need_group(group)
    _need_this_process(_root(src, group_src, 0), "broadcast")
    object_list[:] = copy.deepcopy(object_list)


def send_object_list(
    object_list: Any, dst: Rank = None, group: Any = None, device: Any = None, group_dst: Rank = None, **others: Any
) -> None:
    """Send objects to another process; there is none."""
    need_group(group)
    _root(dst, group_dst)
    raise ValueError(NOT_TO_ITSELF)


def recv_object_list(
    object_list: Any, src: Rank = None, group: Any = None, device: Any = None, group_src: Rank = None, **others: Any
) -> int:
    """Receive objects from another process; there is none."""
    need_group(group)
    raise ValueError(NOT_FROM_ITSELF)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Any = None,
    src: Rank = None,
    group: Any = None,
    group_src: Rank = None,
) -> None:
    """Give each process one of the objects of one process's list."""
    need_group(group)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    _need_this_process(_root(src, group_src, 0), "broadcast")
    if not scatter_object_input_list:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    scatter_object_output_list[0] = copy.deepcopy(_only(scatter_object_input_list, _wrong_size("scatter", "input")))


_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor


set_all(globals(), "Work")
