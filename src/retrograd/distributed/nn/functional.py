"""torch.distributed.nn.functional: collectives through which gradients flow."""

from __future__ import annotations

from typing import Any

from ..._absent import finder
from ..._public import set_all
from ..._tracebacks import guard_listed as _guard_listed
from .. import _differentiable as d
from .._collectives import need_root, need_tensor, root_in
from .._groups import ProcessGroup, need_group
from .._reductions import ReduceOp, need_op


def _checked(tensor: Any, group: Any, name: str, op: Any = ReduceOp.SUM) -> ProcessGroup:
    need_tensor(tensor, "tensor")
    found = need_group(group)
    need_op(tensor, op, found._config, name)
    return found


def _root(group: ProcessGroup, rank: int, name: str) -> int:
    root = root_in(group, rank, None)
    need_root(group, root, name)
    return root


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors of all processes."""
    return d.AllReduce.apply(op, _checked(tensor, group, "all_reduce", op), tensor)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction to the process that is meant."""
    found = _checked(tensor, group, "reduce", op)
    return d.Reduce.apply(_root(found, dst, "reduce"), op, found, tensor)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of one process."""
    found = _checked(tensor, group, "broadcast")
    return d.Broadcast.apply(_root(found, src, "broadcast"), found, tensor)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes."""
    found: tuple[Any, ...] = d.AllGather.apply(_checked(tensor, group, "all_gather"), tensor)
    return found


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes to one of them."""
    group = _checked(tensor, group, "gather")
    found: tuple[Any, ...] = d.Gather.apply(_root(group, dst, "gather"), group, tensor)
    return found


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """Return this process's of the tensors that one has."""
    found = _checked(tensors[0], group, "scatter")
    return d.Scatter.apply(_root(found, src, "scatter"), found, *tensors)


def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors for this process."""
    return d.ReduceScatter.apply(op, _checked(output, group, "reduce_scatter", op), output, *input_list)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> tuple[Any, ...]:
    """Return what all processes have for this one."""
    group = need_group(group)
    found: tuple[Any, ...] = d.AllToAll.apply(group, list(output_tensor_list), *input_tensor_list)
    return found


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Any:
    """Return the parts that all processes have for this one."""
    found = _checked(input, group, "all_to_all_single")
    return d.AllToAllSingle.apply(found, output, output_split_sizes, input_split_sizes, input)


__getattr__ = finder("torch.distributed.nn.functional")


set_all(globals())
_guard_listed(globals())
