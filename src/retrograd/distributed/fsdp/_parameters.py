"""The parameters of a module that is sharded: gathered before use, freed after it, their gradients reduced to the shards."""

from __future__ import annotations

import itertools
import math
from typing import Any

from ..._modes import using
from ...nn.parameter import make_parameter
from ...tensor import Tensor
from ...tensor._base import wrap
from .. import _collectives as c
from .._buffers import _array_of, _module_of
from .._reductions import ReduceOp
from ..tensor._dtensor import DTensor, placed
from ..tensor._utils import compute_local_shape_and_global_offset
from ..tensor.placement_types import Replicate, Shard
from ._rooms import Room

DTENSOR = (
    "FSDP of a parameter that is a DTensor already ({name}): retrograd does not combine fully_shard with tensor parallelism\n"
    "Hint: shard it by one of them."
)


_origins = itertools.count()


class ShardedParameter:
    """A parameter of which each process keeps a part, and which is whole while its module computes.

    The dimension that is cut comes first in the memory of the whole, so that the parts lie there one after the other, and what processes
    send needs no copies. All send as much: the last parts are filled up with zeros.
    """

    def __init__(self, holders: list[tuple[Any, str]], parameter: Any, mesh: Any, dim: int) -> None:
        self.holders = holders  # modules and names under which it is found; the first is the one that counts
        self.mesh, self.dim = mesh, dim
        self.shape, self.requires_grad = tuple(parameter.shape), parameter.requires_grad
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.placements = (Replicate(),) * (mesh.ndim - 1) + (Shard(dim),)
        local, begins = compute_local_shape_and_global_offset(self.shape, mesh, self.placements)
        self.longest = Shard.local_shard_size_and_offset(self.shape[dim], self.group.size(), 0)[0]
        others = [n for at, n in enumerate(self.shape) if at != dim]
        self.row = math.prod(others)  # numbers in one step along the dimension that is cut
        self.whole_shape = (self.longest * self.group.size(), *others)  # in memory
        part = parameter.detach().narrow(dim, begins[dim], local[dim]).contiguous().clone()
        if not hasattr(parameter, "_fsdp_origin"):
            parameter._fsdp_origin = next(_origins)
        self.origin = parameter._fsdp_origin  # the same where two modules have been given shards of one parameter
        self.sharded: Any = make_parameter(placed(part, mesh, self.placements, self.shape), parameter.requires_grad)
        for name, value in vars(parameter).items():
            if name != "_is_param":
                setattr(self.sharded, name, value)
        self.whole: Any = None  # the parameter with which the module computes
        self.room: Room | None = None
        self.unreduced: Any = None  # shards of gradients that replicas have not added up yet
        self.register(self.sharded)

    def register(self, parameter: Any) -> None:
        """Let the module find a parameter under its name."""
        for module, name in self.holders:
            module._parameters[name] = parameter

    # ---- whole ----
    def start_gathering(self, dtype: Any) -> Any:
        """Start to gather the parts; return what must be waited for."""
        part = self.sharded._local_tensor
        with using(grad=False):
            if dtype is not None and part.is_floating_point():
                part = part.to(dtype)
            sent = self._filled_up(part.movedim(self.dim, 0))
            memory = self._memory(sent)
            # into a tensor of its own on this memory: gathering is no write that a graph must hear of
            return c.all_gather_into_tensor(wrap(memory), sent.reshape(-1), self.group, async_op=True)

    def _memory(self, like: Any) -> Any:
        array = _array_of(like)
        if self.room is None or self.room.array.dtype != array.dtype:
            self.room = Room(math.prod(self.whole_shape), array.dtype, _module_of(array))
            seen = wrap(self.room.array.reshape(self.whole_shape)).narrow(0, 0, self.shape[self.dim])
            self.whole = make_parameter(seen.movedim(0, self.dim), self.sharded.requires_grad)
        return self.room.array

    def _filled_up(self, part: Any) -> Any:
        """Return a part as long as the longest."""
        lacking = self.longest - part.shape[0]
        if lacking == 0:
            return part.contiguous()
        made = part.new_zeros((self.longest, *part.shape[1:]))
        made[: part.shape[0]] = part
        return made

    def show_whole(self) -> None:
        """Let the module compute with the whole parameter, which has been gathered."""
        if self.whole.requires_grad != self.sharded.requires_grad:
            self.whole.requires_grad_(self.sharded.requires_grad)
        self.register(self.whole)

    def show_shard(self) -> None:
        """Let the module have the shard, and give the memory of the whole back."""
        self.register(self.sharded)
        if self.room is not None:
            self.room.give_back()

    def take_over_whole(self) -> None:
        """Copy this process's part of the whole parameter into the shard."""
        local, begins = compute_local_shape_and_global_offset(self.shape, self.mesh, self.placements)
        with using(grad=False):
            shard = self.sharded._local_tensor
            shard.copy_(self.whole.detach().narrow(self.dim, begins[self.dim], local[self.dim]))

    def forget_whole(self) -> None:
        """Take over a shard that the module has been given instead, as `to` does."""
        module, name = self.holders[0]
        self.sharded = module._parameters[name]
        self.register(self.sharded)
        self.whole = self.room = None

    # ---- gradients ----
    def start_reducing(self, dtype: Any, factor: float | None) -> Any:
        """Take the gradient of the whole, and start to add it up over the processes; return what the shards' one is made of."""
        grad, self.whole.grad = self.whole.grad, None
        with using(grad=False):
            if dtype is not None and dtype != grad.dtype:
                grad = grad.to(dtype)
            moved = grad.movedim(self.dim, 0)
            if moved.shape[0] != self.whole_shape[0]:
                filled = moved.new_zeros(self.whole_shape)
                filled[: moved.shape[0]] = moved
                moved = filled
            given = moved.contiguous().reshape(-1)
            out = given.new_empty(self.longest * self.row)
            work = c.reduce_scatter_tensor(out, given, ReduceOp.SUM, self.group, async_op=True)
        return self, work, out, given, factor

    def finish_reducing(self, out: Any, factor: float, all_reduce: bool) -> None:
        """Add what was reduced to the gradient of the shard."""
        with using(grad=False):
            shard = self.sharded._local_tensor
            if self.replicas is not None:
                if self.unreduced is not None:
                    out.add_(self.unreduced)
                    self.unreduced = None
                if not all_reduce:
                    self.unreduced = out
                    return
                c.all_reduce(out, ReduceOp.SUM, self.replicas)
            out = out.mul_(factor) if factor != 1.0 else out
            lengths = (self.longest, *self.whole_shape[1:])
            part = out.reshape(lengths).narrow(0, 0, shard.shape[self.dim]).movedim(0, self.dim)
            part = part.to(shard.dtype).contiguous()
            grad = self.sharded.grad
            if grad is None:
                self.sharded.grad = placed(part, self.mesh, self.placements, self.shape)
            else:
                Tensor.add_(grad.as_subclass(Tensor), part)
        hooks = self.sharded._extra.post_hooks
        for hook in list((hooks or {}).values()):
            hook(self.sharded)


def managed_parameters(modules: list[Any], ignored: set[Any], is_other: Any) -> list[tuple[list[tuple[Any, str]], Any]]:
    """Return the parameters inside of modules that no other sharded module inside of them has, each with all its holders."""
    found: dict[int, tuple[list[tuple[Any, str]], Any]] = {}
    seen: set[int] = set()

    def visit(module: Any, is_first: bool) -> None:
        if id(module) in seen or (not is_first and is_other(module)):
            return
        seen.add(id(module))
        for name, one in module._parameters.items():
            if one is None or one in ignored:
                continue
            if one.ndim == 0:
                raise ValueError(
                    f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
                )
            if isinstance(one, DTensor):
                raise NotImplementedError(DTENSOR.format(name=name))
            found.setdefault(id(one), ([], one))[0].append((module, name))
        for child in module.children():
            visit(child, False)

    for module in modules:
        visit(module, True)
    return list(found.values())


__all__ = ["ShardedParameter", "managed_parameters"]
