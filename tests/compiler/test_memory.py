"""How much memory compiled calls take beside eager ones, and that what shares memory is never needed at the same time."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd._native import machine
from retrograd.compiler import _rooms, _stages
from retrograd.compiler._program import Buffer, Value
from retrograd.compiler._rooms import Kind, Rooms

F = nn.functional
native = pytest.mark.skipif(not machine.is_available(), reason="needs llvmlite")


def step_of(model: Any, x: Any, count: int) -> tuple[Any, Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    y = torch.randint(0, count, (len(x),))

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step, (x, y)


def convolutions(batch: int = 16) -> tuple[Any, Any]:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip
    return step_of(model, torch.randn(batch, 1, 28, 28), 10)


def large_convolutions() -> tuple[Any, Any]:
    return convolutions(256)


def attention() -> tuple[Any, Any]:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return step_of(nn.Sequential(layer, nn.Linear(64, 20), nn.Flatten(1, 2)), torch.randn(8, 32, 64), 640)


def one_row() -> tuple[Any, Any]:
    model = nn.Sequential(nn.Linear(128, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 10))
    model.requires_grad_(False)
    return model.forward, (torch.randn(1, 128),)


def curvature() -> tuple[Any, Any]:
    weights = [(torch.randn(n, m) * 0.05).requires_grad_() for n, m in ((100, 256), (256, 256), (256, 32))]
    vectors = [torch.randn_like(one) for one in weights]

    def product(x: Any) -> Any:
        h = torch.tanh(torch.tanh(x @ weights[0]) @ weights[1]) @ weights[2]
        grads = torch.autograd.grad(h.square().mean(), weights, create_graph=True)
        return torch.autograd.grad(grads, weights, vectors)

    return product, (torch.randn(64, 100),)


def norms() -> tuple[Any, Any]:
    norm = nn.LayerNorm(256)

    def function(x: Any) -> Any:
        with torch.no_grad():
            return norm(F.gelu(norm(x).softmax(1)) + x)

    return function, (torch.randn(64, 256),)


def most(call: Callable[..., Any], args: Any) -> int:
    """Return the most bytes that a call takes at a time, those included that programs keep for the next."""
    for _ in range(3):
        call(*args)
    gc.collect()
    tracemalloc.start()
    try:
        call(*args)
        found = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return found + sum(one.nbytes for kept in _stages.arenas.values() for one in kept)


@native
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", [convolutions, large_convolutions, attention, one_row, curvature, norms])
def test_a_compiled_call_takes_no_more_memory_than_eager(make: Any, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    kept = dict(_stages.arenas)
    _stages.arenas.clear()  # of other tests
    try:
        function, args = make()
        eager = most(function, args)
        compiled = torch.compile(function, fullgraph=True)
        assert most(compiled, args) <= eager
        assert compiled._compiled.records
    finally:
        torch.set_num_threads(before)
        _stages.arenas.update(kept)


# ---- rooms ----
def value_of(size: int) -> Value:
    made = Value("v", None, None)
    made.buffer, made.shape, made.strides = Buffer(0, False), (size,), (4,)
    made.dtype = torch.zeros(0).numpy().dtype
    return made


@pytest.mark.parametrize("seed", range(40))
def test_rooms_that_are_needed_at_the_same_time_lie_apart(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randrange(1, 12)
    times = sorted(draw.randrange(8) for _ in range(count))
    values = {value_of(draw.randrange(1, 70)): draw.choice(list(Kind)) for _ in range(25)}
    users = {one.buffer: set(draw.choices(range(count), k=draw.randrange(1, 4))) for one in values}
    rooms = Rooms([SimpleNamespace()] * count, [[]] * count, times, users)
    for value, kind in values.items():
        rooms.add(value, kind)
    size, offsets, taken = rooms.arranged()
    assert not taken
    sizes = {one.buffer: 4 * one.size for one in values} | {None: size}
    needs: list[tuple[Any, int, int, int, int]] = []  # memory, from where, to where, from when, to when
    for value, kind in values.items():
        home, at = offsets.get(value.buffer, (value.buffer, 0))
        assert (home is value.buffer) is (kind is not Kind.BETWEEN)
        assert at + 4 * value.size <= sizes[home]
        own = [times[one] for one in users[value.buffer]]
        begin = -1 if kind is Kind.ENDING else min(own)
        end = 99 if kind in (Kind.MADE, Kind.RESULT) else max(own)
        needs.append((home, at, at + 4 * value.size, begin, end))
    for number, (home, low, high, begin, end) in enumerate(needs):
        for other, its_low, its_high, its_begin, its_end in needs[:number]:
            apart = its_high <= low or high <= its_low or its_end < begin or end < its_begin
            assert home is not other or apart


def check(function: Any, *args: Any) -> None:
    """Compare calls with eager, where vectors are whole, and where they are not."""
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(compiled(*args), function(*args))
    (run,) = compiled._compiled.records
    assert run.record


@native
@pytest.mark.parametrize("rows", [1, 5, 16])
@pytest.mark.parametrize("columns", [3, 16, 50])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_values_that_take_the_place_of_others(
    rows: int, columns: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rooms, "WORTH_JOINING", 1)
    torch.manual_seed(0)
    x, w = torch.randn(rows, columns, dtype=dtype), torch.randn(columns, columns, dtype=dtype) * 0.1

    def by_passes(x: Any) -> Any:
        y = (x * 2).softmax(1)
        return (y - y.mean(1, keepdim=True)) * y, y.cumsum(0)

    def read_before_and_after(x: Any, w: Any) -> Any:
        h = x @ w
        up = torch.tanh(h)
        down = (up @ w) + up
        flipped = down.flip(0) * down + down.T.contiguous().T
        return torch.tanh(flipped @ w) - flipped, up.sum(1)

    def turned(x: Any, w: Any) -> Any:
        h = torch.exp(x @ w)
        return (h.T @ h).triu() + w, (h * h.sum(0)).cumsum(1) / h.cumsum(1)

    check(by_passes, x)
    check(read_before_and_after, x, w)
    check(turned, x, w)


@native
def test_a_view_of_what_was_computed_twice_is_read_late() -> None:
    def function(a: Any) -> Any:
        one, two = a.triu(), a.triu()
        late = two.T  # of memory that kernels could take once they have read `one`
        h = (one * 2 + 1) @ a @ a + a
        return torch.linalg.solve_triangular(late, h, upper=False)

    torch.manual_seed(0)
    check(function, torch.randn(6, 6) + 4 * torch.eye(6))


@native
def test_what_a_backward_has_kept_is_not_overwritten() -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(2, 3, 3)

    def function(x: Any) -> Any:
        h = torch.relu(layer(x))
        (first,) = torch.autograd.grad(h.square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * h.mean()).sum(), layer.weight)
        return h, first, second

    check(function, torch.randn(2, 2, 6, 6, requires_grad=True))


@native
def test_large_maps_in_the_place_of_what_they_read_last() -> None:
    def function(x: Any) -> Any:
        first = x.cumsum(0)
        second = torch.tanh(first)  # in the place of the first
        third = second.cumsum(0)
        fourth = third * 2  # not in its place: it is read once more
        return fourth.flip(0), third.sum(0), second[:1].clone()

    torch.manual_seed(0)
    check(function, torch.randn(1100, 1000))
