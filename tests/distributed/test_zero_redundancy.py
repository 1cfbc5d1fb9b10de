"""ZeroRedundancyOptimizer in a group of one process: it trains, saves and refuses as torch's."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd
from tests.oracle import answer, described


@pytest.fixture
def groups() -> Iterator[list[Any]]:
    """A group of one in both libraries."""
    libraries = [retrograd, pytest.importorskip("torch")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of what it imports
        for torch in libraries:
            importlib.import_module(f"{torch.__name__}.distributed.optim")
    for torch in libraries:
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield libraries
    for torch in libraries:
        torch.distributed.destroy_process_group()


def training(torch: Any) -> list[Any]:
    first, second = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.full((1,), 2.0))
    made = torch.distributed.optim.ZeroRedundancyOptimizer([first], torch.optim.Adam, lr=0.1)
    made.add_param_group({"params": [second], "lr": 0.3})
    schedule = torch.optim.lr_scheduler.StepLR(made, 1)
    seen: list[Any] = []
    for _ in range(3):
        made.zero_grad()
        loss = made.step(lambda: (first.sum() * second).sum().backward() or 1.0)
        schedule.step()
        seen += [loss, first.detach(), second.detach(), [group["lr"] for group in made.param_groups]]
    made.consolidate_state_dict()
    state = made.state_dict()
    again = torch.distributed.optim.ZeroRedundancyOptimizer(
        [{"params": [first]}, {"params": [second]}], torch.optim.Adam, lr=1.0
    )
    again.load_state_dict(state)
    again.step()
    return [
        *seen,
        sorted(state),
        [(one["lr"], one["params"]) for one in state["param_groups"]],
        repr(again),
        first.detach(),
        second.detach(),
    ]


@pytest.mark.oracle
def test_trains_as_torch(groups: list[Any]) -> None:
    own, theirs = [training(torch) for torch in groups]
    assert described(own) == described(theirs)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        "Z([x], torch.optim.Adam, lr=0.1).state_dict()",
        "Z([], torch.optim.Adam)",
        "Z(x, torch.optim.Adam)",
        "Z([1], torch.optim.Adam)",
        "Z([x, torch.ones(1).double()], torch.optim.Adam)",
        "Z([x], torch.optim.Adam, lr=-1.0)",
    ],
)
def test_refuses_as_torch(groups: list[Any], call: str) -> None:
    own, theirs = [
        answer(torch, call, Z=torch.distributed.optim.ZeroRedundancyOptimizer, x=torch.ones(1)) for torch in groups
    ]
    assert own == theirs


def test_a_group_is_needed_and_others_are_not_there() -> None:
    from retrograd.distributed import optim

    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        optim.ZeroRedundancyOptimizer([retrograd.ones(1)], retrograd.optim.SGD, lr=0.1)
    with pytest.raises(NotImplementedError, match="needs parts of torch"):
        optim.DistributedOptimizer(retrograd.optim.SGD, [])
