"""Running sums, products and extremes of arrays that are large enough for kernels, as torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")

LAYOUTS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "dense": ((13, 37, 53), lambda x: x),
    "long rows": ((1, 3, 20011), lambda x: x),
    "long columns": ((20011, 1, 3), lambda x: x),
    "wide": ((5, 4, 1031), lambda x: x),
    "turned": ((53, 13, 37), lambda x: x.permute(1, 2, 0)),
    "part": ((13, 37, 106), lambda x: x[:, :, 1::2]),
    "row": ((40001,), lambda x: x),
}
RUNNING: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x, d: x.cumsum(d),
    "cumprod": lambda x, d: (x * 0.1 + 1).cumprod(d),
    "cummax": lambda x, d: x.cummax(d),
    "cummin": lambda x, d: x.cummin(d),
    "logcumsumexp": lambda x, d: x.logcumsumexp(d),
}


def given(library: Any, layout: str, dtype: str, scale: float = 1) -> Any:
    shape, turned = LAYOUTS[layout]
    x = np.round(np.random.default_rng(1).standard_normal(shape) * 64) / 64 * scale
    return turned(library.from_numpy(x).to(getattr(library, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", RUNNING)
def test_value_and_gradient(name: str, layout: str, dtype: str) -> None:
    for dim in range(len(LAYOUTS[layout][0])):
        found = []
        for library in (retrograd, torch):
            x = given(library, layout, dtype if library is retrograd else "float64").requires_grad_(True)
            out = RUNNING[name](x, dim)
            values = out if isinstance(out, library.Tensor) else out[0]
            indices = [] if values is out else [out[1].numpy()]
            weights = library.arange(x.numel()).reshape(x.shape).to(x.dtype) % 7
            (g,) = library.autograd.grad(values, x, weights)
            found.append([values.detach().numpy(), g.numpy(), *indices])
        for ours, theirs in zip(*found, strict=True):
            scale = np.abs(theirs).max()
            tolerance = 2e-5 if dtype == "float32" else 1e-11
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("layout", ["dense", "wide"])
@pytest.mark.parametrize("name", ["cumsum", "cummax"])
def test_half_precision_runs_in_float32(name: str, layout: str, dtype: str) -> None:
    for dim in range(3):
        ours, theirs = (RUNNING[name](given(retrograd, layout, d), dim) for d in (dtype, "float64"))
        if name == "cummax":
            assert retrograd.equal(ours[1], theirs[1])
            ours, theirs = ours[0], theirs[0]
        rtol = 2**-8 if dtype == "bfloat16" else 2**-11
        np.testing.assert_allclose(ours.double().numpy(), theirs.numpy(), rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool"])
@pytest.mark.parametrize("layout", ["dense", "long columns", "part", "row"])
@pytest.mark.parametrize("name", ["cumsum", "cummax", "cummin"])
def test_whole_numbers(name: str, layout: str, dtype: str) -> None:
    for dim in range(len(LAYOUTS[layout][0])):
        ours, theirs = (RUNNING[name](given(library, layout, dtype, 30), dim) for library in (retrograd, torch))
        for mine, wanted in zip(*[[v] if hasattr(v, "dtype") else list(v) for v in (ours, theirs)], strict=True):
            np.testing.assert_array_equal(mine.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_what_is_no_number_stays(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((150, 160)).astype(np.float32)
    x[3, 50], x[4, 60], x[5, 70], x[6, 0], x[7, 20:25] = np.nan, np.inf, -np.inf, np.nan, np.nan
    for dim in (0, 1):
        for flipped in (x, np.ascontiguousarray(x[::-1, ::-1])):
            ours, theirs = (RUNNING[name](library.from_numpy(flipped), dim) for library in (retrograd, torch))
            for mine, wanted in zip(*[[v] if hasattr(v, "dtype") else list(v) for v in (ours, theirs)], strict=True):
                np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)
