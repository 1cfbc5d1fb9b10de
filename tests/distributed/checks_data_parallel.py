"""DistributedDataParallel in several processes, against one process that has all their batches."""

from __future__ import annotations

import copy
import gc
import io
import tracemalloc
import warnings
from typing import Any

import numpy as np

import retrograd as torch
from retrograd import distributed as d
from retrograd import nn
from retrograd.distributed import _reducer
from retrograd.distributed.algorithms.ddp_comm_hooks import default_hooks
from retrograd.nn.parallel import DistributedDataParallel
from tests.distributed.ranks import raised_by

STEPS, ROWS, RATE = 50, 4, 0.05
SMALL = 1e-4  # MiB: a bucket for about every layer


def net(seed: int = 0) -> Any:
    """Return layers of float64, one of which is not trained, and beside them a factor of float32."""
    torch.manual_seed(seed)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 8, dtype=torch.float64)
            self.frozen = nn.Linear(8, 8, dtype=torch.float64).requires_grad_(False)
            self.second = nn.Linear(8, 5, dtype=torch.float64)
            self.last = nn.Linear(5, 2, dtype=torch.float64)
            self.factor = nn.Parameter(torch.zeros(3))

        def forward(self, x: Any) -> Any:
            return self.last(self.second(self.frozen(self.first(x).tanh())).tanh()), self.factor * x.float()

    return Net()


def batches(size: int, steps: int = STEPS) -> Any:
    """Return inputs and targets by step and process."""
    drawn = np.random.default_rng(11)
    return drawn.standard_normal((steps, size, ROWS, 3)), drawn.standard_normal((steps, size, ROWS, 2))


def loss_of(model: Any, x: Any, y: Any) -> Any:
    found, scaled = model(torch.tensor(x))
    return (found - torch.tensor(y)).square().mean() + (scaled - 1).square().mean()


