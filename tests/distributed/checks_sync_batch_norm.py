"""SyncBatchNorm in several processes, against BatchNorm on the joined batch in one."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as torch
from retrograd import nn

CHANNELS = 3


def joined(counts: list[int], shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(7).standard_normal((sum(counts), CHANNELS, *shape)) * 2 + 1


def compare(rank: int, counts: list[int], shape: tuple[int, ...], momentum: float | None, affine: bool) -> None:
    """Run two steps in training, one in evaluation; compare results, gradients and statistics with the joined batch's."""
    plain = nn.BatchNorm2d(CHANNELS, momentum=momentum, affine=affine, dtype=torch.float64)
    plain._check_input_dim = lambda _: None  # of any shape
    synced = nn.SyncBatchNorm(CHANNELS, momentum=momentum, affine=affine, dtype=torch.float64)
    values = joined(counts, shape)
    start = sum(counts[:rank])
    mine = slice(start, start + counts[rank])
    weights = torch.tensor(np.cos(np.arange(values.size)).reshape(values.shape))
    for step in range(3):
        plain.train(step < 2)
        synced.train(step < 2)
        whole = torch.tensor(values * (step + 1), requires_grad=True)
        part = torch.tensor(values[mine] * (step + 1), requires_grad=True)
        expected, found = plain(whole), synced(part)
        torch.testing.assert_close(found, expected[mine], rtol=1e-11, atol=1e-11)
        (expected.square() * weights).sum().backward()
        (found.square() * weights[mine]).sum().backward()
        torch.testing.assert_close(part.grad, whole.grad[mine], rtol=1e-9, atol=1e-9)
    for one, other in zip(synced.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
    for one, other in zip(synced.parameters(), plain.parameters(), strict=True):
        total = one.grad.clone()
        torch.distributed.all_reduce(total)
        torch.testing.assert_close(total, other.grad, rtol=1e-9, atol=1e-9)


def check_images_rows_and_series(rank: int, size: int) -> None:
    compare(rank, [4] * size, (5, 2), 0.1, True)
    compare(rank, [2 + one for one in range(size)], (), None, True)
    compare(rank, [1] * size, (3,), 0.3, False)


def check_an_empty_batch(rank: int, size: int) -> None:
    compare(rank, [0] + [3] * (size - 1), (2,), 0.1, True)


def check_half_precision(rank: int, size: int) -> None:
    layer = nn.SyncBatchNorm(2).to(torch.bfloat16)
    given = torch.full((4, 2), 1.0 + rank, dtype=torch.bfloat16)
    found = layer(given)
    assert found.dtype is torch.bfloat16
    ranks = np.arange(size)
    wanted = (rank - ranks.mean()) / np.sqrt(ranks.var() + 1e-5)
    assert abs(found[0, 0].item() - wanted) < 0.02


def check_a_converted_module_trains_as_one_process(rank: int, size: int) -> None:
    def made() -> Any:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double()

    plain = made()
    model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(made()))
    values = np.random.default_rng(2).standard_normal((10, size, 4, 3))
    for x in values:
        for module, part in ((plain, x.reshape(-1, 3)), (model, x[rank])):
            optimizer = torch.optim.SGD(module.parameters(), 0.05)
            optimizer.zero_grad()
            (module(torch.tensor(part)) - 1).square().mean().backward()
            optimizer.step()
    for one, other in zip(model.module.state_dict().values(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
