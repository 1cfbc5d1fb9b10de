"""The parameters of a module that is sharded: gathered before use, freed after it, their gradients reduced to the shards."""

from __future__ import annotations

import itertools
import math
from typing import Any

from ..._modes import using
from ...nn.parameter import make_parameter
from ...tensor import Tensor
from ...tensor._base import wrap
from ...tensor._functions.joining import cat
from .. import _collectives as c
from .._buffers import _array_of, _module_of
from .._reductions import ReduceOp
from ..tensor._dtensor import DTensor, like, placed
from ..tensor._utils import compute_local_shape_and_global_offset
from ..tensor.placement_types import Replicate, Shard
from ._rooms import Room

# Note [Cut twice]
# A parameter of a tensor-parallel layer lies on the mesh of that layer, and `fully_shard` cuts this process's part of it once more. The
# shards lie on the layer's dimensions first and those of `fully_shard` after them, so that plain placements, read in order, say what was
# done: Shard(0) by the layer, then Shard(0) of that. torch has the dimensions in the other order, and writes _StridedShard for it.
SMALL = 1 << 16  # bytes that a process sends: below, starting a collective takes longer than copying
_origins = itertools.count()


class ShardedParameter:
    """A parameter of which each process keeps a part, and which is whole while its module computes.

    The dimension that is cut comes first in the memory of the whole, so that the parts lie there one after the other, and what processes
    send needs no copies. All send as much: the last parts are filled up with zeros.

    The parameter of a tensor-parallel layer is a DTensor already. Then what is cut, gathered and reduced is this process's part of it: see
    Note [Cut twice].
    """

    def __init__(self, holders: list[tuple[Any, str]], parameter: Any, mesh: Any, dim: int) -> None:
        self.holders = holders  # modules and names under which it is found; the first is the one that counts
        self.dim, self.requires_grad = dim, parameter.requires_grad
        self.layer = parameter._spec if isinstance(parameter, DTensor) else None  # how a tensor-parallel layer has it
        own = _own(parameter)
        self.shape = tuple(own.shape)
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        cut = (Replicate(),) * (mesh.ndim - 1) + (Shard(dim),)
        local, begins = compute_local_shape_and_global_offset(self.shape, mesh, cut)
        self.begin = begins[dim]
        self.longest = Shard.local_shard_size_and_offset(self.shape[dim], self.group.size(), 0)[0]
        others = [n for at, n in enumerate(self.shape) if at != dim]
        self.row = math.prod(others)  # numbers in one step along the dimension that is cut
        self.whole_shape = (self.longest * self.group.size(), *others)  # in memory
        part = own.narrow(dim, self.begin, local[dim]).contiguous().clone()
        if not hasattr(parameter, "_fsdp_origin"):
            parameter._fsdp_origin = next(_origins)
        self.origin = parameter._fsdp_origin  # the same where two modules have been given shards of one parameter
        if self.layer is not None:  # See Note [Cut twice]
            mesh, cut = parameter.device_mesh._followed_by(mesh), (*parameter.placements, *cut)
        self.sharded: Any = make_parameter(placed(part, mesh, cut, parameter.shape), parameter.requires_grad)
        for name, value in vars(parameter).items():
            if name not in vars(self.sharded):
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
    def sent(self, dtype: Any) -> Any:
        """Return what this process sends to the others so that they have the whole: its part, as long as the longest, in a row."""
        part = self.sharded._local_tensor
        if dtype is not None and part.is_floating_point():
            part = part.to(dtype)
        return self._filled_up(part.movedim(self.dim, 0)).reshape(-1)

    def memory_for(self, sent: Any) -> Any:
        """Return the memory of the whole, as an array in which the parts lie one after the other."""
        array = _array_of(sent)
        if self.room is None or self.room.array.dtype != array.dtype:
            self.room = Room(math.prod(self.whole_shape), array.dtype, _module_of(array))
            seen = wrap(self.room.array.reshape(self.whole_shape)).narrow(0, 0, self.shape[self.dim])
            seen = seen.movedim(0, self.dim)
            if self.layer is not None:
                seen = placed(seen, self.layer.mesh, self.layer.placements, self.layer.shape)
            self.whole = make_parameter(seen, self.sharded.requires_grad)
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
        with using(grad=False):
            shard = self.sharded._local_tensor
            shard.copy_(_own(self.whole).narrow(self.dim, self.begin, shard.shape[self.dim]))

    def forget_whole(self) -> None:
        """Take over a shard that the module has been given instead, as `to` does."""
        module, name = self.holders[0]
        self.sharded = module._parameters[name]
        self.register(self.sharded)
        self.whole = self.room = None

    # ---- gradients ----
    def taken_gradient(self, dtype: Any) -> Any:
        """Take the gradient of the whole, and return it as rows, one for each process."""
        grad, self.whole.grad = _own(self.whole.grad), None
        if dtype is not None and dtype != grad.dtype:
            grad = grad.to(dtype)
        moved = grad.movedim(self.dim, 0)
        if moved.shape[0] != self.whole_shape[0]:
            filled = moved.new_zeros(self.whole_shape)
            filled[: moved.shape[0]] = moved
            moved = filled
        return moved.contiguous().reshape(self.group.size(), self.longest * self.row)

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
                self.sharded.grad = like(part, self.sharded)
            else:
                Tensor.add_(grad.as_subclass(Tensor), part)
        hooks = self.sharded._extra.post_hooks
        for hook in list((hooks or {}).values()):
            hook(self.sharded)


