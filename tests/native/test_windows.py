"""Windows by kernels: convolution of each channel, and pooling."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F  # noqa: N812 - torch's name
from retrograd import _thresholds
from retrograd._native import machine, nests, pieces, windows
from retrograd._ops import pooling

# ---- pooling ----
POOLS = [
    ((2, 3, 56, 57), 2, {}),
    ((3, 2, 41, 60), 3, {"stride": 2, "padding": 1}),
    ((2, 3, 33, 30), 3, {"stride": 1, "padding": 1}),
    ((2, 3, 33, 30), (2, 3), {"stride": (3, 2), "padding": (1, 0), "ceil_mode": True}),
    ((1, 2, 40, 41), (4, 1), {"stride": (1, 5)}),
    ((1, 2, 64, 64), 8, {"stride": 4, "padding": 4}),
    ((3, 40, 40), 3, {"stride": 3, "ceil_mode": True}),
    ((2, 3, 1000), 3, {"stride": 2, "padding": 1}),
    ((2, 3, 1001), 5, {"ceil_mode": True}),
    ((2, 3, 14, 15, 16), 2, {}),
    ((2, 3, 15, 16, 17), 3, {"stride": 2, "padding": 1, "ceil_mode": True}),
    ((2, 5, 7, 7), 7, {}),
]
LARGEST = [
    *POOLS,
    ((2, 3, 40, 40), 3, {"dilation": 2, "padding": 1}),
    ((2, 2, 50, 50), 2, {"stride": 1, "dilation": (3, 1)}),
]
MEANS = [
    *POOLS,
    ((2, 3, 40, 40), 3, {"stride": 2, "padding": 1, "count_include_pad": False}),
    ((2, 3, 41, 41), 3, {"stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}),
    ((2, 3, 40, 40), 2, {"divisor_override": 3}),
]
PIECES = [  # which windows cut an array into
    ((5, 3, 28, 28), 2, {}),
    ((32, 16, 10, 10), 2, {}),
    ((7, 9, 9, 110), (3, 2), {}),
    ((2, 40, 12, 15), (1, 3), {"divisor_override": -7}),
    ((40, 5, 8, 6), (4, 1), {}),
    ((6, 30, 7, 7), 7, {}),
    ((4, 100, 64), 8, {"count_include_pad": False}),
    ((3, 3, 2, 490), (2, 5), {"ceil_mode": True}),
    ((2, 2, 4, 6, 8), 2, {}),  # along three axes
    ((1, 1, 2, 9000), (2, 3), {}),
]
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45)


def pooled(library, name, shape, kernel, options, dtype="float32", special=False):
    """Return a pooling, its indices if it has some, and the gradient of its input."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).round(1)  # with equals
    if special:
        x = rng.choice(SPECIAL, size=shape)
        x[..., : shape[-1] // 2] = -np.inf
    axes = len(kernel) if isinstance(kernel, tuple) else len(shape) - 2
    axes = 2 if shape == (3, 40, 40) else axes
    x = library.tensor(x, dtype=getattr(library, dtype), requires_grad=True)
    given = {"return_indices": True} if name == "max" else {}
    out = getattr(library.nn.functional, f"{name}_pool{axes}d")(x, kernel, **options, **given)
    out, more = out if name == "max" else (out, None)
    g = library.tensor(rng.normal(size=tuple(out.shape)), dtype=out.dtype)
    (dx,) = library.autograd.grad(out, x, g)
    return [a.detach().double().numpy() for a in (out, dx)] + ([] if more is None else [more.numpy()])


def in_dtypes(cases: list[tuple], *others: str) -> list[tuple]:
    """Give all cases in float32, and the first few in other dtypes."""
    return [(*case, "float32") for case in cases] + [(*case, dtype) for case in cases[:4] for dtype in others]


@pytest.mark.oracle
@pytest.mark.parametrize(("shape", "kernel", "options", "dtype"), in_dtypes(LARGEST, "float64", "bfloat16", "float16"))
def test_largest_elements_as_torch_finds_them(monkeypatch, shape, kernel, options, dtype) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    wanted = pooled(torch, "max", shape, kernel, options, dtype)
    close = {"float64": 1e-12, "float32": 1e-5}.get(dtype, 5e-2)
    for one, other in zip(pooled(rg, "max", shape, kernel, options, dtype), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


@pytest.mark.oracle
@pytest.mark.parametrize(("shape", "kernel", "options"), LARGEST)
def test_largest_of_nan_and_infinities(monkeypatch, shape, kernel, options) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    wanted = pooled(torch, "max", shape, kernel, options, special=True)
    for one, other in zip(pooled(rg, "max", shape, kernel, options, special=True), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize(("shape", "kernel", "options", "dtype"), in_dtypes(MEANS, "float64", "bfloat16"))
def test_means_as_torch_finds_them(monkeypatch, shape, kernel, options, dtype) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    wanted = pooled(torch, "avg", shape, kernel, options, dtype)
    close = {"float64": 1e-12, "float32": 1e-5}.get(dtype, 5e-2)
    for one, other in zip(pooled(rg, "avg", shape, kernel, options, dtype), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


@pytest.mark.oracle
@pytest.mark.parametrize(("shape", "kernel", "options", "dtype"), in_dtypes(PIECES, "float64", "bfloat16", "float16"))
@pytest.mark.parametrize("special", [False, True])
def test_means_of_pieces_as_torch_finds_them(monkeypatch, shape, kernel, options, dtype, special) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    monkeypatch.setattr(pooling, "NATIVE", 1)
    wanted = pooled(torch, "avg", shape, kernel, options, dtype, special)
    close = {"float64": 1e-12, "float32": 1e-5}.get(dtype, 5e-2)
    for one, other in zip(pooled(rg, "avg", shape, kernel, options, dtype, special), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


@pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("rows", [1, 2, 255, 256, 257, 1000])
@pytest.mark.parametrize("last", [1, 5, 16, 47, 48, 49, 130])
def test_pieces_of_any_number(monkeypatch, rows, last) -> None:
    """Sums of whole numbers are exact, whatever stands around them in memory; nothing is written behind the last."""
    monkeypatch.setattr(nests, "get_num_threads", lambda: 3)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    rng = np.random.default_rng(0)
    x = rng.integers(-50, 50, (rows, 3 * 2 * last)).astype(np.float32).reshape(rows, 3, 2 * last)
    parted = x.reshape(rows, 3, last, 2)
    found = pieces.means(x.reshape(rows, 3, 2 * last), (3, 2), 2)
    np.testing.assert_array_equal(found[:, 0], parted.sum((1, 3)) / 2)
    g = parted.sum((1, 3))
    np.testing.assert_array_equal(
        pieces.shares(g, (3, 2), 4).reshape(parted.shape), np.broadcast_to(g[:, None, :, None] / 4, parted.shape)
    )


@pytest.mark.parametrize("case", [((4, 6, 50, 50), 3, {"stride": 2, "padding": 1}), ((9, 7, 22, 22), 2, {})])
def test_threads_pool_to_the_same_bits(monkeypatch, case) -> None:
    made = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(nests, "get_num_threads", lambda threads=threads: threads)
        monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
        made.append([*pooled(rg, "max", *case), *pooled(rg, "avg", *case)])
    for other in made[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(made[0], other, strict=True))


def test_pooling_of_a_turned_image() -> None:
    x = rg.randn(2, 60, 50, 3).permute(0, 3, 2, 1)
    assert rg.equal(F.max_pool2d(x, 3, 2), F.max_pool2d(x.contiguous(), 3, 2))
    assert rg.equal(F.avg_pool2d(x, 3, 2), F.avg_pool2d(x.contiguous(), 3, 2))


def test_pooling_of_nothing() -> None:
    assert F.max_pool2d(rg.zeros(0, 3, 200, 200), 2).shape == (0, 3, 100, 100)


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
    """Return a convolution and its gradients; `worth` is the size from which kernels work."""
    monkeypatch.setattr(nests, "NATIVE", worth)
    rng = np.random.default_rng(0)
    channels = shape[1]
    arrays = [rng.normal(size=s) for s in (shape, (channels, 1, *kernel), (channels,))]
    x, weight, bias = (rg.tensor(a, dtype=dtype, requires_grad=True) for a in arrays)
    out = getattr(F, f"conv{len(kernel)}d")(x, weight, bias, groups=channels, **options)
    g = rg.tensor(rng.normal(size=out.shape), dtype=dtype)
    return [a.detach().double().numpy() for a in (out, *rg.autograd.grad(out, (x, weight, bias), g))]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS)
def test_each_channel_with_a_kernel_of_its_own(monkeypatch, shape, kernel, options, threads) -> None:
    """The same as with patches."""
    wanted = convolved(shape, kernel, options, rg.float64, monkeypatch, 1 << 40)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: threads)
    used = []
    for name in ("sums", "spread", "products"):
        inner = getattr(windows, name)
        monkeypatch.setattr(
            windows, name, lambda *args, name=name, inner=inner, **named: (used.append(name), inner(*args, **named))[1]
        )
    monkeypatch.setattr("retrograd._ops.convolution_kernels.KEPT", 0)
    got = convolved(shape, kernel, options, rg.float64, monkeypatch, 1)
    loops = {"sums", "products", "spread"} if "stride" in options else {"sums", "products"}
    assert set(used) == (loops if machine.is_available() else set())
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [rg.float32, rg.float16, rg.bfloat16])
def test_each_channel_in_other_dtypes(monkeypatch, dtype) -> None:
    case = ((3, 4, 40, 40), (3, 3), {"padding": 1})
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == rg.float32 else {"rtol": 2e-2, "atol": 5e-2}
    wanted = convolved(*case, dtype, monkeypatch, 1 << 40)
    for one, other in zip(convolved(*case, dtype, monkeypatch, 1), wanted, strict=True):
        np.testing.assert_allclose(one, other, **close)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("value", [1.0, np.inf])
def test_half_precision_is_rounded_once(monkeypatch, shape, kernel, options, dtype, value) -> None:
    """As torch's float64 of the same numbers, rounded; also where a sum over all places meets what is not finite."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    rng = np.random.default_rng(0)
    channels = shape[1]
    given = [rg.tensor(rng.normal(size=s)).to(getattr(rg, dtype)) for s in (shape, (channels, 1, *kernel), (channels,))]
    given[0][0, 0, 1] *= value
    exact = [torch.tensor(a.double().numpy()) for a in given]
    found, g = [], None
    for library, leaves in ((rg, given), (torch, exact)):
        leaves = [leaf.requires_grad_() for leaf in leaves]
        out = getattr(library.nn.functional, f"conv{len(kernel)}d")(*leaves, groups=channels, **options)
        g = rng.integers(-100, 100, tuple(out.shape)) if g is None else g
        gradients = library.autograd.grad(out, leaves, library.tensor(g, dtype=out.dtype))
        found.append([a.detach().double().numpy() for a in (out, *gradients)])
    unit = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
    for got, wanted in zip(*found, strict=True):
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(got[~finite], wanted[~finite])
        off = np.abs(got[finite] - wanted[finite])
        assert (off <= 1.01 * unit * np.abs(wanted[finite]) + 1e-5 * max(1.0, np.abs(wanted[finite]).max())).all()


def test_each_channel_of_a_turned_image(monkeypatch) -> None:
    monkeypatch.setattr(nests, "NATIVE", 1)
    x, weight = rg.randn(2, 40, 30, 3).permute(0, 3, 2, 1), rg.randn(3, 1, 3, 3)
    assert rg.equal(F.conv2d(x, weight, groups=3), F.conv2d(x.contiguous(), weight, groups=3))


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "output_padding": 1}, {"stride": 3, "padding": 2, "dilation": 2}]
)
def test_transposed_convolution_of_each_channel(monkeypatch, options) -> None:
    x, weight = (rg.randn(s, dtype=rg.float64, requires_grad=True) for s in ((2, 3, 20, 21), (3, 1, 3, 3)))
    made = []
    for worth in (1 << 40, 1):
        monkeypatch.setattr(nests, "NATIVE", worth)
        out = F.conv_transpose2d(x, weight, groups=3, **options)
        made.append([out, *rg.autograd.grad(out.sin().sum(), (x, weight))])
    for one, other in zip(*made, strict=True):
        assert rg.allclose(one, other)


def test_inputs_that_no_place_of_the_kernel_meets(monkeypatch) -> None:
    monkeypatch.setattr(nests, "NATIVE", 1)
    x, weight = rg.randn(2, 3, 14, 14, requires_grad=True), rg.randn(3, 1, 3, 3)
    out = F.conv2d(x, weight, groups=3, stride=3)  # of the last two rows and columns nothing is read
    g = rg.ones_like(out)
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 7, dtype))
    (found,) = rg.autograd.grad(out, x, g)
    assert not found[:, :, 12:].any()
    assert not found[..., 12:].any()


@pytest.mark.parametrize(("stride", "padding", "kernel", "dilation"), [(2, 1, 1, 1), (3, 5, 2, 3), (2, 1, 3, 2)])
def test_first_inputs_that_no_place_of_the_kernel_meets(monkeypatch, stride, padding, kernel, dilation) -> None:
    x, weight = rg.randn(2, 3, 40, requires_grad=True), rg.randn(3, 1, kernel)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": 3}
    (wanted,) = rg.autograd.grad(F.conv1d(x, weight, **options).sum(), x)
    monkeypatch.setattr(nests, "NATIVE", 1)
    out = F.conv1d(x, weight, **options).sum()
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 7, dtype))
    (found,) = rg.autograd.grad(out, x)
    assert (found[..., : stride - padding % stride] == 0).all()
    assert rg.allclose(found, wanted)


def test_each_channel_in_two_threads_of_the_user(monkeypatch) -> None:
    """What a thread keeps for one use is its own."""
    monkeypatch.setattr(nests, "NATIVE", 1)
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
