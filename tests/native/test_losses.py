"""Losses of arrays that are large enough for kernels: values and gradients as torch's, in every layout and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")

# Of scores x, numbers y of the same shape between 0 and 1, and classes t.
CLASSES: dict[str, Callable[..., Any]] = {
    "mean": lambda f, x, t, w: f.cross_entropy(x, t),
    "sum": lambda f, x, t, w: f.cross_entropy(x, t, reduction="sum"),
    "none": lambda f, x, t, w: f.cross_entropy(x, t, reduction="none"),
    "ignored": lambda f, x, t, w: f.cross_entropy(x, t, ignore_index=3),
    "weighted": lambda f, x, t, w: f.cross_entropy(x, t, w, ignore_index=2),
    "smoothed": lambda f, x, t, w: f.cross_entropy(x, t, label_smoothing=0.2),
    "smoothed and weighted": lambda f, x, t, w: f.cross_entropy(x, t, w, label_smoothing=0.3, ignore_index=1),
    "smoothed, none": lambda f, x, t, w: f.cross_entropy(x, t, w, label_smoothing=0.3, reduction="none"),
    "far apart": lambda f, x, t, w: f.cross_entropy(300 * x, t),
    "nll_loss": lambda f, x, t, w: f.nll_loss(x.contiguous(), t, w, ignore_index=3),  # torch wants that
}
# rows and classes; classes first in memory; places of images
LAYOUTS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "rows": ((131, 257), lambda x: x),
    "few rows": ((3, 40001), lambda x: x),
    "one row": ((1, 20011), lambda x: x),
    "columns": ((257, 131), lambda x: x.T),
    "every second": ((262, 257), lambda x: x[::2]),
    "places": ((3, 19, 31, 17), lambda x: x),
    "channels last": ((3, 31, 17, 19), lambda x: x.transpose(0, 3, 1, 2)),
}
TOLERANCE = {"float32": (3e-5, 1e-6), "float64": (1e-11, 1e-12), "bfloat16": (2e-2, 1e-3), "float16": (3e-3, 1e-4)}


def of_dtype(library: Any, x: np.ndarray, dtype: str) -> Any:
    return library.from_numpy(x).to(getattr(library, dtype))


def value_and_gradients(library: Any, loss: Callable[..., Any], *inputs: Any) -> list[np.ndarray]:
    wanted = [x for x in inputs if x is not None and x.requires_grad]
    out = loss(library.nn.functional, *inputs)
    seed = (
        out.new_ones(out.shape) if not out.ndim else library.arange(out.numel()).reshape(out.shape).to(out.dtype) / 997
    )
    grads = library.autograd.grad(out, wanted, seed)
    for x, g in zip(wanted, grads, strict=True):
        assert (g.dtype, g.shape) == (x.dtype, x.shape)
    return [v.detach().to(library.float64).numpy() for v in (out, *grads)]


def compare(loss: Callable[..., Any], dtype: str, make: Callable[[Any], list[Any]]) -> None:
    """Compare with torch's values of the same numbers in float64: half precision as rounded from there."""
    ours = value_and_gradients(retrograd, loss, *make(retrograd))
    theirs = value_and_gradients(torch, loss, *make(torch))
    rtol, atol = TOLERANCE[dtype]
    for mine, wanted in zip(ours, theirs, strict=True):
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
        np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=atol * max(scale, 1e-30))


def classes_of(x: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.integers(0, x.shape[1], (x.shape[0], *x.shape[2:]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CLASSES)
def test_cross_entropy(name: str, layout: str, dtype: str) -> None:
    shape, turned = LAYOUTS[layout]
    x = np.random.default_rng(1).standard_normal(shape)

    def make(library: Any) -> list[Any]:
        seen = turned(x.astype(dtype))
        weight = np.random.default_rng(2).random(seen.shape[1]).astype(dtype)
        scores = library.from_numpy(seen).requires_grad_(True)
        return [scores, library.from_numpy(classes_of(seen)), library.from_numpy(weight)]

    compare(CLASSES[name], dtype, make)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("layout", ["rows", "columns", "places"])
@pytest.mark.parametrize("name", ["mean", "weighted", "smoothed and weighted", "none"])
def test_cross_entropy_of_half_precision(name: str, layout: str, dtype: str) -> None:
    """Torch computes in half precision what we round once: the wanted values are those of the same numbers in float64."""
    shape, turned = LAYOUTS[layout]
    x = turned(np.random.default_rng(1).standard_normal(shape))
    weight = np.random.default_rng(2).random(x.shape[1])
    scores, weights = (of_dtype(torch, a, dtype) for a in (x, weight))
    t = classes_of(x)

    def make(library: Any) -> list[Any]:
        wide = "float64" if library is torch else dtype
        rounded = [of_dtype(library, a.to(torch.float64).numpy(), wide) for a in (scores, weights)]
        return [rounded[0].requires_grad_(True), library.from_numpy(t), rounded[1]]

    compare(CLASSES[name], dtype, make)


def test_half_precision_keeps_the_gradient_of_a_likely_target() -> None:
    x = retrograd.zeros(2, 20000, dtype=retrograd.bfloat16)
    x[:, 7] = 17.0
    x.requires_grad_(True)
    retrograd.nn.functional.cross_entropy(x, retrograd.tensor([7, 7]), reduction="sum").backward()
    rest = 19999 * np.exp(-17.0)
    np.testing.assert_allclose(x.grad[:, 7].float().numpy(), -rest / (1 + rest), rtol=0.1)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_cross_entropy_of_extreme_logits(value: float) -> None:
    x = np.random.default_rng(1).standard_normal((70, 300)).astype(np.float32)
    x[3, 5], x[4, 6], x[5] = value, value, value
    t = np.full(70, 5)

    def make(library: Any) -> list[Any]:
        return [library.from_numpy(x.copy()).requires_grad_(True), library.from_numpy(t), None]

    compare(CLASSES["none"], "float32", make)
