"""Softmax, normalisations and variances of large arrays, which kernels compute: values and gradients against torch in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

BOUNDS = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 3e-2, "float16": 5e-3}


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


def outcome(
    library: Any, call: Callable[..., Any], arrays: list[np.ndarray], dtype: str, layout: str, rounded: str
) -> list[Any]:
    """Return results and gradients; the gradient that arrives is the same for both libraries."""
    inputs = [
        laid_out(library, a, layout if k == 0 else "dense").to(getattr(library, dtype)) for k, a in enumerate(arrays)
    ]
    inputs = [t.detach().requires_grad_() for t in inputs]
    out = call(library, *inputs)
    steps = library.arange(out.numel(), dtype=library.float64).reshape(out.shape)
    g = (library.cos(steps * 0.37) + 0.3).to(getattr(library, rounded)).to(out.dtype)
    grads = library.autograd.grad(out, inputs, g)
    return [t.detach().to(library.float64).numpy() for t in (out, *grads)]


def assert_as_torch(call: Callable[..., Any], arrays: list[np.ndarray], dtype: str, layout: str = "dense") -> None:
    torch = pytest.importorskip("torch")
    arrays = [laid_out(rg, a, "dense").to(getattr(rg, dtype)).to(rg.float64).numpy() for a in arrays]
    got = outcome(rg, call, arrays, dtype, layout, dtype)
    wanted = outcome(torch, call, arrays, "float64", "dense", dtype)
    for number, (one, value) in enumerate(zip(got, wanted, strict=True)):
        assert one.shape == value.shape
        scale = np.abs(value).max() + 0.1 * got[0].size / value.size  # numbers that were summed cancel in part
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


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_softmax_of_nothing(shape) -> None:
    for name in ("softmax", "log_softmax"):
        for dim in range(len(shape)):
            assert getattr(rg, name)(rg.zeros(*shape), dim).shape == shape


@pytest.mark.oracle
def test_softmax_of_rows_with_infinities() -> None:
    torch = pytest.importorskip("torch")
    x = normal(9, 2500).astype(np.float32)
    x[1, 7], x[2, 8], x[3], x[4, ::2], x[5] = np.inf, np.nan, -np.inf, -np.inf, 3e38
    for name in ("softmax", "log_softmax"):
        got = getattr(rg.nn.functional, name)(rg.tensor(x), 1).numpy()
        wanted = getattr(torch.nn.functional, name)(torch.tensor(x), 1).numpy()
        np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-6)


# ---- normalisations ----
@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "ndim"), [((131, 257), 1), ((1, 20011), 1), ((11, 41, 53), 2), ((20011,), 1), ((9001, 3), 1)]
)
@pytest.mark.parametrize("parameters", [2, 1, 0])
def test_layer_norm(dtype, layout, shape, ndim, parameters) -> None:
    inner = shape[len(shape) - ndim :]
    affine = [normal(*inner) + 2, normal(*inner)][:parameters]
    call = lambda library, x, *rest: library.nn.functional.layer_norm(x, inner, *rest)  # noqa: E731
    assert_as_torch(call, [normal(*shape, mean=1.0), *affine], dtype, layout)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(131, 257), (11, 41, 53)])
def test_rms_norm(dtype, shape) -> None:
    call = lambda library, x, *weight: library.nn.functional.rms_norm(x, shape[1:], *weight, eps=1e-5)  # noqa: E731
    assert_as_torch(call, [normal(*shape), normal(*shape[1:])], dtype)
    assert_as_torch(call, [normal(*shape)], dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [*LAYOUTS, "channels last"])
@pytest.mark.parametrize("shape", [(5, 8, 23, 29), (40, 96, 3, 2), (1, 4, 70, 71), (2, 4, 101, 103)])
@pytest.mark.parametrize("name", ["group", "batch", "fixed", "instance"])
def test_norms_of_channels(name, dtype, layout, shape) -> None:
    def call(library: Any, x: Any, weight: Any, bias: Any) -> Any:
        functional = library.nn.functional
        if name == "group":
            return functional.group_norm(x, 4, weight, bias)
        if name == "instance":
            return functional.instance_norm(x, None, None, weight, bias)
        mean = (library.arange(shape[1]) / 64).to(x.dtype) if name == "fixed" else None
        variance = (library.arange(shape[1]) / 64 + 0.5).to(x.dtype) if name == "fixed" else None
        return functional.batch_norm(x, mean, variance, weight, bias, name == "batch")

    arrays = [normal(*shape, mean=0.5), normal(shape[1]) + 2, normal(shape[1])]
    assert_as_torch(call, arrays, dtype, layout)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm_of_rows(dtype) -> None:
    call = lambda library, x, *rest: library.nn.functional.batch_norm(x, None, None, *rest, training=True)  # noqa: E731
    assert_as_torch(call, [normal(131, 257), normal(257) + 2, normal(257)], dtype)


@pytest.mark.parametrize(
    "needed", [(True, False, False), (False, True, False), (False, False, True), (False, True, True)]
)
@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "batch_norm"])
def test_gradients_of_large_norms_one_by_one(name, needed) -> None:
    """Each gradient alone is what it is beside the others."""
    arrays = [
        normal(64, 32, 20),
        normal(20 if name == "layer_norm" else 32),
        normal(20 if name == "layer_norm" else 32),
    ]
    options = {"layer_norm": [(20,)], "group_norm": [4], "batch_norm": [None, None]}[name]
    options_after = {"training": True} if name == "batch_norm" else {}

    def gradients(wanted: tuple[bool, ...]) -> list[Any]:
        inputs = [rg.tensor(a.astype(np.float32), requires_grad=w) for a, w in zip(arrays, wanted, strict=True)]
        out = getattr(rg.nn.functional, name)(inputs[0], *options, *inputs[1:], **options_after)
        out.backward(rg.cos(rg.arange(out.numel()) * 0.37).reshape(out.shape))
        return [t.grad for t in inputs]

    for alone, beside, need in zip(gradients(needed), gradients((True, True, True)), needed, strict=True):
        assert (alone is not None) == need
        assert not need or rg.allclose(alone, beside, rtol=1e-5, atol=1e-5)


def test_parameters_of_float32_beside_half_precision_get_float32_gradients() -> None:
    x = rg.tensor(normal(300, 100), dtype=rg.bfloat16)
    weight, bias = (rg.tensor(normal(100), dtype=rg.float32, requires_grad=True) for _ in range(2))
    rg.nn.functional.layer_norm(x, (100,), weight, bias).sum().backward()
    away = x.double().numpy() - x.double().numpy().mean(1, keepdims=True)
    exact = (away / np.sqrt((away * away).mean(1, keepdims=True) + 1e-5)).sum(0)
    assert weight.grad.dtype == rg.float32
    np.testing.assert_allclose(weight.grad.numpy(), exact, atol=1e-4)


# ---- what needs no torch ----
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_many_rows_is_that_of_each_row(dim) -> None:
    x = normal(300, 300).astype(np.float32)
    whole = rg.softmax(rg.tensor(x), dim).numpy()
    powers = np.exp(x.astype(np.float64) - x.max(dim, keepdims=True))
    np.testing.assert_allclose(whole, powers / powers.sum(dim, keepdims=True), rtol=2e-6)


# ---- variances ----
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "dim"), [((131, 257), 1), ((131, 257), 0), ((7, 61, 67), (0, 2)), ((20011,), 0)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_variances(name, dtype, layout, shape, dim, keepdim) -> None:
    def call(library: Any, x: Any) -> Any:
        found = getattr(library, name)(x, dim, keepdim=keepdim)
        return library.cat([part.reshape(-1) for part in found]) if isinstance(found, tuple) else found

    assert_as_torch(call, [normal(*shape, mean=3.0)], dtype, layout)


def test_standard_deviation_of_large_numbers_whose_squares_overflow() -> None:
    x = (normal(200, 100) * 1e30).astype(np.float32)
    np.testing.assert_allclose(rg.std(rg.tensor(x), 1).numpy(), x.astype(np.float64).std(1, ddof=1), rtol=1e-6)


# ---- weights ----
@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((131, 257), 0), ((131, 257), 1), ((48, 40, 3, 3), 0), ((48, 40, 3, 3), 1)])
def test_weight_norm(dtype, shape, dim) -> None:
    sizes = [n if k == dim else 1 for k, n in enumerate(shape)]
    call = lambda library, v, g: library._weight_norm(v, g, dim)  # noqa: E731
    assert_as_torch(call, [normal(*shape), normal(*sizes) + 2], dtype)


@pytest.mark.parametrize(("count", "length"), [(500, 300), (65, 2048), (30, 5000), (3, 70_001)])
@pytest.mark.parametrize("size", [1.0, 3e18])
def test_long_sums_neither_overflow_nor_lose_digits(count: int, length: int, size: float) -> None:
    """Squares of 3e18 are numbers of float32; a hundred of them are not."""
    x = (normal(count, 2, length, mean=0.5) * size).astype(np.float32)
    x[1] = 0  # and what stands beside such a row is not disturbed by it
    exact = x.astype(np.float64)
    mean, variance = exact.mean((0, 2)), exact.var((0, 2))
    running = rg.zeros(2), rg.ones(2)
    out = rg.nn.functional.batch_norm(rg.tensor(x), *running, training=True, momentum=1.0, eps=1e-12)
    wanted = (exact - mean[:, None]) / np.sqrt(variance)[:, None]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=0, atol=4e-6)
    np.testing.assert_allclose(running[0].numpy() / size, mean / size, rtol=0, atol=1e-6)
    unbiased = variance * (count * length / (count * length - 1))
    np.testing.assert_allclose(running[1].numpy() / size**2, unbiased / size**2, rtol=1e-6)
