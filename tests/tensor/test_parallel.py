"""Large arrays are split over threads: the same values as in one piece, whatever the number of threads."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core import parallel

SIZE = parallel.WIDE + 7

FUNCTIONS = {
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "number": lambda a, b: torch.tanh(a) * 2.0 + b,
    "maximum": torch.maximum,
    "mask": lambda a, b: torch.where(a > 0, a, b) * b,
    "broadcasting": lambda a, b: (a.reshape(-1, 1) * b[:1]).sum(1),
    "with 0-d": lambda a, b: a * b.sum(),
    "constant": lambda a, b: a * b.detach(),
    "transposed": lambda a, b: (a[:-7].reshape(512, -1).t() * b[:-7].reshape(-1, 512)).t(),
    "several steps": lambda a, b: torch.sigmoid(a) * torch.relu(b) / (1 + b * b),
}


def results(function: Any) -> list[np.ndarray]:
    torch.manual_seed(0)
    a, b = (torch.randn(SIZE, requires_grad=True) for _ in range(2))
    out = function(a, b)
    out.backward(torch.full_like(out, 3.0))
    return [t.detach().numpy() for t in (out, a.grad, b.grad) if t is not None]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_one_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split = results(FUNCTIONS[name])
    monkeypatch.setattr(parallel, "get_num_threads", lambda: 3)
    for one, other in zip(split, results(FUNCTIONS[name]), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(parallel, "over_ranges", lambda work, size: work(0, size))
    monkeypatch.setattr(parallel, "BLOCK", SIZE)
    for one, other in zip(split, results(FUNCTIONS[name]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_many_threads_at_once() -> None:
    expected = results(FUNCTIONS["several steps"])
    a, b = (torch.randn(SIZE) for _ in range(2))
    found: list[bool] = []

    def work() -> None:
        for _ in range(5):
            found.append(bool((a * b).equal(b * a)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20
    for one, other in zip(expected, results(FUNCTIONS["several steps"]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_error_in_a_worker_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(start: int, end: int) -> None:
        if start:
            raise ValueError("in the second part")

    monkeypatch.setattr(parallel, "get_num_threads", lambda: 2)
    with pytest.raises(ValueError, match="in the second part"):
        parallel.over_ranges(work, 100)
    assert parallel._busy.acquire(blocking=False)
    parallel._busy.release()


def _in_child(queue: Any) -> None:
    a = torch.ones(SIZE)
    queue.put(float((a * a).sum()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_process_starts_its_own_threads() -> None:
    a = torch.ones(SIZE)
    assert float((a * a).sum()) == SIZE
    context: Any = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == SIZE
    child.join()
