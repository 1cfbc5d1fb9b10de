"""torch.distributed.nn.functional: collectives through which gradients flow. One process gets what it gives, and so do the gradients."""

from __future__ import annotations

from typing import Any

from ..._absent import finder
from ..._public import set_all
from .._collectives import ReduceOp, _need_op, _need_tensor
from .._groups import need_group


def _same(tensor: Any, group: Any, op: Any = ReduceOp.SUM) -> Any:
    _need_tensor(tensor, "tensor")
    need_group(group)
    _need_op(tensor, op)
    return tensor.clone()


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors of all processes."""
    return _same(tensor, group, op)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction to the process that is meant."""
    return _same(tensor, group, op)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of one process."""
    return _same(tensor, group)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes."""
    return (_same(tensor, group),)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes to one of them."""
    return (_same(tensor, group),)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """Return this process's of the tensors that one has."""
    return _same(tensors[0], group)


def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors for this process."""
    return _same(input_list[0], group, op)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> tuple[Any, ...]:
    """Return what all processes have for this one."""
    return tuple(_same(one, group) for one in input_tensor_list)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Any:
    """Return the parts that all processes have for this one."""
    return _same(input, group)


__getattr__ = finder("torch.distributed.nn.functional")


set_all(globals())
