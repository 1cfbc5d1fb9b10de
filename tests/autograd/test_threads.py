"""Every thread has its own modes and its own run of the engine; gradients of shared leaves add up."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from tests.autograd import stress

THREADS = 8
SECONDS = 3.0


def in_threads(work: Callable[[int], Any], count: int = THREADS, timeout: float = 60.0) -> list[Any]:
    """Run `work(i)` in threads that start together; return their results, raise their first error."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            barrier.wait()
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def forward(x: Any, w: Any) -> Any:
    h = (w @ x).tanh()
    v = h.clone()
    v[0].mul_(2)
    return (v * v).sum()


def expected() -> Any:
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    w = torch.full((3, 4), 0.1, dtype=torch.float64, requires_grad=True)
    forward(x, w).backward()
    return x.grad.numpy(), w.grad.numpy()


@pytest.mark.slow
def test_separate_leaves():
    want_x, want_w = expected()
    end = time.monotonic() + SECONDS

    def work(_: int) -> int:
        runs = 0
        while time.monotonic() < end:
            x = torch.ones(4, dtype=torch.float64, requires_grad=True)
            w = torch.full((3, 4), 0.1, dtype=torch.float64, requires_grad=True)
            forward(x, w).backward()
            np.testing.assert_allclose(x.grad.numpy(), want_x)
            np.testing.assert_allclose(w.grad.numpy(), want_w)
            runs += 1
        return runs

    assert all(in_threads(work))


@pytest.mark.slow
def test_shared_leaves_add_up():
    want_x, want_w = expected()
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    w = torch.full((3, 4), 0.1, dtype=torch.float64, requires_grad=True)
    end = time.monotonic() + SECONDS

    def work(_: int) -> int:
        runs = 0
        while time.monotonic() < end:
            forward(x, w).backward()
            runs += 1
        return runs

    total = sum(in_threads(work))
    np.testing.assert_allclose(x.grad.numpy(), want_x * total, rtol=1e-9)
    np.testing.assert_allclose(w.grad.numpy(), want_w * total, rtol=1e-9)


@pytest.fixture
def _hasty():
    """Switch threads after almost every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hasty")
def test_first_gradients_of_a_shared_leaf_are_not_lost():
    for _ in range(300):
        x = torch.ones(4, dtype=torch.float64, requires_grad=True)
        in_threads(lambda i, x=x: (x * 2).sum().backward(), 4)
        assert x.grad.tolist() == [8.0] * 4


@pytest.mark.usefixtures("_hasty")
def test_first_gradients_of_a_shared_leaf_with_hooks_are_not_lost():
    for _ in range(100):
        x = torch.ones(4, dtype=torch.float64, requires_grad=True)
        x.register_hook(lambda g: g * 1)
        in_threads(lambda i, x=x: (x * 2).sum().backward(), 4)
        assert x.grad.tolist() == [8.0] * 4


def test_one_retained_graph_in_many_threads():
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    y = (x.exp() * x).sum()
    in_threads(lambda i: [y.backward(retain_graph=True) for _ in range(50)])
    np.testing.assert_allclose(x.grad.numpy(), np.full(4, 2 * np.e) * THREADS * 50)


def test_grad_in_many_threads_on_one_graph():
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    y = (x**3).sum()
    for (g,) in in_threads(lambda i: torch.autograd.grad(y, x, retain_graph=True)):
        assert g.tolist() == [3.0] * 4
    assert x.grad is None


@pytest.mark.usefixtures("_hasty")
def test_modes_are_per_thread():
    def work(i: int) -> list[bool]:
        seen = []
        for _ in range(200):
            with torch.set_grad_enabled(i % 2 == 0):
                seen.append((torch.ones(1, requires_grad=True) * 2).requires_grad)
        return seen

    for i, seen in enumerate(in_threads(work)):
        assert set(seen) == {i % 2 == 0}


@pytest.mark.usefixtures("_hasty")
def test_transforms_are_per_thread():
    def work(i: int) -> Any:
        x = torch.full((3,), float(i), dtype=torch.float64)
        for _ in range(20):
            hessian = torch.func.hessian(lambda v: (v**3).sum())(x)
            mapped = torch.func.vmap(torch.func.grad(lambda v: v**2))(x)
        return hessian.diagonal().tolist(), mapped.tolist()

    for i, (diagonal, mapped) in enumerate(in_threads(work)):
        assert diagonal == [6.0 * i] * 3
        assert mapped == [2.0 * i] * 3


@pytest.mark.usefixtures("_hasty")
def test_dual_levels_are_per_thread():
    fwd = torch.autograd.forward_ad

    def work(i: int) -> list[float]:
        for _ in range(50):
            with fwd.dual_level():
                x = fwd.make_dual(torch.tensor([2.0]), torch.tensor([float(i)]))
                tangent = fwd.unpack_dual(x * x).tangent.tolist()
        return tangent

    assert in_threads(work) == [[4.0 * i] for i in range(THREADS)]


def test_a_thread_without_a_level_takes_part_in_that_of_another():
    """As in torch, where there is one level for all threads."""
    fwd = torch.autograd.forward_ad
    with fwd.dual_level():
        x = fwd.make_dual(torch.tensor([2.0]), torch.tensor([3.0]))

        def work(i: int) -> Any:
            own = fwd.make_dual(torch.tensor([1.0]), torch.tensor([float(i)]))
            primal, tangent = fwd.unpack_dual(x * x + own)
            assert fwd.unpack_dual(primal).tangent is None
            return primal.tolist(), tangent.tolist()

        assert in_threads(work, 4) == [([5.0], [12.0 + i]) for i in range(4)]
        assert fwd.unpack_dual(x).tangent.tolist() == [3.0]
    assert fwd.unpack_dual(x).tangent is None


def test_hooks_and_reentrant_backward_in_threads():
    def work(i: int) -> float:
        total = torch.zeros((), dtype=torch.float64)

        def hook(g: Any) -> None:
            with torch.enable_grad():
                inner = torch.full((2,), float(i), dtype=torch.float64, requires_grad=True)
                (inner * inner).sum().backward()
            total.add_(inner.grad.sum())

        for _ in range(20):
            x = torch.ones(2, dtype=torch.float64, requires_grad=True)
            y = x * 2
            y.register_hook(hook)
            y.sum().backward()
        return total.item()

    assert in_threads(work) == [80.0 * i for i in range(THREADS)]


def test_error_in_one_thread_stays_there():
    def work(i: int) -> bool:
        x = torch.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        if i == 0:
            with pytest.raises(RuntimeError, match="second time"):
                y.backward()
        return x.grad.tolist() == [2.0, 2.0]

    assert all(in_threads(work))


def test_numpy_warnings_stay_silent_in_new_threads():
    """torch gives inf and nan without a word, and so does every thread here."""

    def work(_: int) -> list[float]:
        x = torch.tensor([0.0], requires_grad=True)
        y = 1 / x + x.log()
        y.sum().backward()
        return y.tolist()

    for shown in in_threads(work):
        assert str(shown) == "[nan]"


def test_mixed_work_in_sixteen_threads():
    """Three seconds of what `python -m tests.autograd.stress` does for a minute."""
    rounds, wrong, graphs, left = stress.run(threads=16, seconds=3)
    assert wrong == []
    assert rounds > 16
    assert graphs == 0
    assert left < 2_000_000
