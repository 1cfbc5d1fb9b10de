"""Collectives through which gradients flow, of every order: each one's backward is another collective of this file.

What flows back is the gradient of the sum of all processes' results, so all of them must run backward.
"""

from __future__ import annotations

from typing import Any

from ..autograd import Function
from ..tensor._functions.creation import empty_like, zeros_like
from . import _collectives as c
from ._groups import get_rank, need_group
from ._reductions import ReduceOp


class AllReduce(Function):
    """The reduction of the tensors of all; so is its gradient's."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.contiguous().clone()
        c.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, AllReduce.apply(ctx.op, ctx.group, grad)


class Broadcast(Function):
    """The tensor of one, who gets the sum of the gradients."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = tensor.contiguous().clone()
        c.broadcast(out, group=group, group_src=src)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        total = Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        if get_rank(ctx.group) != ctx.src:
            total.zero_()  # in place: the gradient of this gradient is still to come from all processes
        return None, None, total


class Reduce(Function):
    """The reduction for one, whose gradient all get."""

    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        out = tensor.contiguous().clone()
        c.reduce(out, op=op, group=group, group_dst=dst)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, Broadcast.apply(ctx.dst, ctx.group, grad)


class Gather(Function):
    """The tensors of all for one; zeros for the others."""

    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        out = [zeros_like(tensor) for _ in range(need_group(group).size())]
        c.gather(tensor, out if get_rank(group) == dst else None, group=group, group_dst=dst)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, Scatter.apply(ctx.dst, ctx.group, *grads)


class Scatter(Function):
    """One of the tensors of one for each."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group = src, group
        if any(one.shape != tensors[0].shape for one in tensors):
            raise AssertionError("scatter: the tensors must have one shape")
        out = zeros_like(tensors[0])
        c.scatter(out, list(tensors) if get_rank(group) == src else None, group=group, group_src=src)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, *Gather.apply(ctx.src, ctx.group, grad)


class AllGather(Function):
    """The tensors of all for all."""

    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        out = [empty_like(tensor) for _ in range(need_group(group).size())]
        c.all_gather(out, tensor, group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        out = empty_like(grads[get_rank(ctx.group)])
        return None, ReduceScatter.apply(ReduceOp.SUM, ctx.group, out, *grads)


class ReduceScatter(Function):
    """The reduction of one tensor of all, for each."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Any, *tensors: Any) -> Any:
        ctx.op, ctx.group = op, group
        c.reduce_scatter(output, list(tensors), op, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, *AllGather.apply(ctx.group, grad)


class AllToAll(Function):
    """One tensor of each for each."""

    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Any], *tensors: Any) -> Any:
        ctx.group, ctx.like = group, [empty_like(one) for one in tensors]
        c.all_to_all(outputs, [one.contiguous() for one in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, *AllToAll.apply(ctx.group, [empty_like(one) for one in ctx.like], *grads)


class AllToAllSingle(Function):
    """A part of the tensor of each for each."""

    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, sizes: Any, given_sizes: Any, tensor: Any) -> Any:
        ctx.group, ctx.sizes, ctx.given_sizes = group, sizes, given_sizes
        ctx.shape = tensor.shape
        c.all_to_all_single(output, tensor, sizes, given_sizes, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        out = grad.new_empty(ctx.shape)
        back = AllToAllSingle.apply(ctx.group, out, ctx.given_sizes, ctx.sizes, grad)
        return None, None, None, None, back


class AllGatherIntoTensor(Function):
    """The tensors of all, one after the other along the first dimension, for all."""

    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        shape = (
            [tensor.shape[0] * need_group(group).size(), *tensor.shape[1:]]
            if tensor.ndim
            else [need_group(group).size()]
        )
        out = tensor.new_empty(shape)
        c._all_gather([out], tensor, need_group(group), False)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, ReduceScatterTensor.apply(ReduceOp.SUM, ctx.group, grad)


class ReduceScatterTensor(Function):
    """A part of the reduction of the tensors of all, for each."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.new_empty([tensor.shape[0] // need_group(group).size(), *tensor.shape[1:]])
        c.reduce_scatter_tensor(out, tensor, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.op is not ReduceOp.SUM:
            name = ctx.op.name.lower()
            raise RuntimeError(f"reduce_scatter_tensor backward only supports 'sum' reduction, got '{name}'")
        return None, None, AllGatherIntoTensor.apply(ctx.group, grad)
