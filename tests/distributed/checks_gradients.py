"""Gradients through collectives, of first and second order, against finite differences over the inputs of all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as torch
from retrograd import distributed as d
from retrograd.distributed import _functional_collectives as c
from retrograd.distributed.nn import functional as f

STEP = 1e-5
Loss = Callable[[Any], Any]


def drawn(size: int) -> Any:
    """Return an input for each process, the same numbers everywhere."""
    return np.random.default_rng(3).uniform(0.5, 1.5, (size, 2 * size, 3))


def total(loss: Loss, inputs: Any, rank: int) -> float:
    """Return the sum of all processes' losses."""
    with torch.no_grad():
        found = loss(torch.tensor(inputs[rank])).reshape(1)
        d.all_reduce(found)
    return float(found)


def difference(loss: Loss, inputs: Any, rank: int, direction: Any) -> float:
    """Return the derivative of the total along a direction, by differences."""
    return (total(loss, inputs + STEP * direction, rank) - total(loss, inputs - STEP * direction, rank)) / (2 * STEP)


def slope(loss: Loss, inputs: Any, rank: int, direction: Any, create_graph: bool = False) -> Any:
    """Return this process's share of the same derivative, by backward."""
    given = torch.tensor(inputs[rank], requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(given), given, create_graph=create_graph)
    return given, (gradient * torch.tensor(direction[rank])).sum()


def agrees(loss: Loss, rank: int, size: int) -> None:
    """Check first and second derivatives of a loss of one process's tensor along random directions."""
    inputs = drawn(size)
    directions = np.random.default_rng(5).standard_normal((2, *inputs.shape))
    _, share = slope(loss, inputs, rank, directions[0])
    found = share.detach().reshape(1)
    d.all_reduce(found)
    assert abs(float(found) - difference(loss, inputs, rank, directions[0])) < 1e-6

    given, share = slope(loss, inputs, rank, directions[0], create_graph=True)
    (second,) = torch.autograd.grad(share, given)
    found = (second * torch.tensor(directions[1][rank])).sum().reshape(1)
    d.all_reduce(found)

    def first(sign: float) -> float:
        _, share = slope(loss, inputs + sign * STEP * directions[1], rank, directions[0])
        value = share.detach().reshape(1)
        d.all_reduce(value)
        return float(value)

    assert abs(float(found) - (first(1.0) - first(-1.0)) / (2 * STEP)) < 1e-5


def weight(rank: int) -> float:
    """Return a number of each process, so that processes count differently."""
    return 1.0 + 0.5 * rank


def check_all_reduce(rank: int, size: int) -> None:
    agrees(lambda x: (f.all_reduce(x.sin()) ** 2).sum() * weight(rank), rank, size)
    agrees(lambda x: (c.all_reduce(x.sin(), "sum", d.group.WORLD) ** 2).sum() * weight(rank), rank, size)
    agrees(lambda x: (f.all_reduce(x.sin(), d.ReduceOp.AVG) ** 3).sum() * weight(rank), rank, size)


def check_broadcast_and_reduce(rank: int, size: int) -> None:
    agrees(lambda x: (f.broadcast(x.sin(), 1) ** 2).sum() * weight(rank), rank, size)

    # a loss of the same form everywhere: the second derivative must call the same collectives, too
    agrees(lambda x: (f.reduce(x.sin(), 1) ** 2).sum() * (rank == 1), rank, size)


def check_gathers(rank: int, size: int) -> None:
    def gathered(x: Any) -> Any:
        found = f.gather(x.sin(), 1)
        return sum(((at + 1.0) * one**2).sum() for at, one in enumerate(found))

    agrees(gathered, rank, size)
    agrees(
        lambda x: sum((one**2 * (at + weight(rank))).sum() for at, one in enumerate(f.all_gather(x.sin()))), rank, size
    )
    for dim in (0, 1):
        agrees(
            lambda x, dim=dim: (c.all_gather_tensor(x.sin(), dim, d.group.WORLD) ** 2).sum() * weight(rank), rank, size
        )


def check_scatters(rank: int, size: int) -> None:
    agrees(lambda x: (f.scatter(list(x.sin().chunk(size)), 1) ** 2).sum() * weight(rank), rank, size)

    def listed(x: Any) -> Any:
        given = list(x.sin().chunk(size))
        return (f.reduce_scatter(torch.empty_like(given[0]), given) ** 2).sum() * weight(rank)

    agrees(listed, rank, size)
    agrees(lambda x: (c.reduce_scatter_tensor(x.sin(), "sum", 0, d.group.WORLD) ** 2).sum() * weight(rank), rank, size)


def check_all_to_all(rank: int, size: int) -> None:
    def listed(x: Any) -> Any:
        given = list(x.sin().chunk(size))
        found = f.all_to_all([torch.empty_like(one) for one in given], given)
        return sum((one**2 * (at + weight(rank))).sum() for at, one in enumerate(found))

    agrees(listed, rank, size)
    agrees(
        lambda x: (f.all_to_all_single(torch.empty_like(x), x.sin()) ** 2).sum() * weight(rank),
        rank,
        size,
    )
    agrees(
        lambda x: (c.all_to_all_single(x.sin(), None, None, d.group.WORLD)[:2] ** 2).sum() * weight(rank), rank, size
    )
    shift = [(at + 1) % size for at in range(size)]
    agrees(lambda x: (c.permute_tensor(x.sin(), shift, d.group.WORLD) ** 2).sum() * weight(rank), rank, size)


def check_groups_by_other_names(rank: int, size: int) -> None:
    world = d.group.WORLD
    ranks = list(range(size))
    for group in (world, world.group_name, ranks, [ranks], None):
        assert c.all_reduce(torch.ones(1), "sum", group).item() == size
    with_error = ""
    try:
        c.all_reduce(torch.ones(1), "median", world)
    except ValueError as raised:
        with_error = str(raised)
    assert "Invalid reduce operation: median" in with_error
