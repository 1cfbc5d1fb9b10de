"""Adding at indices by kernels: embeddings, index_add, index_put, scatter_add and the gradients of reading at indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F  # noqa: N812 - torch's name
from retrograd import _thresholds
from retrograd._native import gathers, machine, nests


def _embedding(library: Any, x: Callable[..., Any], at: Callable[..., Any]) -> list[Any]:
    weight = x(50, 33)
    made = []
    for options in ({}, {"padding_idx": 3}, {"scale_grad_by_freq": True}):
        out = library.nn.functional.embedding(at(50, 40, 20), weight, **options)
        made += [out, *library.autograd.grad((out * x(40, 20, 33)).sum(), weight)]
    return made


def _wide_embedding(library: Any, x: Callable[..., Any], at: Callable[..., Any]) -> list[Any]:
    weight = x(20, 300)
    out = library.nn.functional.embedding(at(20, 70), weight)
    return [out, *library.autograd.grad((out * x(70, 300)).sum(), weight)]


def _index_add(library: Any, x: Callable[..., Any], at: Callable[..., Any]) -> list[Any]:
    made = []
    for axis, count in ((0, 900), (1, 700), (2, 800)):
        shape = [9, 10, 11]
        base = x(*shape)
        size, shape[axis] = shape[axis], count
        source = x(*shape)
        out = base.index_add(axis, at(size, count), source)
        made += [out, *library.autograd.grad((out * out).sum(), (base, source))]
    return [*made, x(100).index_add(0, at(100, 5000), x(5000)), x(100).index_add(0, at(100, 5000), x(5000), alpha=-2)]


def _index_put(library: Any, x: Callable[..., Any], at: Callable[..., Any]) -> list[Any]:
    made = []
    for where, shape in (
        ((at(30, 2000), at(40, 2000)), (2000, 5)),
        ((at(30, 2000) - 30, at(40, 2000)), (2000, 5)),
        ((at(30, 50, 1), at(40, 1, 60)), (50, 60, 1)),
        ((at(30, 600),), (600, 40, 5)),
    ):
        base, source = x(30, 40, 5), x(*shape)
        out = base.index_put(where, source, accumulate=True)
        made += [out, *library.autograd.grad((out * out).sum(), (base, source))]
    return made


def _reading(library: Any, x: Callable[..., Any], at: Callable[..., Any]) -> list[Any]:
    made = []
    for read in (
        lambda a: a[at(30, 700)],
        lambda a: a[:, at(40, 700)],
        lambda a: a[:, :, at(5, 600)],
        lambda a: a[at(30, 700), at(40, 700)],
        lambda a: a[:, at(40, 700), at(5, 700)],
        lambda a: a[at(30, 700), :, at(5, 700)],
        lambda a: a[at(30, 700), 2],
        lambda a: a.index_select(1, at(40, 300)),
    ):
        base = x(30, 40, 5)
        out = read(base)
        made += [out, *library.autograd.grad((out * out).sum(), base)]
    return made


def _scatter_add(library: Any, x: Callable[..., Any], at: Callable[..., Any]) -> list[Any]:
    made = []
    for axis, named in ((0, (60, 40, 5)), (1, (30, 70, 5)), (2, (30, 40, 20)), (1, (30, 70, 3)), (0, (60, 38, 5))):
        base, source = x(30, 40, 5), x(*named)
        index = at((30, 40, 5)[axis], *named)
        out = base.scatter_add(axis, index, source)
        made += [out, *library.autograd.grad((out * out).sum(), (base, source))]
        out = base.gather(axis, index)
        made += [out, *library.autograd.grad((out * out).sum(), base)]
    flat, more = x(700), x(5000)
    return [*made, flat.scatter_add(0, at(700, 5000), more)]


CASES = (_embedding, _wide_embedding, _index_add, _index_put, _reading, _scatter_add)


def answers(library: Any, case: Callable[..., list[Any]], dtype: str = "float32") -> list[np.ndarray]:
    """Run a case; `x` draws tensors, `at` indices below a number."""
    rng = np.random.default_rng(0)

    def x(*shape: int) -> Any:
        return library.tensor(rng.normal(size=shape), dtype=getattr(library, dtype), requires_grad=True)

    def at(size: int, *shape: int) -> Any:
        return library.tensor(rng.integers(0, size, shape))

    return [a.detach().double().numpy() for a in case(library, x, at)]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_sums_are_torchs(monkeypatch: pytest.MonkeyPatch, case: Callable[..., list[Any]], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    used = []
    inner = gathers._add
    monkeypatch.setattr(gathers, "_add", lambda *args: (used.append(1), inner(*args)))
    close = 1e-10 if dtype == "float64" else 1e-4
    for one, other in zip(answers(rg, case, dtype), answers(torch, case, dtype), strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close)
    assert bool(used) is machine.is_available()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_half_precision_is_summed_in_single(
    monkeypatch: pytest.MonkeyPatch, case: Callable[..., list[Any]], dtype: str
) -> None:
    monkeypatch.setattr(nests, "NATIVE", 1)
    found = answers(rg, case, dtype)
    monkeypatch.setattr(nests, "NATIVE", 1 << 40)
    for one, other in zip(found, answers(rg, case, dtype), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("case", CASES)
def test_threads_add_to_the_same_bits(monkeypatch: pytest.MonkeyPatch, case: Callable[..., list[Any]]) -> None:
    monkeypatch.setattr(nests, "NATIVE", 1)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    made = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(nests, "get_num_threads", lambda threads=threads: threads)
        made.append(answers(rg, case))
    for other in made[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(made[0], other, strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("wrong", [-41, 40, 1 << 40])
def test_a_wrong_index_is_torchs_error_and_nothing_is_written(wrong: int) -> None:
    torch = pytest.importorskip("torch")
    for call in (
        lambda m, x, at, v: x.index_add(0, at, v),
        lambda m, x, at, v: x.index_put((at,), v, accumulate=True),
        lambda m, x, at, v: x.scatter_add(0, at[:, None].expand(-1, 50), v),
        lambda m, x, at, v: m.nn.functional.embedding(at, x),
    ):
        words = []
        for library in (rg, torch):
            at = library.arange(1000) % 40
            at[77] = wrong
            x = library.zeros(40, 50)
            with pytest.raises((IndexError, RuntimeError)) as error:
                call(library, x, at, library.ones(1000, 50))
            assert not x.any()
            words.append((error.type, str(error.value).split("\n")[0]))
        assert words[0] == words[1]


def test_sums_of_large_tables() -> None:
    """Sizes at which kernels run by themselves, against NumPy in float64."""
    rng = np.random.default_rng(0)
    at, values = rng.integers(0, 1000, 3000), rng.normal(size=(3000, 65)).astype(np.float32)
    wanted = np.zeros((1000, 65))
    np.add.at(wanted, at, values.astype(np.float64))
    found = rg.zeros(1000, 65).index_add(0, rg.tensor(at), rg.tensor(values))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)
    weight = rg.zeros(1000, 65, requires_grad=True)
    F.embedding(rg.tensor(at), weight).backward(rg.tensor(values))
    np.testing.assert_allclose(weight.grad.numpy(), wanted, rtol=1e-5, atol=1e-5)
    turned = rg.zeros(65, 1000).index_add(1, rg.tensor(at), rg.tensor(values).t())
    np.testing.assert_allclose(turned.numpy(), wanted.T, rtol=1e-5, atol=1e-5)
