"""Convolutions by kernels that call BLAS: patches, products and threads in one call."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F  # noqa: N812 - torch's name
from retrograd import _thresholds
from retrograd._native import blas, direct, machine, nests, patches, tiles

CONVOLUTIONS = [
    ((5, 3, 12, 13), (4, 3, 3, 3), {}),
    ((5, 3, 12, 13), (4, 3, 3, 3), {"padding": 1}),
    ((3, 4, 28, 28), (16, 4, 5, 5), {"padding": 2}),
    ((3, 6, 14, 14), (16, 6, 5, 5), {}),
    ((4, 6, 15, 16), (4, 3, 3, 2), {"groups": 2, "stride": 2, "padding": 1}),
    ((2, 3, 20, 21), (5, 3, 2, 3), {"stride": (3, 1), "padding": (5, 0), "dilation": (1, 3)}),
    ((3, 2, 9, 70), (3, 2, 3, 3), {"padding": 1}),  # rows that are long
    ((3, 2, 9, 70), (3, 2, 3, 13), {"padding": 6}),  # and kernels
    ((3, 2, 9, 71), (3, 2, 3, 3), {"stride": 2}),
    ((2, 8, 33, 34), (32, 8, 3, 3), {"padding": 1}),  # products in several blocks
    ((2, 3, 500), (4, 3, 9), {"padding": 4}),
    ((2, 3, 500), (4, 3, 4), {"stride": 3, "padding": 5, "dilation": 2}),
    ((2, 3, 7, 8, 9), (4, 3, 3, 2, 3), {"padding": 1}),
    ((2, 4, 7, 8, 9), (4, 2, 3, 2, 3), {"groups": 2, "stride": 2, "padding": 1}),
    ((1, 3, 9, 9), (2, 3, 3, 3), {}),
    ((4, 3, 9, 9), (2, 3, 3, 3), {"padding": 3}),  # images within zeros
    ((2, 3, 11, 12), (2, 3, 3, 3), {"stride": 4}),  # of which something is not read
]


def convolved(library, shape, kernel, options, dtype="float64") -> list[np.ndarray]:
    """Return a convolution and its gradients."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in (shape, kernel, kernel[:1])]
    x, weight, bias = (library.tensor(a, dtype=getattr(library, dtype), requires_grad=True) for a in arrays)
    out = getattr(library.nn.functional, f"conv{len(kernel) - 2}d")(x, weight, bias, **options)
    g = library.tensor(rng.normal(size=tuple(out.shape)), dtype=out.dtype)
    return [a.detach().numpy() for a in (out, *library.autograd.grad(out, (x, weight, bias), g))]


def all_by_kernels(monkeypatch) -> list[str]:
    """Let these kernels take everything; returns the list of those that will have been called."""
    monkeypatch.setattr(nests, "NATIVE", 1)
    monkeypatch.setattr(direct, "takes", lambda *_: False)
    used: list[str] = []
    for name in ("convolve", "convolve_weight", "convolve_input"):
        inner = getattr(patches, name)
        monkeypatch.setattr(patches, name, lambda *args, name=name, inner=inner: (used.append(name), inner(*args))[1])
    return used


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS)
def test_a_call_for_all_images(monkeypatch, shape, kernel, options, threads) -> None:
    """The same as NumPy with patches of a part of the images."""
    monkeypatch.setattr(nests, "NATIVE", 1 << 40)
    wanted = convolved(rg, shape, kernel, options)
    used = all_by_kernels(monkeypatch)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: threads)
    got = convolved(rg, shape, kernel, options)
    if machine.is_available() and blas.addresses():
        assert {"convolve", "convolve_weight"} <= set(used)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-11)


@pytest.mark.skipif(not machine.is_available() or not blas.addresses(), reason="llvmlite is not installed")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS)
def test_products_for_known_sizes(monkeypatch, shape, kernel, options, dtype, threads) -> None:
    """Whole numbers, of which products are exact, whatever makes them; nothing is written beside them."""
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.integers(-9, 9, s).astype(dtype) for s in (shape, kernel, kernel[:1]))

    def made() -> list[np.ndarray]:
        tensors = [rg.tensor(one, requires_grad=True) for one in (x, weight, bias)]
        out = getattr(F, f"conv{len(kernel) - 2}d")(*tensors, **options)
        g = rg.tensor(np.random.default_rng(1).integers(-9, 9, tuple(out.shape)).astype(dtype))
        return [a.detach().numpy() for a in (out, *rg.autograd.grad(out, tensors, g))]

    monkeypatch.setattr(nests, "NATIVE", 1 << 40)
    wanted = made()
    all_by_kernels(monkeypatch)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: threads)
    sizes: list[tuple[int, ...]] = []
    inner = tiles.cell
    monkeypatch.setattr(tiles, "cell", lambda *args: (sizes.append(args[:3]), inner(*args))[1])
    for one, other in zip(made(), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    rows, places = kernel[0] // options.get("groups", 1), wanted[0][0, 0].size
    assert bool(sizes) == (rows > 3 and rows * places * math.prod(kernel[1:]) <= blas.ALONE)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS[:8])
def test_as_torch(monkeypatch, shape, kernel, options, dtype) -> None:
    torch = pytest.importorskip("torch")
    all_by_kernels(monkeypatch)
    close = 1e-4 if dtype == "float32" else 1e-11
    wanted = convolved(torch, shape, kernel, options, dtype)
    for one, other in zip(convolved(rg, shape, kernel, options, dtype), wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


def test_an_infinity_spreads_no_further_than_its_windows(monkeypatch) -> None:
    """What runs over the end of a row is never added to the next."""
    all_by_kernels(monkeypatch)
    x = rg.zeros(2, 1, 10, 10, requires_grad=True)
    out = F.conv2d(x, rg.ones(1, 1, 3, 3), padding=1)
    g = rg.zeros(2, 1, 10, 10)
    g[0, 0, 4, 9] = float("inf")
    (found,) = rg.autograd.grad(out, x, g)
    assert found.isinf().nonzero().tolist() == [[0, 0, row, column] for row in (3, 4, 5) for column in (8, 9)]
    assert found.isfinite().sum() == 194


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "output_padding": 1}, {"stride": 3, "padding": 2, "dilation": 2}]
)
def test_transposed_convolutions(monkeypatch, options) -> None:
    x, weight = (rg.randn(s, dtype=rg.float64, requires_grad=True) for s in ((2, 3, 12, 11), (3, 4, 3, 3)))
    made = []
    for worth in (1 << 40, 1):
        monkeypatch.setattr(nests, "NATIVE", worth)
        out = F.conv_transpose2d(x, weight, **options)
        made.append([out, *rg.autograd.grad(out.sin().sum(), (x, weight))])
    for one, other in zip(*made, strict=True):
        assert rg.allclose(one, other)


def test_every_run_gives_the_same_bits(monkeypatch) -> None:
    """Threads take parts of the images as they come, and the sums of parts are added in their order."""
    all_by_kernels(monkeypatch)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: 3)
    case = (40, 3, 12, 12), (4, 3, 3, 3), {}, "float32"
    first = convolved(rg, *case)
    for _ in range(20):
        assert all(np.array_equal(a, b) for a, b in zip(first, convolved(rg, *case), strict=True))
