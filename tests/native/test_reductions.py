"""Reductions of arrays that are large enough for kernels: values and gradients as torch's, in every layout and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import retrograd
from retrograd._native import machine

DIMS: dict[str, Any] = {"all": None, "first": 0, "last": -1, "outer": (0, 2), "middle": 1, "inner": (1, 2)}
LAYOUTS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "dense": ((19, 37, 53), lambda x: x),
    "long rows": ((2, 3, 40009), lambda x: x),
    "long columns": ((40009, 2, 3), lambda x: x),
    "wide": ((3, 2, 20011), lambda x: x),
    "turned": ((53, 19, 37), lambda x: x.permute(1, 2, 0)),
    "part": ((19, 37, 110), lambda x: x[:, :, 1::2]),
    "spread": ((19, 1, 53), lambda x: x.expand(19, 37, 53)),
    "of one": ((1, 40009, 1), lambda x: x),
}
FLOATS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, d: x.sum(dim=d),
    "mean": lambda x, d: x.mean(dim=d, keepdim=True),
    "nansum": lambda x, d: x.nansum(dim=d),
    "amax": lambda x, d: x.amax(dim=() if d is None else d),
    "amin": lambda x, d: x.amin(dim=() if d is None else d, keepdim=True),
    "logsumexp": lambda x, d: x.logsumexp(dim=(0, 1, 2) if d is None else d),
    "norm": lambda x, d: x.norm(dim=d),
    "norm 1": lambda x, d: x.norm(1, dim=(0, 1, 2) if d is None else d),
    "norm 3": lambda x, d: x.norm(3, dim=(0, 1, 2) if d is None else d, keepdim=True),
    "norm 2.5": lambda x, d: x.norm(2.5, dim=(0, 1, 2) if d is None else d),
    "norm inf": lambda x, d: x.norm(float("inf"), dim=(0, 1, 2) if d is None else d),
}
WHOLE: dict[str, Callable[..., Any]] = {
    "sum": lambda x, d: x.sum(dim=d),
    "sum in its dtype": lambda x, d: x.sum(dim=d, dtype=x.dtype),
    "amax": lambda x, d: x.amax(dim=() if d is None else d),
    "amin": lambda x, d: x.amin(dim=() if d is None else d),
    "any": lambda x, d: x.any() if d is None else x.any(d),
    "all": lambda x, d: x.all() if d is None else x.all(d),
    "count_nonzero": lambda x, d: x.count_nonzero(d),
    "prod": lambda x, d: (x % 2 * 2 + 1).prod() if not isinstance(d, int) else (x % 2 * 2 + 1).prod(d),
}
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 1e-2, "float16": 2e-3}


def given(library: Any, layout: str, dtype: str, scale: float = 1) -> Any:
    """Return the same numbers from both libraries: few bits, so that half precision has them all."""
    shape, turned = LAYOUTS[layout]
    x = np.round(np.random.default_rng(1).standard_normal(shape) * 64) / 64 * scale
    return turned(library.from_numpy(x).to(getattr(library, dtype)))


def check_value_and_gradient(name: str, layout: str, dim: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):  # torch's own sums of float32 may be less exact
        x = given(library, layout, dtype if library is retrograd else "float64").requires_grad_(True)
        out = FLOATS[name](x, DIMS[dim])
        (g,) = library.autograd.grad(out.sum(), x)
        found.append([out.detach().numpy(), g.numpy()])
    for ours, theirs in zip(*found, strict=True):
        assert (ours.dtype, ours.shape) == (dtype, theirs.shape)
        rtol = TOLERANCE[dtype] * (5 if layout == "long columns" else 1)  # some of which are summed one by one
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


@pytest.mark.oracle
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FLOATS)
def test_value_and_gradient(name: str, layout: str) -> None:
    for dim in DIMS:
        check_value_and_gradient(name, layout, dim, "float32")


@pytest.mark.oracle
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", FLOATS)
def test_double_precision(name: str, dim: str) -> None:
    check_value_and_gradient(name, "dense", dim, "float64")


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("layout", ["dense", "long rows", "part"])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "logsumexp", "norm"])
def test_half_precision_is_rounded_once(name: str, layout: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for dim in DIMS.values():
        ours = FLOATS[name](given(retrograd, layout, dtype), dim)
        theirs = FLOATS[name](given(torch, layout, "float64"), dim)
        assert ours.dtype == getattr(retrograd, dtype)
        np.testing.assert_allclose(ours.double().numpy(), theirs.numpy(), rtol=TOLERANCE[dtype], atol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name: str, layout: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    if dtype == "bool" and name in ("prod", "sum in its dtype"):
        pytest.skip("no arithmetic of truth values")
    for dim in DIMS.values():
        ours, theirs = (WHOLE[name](given(library, layout, dtype, 30), dim).numpy() for library in (retrograd, torch))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3000, 1001), (7, 400001), (3_000_001,)])
def test_sums_are_as_exact_as_numpys(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).random(shape).astype(dtype)
    exact = x.astype(np.longdouble).sum(-1)
    eps = np.finfo(dtype).eps
    assert (np.abs(retrograd.from_numpy(x).sum(-1).numpy() - exact) <= 16 * eps * exact).all()


@pytest.mark.skipif(not machine.is_available(), reason="without kernels NumPy adds columns one number after the other")
@pytest.mark.parametrize("shape", [(70001, 7), (3, 20011, 2), (7, 9001)])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "var of all"])
def test_complex_columns_lose_no_digits(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).standard_normal((*shape, 2)).astype(np.float32) + np.float32(1)
    x = x.view(np.complex64)[..., 0]
    name, *whole = name.split()
    dims = tuple(range(x.ndim if whole else x.ndim - 1))
    wanted = getattr(x.astype(np.complex128), name)(dims, **({"ddof": 1} if name == "var" else {}))
    found = getattr(retrograd.tensor(x), name)(dims).numpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@settings(max_examples=15)
@hypothesis.given(st.data())
def test_sums_of_half_precision_are_rounded_once(data: st.DataObject) -> None:
    """Whole numbers, whose sums are exact, of which only the result is rounded."""
    shape = data.draw(st.sampled_from(((9000,), (3, 4001), (513, 17), (2, 65, 70), (7, 5, 11, 30))))
    dtype = data.draw(st.sampled_from((retrograd.bfloat16, retrograd.float16)))
    order = data.draw(st.permutations(range(len(shape))))
    dims = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))
    numbers = np.random.default_rng(0).integers(-3, 5, shape)
    exact = retrograd.from_numpy(numbers.transpose(order).sum(tuple(dims) or None, dtype=np.float32, keepdims=True))
    x = retrograd.from_numpy(numbers).to(dtype).permute(order)
    assert retrograd.equal(x.sum(dims, keepdim=True), exact.to(dtype))
    assert retrograd.equal(x.sum(dims, keepdim=True, dtype=retrograd.float32), exact)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_extremes_of_what_is_no_number(dtype: str, dim: str, value: float) -> None:
    x = np.random.default_rng(0).standard_normal((19, 37, 53)).astype(dtype)
    x[3, 5, 7] = x[0, :, 2] = x[18, 36, 52] = value
    given = retrograd.from_numpy(x)
    axes = DIMS[dim]
    for name, wanted in (("amax", x.max(axes)), ("amin", x.min(axes)), ("nansum", np.nansum(x.astype("f8"), axes))):
        found = getattr(given, name)(dim=() if axes is None and name != "nansum" else axes).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-1 if name == "nansum" else 0)


@pytest.mark.parametrize("count", [1 << 14, 1 << 17, (1 << 20) + 3])
def test_the_same_bits_every_time(count: int) -> None:
    x = retrograd.from_numpy(np.random.default_rng(0).standard_normal((4, count // 4)).astype(np.float32))
    for reduced in (lambda: x.sum(), lambda: x.sum(0), lambda: x.logsumexp((0, 1)), lambda: x.norm()):
        first = reduced().numpy().tobytes()
        assert all(reduced().numpy().tobytes() == first for _ in range(5))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, float("inf"), 0.0])
@pytest.mark.parametrize(("shape", "dim"), [((20_000,), None), ((150, 130), 1), ((150, 130), 0), ((30, 40), 1)])
def test_norms_of_half_precision_are_rounded_once(shape: Any, dim: Any, order: float, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    x = retrograd.tensor(rng.standard_normal(shape)).to(getattr(retrograd, dtype))
    exact = torch.tensor(x.double().numpy())
    found = []
    for library, leaf in ((retrograd, x), (torch, exact)):
        leaf = leaf.requires_grad_()
        out = library.linalg.vector_norm(leaf, order, dim)
        back = library.autograd.grad(out, leaf, library.ones_like(out))[0] if order else library.zeros_like(leaf)
        found.append([a.detach().double().numpy() for a in (out, back)])
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    (norm, gradient), (wanted, slope) = found
    assert (np.abs(norm - wanted) <= 1.01 * unit * np.abs(wanted)).all()
    # the gradient reads the norm, whose rounding counts p - 1 times
    assert (np.abs(gradient - slope) <= 4.1 * unit * np.abs(slope) + 1e-7).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 1.5, np.inf])
@pytest.mark.parametrize("size", [7, 9000])
def test_tangents_of_norms_of_half_precision_are_rounded_once(order: float, size: int, dtype: str) -> None:
    x, t = (
        retrograd.tensor(np.random.default_rng(k).standard_normal(size)).to(getattr(retrograd, dtype)) for k in (0, 1)
    )

    def norm(x: Any) -> Any:
        return retrograd.linalg.vector_norm(x, order)

    out, tangent = retrograd.func.jvp(norm, (x,), (t,))
    _, exact = retrograd.func.jvp(norm, (x.double(),), (t.double(),))
    assert out.dtype == tangent.dtype == x.dtype
    scale = exact.abs() + (t.double() ** 2).mean().sqrt()
    assert (tangent.double() - exact).abs() <= scale * {"bfloat16": 2.0**-6, "float16": 2.0**-9}[dtype]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(), (1, 3), (3, 1), (1, 20_000), (20_000, 1), (150, 200)])
def test_sums_of_negative_zeros_are_positive(shape: tuple[int, ...], torch: Any) -> None:
    """As in torch and NumPy, where a sum begins with 0.0, in eager and compiled, of whatever layout."""

    def sums(x: Any) -> list[Any]:
        every = [x.sum(), x.mean(), x.nansum(), x.expand(2, *shape).sum(0), x.double().sum(), x.bfloat16().sum()]
        along = [x.sum(0), x.sum(1), x.mean(0, keepdim=True), x.T.sum(0), x.T.contiguous().mean(1)] if shape else []
        return every + along

    def signs(found: list[Any]) -> list[Any]:
        return [np.signbit(one.double().numpy()).tolist() for one in found]

    expected = signs(sums(torch.full(shape, -0.0)))
    x = retrograd.full(shape, -0.0)
    assert signs(sums(x)) == expected
    compiled = retrograd.compile(sums)
    for given in (retrograd.ones(shape), x):
        found = compiled(given)
    assert signs(found) == expected
