"""How a tensor comes from one placement on a mesh to another, with gradients of every order.

Note [Gradients of placements]
A process computes with its part, and the graph is that of the parts. What flows back along it:
Rule 1. The gradient of a Shard is this process's part of the gradient; that of a Replicate or a Partial is whole, the same in all.
Rule 2. So redistributing a tensor redistributes its gradient the other way, with Replicate where there was a Partial.
Rule 3. An operation whose results are not Replicate along a dimension of the mesh gives a Replicate input different summands of its
        gradient in each process: `with_summed_gradient` adds them up. torch carries them on as a Partial, and adds them up later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd import Function
from ...autograd.grad_mode import is_grad_enabled
from ...tensor._functions.joining import cat
from .. import _collectives as c
from .._reductions import ReduceOp
from ._utils import part_of
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

Placements = tuple[Placement, ...]
OPS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "max": ReduceOp.MAX,
    "min": ReduceOp.MIN,
    "product": ReduceOp.PRODUCT,
}


class Moved(Function):
    """A part under other placements; its gradient goes from `back[0]` to `back[1]`."""

    @staticmethod
    def forward(ctx: Any, local: Any, mesh: Any, shape: Any, there: Any, back: Any) -> Any:
        ctx.where = mesh, shape, there, back
        moved = move(local, mesh, shape, *there)
        return moved.view_as(moved) if moved is local else moved

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        mesh, shape, there, back = ctx.where
        forth = tuple(for_gradients(one) for one in there)
        return Moved.apply(grad, mesh, shape, back, forth), None, None, None, None


def for_gradients(placements: Sequence[Placement]) -> Placements:
    """Return where the gradient of a tensor lies. See Rule 1 of Note [Gradients of placements]."""
    return tuple(Replicate() if one.is_partial() else one for one in placements)


def redistributed(local: Any, mesh: Any, shape: Any, before: Placements, after: Placements) -> Any:
    """Return this process's part of a tensor under other placements, differentiably."""
    if before == after:
        return local
    for one in before:
        if isinstance(one, Partial) and one.reduce_op != "sum" and local.requires_grad and is_grad_enabled():
            raise NotImplementedError(f"gradients through {one!r}: retrograd has those of Partial('sum')")
    return Moved.apply(local, mesh, shape, (before, after), (for_gradients(after), for_gradients(before)))


def with_summed_gradient(local: Any, mesh: Any, shape: Any, placements: Placements, mesh_dims: Sequence[int]) -> Any:
    """Return a part whose gradient is added up over the processes along some dimensions of the mesh."""
    if not mesh_dims or not local.requires_grad:
        return local
    kept = for_gradients(placements)
    summands = tuple(Partial() if at in mesh_dims else one for at, one in enumerate(kept))
    return Moved.apply(local, mesh, shape, (placements, placements), (summands, kept))


# ---- the moves themselves, on values without a graph ----
def move(local: Any, mesh: Any, shape: Sequence[int], before: Placements, after: Placements) -> Any:
    """Bring a process's part from some placements to others.

    Parts of parts must be undone from the innermost dimension of the mesh outward, and be made from the outermost inward.
    """
    if any(isinstance(one, _StridedShard) for one in (*before, *after)):
        raise NotImplementedError("redistribute: retrograd does not move tensors from or to a _StridedShard")
    now = list(before)
    for at in reversed(range(mesh.ndim)):
        if mesh.size(at) == 1:
            now[at] = after[at]
        elif now[at] != after[at] or _must_be_undone(at, now, after):
            local = _step(local, mesh, shape, now, after, at)
    for at in range(mesh.ndim):
        if now[at] != after[at]:
            local = _cut(local, mesh, shape, now, at, after[at])
    return local


def _must_be_undone(at: int, now: Sequence[Placement], after: Sequence[Placement]) -> bool:
    """Tell whether the same dimension of the tensor is cut otherwise further out, so that this cut is not the right one."""
    here = now[at]
    return isinstance(here, Shard) and any(
        now[outer] != after[outer] and (now[outer].is_shard(here.dim) or after[outer].is_shard(here.dim))
        for outer in range(at)
    )


