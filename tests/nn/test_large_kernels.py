"""Large arrays: gelu by blocks, and norms of long rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import retrograd as rg
import retrograd.nn.functional as F  # noqa: N812 - torch's name
from retrograd import _thresholds
from retrograd._core import parallel

MODES = ["none", "tanh"]


# ---- gelu ----
def gelu_in_float64(x: np.ndarray, approximate: str) -> tuple[np.ndarray, np.ndarray]:
    """Return gelu and its slope."""
    x = x.astype(np.float64)
    if approximate == "none":
        below = scipy.special.ndtr(x)
        return x * below, below + x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    root, cubic = np.sqrt(2 / np.pi), 0.044715
    below = scipy.special.expit(2 * root * (x + cubic * x**3))
    return x * below, below + x * below * (1 - below) * 2 * root * (1 + 3 * cubic * x * x)


def gelu_and_slope(x: np.ndarray, approximate: str) -> tuple[np.ndarray, np.ndarray]:
    tensor = rg.tensor(x, requires_grad=True)
    out = F.gelu(tensor, approximate=approximate)
    (slope,) = rg.autograd.grad(out, tensor, rg.ones_like(out))
    return out.detach().numpy(), slope.numpy()


@pytest.mark.parametrize("approximate", MODES)
@pytest.mark.parametrize(
    "count", [1, 3, _thresholds.LARGE - 1, _thresholds.LARGE, _thresholds.KERNEL_BLOCK + 1, parallel.WIDE + 5]
)
def test_gelu_is_exact_at_every_size(approximate, count) -> None:
    x = np.random.default_rng(0).uniform(-9, 9, count).astype(np.float32)
    wanted = gelu_in_float64(x, approximate)
    bounds = (1.5e-7, 3e-7) if approximate == "none" else (1.5e-7, 2e-6)
    for got, value, bound in zip(gelu_and_slope(x, approximate), wanted, bounds, strict=True):
        assert got.dtype == np.float32
        assert (np.abs(got - value) <= bound + 2e-7 * np.abs(value)).all()


@pytest.mark.parametrize("approximate", MODES)
def test_gelu_at_the_borders_of_blocks(approximate) -> None:
    x = np.random.default_rng(1).normal(size=2 * parallel.WIDE + 3).astype(np.float32) * 3
    whole = gelu_and_slope(x, approximate)
    for border in (parallel.BLOCK, parallel.WIDE, x.size - _thresholds.LARGE):
        near = slice(border - _thresholds.LARGE, border + _thresholds.LARGE)
        for got, alone in zip(whole, gelu_and_slope(x[near], approximate), strict=True):
            np.testing.assert_allclose(
                got[near], alone, rtol=2e-7, atol=2e-7
            )  # the last block is short: another formula


@pytest.mark.parametrize("approximate", MODES)
def test_gelu_of_float64(approximate) -> None:
    x = np.linspace(-9, 9, 100_001)
    for got, wanted in zip(gelu_and_slope(x, approximate), gelu_in_float64(x, approximate), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-15, atol=4e-15 if approximate == "none" else 2e-14)


@pytest.mark.parametrize("approximate", MODES)
def test_gelu_of_other_layouts_and_dtypes(approximate) -> None:
    x = rg.tensor(np.random.default_rng(2).normal(size=(300, 200)).astype(np.float32))
    whole = F.gelu(x, approximate=approximate)
    assert rg.allclose(F.gelu(x.t(), approximate=approximate), whole.t(), atol=1e-6)
    assert rg.allclose(F.gelu(x[::2, 1::3], approximate=approximate), whole[::2, 1::3], atol=1e-6)
    for dtype in (rg.float16, rg.bfloat16):
        small = x.to(dtype)
        got = F.gelu(small, approximate=approximate)
        assert got.dtype == dtype
        rounded = F.gelu(small.float(), approximate=approximate).to(
            dtype
        )  # kernels of half precision: 0.55 units, not 0.5
        rg.testing.assert_close(got, rounded, rtol=rg.finfo(dtype).eps, atol=rg.finfo(dtype).smallest_normal * 2**-7)
        assert (got != rounded).float().mean() < 0.05
    assert F.gelu(rg.zeros(0, 3), approximate=approximate).shape == (0, 3)


# ---- norms ----
def normalised(x: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    x = x.astype(np.float64)
    away = x - x.mean(axis, keepdims=True)
    return away / np.sqrt((away * away).mean(axis, keepdims=True) + 1e-5)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1000.0])
@pytest.mark.parametrize(
    ("count", "width"), [(1, 513), (31, 512), (33, 700), (64, 1024), (130, 1000), (700, 1024), (3, 70_000)]
)
def test_layer_norm_of_long_rows(count, width, offset) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(count, width)) + offset).astype(np.float32)
    weight, bias, g = rng.normal(size=width), rng.normal(size=width), rng.normal(size=(count, width))
    wanted = []
    for dtype in (rg.float64, rg.float32):
        arrays = [rg.tensor(a, dtype=dtype, requires_grad=True) for a in (x, weight, bias)]
        out = F.layer_norm(arrays[0], (width,), *arrays[1:])
        wanted.append([out.detach(), *rg.autograd.grad(out, arrays, rg.tensor(g, dtype=dtype))])
    np.testing.assert_allclose(wanted[0][0].numpy(), normalised(x, (1,)) * weight + bias, atol=1e-9)
    for exact, got in zip(*wanted, strict=True):
        np.testing.assert_allclose(
            got.numpy(), exact.numpy(), rtol=1e-4, atol=3e-5 * max(1.0, exact.abs().max().item())
        )


@pytest.mark.parametrize("shape", [(1, 4, 40, 50), (3, 8, 23, 29), (20, 32, 32, 32), (2, 4, 300, 300)])
@pytest.mark.parametrize("norm", ["group", "batch", "instance"])
def test_norms_of_large_planes(norm, shape) -> None:
    x = (np.random.default_rng(0).normal(size=shape) * 2 + 1).astype(np.float32)
    tensor = rg.tensor(x)
    if norm == "group":
        apart = x.reshape(shape[0], 4, shape[1] // 4, *shape[2:])
        got, wanted = F.group_norm(tensor, 4), normalised(apart, (2, 3, 4)).reshape(shape)
    elif norm == "batch":
        got, wanted = F.batch_norm(tensor, None, None, training=True), normalised(x, (0, 2, 3))
    else:
        got, wanted = F.instance_norm(tensor), normalised(x, (2, 3))
    np.testing.assert_allclose(got.numpy(), wanted, atol=2e-6)


def test_norms_of_other_layouts() -> None:
    x = rg.randn(1024, 96).t()
    dense = x.contiguous()
    assert rg.equal(F.layer_norm(x, (1024,)), F.layer_norm(dense, (1024,)))
    half = dense.to(rg.bfloat16)
    assert rg.equal(F.layer_norm(half, (1024,)), F.layer_norm(half.float(), (1024,)).to(rg.bfloat16))
    assert F.layer_norm(rg.zeros(0, 1024), (1024,)).shape == (0, 1024)
