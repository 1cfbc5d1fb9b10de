"""ZeroRedundancyOptimizer and averaged parameters in several processes."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as torch
from retrograd import distributed as d
from retrograd import nn
from retrograd.distributed.algorithms.join import Join
from retrograd.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.nn.parallel import DistributedDataParallel

RATE = 0.05


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def data(size: int, steps: int) -> Any:
    return np.random.default_rng(4).standard_normal((steps, size, 4, 3))


def step(model: Any, optimizer: Any, x: Any) -> None:
    optimizer.zero_grad()
    (model(torch.tensor(x)) - 1).square().mean().backward()
    optimizer.step()


def assert_same(model: Any, expected: Any) -> None:
    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def check_divided_states_train_as_one_process(rank: int, size: int) -> None:
    plain, model = net(), DistributedDataParallel(net())
    whole = torch.optim.Adam(plain.parameters(), RATE)
    divided = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=RATE)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(one, 0.9) for one in (whole, divided)]
    values = data(size, 20)
    for at, x in enumerate(values[:10]):
        step(plain, whole, x.reshape(-1, 3))
        step(model, divided, x[rank])
        if at % 3 == 0:
            for one in schedules:
                one.step()
    assert_same(model.module, plain)
    kept = [0] * size
    d.all_gather_object(kept, sum(len(one) > 0 for one in divided.optim.state.values()))
    assert sum(kept) == 4
    assert max(kept) < 4, kept

    for to in range(size):
        divided.consolidate_state_dict(to)
    state = divided.state_dict()
    assert sorted(state["state"]) == [0, 1, 2, 3]
    for at, held in whole.state_dict()["state"].items():
        torch.testing.assert_close(state["state"][at]["exp_avg"], held["exp_avg"], rtol=1e-10, atol=1e-10)
    again = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1.0)
    again.load_state_dict(state)
    for x in values[10:]:
        step(plain, whole, x.reshape(-1, 3))
        step(model, again, x[rank])
    assert_same(model.module, plain)


def check_divided_states_and_different_numbers_of_batches(rank: int, size: int) -> None:
    plain, model = net(), DistributedDataParallel(net())
    whole = torch.optim.SGD(plain.parameters(), RATE, momentum=0.9)
    divided = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=RATE, momentum=0.9)
    values = data(size, 5)
    with Join([model, divided]):
        for x in values[: 3 if rank == 0 else 5]:
            step(model, divided, x[rank])
    for at, x in enumerate(values):
        active = range(size) if at < 3 else range(1, size)
        whole.zero_grad()
        for one in active:
            ((plain(torch.tensor(x[one])) - 1).square().mean() / size).backward()
        whole.step()
    assert_same(model.module, plain)


def check_parameters_averaged_now_and_then(rank: int, size: int) -> None:
    weight = nn.Parameter(torch.tensor([float(rank)]))
    weight.grad = torch.zeros(1)
    averager = PeriodicModelAverager(period=2, warmup_steps=1)
    found = []
    for _ in range(4):
        with torch.no_grad():
            weight.fill_(float(rank))
        averager.average_parameters([weight])
        found.append(weight.item())
    mean = (size - 1) / 2
    assert np.allclose(found, [rank, mean, rank, mean])
