"""Activations of large arrays: kernels made from their formulas, with their gradients, against torch and against small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

COUNT = 3 * (1 << 14) + 5  # a few blocks, and a part of one
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    3.0,
    -3.0,
    6.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    20.0,
    21.0,
    88.0,
    100.0,
    -100.0,
    1e-40,
]

ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "silu": lambda functional, x: functional.silu(x),
    "mish": lambda functional, x: functional.mish(x),
    "gelu": lambda functional, x: functional.gelu(x),
    "gelu by tanh": lambda functional, x: functional.gelu(x, approximate="tanh"),
    "elu": lambda functional, x: functional.elu(x, 1.3),
    "selu": lambda functional, x: functional.selu(x),
    "celu": lambda functional, x: functional.celu(x, 0.7),
    "softplus": lambda functional, x: functional.softplus(x),
    "softplus with a low threshold": lambda functional, x: functional.softplus(x, 2.0, 1.5),
    "logsigmoid": lambda functional, x: functional.logsigmoid(x),
    "leaky_relu": lambda functional, x: functional.leaky_relu(x),
    "leaky_relu with a slope beyond 1": lambda functional, x: functional.leaky_relu(x, 1.5),
    "relu": lambda functional, x: functional.relu(x),
    "relu6": lambda functional, x: functional.relu6(x),
    "hardsigmoid": lambda functional, x: functional.hardsigmoid(x),
    "hardswish": lambda functional, x: functional.hardswish(x),
    "hardtanh": lambda functional, x: functional.hardtanh(x, -0.5, 1.0),
    "softshrink": lambda functional, x: functional.softshrink(x, 0.5),
    "hardshrink": lambda functional, x: functional.hardshrink(x, 0.5),
    "threshold": lambda functional, x: functional.threshold(x, 0.5, -3.0),
    "tanhshrink": lambda functional, x: functional.tanhshrink(x),
    "softsign": lambda functional, x: functional.softsign(x),
    "tanh": lambda functional, x: x.tanh(),
    "sigmoid": lambda functional, x: x.sigmoid(),
}
# relative and absolute: gradients of half precision come from results that have been rounded
TOLERANCES = {"float32": (1e-5, 1e-5), "float64": (1e-13, 1e-13), "bfloat16": (1e-2, 0.1), "float16": (1e-3, 0.01)}
ROUNDED_BY_TORCH = ("celu", "hardsigmoid")  # a number in float32, also for float64


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def numbers(dtype: str, special: bool = True) -> np.ndarray:
    """Draw normal numbers, with special ones at both ends."""
    drawn = np.random.default_rng(1).standard_normal(COUNT) * 3
    if special:
        drawn[: len(SPECIAL)] = drawn[-len(SPECIAL) :] = SPECIAL
    return drawn if dtype == "float64" else drawn.astype(np.float32)


def run(function: Callable[[Any, Any], Any], library: Any, x: Any, g: Any, *more: Any) -> list[Any]:
    """Return what a function gives, and the gradients of its inputs."""
    leaves = [a.detach().requires_grad_() for a in (x, *more)]
    out = function(library.nn.functional, *leaves)
    out.backward(g[tuple(slice(n) for n in out.shape)])
    return [out.detach(), *[leaf.grad for leaf in leaves]]


def assert_close_to_torch(
    torch: Any, dtype: str, function: Callable[..., Any], *arrays: np.ndarray, rtol: float = 0
) -> None:
    """Compare values and gradients with those that torch computes in float64 from the same numbers."""
    ours = [rg.tensor(a).to(getattr(rg, dtype)) for a in arrays]
    exact = [torch.tensor(a.double().numpy()) for a in ours]
    for got, wanted in zip(run(function, rg, *ours), run(function, torch, *exact), strict=True):
        assert got.dtype == getattr(rg, dtype)
        relative, absolute = TOLERANCES[dtype]
        np.testing.assert_allclose(
            got.double().numpy(), wanted.numpy(), rtol=max(rtol, relative), atol=max(rtol, absolute)
        )


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_gradients_of_large_arrays_are_those_of_torch(name: str, dtype: str, torch: Any) -> None:
    x, g = numbers(dtype, special=False), numbers(dtype, special=False)[::-1].copy()
    assert_close_to_torch(torch, dtype, ACTIVATIONS[name], x, g, rtol=1e-6 if name in ROUNDED_BY_TORCH else 0)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_special_values_are_those_of_torch(name: str, torch: Any) -> None:
    # one by one: of NaN and infinity, torch's vectors give other gradients than its numbers
    ours = rg.tensor(numbers("float32"))
    results = run(ACTIVATIONS[name], rg, ours, rg.ones_like(ours))
    for at, number in enumerate(SPECIAL):
        wanted = run(ACTIVATIONS[name], torch, torch.tensor([number], dtype=torch.float32), torch.ones(1))
        for mine, theirs in zip(results, wanted, strict=True):
            for got in (mine[at], mine[at - len(SPECIAL)]):
                np.testing.assert_allclose(got.item(), theirs.item(), rtol=4e-6, atol=1e-6)


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
        np.testing.assert_allclose(leaf.grad.numpy()[part], few.grad.numpy(), rtol=1e-5, atol=1e-5)


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
    for turned in (
        both(rg.tensor(rows.T.copy()).t(), rg.tensor(g)),
        both(rg.tensor(rows.T.copy()).t(), rg.tensor(g.T.copy()).t()),
    ):
        for got, expected in zip(turned, wanted, strict=True):
            np.testing.assert_array_equal(got, expected)
    wide = rg.tensor(np.repeat(rows, 2, 1))[:, ::2]
    for got, expected in zip(both(wide, rg.tensor(g)), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(dim: int, dtype: str, torch: Any) -> None:
    x, g = np.random.default_rng(4).standard_normal((2, 64, 46, 32))
    assert_close_to_torch(torch, dtype, lambda functional, x: functional.glu(x, dim), x, g)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])  # in half precision, torch rounds before it sums
def test_prelu_with_a_slope_for_each_channel(dtype: str, torch: Any) -> None:
    x, g = np.random.default_rng(6).standard_normal((2, 32, 5, 17, 9))
    slopes = np.array([0.1, 0.25, -0.5, 0.0, 1.5])
    assert_close_to_torch(torch, dtype, lambda functional, x, w: functional.prelu(x, w), x, np.abs(g), slopes)


def test_another_parameter_needs_no_other_kernel() -> None:
    from retrograd._ops.activations import leaky_relu

    x = rg.randn(COUNT)
    rg.nn.functional.leaky_relu(x, 0.1)
    before = len(leaky_relu.implementation.plans)
    for slope in (0.2, 0.3, 0.4):
        np.testing.assert_array_equal(
            rg.nn.functional.leaky_relu(x, slope).numpy(),
            np.where(x.numpy() > 0, x.numpy(), x.numpy() * np.float32(slope)),
        )
    assert len(leaky_relu.implementation.plans) == before
