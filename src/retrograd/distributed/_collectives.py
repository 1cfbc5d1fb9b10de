"""What the processes of a group do together. There is one: what it gives, it gets."""

from __future__ import annotations

import copy
from enum import IntEnum
from typing import Any

from .. import _errors
from .._modes import using
from ..tensor import Tensor
from ._groups import need_group


class ReduceOp(IntEnum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"


reduce_op = ReduceOp
OF_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


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


def _need_root(rank: Any, name: str) -> None:
    if rank not in (None, 0):
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {rank}")


def _need_op(tensor: Any, op: Any) -> None:
    if op in OF_BITS and (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")


def _need_one(tensors: Any, name: str) -> None:
    if len(tensors) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid output tensor list at index 0 (expected length 1, got {len(tensors)})"
        )


def _need_same_dtype(out: Any, given: Any) -> None:
    if out.dtype is not given.dtype:
        raise ValueError(f"Invalid usage of tensors with different dtypesFound {out.dtype} and  {given.dtype}")


def _take(out: Any, given: Any, name: str) -> None:
    """Write what was given into the tensor that receives it, if they fit."""
    _need_same_dtype(out, given)
    if out.shape != given.shape:
        wanted, got = (_errors.sizes(one.shape)[1:-1] for one in (given, out))
        sizes = f"expected ({wanted}), got ({got})"
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid tensor size at index 0 ({sizes})")
    with using(grad=False):
        out.copy_(given)


# ---- tensors ----
def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the sum over the processes, or what else is wanted, into every process's tensor."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_op(tensor, op)
    return _done(async_op, tensor)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put the sum over the processes into the tensor of one of them."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_root(dst if group_dst is None else group_dst, "reduce")
    _need_op(tensor, op)
    return _done(async_op, tensor)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Put the tensor of one process into that of every one."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_root(src if group_src is None else group_src, "broadcast")
    return _done(async_op, tensor)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the tensors of all processes into every one's list."""
    _need_tensors(tensor_list, "tensor_list")
    _need_tensor(tensor, "tensor")
    for one in tensor_list:
        _need_same_dtype(one, tensor)
    need_group(group)
    _need_one(tensor_list, "allgather")
    _take(tensor_list[0], tensor, "allgather")
    return _done(async_op, *tensor_list)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes one after the other into every one's tensor."""
    _need_tensor(input_tensor, "input_tensor")
    _need_tensor(output_tensor, "output_tensor")
    need_group(group)
    _take(output_tensor, input_tensor, "allgather")
    return _done(async_op, output_tensor)


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put the tensors of all processes into one's list."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    if (dst if group_dst is None else group_dst) not in (None, 0):
        if gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
        _need_root(dst if group_dst is None else group_dst, "gather")
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _need_tensors(gather_list, "gather_list")
    _need_one(gather_list, "gather")
    _take(gather_list[0], tensor, "gather")
    return _done(async_op, *gather_list)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Put each tensor of one process's list into the tensor of one process."""
    _need_tensor(tensor, "tensor")
    need_group(group)
    if (src if group_src is None else group_src) not in (None, 0):
        if scatter_list:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
        _need_root(src if group_src is None else group_src, "scatter")
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _need_tensors(scatter_list, "scatter_list")
    if len(scatter_list) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_list)}. Input list size should be 1, same as "
            "size of the process group."
        )
    _take(tensor, scatter_list[0], "scatter")
    return _done(async_op, tensor)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Add up the lists of all processes; each gets one of the sums."""
    _need_tensor(output, "output")
    _need_tensors(input_list, "input_list")
    need_group(group)
    _need_one(input_list, "reduce_scatter")
    _need_op(output, op)
    _take(output, input_list[0], "reduce_scatter")
    return _done(async_op, output)


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
    for tensors in (output_tensor_list, input_tensor_list):
        _need_one(tensors, "alltoall")
    _take(output_tensor_list[0], input_tensor_list[0], "alltoall")
    return _done(async_op, *output_tensor_list)


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
    return all_to_all([output], [input], group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here."""
    need_group(group)
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here."""
    need_group(group)


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to another process, of which there is none."""
    need_group(group)
    raise ValueError(
        "Invalid destination rank: destination rank should not be the same as the rank of the current process."
    )


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from another process, of which there is none."""
    need_group(group)
    raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")


isend, irecv = send, recv


# ---- other objects ----
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all processes into every one's list."""
    need_group(group)
    object_list[0] = copy.deepcopy(obj)


def gather_object(
    obj: Any, object_gather_list: Any = None, dst: int | None = None, group: Any = None, group_dst: int | None = None
) -> None:
    """Put the objects of all processes into one's list."""
    need_group(group)
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = copy.deepcopy(obj)


def broadcast_object_list(
    object_list: Any, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Put the objects of one process into every one's list."""
    need_group(group)
    _need_root(src if group_src is None else group_src, "broadcast")
    object_list[:] = copy.deepcopy(object_list)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Any = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give each process one of the objects of one process's list."""
    need_group(group)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if not scatter_object_input_list:
        raise ValueError("source rank must provide non-empty scatter_object_input_list")
    scatter_object_output_list[0] = copy.deepcopy(scatter_object_input_list[0])


__all__ = [
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]
