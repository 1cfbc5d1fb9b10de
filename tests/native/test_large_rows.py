"""Softmax, normalisations and variances of large arrays, which kernels compute: values and gradients against torch in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

BOUNDS = {"float32": 4e-6, "float64": 1e-13, "bfloat16": 2e-2, "float16": 3e-3}


def laid_out(library: Any, array: np.ndarray, layout: str) -> Any:
    """Return the numbers of an array as a Tensor in memory of another order."""
    tensor = library.tensor(array)
    if layout == "dense":
        return tensor
    if layout == "transposed":
        order = list(range(array.ndim))[::-1]
        return tensor.permute(*order).contiguous().permute(*order)
    if layout == "strided":
        room = library.zeros(*array.shape[:-1], 2 * array.shape[-1] + 1, dtype=tensor.dtype)
        room[..., 1::2] = tensor
        return room[..., 1::2]
    return tensor.contiguous(memory_format=library.channels_last)


def outcome(library: Any, call: Callable[..., Any], arrays: list[np.ndarray], dtype: str, layout: str) -> list[Any]:
    """Return results and gradients; the gradient that arrives is made of the sizes alone."""
    inputs = [
        laid_out(library, a, layout if k == 0 else "dense").to(getattr(library, dtype)) for k, a in enumerate(arrays)
    ]
    inputs = [t.detach().requires_grad_() for t in inputs]
    out = call(library, *inputs)
    steps = library.arange(out.numel(), dtype=library.float64).reshape(out.shape)
    g = library.cos(steps * 0.37).to(out.dtype)
    grads = library.autograd.grad(out, inputs, g)
    return [t.detach().to(library.float64).numpy() for t in (out, *grads)]


def assert_as_torch(call: Callable[..., Any], arrays: list[np.ndarray], dtype: str, layout: str = "dense") -> None:
    torch = pytest.importorskip("torch")
    arrays = [laid_out(rg, a, "dense").to(getattr(rg, dtype)).to(rg.float64).numpy() for a in arrays]
    got = outcome(rg, call, arrays, dtype, layout)
    wanted = outcome(torch, call, arrays, "float64", "dense")
    for number, (one, value) in enumerate(zip(got, wanted, strict=True)):
        assert one.shape == value.shape
        scale = np.abs(value).max() + 1e-30
        np.testing.assert_allclose(one / scale, value / scale, rtol=0, atol=BOUNDS[dtype], err_msg=f"number {number}")


def normal(*shape: int, mean: float = 0.0) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape) + mean


DTYPES = ["float32", "float64", "bfloat16", "float16"]
LAYOUTS = ["dense", "transposed", "strided"]


# ---- softmax ----
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "dim"), [((131, 257), 1), ((131, 257), 0), ((7, 61, 67), 1), ((20011,), 0), ((9001, 3), 1)]
)
def test_softmax(name, dtype, layout, shape, dim) -> None:
    assert_as_torch(
        lambda library, x: getattr(library.nn.functional, name)(x, dim), [normal(*shape) * 4], dtype, layout
    )


@pytest.mark.oracle
def test_softmax_of_rows_with_infinities() -> None:
    torch = pytest.importorskip("torch")
    x = normal(9, 2500).astype(np.float32)
    x[1, 7], x[2, 8], x[3], x[4, ::2], x[5] = np.inf, np.nan, -np.inf, -np.inf, 3e38
    for name in ("softmax", "log_softmax"):
        got = getattr(rg.nn.functional, name)(rg.tensor(x), 1).numpy()
        wanted = getattr(torch.nn.functional, name)(torch.tensor(x), 1).numpy()
        np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_many_rows_is_that_of_each_row(dim) -> None:
    x = normal(300, 300).astype(np.float32)
    whole = rg.softmax(rg.tensor(x), dim).numpy()
    powers = np.exp(x.astype(np.float64) - x.max(dim, keepdims=True))
    np.testing.assert_allclose(whole, powers / powers.sum(dim, keepdims=True), rtol=2e-6)
