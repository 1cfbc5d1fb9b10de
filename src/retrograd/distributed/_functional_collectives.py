"""torch.distributed._functional_collectives: what processes do together, as functions that return new tensors. There is one process."""

from __future__ import annotations

from typing import Any

from .._public import set_all
from ._groups import need_group


class AsyncCollectiveTensor:
    """A tensor that other processes still work on, in torch. None exists here: what is returned is done."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "AsyncCollectiveTensor: retrograd computes in one process, whose collectives return tensors that are done"
        )


def wait_tensor(tensor: Any) -> Any:
    """Return the tensor: it is done."""
    return tensor


def _group(group: Any) -> None:
    """Raise torch's error where no group exists; one of one process is any of the ways to name it."""
    if not hasattr(group, "device_type") and not isinstance(group, (list, tuple)):
        need_group(None if isinstance(group, str) else group)


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:  # noqa: N803 - torch's name
    """Return the reduction of the tensors of all processes: a copy of this one."""
    _group(group)
    return self.clone()


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """Return the tensor of one process."""
    _group(group)
    return self.clone()


def all_gather_tensor(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """Return the tensors of all processes joined along a dimension."""
    _group(group)
    return self.clone()


all_gather_tensor_autograd = all_gather_tensor


def reduce_scatter_tensor(self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Any:  # noqa: N803
    """Return this process's part of the reduction."""
    _group(group)
    return self.clone()


reduce_scatter_tensor_autograd = reduce_scatter_tensor


def all_to_all_single(self: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = "") -> Any:
    """Return the parts that all processes have for this one."""
    _group(group)
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes is not None and list(sizes) != [self.size(0)]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return self.clone()


all_to_all_single_autograd = all_to_all_single


def permute_tensor(self: Any, src_dst: list[int], group: Any, tag: str = "") -> Any:
    """Return the tensor of the process that sends to this one."""
    _group(group)
    if list(src_dst) != [0]:
        raise ValueError(f"permute_tensor of one process: it sends to itself, [0], but src_dst is {src_dst}")
    return self.clone()


def all_reduce_coalesced(self: list[Any], reduceOp: str, group: Any, tag: str = "") -> list[Any]:  # noqa: N803
    """Return the reductions of several tensors."""
    _group(group)
    return [one.clone() for one in self]


def all_gather_into_tensor_coalesced(self: list[Any], group: Any, tag: str = "") -> list[Any]:
    """Return several tensors, each joined of those of all processes."""
    _group(group)
    return [one.clone() for one in self]


set_all(globals())