def _own(tensor: Any) -> Any:
    """Return what this process has of a tensor."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor.detach()


# ---- what processes send each other: that of a large parameter by itself, that of all small ones at once ----
def start_gathering(parameters: list[ShardedParameter], dtype: Any) -> list[Any]:
    """Start to make parameters whole; return what must be waited for."""
    with using(grad=False):
        return [_start_gathering(*several) for several in _bundles(parameters, [one.sent(dtype) for one in parameters])]


def _start_gathering(parameters: list[ShardedParameter], sent: list[Any]) -> Any:
    group, memory = parameters[0].group, [one.memory_for(row) for one, row in zip(parameters, sent, strict=True)]
    if len(parameters) == 1:
        # into a tensor of its own on this memory: gathering is no write that a graph must hear of
        return c.all_gather_into_tensor(wrap(memory[0]), sent[0], group, async_op=True)
    joined = cat(sent)
    came = joined.new_empty((group.size(), joined.numel()))
    return Bundle(c.all_gather_into_tensor(came.reshape(-1), joined, group, async_op=True), came, memory)


class Bundle:
    """Small parameters that come together, and have to be put into their places."""

    def __init__(self, work: Any, came: Any, memory: list[Any]) -> None:
        self._work, self._came, self._memory = work, came, memory

    def wait(self) -> None:
        """Wait until they are here, and put them there."""
        if self._work is not None:
            self._work.wait()
        came, begin = _array_of(self._came), 0
        for place in self._memory:
            rows = place.reshape(len(came), place.size // len(came))
            rows[...] = came[:, begin : begin + rows.shape[1]]
            begin += rows.shape[1]


def start_reducing(parameters: list[ShardedParameter], dtype: Any) -> list[Any]:
    """Take the gradients of whole parameters, and start to add them up over the processes.

    Returns what must be waited for, what is sent until then, and for each parameter what its shard gets.
    """
    started = []
    with using(grad=False):
        for several, rows in _bundles(parameters, [one.taken_gradient(dtype) for one in parameters]):
            given = (rows[0] if len(rows) == 1 else cat(rows, 1)).reshape(-1)
            out = given.new_empty(given.numel() // several[0].group.size())
            work = c.reduce_scatter_tensor(out, given, ReduceOp.SUM, several[0].group, async_op=True)
            shares = out.split([row.shape[1] for row in rows])
            started.append((work, given, list(zip(several, shares, strict=True))))
    return started


def _bundles(parameters: list[ShardedParameter], rows: list[Any]) -> list[tuple[list[ShardedParameter], list[Any]]]:
    """Divide parameters, with what is sent of each, into those that are sent together."""
    found: dict[Any, tuple[list[ShardedParameter], list[Any]]] = {}
    for at, (one, row) in enumerate(zip(parameters, rows, strict=True)):
        is_small = row.numel() * row.element_size() < SMALL
        several = found.setdefault(row.dtype if is_small else at, ([], []))
        several[0].append(one)
        several[1].append(row)
    return list(found.values())


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
            found.setdefault(id(one), ([], one))[0].append((module, name))
        for child in module.children():
            visit(child, False)

    for module in modules:
        visit(module, True)
    return list(found.values())


__all__ = ["ShardedParameter", "managed_parameters", "start_gathering", "start_reducing"]
