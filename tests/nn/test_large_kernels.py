"""Large arrays: gelu by blocks, norms of long rows, and convolution of each channel place of the kernel by place."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.special

import retrograd as rg
import retrograd.nn.functional as F  # noqa: N812 - torch's name
from retrograd._core import kernels, parallel
from retrograd._ops import convolution_depthwise as depthwise

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
@pytest.mark.parametrize("count", [1, 3, kernels.LARGE - 1, kernels.LARGE, kernels.BLOCK + 1, parallel.WIDE + 5])
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
    for border in (parallel.BLOCK, parallel.WIDE, x.size - kernels.LARGE):
        near = slice(border - kernels.LARGE, border + kernels.LARGE)
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
        assert rg.equal(got, F.gelu(small.float(), approximate=approximate).to(dtype))
    assert F.gelu(rg.zeros(0, 3), approximate=approximate).shape == (0, 3)


def test_gelu_without_quick_powers_of_two(monkeypatch) -> None:
    """Processors without AVX-512 take `exp`: the scale of the argument is then 1."""
    monkeypatch.setattr(np.lib.introspect, "opt_func_info", lambda **_: {"exp2": {"ff": {"current": "baseline(SSE2)"}}})
    assert kernels._quicker_power() == ("exp", 1.0)
    monkeypatch.setattr(np.lib.introspect, "opt_func_info", lambda **_: {})
    assert kernels._quicker_power() == ("exp", 1.0)


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


def test_numpys_buffers_are_given_back() -> None:
    before = 4096
    usual = np.setbufsize(before)
    F.layer_norm(rg.randn(1024, 1024), (1024,))
    assert np.getbufsize() == before

    def fails() -> None:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        parallel.without_buffers(fails)()
    assert np.getbufsize() == before
    np.setbufsize(usual)
    assert usual == 8192  # NumPy's: nobody else has left another
    seen: list[int] = []
    parallel.over_blocks(lambda k, _: seen.append(np.getbufsize()), 50, 1, True)
    assert set(seen) == {usual}


# ---- convolution of each channel ----
CONVOLUTIONS = [
    ((2, 3, 56, 57), (3, 3), {"padding": 1}),
    ((3, 2, 41, 60), (3, 5), {"stride": 2, "padding": 1}),
    ((2, 3, 64, 64), (3, 3), {"stride": 2}),
    ((1, 2, 70, 70), (3, 3), {"padding": 2, "dilation": 2}),
    ((5, 4, 33, 40), (5, 5), {"stride": 3, "padding": 2}),
    ((4, 3, 30, 40), (1, 1), {"stride": 2}),
    ((2, 2, 20, 21), (2, 3), {"stride": (3, 1), "padding": (5, 0), "dilation": (1, 3)}),
    ((2, 2, 5000), (9,), {"padding": 4}),
    ((2, 2, 5000), (4,), {"stride": 3, "padding": 5, "dilation": 2}),
    ((2, 3, 14, 15, 16), (3, 3, 3), {"padding": 1}),
    ((2, 3, 15, 16, 17), (3, 2, 3), {"stride": 2, "padding": 1}),
    ((7, 3, 3, 3), (3, 3), {}),
]


def convolved(shape, kernel, options, dtype, monkeypatch, worth) -> list[np.ndarray]:
    """Return a convolution and its gradients, and whether it was one for each channel that was asked."""
    monkeypatch.setattr(depthwise, "WORTH", worth)
    monkeypatch.setattr(depthwise, "PATCHES", worth)
    rng = np.random.default_rng(0)
    channels = shape[1]
    arrays = [rng.normal(size=s) for s in (shape, (channels, 1, *kernel), (channels,))]
    x, weight, bias = (rg.tensor(a, dtype=dtype, requires_grad=True) for a in arrays)
    out = getattr(F, f"conv{len(kernel)}d")(x, weight, bias, groups=channels, **options)
    g = rg.tensor(rng.normal(size=out.shape), dtype=dtype)
    return [a.detach().double().numpy() for a in (out, *rg.autograd.grad(out, (x, weight, bias), g))]


@pytest.mark.parametrize("block", [1 << 16, 500])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS)
def test_each_channel_with_a_kernel_of_its_own(monkeypatch, shape, kernel, options, block) -> None:
    """The same as with patches, whether channels share a stretch of memory or are cut into blocks."""
    wanted = convolved(shape, kernel, options, rg.float64, monkeypatch, 1 << 40)
    monkeypatch.setattr(parallel, "BLOCK", block)
    monkeypatch.setattr(parallel, "WIDE", 1000)
    used = []
    for name in ("convolve", "convolve_input", "convolve_weight"):
        inner = getattr(depthwise, name)
        monkeypatch.setattr(depthwise, name, lambda *args, name=name, inner=inner: (used.append(name), inner(*args))[1])
    monkeypatch.setattr("retrograd._ops.convolution_kernels.KEPT", 0)
    got = convolved(shape, kernel, options, rg.float64, monkeypatch, 1)
    assert set(used) == {"convolve", "convolve_input", "convolve_weight"}
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [rg.float32, rg.float16, rg.bfloat16])
def test_each_channel_in_other_dtypes(monkeypatch, dtype) -> None:
    case = ((3, 4, 40, 40), (3, 3), {"padding": 1})
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == rg.float32 else {"rtol": 2e-2, "atol": 5e-2}
    wanted = convolved(*case, dtype, monkeypatch, 1 << 40)
    for one, other in zip(convolved(*case, dtype, monkeypatch, 1), wanted, strict=True):
        np.testing.assert_allclose(one, other, **close)


def test_each_channel_of_a_turned_image(monkeypatch) -> None:
    monkeypatch.setattr(depthwise, "WORTH", 1)
    monkeypatch.setattr(depthwise, "PATCHES", 1)
    x, weight = rg.randn(2, 40, 30, 3).permute(0, 3, 2, 1), rg.randn(3, 1, 3, 3)
    assert rg.equal(F.conv2d(x, weight, groups=3), F.conv2d(x.contiguous(), weight, groups=3))


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "output_padding": 1}, {"stride": 3, "padding": 2, "dilation": 2}]
)
def test_transposed_convolution_of_each_channel(monkeypatch, options) -> None:
    x, weight = (rg.randn(s, dtype=rg.float64, requires_grad=True) for s in ((2, 3, 20, 21), (3, 1, 3, 3)))
    made = []
    for worth in (1 << 40, 1):
        monkeypatch.setattr(depthwise, "WORTH", worth)
        monkeypatch.setattr(depthwise, "PATCHES", worth)
        out = F.conv_transpose2d(x, weight, groups=3, **options)
        made.append([out, *rg.autograd.grad(out.sin().sum(), (x, weight))])
    for one, other in zip(*made, strict=True):
        assert rg.allclose(one, other)


def test_inputs_that_no_place_of_the_kernel_meets(monkeypatch) -> None:
    monkeypatch.setattr(depthwise, "WORTH", 1)
    x, weight = rg.randn(2, 3, 14, 14, requires_grad=True), rg.randn(3, 1, 3, 3)
    out = F.conv2d(x, weight, groups=3, stride=3)  # of the last two rows and columns nothing is read
    g = rg.ones_like(out)
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 7, dtype))
    (found,) = rg.autograd.grad(out, x, g)
    assert not found[:, :, 12:].any()
    assert not found[..., 12:].any()


def test_each_channel_in_two_threads_of_the_user(monkeypatch) -> None:
    """What a thread keeps for one use is its own."""
    monkeypatch.setattr(depthwise, "WORTH", 1)
    monkeypatch.setattr(depthwise, "PATCHES", 1)
    x, weight = rg.randn(4, 6, 60, 60), rg.randn(6, 1, 3, 3)
    wanted = F.conv2d(x, weight, groups=6)
    agree = []

    def repeat() -> None:
        agree.extend(rg.equal(F.conv2d(x, weight, groups=6), wanted) for _ in range(20))

    threads = [threading.Thread(target=repeat) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agree == [True] * 60
