"""torch.distributed._functional_collectives: what processes do together, as functions that return new tensors.

Gradients flow through them, as through torch's. They return when they are done: `wait_tensor` has nothing to wait for.
"""

from __future__ import annotations

from typing import Any

from .._public import set_all
from .._tracebacks import guard_listed as _guard_listed
from ..tensor._functions.joining import cat
from . import _collectives as c
from . import _differentiable as d
from ._groups import ProcessGroup, _resolve_process_group, need_group, new_group
from ._reductions import ReduceOp

_OPS = {one.name.lower(): one for one in ReduceOp}


class AsyncCollectiveTensor:
    """A tensor that other processes still work on, in torch. None exists here: what is returned is done."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "AsyncCollectiveTensor: retrograd's functional collectives return tensors that are done"
        )


def wait_tensor(tensor: Any) -> Any:
    """Return the tensor: it is done."""
    return tensor


def _group(group: Any) -> ProcessGroup:
    """Return the group that is meant: by itself, its name, its numbers among all processes, or an array of processes."""
    if isinstance(group, ProcessGroup) or group is None:
        return need_group(group)
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, tuple):
        return group[0].get_group(group[1])  # type: ignore[no-any-return]
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()  # type: ignore[no-any-return]
    if isinstance(group, list):
        return _by_ranks(group)
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _by_ranks(ranks: list[Any]) -> ProcessGroup:
    from ._groups import _world

    need_group(None)
    rows = ranks if ranks and isinstance(ranks[0], list) else [ranks]
    found = None
    for row in rows:  # all processes make all of them, in the same order
        made = next((one for one in _world.groups if one._ranks == sorted(row)), None) or new_group(row)
        found = made if isinstance(made, ProcessGroup) and need_group(None).rank() in made._ranks else found
    if found is None:
        raise ValueError(f"this process is not among the ranks {ranks}")
    return found


def _op(name: str) -> ReduceOp:
    if name.lower() not in _OPS:
        raise ValueError(f"Invalid reduce operation: {name}")
    return _OPS[name.lower()]


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:  # noqa: N803 - torch's name
    """Return the reduction of the tensors of all processes."""
    return d.AllReduce.apply(_op(reduceOp), _group(group), self)


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """Return the tensor of one process."""
    found = _group(group)
    c.need_root(found, src, "broadcast")
    return d.Broadcast.apply(src, found, self)


def all_gather_single(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """Return the tensors of all processes joined along a dimension."""
    found = _group(group)
    joined = d.AllGatherIntoTensor.apply(found, self)
    return joined if gather_dim == 0 else cat(joined.chunk(found.size(), 0), gather_dim)


all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single


def reduce_scatter_single(self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Any:  # noqa: N803
    """Return this process's part of the reduction, cut along a dimension."""
    found = _group(group)
    size = found.size()
    if self.size(scatter_dim) % size:
        raise AssertionError(f"input dimension 0 ({self.size(0)} must be a multiple of group_size {size})")
    given = self if scatter_dim == 0 else cat(self.chunk(size, scatter_dim), 0)
    return d.ReduceScatterTensor.apply(_op(reduceOp), found, given)


reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single


def all_to_all_single(self: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = "") -> Any:
    """Return the parts that all processes have for this one."""
    found = _group(group)
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise AssertionError(
            "output_split_sizes and input_split_sizes must either be specified together or both set to None"
        )
    length = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty([length, *self.shape[1:]])
    return d.AllToAllSingle.apply(found, out, output_split_sizes, input_split_sizes, self)


all_to_all_single_autograd = all_to_all_single


def permute_tensor(self: Any, src_dst: list[int], group: Any, tag: str = "") -> Any:
    """Return the tensor of the process that sends to this one: `src_dst[m] == n` means that m sends to n."""
    found = _group(group)
    length, size, rank = self.shape[0], found.size(), found.rank()
    if sorted(src_dst) != list(range(size)):
        raise ValueError(f"permute_tensor: src_dst must name each of the {size} processes once, but is {src_dst}")
    sends = [length if to == src_dst[rank] else 0 for to in range(size)]
    gets = [length if src_dst[source] == rank else 0 for source in range(size)]
    return all_to_all_single(self, gets, sends, found)


def all_reduce_coalesced(self: list[Any], reduceOp: str, group: Any, tag: str = "") -> list[Any]:  # noqa: N803
    """Return the reductions of several tensors."""
    return [all_reduce(one, reduceOp, group) for one in self]


def all_gather_into_tensor_coalesced(self: list[Any], group: Any, tag: str = "") -> list[Any]:
    """Return several tensors, each joined of those of all processes."""
    return [all_gather_single(one, 0, group) for one in self]


def reduce_scatter_tensor_coalesced(
    inputs: list[Any],
    reduceOp: str,  # noqa: N803 - torch's name
    scatter_dim: list[int],
    group: Any,
    tag: str = "",
) -> list[Any]:
    """Return this process's parts of the reductions of several tensors."""
    pairs = zip(inputs, scatter_dim, strict=True)
    return [reduce_scatter_single(one, reduceOp, dim, group) for one, dim in pairs]


set_all(globals())
_guard_listed(globals())
