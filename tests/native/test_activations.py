"""Activations of large arrays: kernels made from their formulas, with their gradients, against torch and against small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

COUNT = 3 * (1 << 14) + 5  # a few blocks, and a part of one
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.0, -3.0, 6.0, 1.0, -1.0, 0.5, -0.5, 20.0, 21.0, 88.0, 100.0, -100.0, 1e-40]

ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "silu": lambda F, x: F.silu(x),
    "mish": lambda F, x: F.mish(x),
    "gelu": lambda F, x: F.gelu(x),
    "gelu by tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "elu": lambda F, x: F.elu(x, 1.3),
    "selu": lambda F, x: F.selu(x),
    "celu": lambda F, x: F.celu(x, 0.7),
    "softplus": lambda F, x: F.softplus(x),
    "softplus with a low threshold": lambda F, x: F.softplus(x, 2.0, 1.5),
    "logsigmoid": lambda F, x: F.logsigmoid(x),
    "leaky_relu": lambda F, x: F.leaky_relu(x),
    "leaky_relu with a slope beyond 1": lambda F, x: F.leaky_relu(x, 1.5),
    "relu": lambda F, x: F.relu(x),
    "relu6": lambda F, x: F.relu6(x),
    "hardsigmoid": lambda F, x: F.hardsigmoid(x),
    "hardswish": lambda F, x: F.hardswish(x),
    "hardtanh": lambda F, x: F.hardtanh(x, -0.5, 1.0),
    "softshrink": lambda F, x: F.softshrink(x, 0.5),
    "hardshrink": lambda F, x: F.hardshrink(x, 0.5),
    "threshold": lambda F, x: F.threshold(x, 0.5, -3.0),
    "tanhshrink": lambda F, x: F.tanhshrink(x),
    "softsign": lambda F, x: F.softsign(x),
    "tanh": lambda F, x: x.tanh(),
    "sigmoid": lambda F, x: x.sigmoid(),
}
# Half precision rounds once, and so does torch; a sum that cancels may differ by a unit of the format.
TOLERANCES = {"float32": (2e-6, 1e-6), "float64": (1e-14, 1e-15), "bfloat16": (1e-2, 1e-3), "float16": (2e-3, 1e-4)}


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def numbers(dtype: str, special: bool = True) -> np.ndarray:
    """Draw normal numbers, with special ones at both ends."""
    drawn = np.random.default_rng(1).standard_normal(COUNT) * 3
    if special:
        drawn[: len(SPECIAL)] = drawn[-len(SPECIAL) :] = SPECIAL
    return drawn if dtype == "float64" else drawn.astype(np.float32)


def assert_alike(got: Any, wanted: Any, dtype: str) -> None:
    """Compare a tensor of ours with one of torch."""
    rtol, atol = TOLERANCES[dtype]
    np.testing.assert_allclose(got.double().numpy(), wanted.double().numpy(), rtol=rtol, atol=atol)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_gradients_of_large_arrays_are_those_of_torch(name: str, dtype: str, torch: Any) -> None:
    x, g = numbers(dtype), numbers(dtype, special=False)[::-1].copy()
    results = []
    for library in (rg, torch):
        kind = getattr(library, dtype)
        leaf = library.tensor(x).to(kind).requires_grad_()
        out = ACTIVATIONS[name](library.nn.functional, leaf)
        out.backward(library.tensor(g).to(kind))
        results.append((out.detach(), leaf.grad))
    (ours, our_grad), (theirs, their_grad) = results
    assert ours.dtype == getattr(rg, dtype) and our_grad.dtype == getattr(rg, dtype)
    assert_alike(ours, theirs, dtype)
    # Where the slope is 0 / 0 in one of torch's formulas and 0 in another, depending on the length of its vectors, it is no witness.
    finite = slice(len(SPECIAL), -len(SPECIAL))
    assert_alike(our_grad[finite], their_grad[finite], dtype)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_large_arrays_give_what_small_ones_do(name: str) -> None:
    x, g = numbers("float32"), numbers("float32", special=False)
    leaf = rg.tensor(x, requires_grad=True)
    out = ACTIVATIONS[name](rg.nn.functional, leaf)
    out.backward(rg.tensor(g))
    for part in (slice(0, 1000), slice(COUNT - 999, COUNT)):
        few = rg.tensor(x[part], requires_grad=True)
        small = ACTIVATIONS[name](rg.nn.functional, few)
        small.backward(rg.tensor(g[part]))
        np.testing.assert_allclose(out.detach().numpy()[part], small.detach().numpy(), rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(leaf.grad.numpy()[part], few.grad.numpy(), rtol=4e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["silu", "gelu", "elu", "softplus", "leaky_relu", "hardswish", "threshold"])
def test_layout_does_not_matter(name: str) -> None:
    rows = np.random.default_rng(2).standard_normal((150, 260)).astype(np.float32)
    g = np.random.default_rng(3).standard_normal(rows.shape).astype(np.float32)

    def both(x: Any, g: Any) -> tuple[np.ndarray, np.ndarray]:
        leaf = x.detach().requires_grad_()
        out = ACTIVATIONS[name](rg.nn.functional, leaf)
        out.backward(g)
        return out.detach().numpy(), leaf.grad.numpy()

    wanted = both(rg.tensor(rows), rg.tensor(g))
    for turned in (both(rg.tensor(rows.T.copy()).t(), rg.tensor(g)), both(rg.tensor(rows.T.copy()).t(), rg.tensor(g.T.copy()).t())):
        for got, expected in zip(turned, wanted, strict=True):
            np.testing.assert_array_equal(got, expected)
    wide = rg.tensor(np.repeat(rows, 2, 1))[:, ::2]
    for got, expected in zip(both(wide, rg.tensor(g)), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(dim: int, dtype: str, torch: Any) -> None:
    x = np.random.default_rng(4).standard_normal((64, 46, 32))
    g = np.random.default_rng(5).standard_normal(x.shape)
    results = []
    for library in (rg, torch):
        leaf = library.tensor(x).to(getattr(library, dtype)).requires_grad_()
        out = library.nn.functional.glu(leaf, dim)
        out.backward(library.tensor(g[tuple(slice(n) for n in out.shape)]).to(out.dtype))
        results.append((out.detach(), leaf.grad))
    for got, wanted in zip(*results, strict=True):
        assert_alike(got, wanted, dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_prelu_with_a_slope_for_each_channel(dtype: str, torch: Any) -> None:
    x = np.random.default_rng(6).standard_normal((32, 5, 17, 9))
    results = []
    for library in (rg, torch):
        leaf = library.tensor(x).to(getattr(library, dtype)).requires_grad_()
        slopes = library.tensor([0.1, 0.25, -0.5, 0.0, 1.5]).to(leaf.dtype).requires_grad_()
        out = library.nn.functional.prelu(leaf, slopes)
        out.backward(library.ones_like(out))
        results.append((out.detach(), leaf.grad, slopes.grad))
    (ours, dx, dw), (theirs, their_dx, their_dw) = results
    assert_alike(ours, theirs, dtype)
    assert_alike(dx, their_dx, dtype)
    np.testing.assert_allclose(dw.double().numpy(), their_dw.double().numpy(), rtol=2e-2 if "16" in dtype else 1e-5)


def test_another_parameter_needs_no_other_kernel() -> None:
    from retrograd._ops.activations import leaky_relu

    x = rg.randn(COUNT)
    rg.nn.functional.leaky_relu(x, 0.1)
    before = len(leaky_relu.implementation.plans)
    for slope in (0.2, 0.3, 0.4):
        np.testing.assert_array_equal(
            rg.nn.functional.leaky_relu(x, slope).numpy(), np.where(x.numpy() > 0, x.numpy(), x.numpy() * np.float32(slope))
        )
    assert len(leaky_relu.implementation.plans) == before