def trained_alone(size: int, steps: int = STEPS) -> Any:
    """Return a module that one process trained on the batches of all."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=0.9)
    for x, y in zip(*batches(size, steps), strict=True):
        optimizer.zero_grad()
        loss_of(model, x.reshape(-1, 3), y.reshape(-1, 2)).backward()
        optimizer.step()
    return model


def train(model: Any, rank: int, size: int, steps: int = STEPS) -> None:
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=0.9)
    for at, (x, y) in enumerate(zip(*batches(size, steps), strict=True)):
        optimizer.zero_grad(set_to_none=at % 2 == 0)
        loss_of(model, x[rank], y[rank]).backward()
        optimizer.step()


def assert_equal(model: Any, expected: Any) -> None:
    for (name, one), (_, other) in zip(model.named_parameters(), expected.named_parameters(), strict=True):
        limit = 1e-12 if one.dtype is torch.float64 else 1e-5
        difference = float((one - other).detach().abs().max())
        assert difference < limit, f"{name} differs by {difference}"


def check_training_equals_one_process_on_the_joined_batch(rank: int, size: int) -> None:
    expected = trained_alone(size)
    ways: list[dict[str, Any]] = [
        {},
        {"bucket_cap_mb": SMALL},
        {"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True},
        {"bucket_cap_mb": SMALL, "find_unused_parameters": True},
        {"bucket_cap_mb": SMALL, "static_graph": True, "gradient_as_bucket_view": True},
        {"bucket_cap_mb_list": [SMALL, 2 * SMALL]},
    ]
    for way in ways:
        model = DistributedDataParallel(net(seed=rank), **way)  # which takes over the numbers of rank 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every parameter is used
            train(model, rank, size)
        assert_equal(model.module, expected)


def check_gradients_that_add_up_before_they_are_averaged(rank: int, size: int) -> None:
    xs, ys = batches(size, 3)
    expected = net()
    for x, y in zip(xs, ys, strict=True):
        loss_of(expected, x.reshape(-1, 3), y.reshape(-1, 2)).backward()
    for as_views in (False, True):
        model = DistributedDataParallel(net(), gradient_as_bucket_view=as_views)
        with model.no_sync():
            for x, y in zip(xs[:2], ys[:2], strict=True):
                loss_of(model, x[rank], y[rank]).backward()
        loss_of(model, xs[2][rank], ys[2][rank]).backward()
        for one, other in zip(model.module.parameters(), expected.parameters(), strict=True):
            if other.grad is not None:
                torch.testing.assert_close(one.grad, other.grad)


def check_parameters_that_only_some_processes_use(rank: int, size: int) -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.of_first, self.of_others, self.of_nobody = (nn.Linear(1, 1, bias=False) for _ in range(3))

        def forward(self, x: Any) -> Any:
            left = self.of_nobody(x)
            return (self.of_first if rank == 0 else self.of_others)(x), left  # `left` does not reach the loss

    model = DistributedDataParallel(Branches(), find_unused_parameters=True, bucket_cap_mb=SMALL)
    for _ in range(3):
        model.zero_grad()
        model(torch.tensor([[2.0 + rank]]))[0].sum().backward()
        others = sum(2.0 + one for one in range(1, size)) / size
        assert np.isclose(model.module.of_first.weight.grad.item(), 2.0 / size)
        assert np.isclose(model.module.of_others.weight.grad.item(), others)
        assert model.module.of_nobody.weight.grad is None


def check_a_first_bucket_starts_before_backward_ends(rank: int, size: int) -> None:
    model = DistributedDataParallel(net(), bucket_cap_mb=SMALL)
    events: list[str] = []
    reduce = _reducer.all_reduce

    def noted(*args: Any, **kwargs: Any) -> Any:
        events.append("start")
        return reduce(*args, **kwargs)

    model.module.first.weight.register_hook(lambda _: events.append("gradient of the first layer"))
    _reducer.all_reduce = noted
    try:
        train(model, rank, size, 2)
    finally:
        _reducer.all_reduce = reduce
    second = events[events.index("gradient of the first layer") + 1 :]
    starts = [one for one in second[: second.index("gradient of the first layer")] if one == "start"]
    assert len(starts) > 2, events


def check_memory_does_not_grow(rank: int, size: int) -> None:
    model = DistributedDataParallel(net(), bucket_cap_mb=SMALL)
    train(model, rank, size, 20)
    gc.collect()
    tracemalloc.start()
    train(model, rank, size, 20)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(15):
        train(model, rank, size, 20)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 30_000, f"{after - before} bytes more after 300 steps"


def check_buffers_are_those_of_the_first_process(rank: int, size: int) -> None:
    model = DistributedDataParallel(nn.BatchNorm1d(2))
    model(torch.full((3, 2), float(rank)) * torch.arange(3.0)[:, None]).sum().backward()
    model(torch.zeros(3, 2))
    assert torch.allclose(model.module.running_mean, torch.zeros(2)), model.module.running_mean
    own = DistributedDataParallel(nn.BatchNorm1d(2), forward_sync_buffers=False)
    for _ in range(2):
        own(torch.full((3, 2), float(rank + 1))).sum().backward()
    assert np.isclose(own.module.running_mean[0].item(), 0.19 * (rank + 1))


def check_parameters_that_each_process_keeps(rank: int, size: int) -> None:
    net = torch.nn.Linear(2, 1)
    with torch.no_grad():
        for one in net.parameters():
            one.fill_(rank)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["bias"])
    model = DistributedDataParallel(net)
    (model(torch.ones(1, 2)) * rank).sum().backward()
    assert (net.weight[0, 0].item(), net.bias.item()) == (0, rank)
    assert (net.weight.grad[0, 0].item(), net.bias.grad.item()) == ((size - 1) / 2, rank)


def check_processes_with_different_numbers_of_batches(rank: int, size: int) -> None:
    rate, steps = 0.01, [2 + one for one in range(size)]
    for divide_by_all in (True, False):
        model = DistributedDataParallel(nn.Linear(1, 1, bias=False, dtype=torch.float64))
        with torch.no_grad():
            model.module.weight.fill_(1.0)
        optimizer = torch.optim.SGD(model.parameters(), rate)
        with model.join(divide_by_initial_world_size=divide_by_all):
            for at in range(steps[rank]):
                optimizer.zero_grad()
                model(torch.full((1, 1), 1.0 + at + rank, dtype=torch.float64)).square().sum().backward()
                optimizer.step()
        weight = 1.0
        for at in range(max(steps)):
            active = [one for one in range(size) if at < steps[one]]
            gradient = sum(2 * weight * (1.0 + at + one) ** 2 for one in active)
            weight -= rate * gradient / (size if divide_by_all else len(active))
        assert np.isclose(model.module.weight.item(), weight, rtol=1e-12), (model.module.weight.item(), weight)

    model = DistributedDataParallel(nn.Linear(1, 1))

    def uneven() -> None:
        with model.join(throw_on_early_termination=True):
            for _ in range(1 if rank == 0 else 3):
                model(torch.ones(1, 1)).sum().backward()

    said = "Rank 0 exhausted all inputs." if rank == 0 else "Detected at least one rank that exhausted inputs."
    assert raised_by(uneven).startswith(f"RuntimeError: {said}")


def check_communication_hooks(rank: int, size: int) -> None:
    expected = trained_alone(size)
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)):
        model = DistributedDataParallel(net(), bucket_cap_mb=SMALL)
        model.register_comm_hook(None, hook)
        train(model, rank, size)
        exact = hook is default_hooks.allreduce_hook
        for one, other in zip(model.module.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6 if exact else 0.05, atol=1e-7 if exact else 0.02)

    for hook, step in ((default_hooks.fp16_compress_hook, 2.0**-11), (default_hooks.bf16_compress_hook, 2.0**-8)):
        model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        model.register_comm_hook(d.group.WORLD, hook)
        model(torch.tensor([[1.0 + step / 8 + rank]])).sum().backward()
        exact = sum(1.0 + one for one in range(size)) / size
        assert abs(model.module.weight.grad.item() - exact) <= 4 * step

    seen = []

    def own(state: Any, bucket: d.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append((bucket.index(), bucket.is_last(), len(bucket.parameters()), bucket.gradients()[0].shape))
        done: Any = torch.futures.Future()
        done.set_result(bucket.buffer() * 10)
        return done

    model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    model.register_comm_hook(None, own)
    model(torch.tensor([[1.0 + rank]])).sum().backward()
    assert model.module.weight.grad.item() == 10 * (1.0 + rank)  # nothing is divided or sent
    assert seen == [(0, True, 1, torch.Size([1, 1]))]
    assert "can only be called once" in raised_by(lambda: model.register_comm_hook(None, own))


def check_several_outputs_and_reentrant_checkpoints(rank: int, size: int) -> None:
    from retrograd.utils.checkpoint import checkpoint

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2, bias=False)

        def forward(self, x: Any) -> Any:
            for _ in range(2):
                x = checkpoint(self.inner, x, use_reentrant=True)
            return x

    torch.manual_seed(0)
    plain = Twice()
    model = DistributedDataParallel(copy.deepcopy(plain), static_graph=True)
    for _ in range(3):
        model.zero_grad()
        model(torch.full((1, 2), 1.0 + rank, requires_grad=True)).sum().backward()
    for one in range(size):
        (plain(torch.full((1, 2), 1.0 + one, requires_grad=True)).sum() / size).backward()
    torch.testing.assert_close(model.module.inner.weight.grad, plain.inner.weight.grad)


def check_what_is_refused(rank: int, size: int) -> None:
    said = raised_by(lambda: DistributedDataParallel(nn.Linear(2 + (rank > 0), 2)))
    shape, other = ("[2, 2]", 1) if rank == 0 else ("[2, 3]", 0)
    same = f"appears not to match sizes of the same param in process {other}."
    assert said == f"RuntimeError: [{rank}]: params[0] in this process with sizes {shape} {same}", said
    said = raised_by(lambda: DistributedDataParallel(nn.Linear(2, 2, bias=rank > 0)))
    assert said.startswith(f"RuntimeError: DDP expects same model across all ranks, but Rank {rank} has"), said

    model = DistributedDataParallel(nn.Linear(2, 1))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        said = raised_by(lambda: model(torch.ones(1, 2)).square().sum().backward(create_graph=True))
    assert said.startswith("RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.")
    assert any("create_graph=True  is not well-supported" in str(one.message) for one in warned)

    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    model = DistributedDataParallel(Half())
    model(torch.ones(1, 2)).sum().backward()
    said = raised_by(lambda: model(torch.ones(1, 2)))
    assert said.startswith("RuntimeError: Expected to have finished reduction in the prior iteration"), said
    assert f"did not receive grad for rank {rank}: 2 3" in said

    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1)))
    out = model(torch.ones(1, 2))
    model.module[0].weight.sum().backward()
    said = raised_by(lambda: out.sum().backward())
    assert said.startswith("RuntimeError: Expected to mark a variable ready only once."), said
    assert "Parameter at index 0 with name 0.weight has been marked as ready twice" in said


def check_states_and_copies(rank: int, size: int) -> None:
    model = DistributedDataParallel(nn.Linear(2, 1))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    with torch.no_grad():
        model(torch.ones(1, 2))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (torch.load(file, weights_only=False), copy.deepcopy(model)):
        other(torch.full((1, 2), 1.0 + rank)).sum().backward()
        assert np.isclose(other.module.weight.grad[0, 0].item(), (size + 1) / 2)
    assert model.module.weight.grad is None

    part = d.new_group([0, 1])
    if rank < 2:
        pair = DistributedDataParallel(nn.Linear(1, 1, bias=False), process_group=part)
        pair(torch.full((1, 1), 1.0 + rank)).sum().backward()
        assert pair.module.weight.grad.item() == 1.5
        assert (
            "only supported when using DDP with the default process group" in raised_by(lambda: copy.deepcopy(pair))
            or size == 2
        )
    d.barrier()