def _step(local: Any, mesh: Any, shape: Any, now: list[Placement], after: Placements, at: int) -> Any:
    """Take a placement away: at once to the wanted one where nothing else cuts the same dimension, else to Replicate."""
    here, wanted = now[at], after[at]
    others = [one for i, one in enumerate((*now, *after)) if i % mesh.ndim != at]
    alone = isinstance(wanted, Shard) and not any(
        one.is_shard(wanted.dim) or (isinstance(here, Shard) and one.is_shard(here.dim)) for one in others
    )
    group = mesh.get_group(at)
    if isinstance(here, Partial):
        if alone and here.reduce_op in ("sum", "avg"):
            assert isinstance(wanted, Shard)
            local = _reduce_scatter(local, wanted.dim, group, OPS[here.reduce_op])
            now[at] = wanted
            return local
        if isinstance(wanted, Partial):
            raise RuntimeError(f"redistribute: {here} cannot become {wanted}")
        local = local.contiguous().clone()
        c.all_reduce(local, OPS[here.reduce_op], group)
        now[at] = Replicate()
        return local
    if isinstance(here, Shard):
        length = _shape_before(shape, mesh, now, at)[here.dim]
        if alone and here != wanted:
            assert isinstance(wanted, Shard)
            local = _exchange(local, here.dim, length, wanted.dim, group)
            now[at] = wanted
            return local
        local = _gather(local, here.dim, length, group)
        now[at] = Replicate()
    return local


def _shape_before(shape: Any, mesh: Any, placements: Sequence[Placement], at: int) -> tuple[int, ...]:
    """Return the shape of the part that the cut along a dimension of the mesh divides."""
    outer = [one if i < at else Replicate() for i, one in enumerate(placements)]
    return part_of(shape, mesh.shape, outer, mesh.get_coordinate())[0]


def _cut(local: Any, mesh: Any, shape: Any, now: list[Placement], at: int, wanted: Placement) -> Any:
    now[at] = wanted
    rank = mesh.get_local_rank(at)
    if isinstance(wanted, Shard):
        size, begin = wanted.local_shard_size_and_offset(local.size(wanted.dim), mesh.size(at), rank)
        return local.narrow(wanted.dim, begin, size).contiguous().clone()
    if isinstance(wanted, Partial) and wanted.reduce_op == "sum" and rank != 0:
        return local.new_zeros(local.shape)  # the first process has the whole: no division, so nothing is rounded
    return local


def _sizes(length: int, count: int) -> list[int]:
    return [Shard.local_shard_size_and_offset(length, count, rank)[0] for rank in range(count)]


def _longest(part: Any, dim: int, size: int) -> Any:
    """Return a part with zeros after it, so that all processes send as much."""
    lacking = size - part.size(dim)
    if lacking == 0:
        return part.contiguous()
    padding = part.new_zeros([lacking if at == dim else n for at, n in enumerate(part.shape)])
    return cat((part, padding), dim)


def _gather(local: Any, dim: int, length: int, group: Any) -> Any:
    sizes = _sizes(length, group.size())
    parts = [local.new_empty([sizes[0] if at == dim else n for at, n in enumerate(local.shape)]) for _ in sizes]
    c.all_gather(parts, _longest(local, dim, sizes[0]), group)
    return cat([part.narrow(dim, 0, size) for part, size in zip(parts, sizes, strict=True)], dim)


def _reduce_scatter(local: Any, dim: int, group: Any, op: Any) -> Any:
    sizes = _sizes(local.size(dim), group.size())
    parts = [_longest(part, dim, sizes[0]) for part in local.split(sizes, dim)]
    out = parts[0].new_empty(parts[0].shape)
    c.reduce_scatter(out, parts, op, group)
    return out.narrow(dim, 0, sizes[group.rank()]).contiguous()


def _exchange(local: Any, dim: int, length: int, wanted: int, group: Any) -> Any:
    """Send each process its part along another dimension, and join what comes along the old one."""
    sizes, given_sizes = _sizes(length, group.size()), _sizes(local.size(wanted), group.size())
    sent = [part.contiguous() for part in local.split(given_sizes, wanted)]
    mine = given_sizes[group.rank()]
    shape = list(local.shape)
    shape[wanted] = mine
    got = [local.new_empty([size if at == dim else n for at, n in enumerate(shape)]) for size in sizes]
    c.all_to_all(got, sent, group)
    return cat(got, dim)


__all__ = ["Moved", "for_gradients", "move", "redistributed", "with_summed_gradient"]
