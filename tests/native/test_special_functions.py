"""Special functions of large tensors, which kernels compute: results and gradients are torch's, in any layout and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

NAMES = ("lgamma", "digamma", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "entr", "i0", "i0e", "i1", "i1e")
SIZE = (131, 127)  # of 16,637 numbers: no multiple of anything


def _numbers(name: str) -> np.ndarray:
    draw = np.random.default_rng(0)
    numbers = np.tanh(draw.normal(size=SIZE)) if name == "erfinv" else draw.normal(0, 4, SIZE)
    numbers[0, :8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0]
    return numbers


def _of(library: Any, name: str) -> Any:
    return getattr(library.special, {"lgamma": "gammaln"}.get(name, name))


def _near(found: Any, right: Any, rtol: float) -> None:
    np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=rtol, atol=rtol)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_results_and_gradients_are_those_of_torch(name: str, dtype: str) -> None:
    import torch

    numbers = _numbers(name).astype(dtype)
    ours, theirs = rg.tensor(numbers, requires_grad=True), torch.tensor(numbers, requires_grad=True)
    mine, his = _of(rg, name)(ours), _of(torch, name)(theirs)
    rtol = (
        2e-5 if dtype == "float32" else 1e-8
    )  # torch's own error: it is exact to the last place or two only in float64
    _near(mine.detach(), his.detach(), rtol)
    weight = np.random.default_rng(1).normal(size=SIZE).astype(dtype)
    (my_slope,) = rg.autograd.grad(mine, ours, rg.tensor(weight))
    (his_slope,) = torch.autograd.grad(his, theirs, torch.tensor(weight))
    rows = slice(1, None)  # beyond the special values, whose slopes are differences of infinities
    _near(my_slope[rows], his_slope[rows], 50 * rtol)


@pytest.mark.parametrize("name", NAMES)
def test_layouts_do_not_change_results(name: str) -> None:
    x = rg.tensor(_numbers(name), dtype=rg.float32)
    function = _of(rg, name)
    whole = function(x)
    for view in (lambda t: t.t(), lambda t: t[:, ::2], lambda t: t.flip(0), lambda t: t[3:4].expand(*SIZE)):
        np.testing.assert_array_equal(function(view(x)).numpy(), view(whole).numpy())


@pytest.mark.parametrize("name", NAMES)
def test_small_tensors_have_the_same_results(name: str) -> None:
    x = rg.tensor(_numbers(name), dtype=rg.float32)
    function = _of(rg, name)
    np.testing.assert_allclose(function(x)[:9].numpy(), function(x[:9]).numpy(), rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16])
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("erfcx", "log_ndtr")]
)  # torch has none of these
def test_half_precision_is_rounded_once(name: str, dtype: Any) -> None:
    x = rg.tensor(_numbers(name), dtype=dtype)
    function = _of(rg, name)
    found = function(x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.float().numpy(), function(x.float()).to(dtype).float().numpy())


def test_lgamma_next_to_its_zeros() -> None:
    """To a unit in the last place, where its parts cancel but for seven digits; the values are mpmath's."""
    zeros = np.array([-2.4570248, -2.7476826, -3.143581], np.float32)
    right = [-1.1287842529645816e-07, -1.4418167987778365e-07, -1.9605461541614247e-07]
    found = rg.special.gammaln(rg.tensor(np.repeat(zeros, 4096))).numpy().reshape(3, -1)
    assert (np.abs(found - np.array(right)[:, None]) <= 1.5e-14).all()
