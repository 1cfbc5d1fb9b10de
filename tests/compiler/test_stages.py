"""Native programs: nests of loops, products and sums of all layouts and sizes, checks inside, threads, against eager."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._native import blas, machine, threads
from retrograd.compiler import _nests, _stages

pytestmark = pytest.mark.skipif(not machine.is_available(), reason="needs llvmlite")

SIZES = (1, 2, 7, 16, 17, 33)  # of vectors of 4, 8 and 16 lanes: less than one, whole ones, and some left over


def check(function: Any, *args: Any) -> Any:
    """Compare three compiled calls with eager; the last two have the same bits. Return the compiled function."""
    compiled = torch.compile(function, fullgraph=True)
    expected = function(*args)
    found = [compiled(*args) for _ in range(3)]
    for one in found:
        torch.testing.assert_close(one, expected, equal_nan=True)
    for one, other in zip(found[1], found[2], strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    assert compiled._compiled.records
    return compiled


def layouts(rows: int, columns: int, dtype: Any) -> list[Any]:
    """Return matrices of one shape: as they are, transposed, with steps between columns, and between rows."""
    return [
        torch.randn(rows, columns, dtype=dtype),
        torch.randn(columns, rows, dtype=dtype).T,
        torch.randn(rows, 2 * columns, dtype=dtype)[:, ::2],
        torch.randn(2 * rows, columns + 3, dtype=dtype)[1::2, 2:-1],
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 1, 1), (7, 3, 17), (33, 16, 2), (16, 33, 16), (2, 17, 33)])
def test_products_of_all_layouts(rows: int, inner: int, columns: int, dtype: Any) -> None:
    torch.manual_seed(0)
    xs, ys = layouts(rows, inner, dtype), layouts(inner, columns, dtype)
    bias = torch.randn(columns, dtype=dtype)

    def function(*given: Any) -> Any:
        found = [x @ y for x in given[:4] for y in given[4:8]]
        return *found, *[torch.relu(one + given[8]) * 2 for one in found[:3]], (given[0] @ given[4]).T @ given[1]

    check(function, *xs, *ys, bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_few_rows(rows: int, dtype: Any) -> None:
    torch.manual_seed(0)
    x, w, bias = torch.randn(rows, 3, 40, dtype=dtype), torch.randn(50, 40, dtype=dtype), torch.randn(50, dtype=dtype)

    def function(x: Any, w: Any, bias: Any) -> Any:
        column = x[:, 0] @ w.T
        deep = torch.tanh(column + bias) @ w[:, :40].repeat(1, 2)[:, :50].T
        folded = x[:, :1] @ w.T * 2  # a batch whose rows are one matrix
        return column, deep, folded, x[:1] @ w.T, w @ x[0].T, w @ x[:, 0].T + bias[:, None], x @ w[:2].T

    check(function, x, w, bias)


def test_batches_of_products() -> None:
    torch.manual_seed(0)
    a, b, c = torch.randn(3, 2, 5, 7), torch.randn(2, 7, 18), torch.randn(3, 1, 18, 5)

    def function(a: Any, b: Any, c: Any) -> Any:
        first = a @ b
        return first, first @ c, (first @ c).softmax(-1) @ a, a.transpose(1, 2) @ b[0], (a @ b[:1]).sum(0)

    check(function, a, b, c)


@pytest.mark.parametrize("columns", SIZES)
def test_reductions_of_all_axes(columns: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 19, columns)

    def function(x: Any) -> Any:
        y = torch.exp(x * 0.5)
        sums = [y.sum(axis, keepdim=keep) for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2)) for keep in (False, True)]
        return (
            *sums, y.sum(), y.mean(1), x.amax(2), x.amin((0, 1)), (y - y.mean(-1, keepdim=True)).square().mean(-1), x.softmax(1),
            x.transpose(0, 2).sum(0), (x.transpose(0, 2) * 2).log_softmax(0), (y > 1).all(0), (y > 2).any(2),
        )  # fmt: skip

    check(function, x)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("columns", SIZES)
def test_maps_that_broadcast(rows: int, columns: int) -> None:
    torch.manual_seed(0)
    x, row, column = torch.randn(rows, columns), torch.randn(columns), torch.randn(rows, 1)

    def function(x: Any, row: Any, column: Any) -> Any:
        y = torch.tanh(x * row + column)
        return (
            y,
            y.T + 1,
            torch.where(y > 0, row, column),
            torch.cat([y, x.flip(0)], 1),
            y.reshape(-1) * 2,
            torch.stack([x, y], 2),
        )

    check(function, x, row, column)


def test_what_is_not_finite() -> None:
    x = torch.tensor([[0.0, -0.0, float("inf"), -float("inf"), float("nan")] * 4, [1.0] * 20])

    def function(x: Any) -> Any:
        return x.amax(1), x.amin(0), x.sum(1), torch.relu(x), -x, x @ x.T, torch.maximum(x, -x), x.softmax(1)

    compiled = check(function, x)
    for one, other in zip(compiled(x)[3:5], function(x)[3:5], strict=True):
        assert (one.signbit() == other.signbit())[~one.isnan()].all()


def test_numbers_that_are_stored_before_they_are_read_elsewhere() -> None:
    def function(x: Any, state: Any) -> Any:
        before = state * 2
        state.mul_(0.5).add_(x)
        return before, state + 1, (state @ state.T).sum(0)

    torch.manual_seed(0)
    x = torch.randn(6, 6)
    mine, eager = torch.ones(6, 6), torch.ones(6, 6)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(4):
        torch.testing.assert_close(compiled(x, mine), function(x, eager))
        torch.testing.assert_close(mine, eager)


@pytest.mark.parametrize("size", [3, 40])
def test_what_is_overwritten_is_read_before(size: int) -> None:
    def by_its_square(w: Any) -> Any:
        w.sub_(0.1 * (w @ w))
        return w * 2

    def by_its_sums(w: Any) -> Any:
        h = w @ w.T
        w.copy_(torch.tanh(h - w.sum(0) * 0.1))
        w.mul_(w.softmax(1))
        return w.T @ w, h

    torch.manual_seed(0)
    for function in (by_its_square, by_its_sums):
        mine = torch.randn(size, size) * 0.1
        eager = mine.clone()
        compiled = torch.compile(function, fullgraph=True)
        for _ in range(3):
            torch.testing.assert_close(compiled(mine), function(eager))
            torch.testing.assert_close(mine, eager)


def test_a_check_that_fails_leaves_everything_as_it_was() -> None:
    def function(x: Any, state: Any) -> Any:
        y = x @ x.T
        if y.sum() > 0:
            state += y
            if (state.sum() * 0 + x[0, 0]) > 0:
                return state * 2
            return state * 3
        state -= 1
        return state * 4

    compiled = torch.compile(function)
    mine, eager = torch.zeros(3, 3), torch.zeros(3, 3)
    torch.manual_seed(0)
    for turn in range(12):
        x = torch.randn(3, 3) if turn % 3 else torch.zeros(3, 3)
        torch.testing.assert_close(compiled(x, mine), function(x, eager))
        torch.testing.assert_close(mine, eager)


# ---- threads ----
def step(x: Any, w: Any) -> Any:
    h = torch.tanh(x @ w)
    return (h @ w.T).softmax(1), h.sum(0), (h * 2).sum(1)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let threads share every stage that can be shared."""
    if not threads.is_possible():
        pytest.skip("needs Linux and x86-64")
    monkeypatch.setattr(_stages, "SHARED", 1)
    monkeypatch.setattr(_stages, "WORTH_WAKING", 1)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_threads_give_the_same_bits(shared: Any, count: int) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(65, 40), torch.randn(40, 33)
    torch.set_num_threads(1)
    alone = torch.compile(step)
    for _ in range(2):
        expected = alone(x, w)
    torch.set_num_threads(count)
    together = torch.compile(step)
    for _ in range(60):
        found = together(x, w)
    for one, other in zip(found, expected, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_users_threads_call_one_program(shared: Any) -> None:
    torch.set_num_threads(2)
    compiled = torch.compile(step)
    w = torch.randn(40, 33)
    for _ in range(2):
        compiled(torch.randn(65, 40), w)
    wrong: list[bool] = []

    def work(x: Any) -> None:
        expected = compiled(x, w)[0].numpy().tobytes()
        wrong.extend(compiled(x, w)[0].numpy().tobytes() != expected for _ in range(100))

    users = [threading.Thread(target=work, args=(torch.randn(65, 40),)) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(wrong) == 400
    assert not any(wrong)


def truths(a: Any, b: Any) -> Any:
    sums = a + b, a + True, a + b + a, (a + b).sum(), (a + b) * 0.5
    extremes = torch.maximum(a, b), torch.minimum(a, b), a.amax(), a.amin(), a.max(-1)[0], a.min(-1)[0]
    return *sums, *extremes, a * b, (a * b).any(), (a + b).all(), a.square()


@pytest.mark.parametrize("count", [3, 40, 40_000])
def test_arithmetic_of_truth_values(count: int) -> None:
    """The first call, which is compared with eager, has none that are true; then sums of one bit would be those without carry."""
    compiled = torch.compile(truths, fullgraph=True)
    numbers = torch.arange(count)
    compiled(numbers < 0, numbers < 0)
    for a, b in ((numbers % 2 == 0, numbers % 3 == 0), (numbers >= 0, numbers >= 0), (numbers > 0, numbers < 2)):
        for one, other in zip(compiled(a, b), truths(a, b), strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
    assert len(compiled._compiled.records) == 1
    assert not compiled._compiled.reasons


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reductions_of_a_number(dtype: Any) -> None:
    def function(x: Any) -> Any:
        return x.sum(), x.mean(), x.sum(-1, keepdim=True), x.amax(), (x * 2).prod(), x.var(unbiased=False), x.norm()

    check(function, torch.tensor(-1.5, dtype=dtype))


@pytest.mark.parametrize("count", [1, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_floats_beyond_the_range_of_an_integer(count: int, dtype: Any) -> None:
    """They become what they become in eager; the first call, which is compared with it, has none."""
    kinds = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64]
    inf = float("inf")
    numbers = [float("nan"), inf, -inf, 3e9, -3e9, 1e20, -1e20, 2.0**31, 2.0**63, 1.5e19, 300.7, -300.7, -1.5]

    def function(x: Any) -> Any:
        return [x.to(kind) for kind in kinds]

    x = torch.tensor(numbers * count, dtype=torch.float64).to(dtype)
    compiled = torch.compile(function, fullgraph=True)
    compiled(torch.ones_like(x))
    for one, other in zip(compiled(x), function(x), strict=True):
        assert one.tolist() == other.tolist()
    assert not compiled._compiled.reasons


def test_integers_that_are_rounded() -> None:
    def function(x: Any) -> Any:
        return x.ceil() + 1, x.floor() * 2, x.trunc(), x.round()

    check(function, torch.arange(-3, 4))
    check(function, torch.arange(5, dtype=torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((2, 3, 4, 5), (3, 1, 1)), ((2, 3, 4, 5), (3, 1, 5)), ((4, 5, 6), (5, 1)), ((2, 3, 4, 5), (1, 4, 1)), ((8, 3, 16, 16), (3, 1, 1)),
        ((2, 2, 3, 4, 5), (3, 1, 1)), ((2, 2, 3, 4, 5), (1, 3, 1, 1)), ((2, 3, 4, 5), (1, 3, 1, 1)), ((6, 1, 5), (1, 5)), ((3, 4), (1, 1)),
    ],
)  # fmt: skip
def test_sums_to_a_shape_drop_axes_and_keep_others(shape: Any, other: Any, dtype: Any) -> None:
    """The gradient of a channel's weight: leading axes go, others stay with one element."""

    def f(x: Any, w: Any) -> Any:
        return torch.autograd.grad(((x * w) ** 2).sum(), (x, w))

    compiled = torch.compile(f)
    for _ in range(3):
        x, w = (torch.randn(one, dtype=dtype).requires_grad_() for one in (shape, other))
        torch.testing.assert_close(compiled(x, w), f(x, w), rtol=1e-4, atol=1e-5)
    assert not compiled._compiled.reasons


def test_a_trial_sees_what_a_program_does_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it did when a sum to a shape lost an axis of its result: memory that was just freed held the right numbers."""
    right = _nests._axes_of_result

    def wrong(node: Any) -> tuple[int, ...]:
        return tuple([right(node)[0]] * len(right(node)))

    monkeypatch.setattr(_nests, "_axes_of_result", wrong)
    compiled = torch.compile(lambda x: (torch.zeros_like(x * 2) + 1).sum((0, 3)))
    x = torch.randn(2, 3, 4, 5)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), torch.full((3, 4), 10.0))
    assert "differs from eager" in "".join(compiled._compiled.reasons)


def test_programs_have_new_memory_full_of_nan_in_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    right = _stages.spoiled

    def spoiled(shape: Any, dtype: Any) -> Any:
        asked.append(shape)
        return right(shape, dtype)

    monkeypatch.setattr(_stages, "spoiled", spoiled)
    compiled = torch.compile(lambda x: (x * 2).sum((0, 2)))
    x = torch.randn(2, 3, 4, requires_grad=True)
    compiled(x)
    assert asked[:1] == [(3,)]
    assert (2, 3, 4) in asked  # its gradient
    asked.clear()
    compiled(x).sum().backward()
    assert not asked


def test_spoiled_memory() -> None:
    for shape in ((), (3,), (0, 2), (2, 3)):
        for dtype in (np.float32, np.float64, np.float16, np.complex64):
            assert np.isnan(_stages.spoiled(shape, np.dtype(dtype))).all()
        assert (_stages.spoiled(shape, np.dtype(np.int32)) == -1).all()


def test_a_trial_writes_into_no_memory_that_another_thread_may_take() -> None:
    take, give = _stages.arena_of(1 << 15)
    mine = take()
    mine.fill(1)
    give(mine)
    with _stages.spoiled_memory(()):
        assert (take() == 0xFF).all()
    assert (mine == 1).all()


@pytest.mark.skipif(not blas.addresses(), reason="NumPy has another BLAS")
@pytest.mark.parametrize("dynamic", [False, True])
def test_convolutions_whose_products_are_compiled_for_their_sizes(dynamic: bool) -> None:
    weights = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((8, 4, 3, 3), (8, 6, 4, 4))]

    def step(x: Any) -> Any:
        functional = torch.nn.functional
        return functional.conv_transpose2d(functional.conv2d(x, weights[0], stride=2, padding=1), weights[1])

    compiled = torch.compile(step, dynamic=dynamic)
    for size in (14, 14, 14, 15, 15):
        found = []
        for function in (compiled, step):
            x = (
                torch.linspace(-1, 1, 12 * 4 * size * size, dtype=torch.float64)
                .reshape(12, 4, size, size)
                .requires_grad_()
            )
            out = function(x)
            found.append([out, *torch.autograd.grad(out.sin().sum(), [x, *weights])])
        torch.testing.assert_close(*found)
    assert compiled._compiled.records
