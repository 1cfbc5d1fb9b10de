"""Reductions, running functions and orders at special values, in large arrays, and with `out=`, against torch."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing

pytestmark = pytest.mark.oracle
NAN, INF = math.nan, math.inf
LIBRARIES = (retrograd, torch)


def numbers(value):
    """Return the arrays of a result."""
    parts = value if isinstance(value, tuple) else (value,)
    return [part.detach().double().numpy() if part.dtype.is_floating_point else part.numpy() for part in parts]


def same(call, *, rtol=1e-6, atol=0.0):
    """Run with both libraries and compare everything that comes out."""
    for ours, theirs in zip(*(numbers(call(library)) for library in LIBRARIES), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def gradients(library, function, values):
    """Return the value, the gradient, and the gradient of its squares."""
    x = library.tensor(values, dtype=library.float64, requires_grad=True)
    out = function(library, x)
    weights = library.arange(1, out.numel() + 1, dtype=library.float64).reshape(out.shape)
    (first,) = library.autograd.grad(out, x, weights, create_graph=True)
    if not first.requires_grad:
        return out, first
    (second,) = library.autograd.grad((first * first).sum(), x, allow_unused=True)
    return out, first, library.zeros_like(x) if second is None else second


PRODUCTS = ([1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 2.0, 3.0], [2.0, -1.0, 0.5, 3.0], [0.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("values", PRODUCTS)
@pytest.mark.parametrize(
    "function",
    [
        lambda t, x: t.prod(x),
        lambda t, x: t.prod(x.reshape(2, 2), 1),
        lambda t, x: t.cumprod(x, 0),
        lambda t, x: t.cumprod(x.reshape(2, 2), 0),
    ],
)
def test_products_with_zeros(function, values):
    same(lambda t: gradients(t, function, values), atol=1e-12)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("values", [[1.0, NAN, 2.0], [2.0, 3.0, NAN], [NAN, 3.0]])
def test_running_products_keep_nan(values, create_graph):
    """Beside a zero, torch takes another formula, in which some NaNs are lost: that is not compared."""

    def slope(library):
        x = library.tensor(values, dtype=library.float64, requires_grad=True)
        return library.autograd.grad(library.cumprod(x, 0).sum(), x, create_graph=create_graph)[0]

    same(slope)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize(
    "values", [[1.0, 3.0, 3.0, 2.0], [1.0, NAN, 2.0, NAN, 3.0], [NAN, 1.0], [-INF, -INF, INF, INF]]
)
def test_running_extremes(name, values):
    same(lambda t: tuple(getattr(t, name)(t.tensor(values), 0)))
    same(lambda t: gradients(t, lambda t, x: getattr(t, name)(x, 0)[0], values)[:2])


@pytest.mark.parametrize("values", [[-INF, -INF, 1.0, 2.0, -INF], [1.0, INF, 1.0], [1.0, NAN, 1.0], [1000.0, -1000.0]])
def test_running_log_sums(values):
    same(lambda t: gradients(t, lambda t, x: t.logcumsumexp(x, 0), values)[:2])


@pytest.mark.parametrize("values", [[1.0, NAN, 3.0, 2.0], [NAN, NAN], [2.0, 1.0], [INF, -INF, 1.0]])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_with_nan(name, values):
    same(lambda t: getattr(t, name)(t.tensor(values)))
    same(lambda t: getattr(t, name)(t.tensor(values), 0)[0])


def test_modes():
    for values in ([1, 2, 2, 1, 3, 3], [1, 2, 2, 1, 2, 1, 5], [[1, 1, 2], [3, 2, 1]]):
        same(lambda t, values=values: tuple(t.mode(t.tensor(values))))
    same(lambda t: t.mode(t.tensor([NAN, NAN, 1.0, 1.0, NAN]))[0])


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("length", [9, 3000])  # long rows are sorted with their positions packed in
@pytest.mark.parametrize("name", DTYPES)
def test_sorting_is_stable(name, length, descending):
    values = np.random.default_rng(1).integers(-40, 40, (2, length)).astype(np.float64)
    if "float" in name:
        values[:, 3:6] = [NAN, -0.0, 0.0]

    def call(t):
        x = t.tensor(values)
        x = x.abs() if name == "uint8" else x
        return tuple(t.sort(x.to(getattr(t, name)), dim=1, descending=descending, stable=True))

    same(call)


def test_large_arrays():
    rng = np.random.default_rng(2)
    for shape, dim in (((20011,), 0), ((40, 1001), 1), ((1001, 300), 0), ((3, 700, 40), 1)):
        values = rng.standard_normal(shape)
        for name in ("cumsum", "cummax", "cummin", "logcumsumexp"):

            def call(t, name=name, values=values, dim=dim):
                x = t.tensor(values, requires_grad=True)
                out = getattr(t, name)(x, dim)
                out, *rest = out if isinstance(out, tuple) else (out,)
                (gradient,) = t.autograd.grad(out, x, t.tensor(np.sin(np.arange(values.size)).reshape(values.shape)))
                return (out, gradient, *rest)

            same(call, rtol=1e-8, atol=1e-8)
        same(lambda t, v=values, d=dim: t.prod(t.tensor(1 + v / 50), d), rtol=1e-9)
        same(lambda t, v=values, d=dim: tuple(t.topk(t.tensor(v), 3, d)))
        same(lambda t, v=values, d=dim: tuple(t.topk(t.tensor(v), 3, d, largest=False)))
        same(lambda t, v=values, d=dim: tuple(t.kthvalue(t.tensor(v), 30, d)))
        same(lambda t, v=values, d=dim: (*t.median(t.tensor(v), d), *t.nanmedian(t.tensor(v), d)))
        same(lambda t, v=values, d=dim: t.var_mean(t.tensor(v), d), rtol=1e-9)
        same(lambda t, v=values: t.var(t.tensor(v)), rtol=1e-9)


@pytest.mark.parametrize("shape", [(5000,), (20011, 3)])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, d) for n in ("cumsum", "cumprod") for d in ("float32", "complex64")] + [("logcumsumexp", "float32")],
)
def test_running_values_lose_no_digits(name, dtype, shape):
    accumulate = {"cumsum": np.add, "cumprod": np.multiply, "logcumsumexp": np.logaddexp}[name].accumulate
    x = np.random.default_rng(4).uniform(-3, 3, shape).astype(dtype)
    if dtype == "complex64":
        x = x + 1j * x[::-1]
    x = (1 + x / 3000).astype(dtype) if name == "cumprod" else x.astype(dtype)
    wanted = accumulate(x.astype("complex128" if dtype == "complex64" else "float64"))
    found = getattr(retrograd, name)(retrograd.tensor(x), 0).numpy()
    assert found.dtype == dtype
    assert np.abs(found - wanted).max() <= 1.2e-7 * np.abs(wanted).max()


def test_large_arrays_with_infinities():
    values = np.random.default_rng(3).standard_normal(20000)
    values[500], values[900] = INF, NAN
    same(lambda t: t.cumsum(t.tensor(values), 0), rtol=1e-9)
    values[:] = -INF
    values[7] = NAN
    same(lambda t: t.topk(t.tensor(values), 2)[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.sum(x, 0, out=t.zeros(3, dtype=t.int64)),
        lambda t, x: t.cumsum(x, 0, dtype=t.float32, out=t.zeros(2, 3)),
        lambda t, x: t.cumsum(x, 0, dtype=t.float64, out=t.zeros(2, 3)),
        lambda t, x: t.amax(x, 0, out=t.zeros(3, dtype=t.int64)),
        lambda t, x: t.max(x, 0, out=(t.zeros(3), t.zeros(3, dtype=t.int64))),
        lambda t, x: t.max(x, 0, out=(t.zeros(3), t.zeros(3))),
        lambda t, x: t.any(x, 0, out=t.zeros(3)),
        lambda t, x: t.any(x, 0, out=t.zeros(3, dtype=t.uint8)),
        lambda t, x: t.mean(x, 0, out=t.zeros(3, dtype=t.int64)),
        lambda t, x: t.softmax(x, 0, out=t.zeros((2, 3), dtype=t.float64)),
    ],
)
def test_dtypes_of_out(call):
    found = []
    for t in LIBRARIES:
        try:
            found.append(numbers(call(t, t.tensor([[1.5, 2.0, 3.0], [0.0, 5.0, -1.0]]))))
        except RuntimeError:
            found.append(RuntimeError)
    ours, theirs = found
    assert (ours is RuntimeError) == (theirs is RuntimeError)
    if ours is not RuntimeError:
        np.testing.assert_allclose(ours[0], theirs[0])


def test_no_degrees_of_freedom():
    for name in ("var", "std", "var_mean", "std_mean"):
        with pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0"):
            getattr(retrograd, name)(retrograd.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retrograd.var(retrograd.ones(1), correction=0)


def test_named_results():
    x = [[1.0, 3.0], [2.0, 0.0]]
    for name in ("max", "min", "median", "mode", "sort", "cummax"):
        ours, theirs = (getattr(t, name)(t.tensor(x), 1) for t in LIBRARIES)
        assert repr(ours) == repr(theirs)
        assert type(ours) is getattr(retrograd.return_types, name)
    pair = retrograd.return_types.max((1, 2))
    assert (pair.values, pair.indices) == (1, 2)
    with pytest.raises(TypeError, match="takes a 2-sequence"):
        retrograd.return_types.max((1,))


def test_unique_has_no_derivative():
    x = retrograd.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implemented"):
        retrograd.unique(x).sum().backward()
    with pytest.raises(RuntimeError, match="dynamic shape"):
        retrograd.vmap(retrograd.unique)(retrograd.ones(2, 3))


def with_ties(n, different, missing, kind):
    rng = np.random.default_rng((n, different))
    values = rng.integers(0, different, (6, n)).astype(kind)
    if missing:
        values[rng.random((6, n)) < 0.2] = np.nan
    return values


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 16, 60, 300, 1000])
def test_places_of_equals(n, missing):
    for different in (1, 2, 7, 1000):
        for kind in ("f4", "f8") if missing else ("f4", "f8", "i8", "i2"):
            values = with_ties(n, different, missing, kind)
            for k in {1, 2, n // 3 + 1, n}:
                same(lambda t, v=values, k=k: (*t.kthvalue(t.tensor(v), k), *t.kthvalue(t.tensor(v).T, k, 0)))
                same(lambda t, v=values, k=k: t.kthvalue(t.tensor(v[0]), k, keepdim=True))
            same(lambda t, v=values: (*t.median(t.tensor(v), 1), *t.nanmedian(t.tensor(v), 1)))
            same(lambda t, v=values: t.sort(t.tensor(v), dim=1, stable=True))
            same(lambda t, v=values: t.sort(t.tensor(v), dim=0, descending=True, stable=True))
            if n <= 16 and not missing:  # longer rows torch sorts without regard to places
                same(lambda t, v=values: t.mode(t.tensor(v)))
            if not missing:
                same(lambda t, v=values: t.unique(t.tensor(v), return_inverse=True, return_counts=True))
                same(lambda t, v=values: t.unique(t.tensor(v), return_inverse=True, return_counts=True, dim=1))
