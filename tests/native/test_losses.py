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
        np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=atol * scale + (3e-8 if dtype == "float16" else 0))


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


# ---- losses of two arrays ----
POINTWISE: dict[str, Callable[..., Any]] = {
    "mse_loss": lambda f, x, y, w: f.mse_loss(x, y),
    "mse_loss, sum": lambda f, x, y, w: f.mse_loss(x, y, reduction="sum"),
    "mse_loss, none": lambda f, x, y, w: f.mse_loss(x, y, reduction="none"),
    "l1_loss": lambda f, x, y, w: f.l1_loss(x, y),
    "smooth_l1_loss": lambda f, x, y, w: f.smooth_l1_loss(x, y, beta=0.3),
    "huber_loss, sum": lambda f, x, y, w: f.huber_loss(x, y, delta=0.4, reduction="sum"),
    "huber_loss, none": lambda f, x, y, w: f.huber_loss(x, y, delta=0.7, reduction="none"),
    "bce": lambda f, x, y, w: f.binary_cross_entropy(x.sigmoid(), y),
    "bce, weighted": lambda f, x, y, w: f.binary_cross_entropy(x.sigmoid(), y, w, reduction="sum"),
    "bce of logits": lambda f, x, y, w: f.binary_cross_entropy_with_logits(x, y),
    "bce of logits, weighted": lambda f, x, y, w: f.binary_cross_entropy_with_logits(x, y, w, pos_weight=2 * w),
    "bce of logits, none": lambda f, x, y, w: f.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction="none"),
    "soft_margin_loss": lambda f, x, y, w: f.soft_margin_loss(x, y.detach() - 0.5),
    "kl_div": lambda f, x, y, w: f.kl_div(x, y.detach(), reduction="batchmean"),
    "poisson_nll_loss": lambda f, x, y, w: f.poisson_nll_loss(x, y.detach()),
    "gaussian_nll_loss": lambda f, x, y, w: f.gaussian_nll_loss(x, y, y.detach() + 0.1),
    "hinge_embedding_loss": lambda f, x, y, w: f.hinge_embedding_loss(x, (y.detach() > 0.5).to(x.dtype) * 2 - 1),
    "cosine_embedding_loss": lambda f, x, y, w: f.cosine_embedding_loss(
        x.flatten()[:30000].reshape(100, 300), y.flatten()[:30000].reshape(100, 300), y.new_ones(100)
    ),
}
SHAPES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "dense": ((173, 211), lambda x: x),
    "column": ((40001, 1), lambda x: x),
    "vector": ((300007,), lambda x: x),
    "turned": ((173, 211), lambda x: x.T),
    "part": ((173, 430), lambda x: x[:, 1::2]),
    "three axes": ((9, 70, 65), lambda x: x.transpose(2, 0, 1)),
}


def pair(library: Any, shape: str, dtype: str) -> list[Any]:
    rng = np.random.default_rng(3)
    sizes, turned = SHAPES[shape]
    x, y = turned(rng.standard_normal(sizes)), rng.random(turned(np.empty(sizes)).shape)
    w = rng.random(x.shape[-1])
    x, y, w = (of_dtype(library, np.round(a * 64) / 64 if "16" in dtype else a, dtype) for a in (x, y, w))
    return [x.requires_grad_(True), y.requires_grad_(True), w]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", POINTWISE)
def test_loss_of_two_arrays(name: str, shape: str, dtype: str) -> None:
    def loss(f: Any, x: Any, y: Any, w: Any) -> Any:
        return POINTWISE[name](f, x, y, w) + 0 * y.sum()

    compare(loss, dtype, lambda library: pair(library, shape, dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("shape", ["dense", "part"])
@pytest.mark.parametrize(
    "name", ["mse_loss", "smooth_l1_loss", "huber_loss, none", "bce of logits", "soft_margin_loss"]
)
def test_loss_of_half_precision_is_rounded_once(name: str, shape: str, dtype: str) -> None:
    def make(library: Any) -> list[Any]:
        x, y, w = pair(library, shape, dtype)
        return (
            [x.detach().to(torch.float64).requires_grad_(True), y.detach().to(torch.float64), w]
            if library is torch
            else [x, y.detach(), w]
        )

    compare(POINTWISE[name], dtype, make)


def test_mean_of_half_precision_where_the_sum_is_beyond() -> None:
    x = retrograd.full((400, 300), 9.0, dtype=retrograd.float16)
    assert retrograd.nn.functional.mse_loss(x, retrograd.zeros_like(x)).item() == 81


@pytest.mark.parametrize("name", ["mse_loss", "huber_loss, sum"])
@pytest.mark.parametrize(
    "sizes", [((200, 300), (300,)), ((200, 1), (1, 300)), ((1, 1), (200, 300)), ((30, 1, 40), (30, 50, 1))]
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_loss_of_arrays_that_are_broadcast(name: str, sizes: tuple[tuple[int, ...], ...]) -> None:
    def make(library: Any) -> list[Any]:
        rng = np.random.default_rng(4)
        return [library.from_numpy(rng.standard_normal(s)).requires_grad_(True) for s in sizes]

    compare(lambda f, x, y: POINTWISE[name](f, x, y, None), "float64", make)


@pytest.mark.parametrize(
    "name", ["mse_loss, none", "huber_loss, none", "bce of logits, none", "soft_margin_loss, none"]
)
def test_losses_of_extreme_numbers(name: str) -> None:
    numbers = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 1e-40, 88.0, -88.0, 120.0, -120.0, 0.5]
    ends = np.array(numbers, np.float32)
    x = np.tile(ends, 2000)[:20000]
    y = (np.arange(20000) // 13 % 3 / 2).astype(np.float32)

    def loss(f: Any, x: Any, y: Any, w: Any) -> Any:
        if name == "soft_margin_loss, none":
            return f.soft_margin_loss(x, 2 * y - 1, reduction="none")
        return POINTWISE[name](f, x, y, None if "bce" not in name else w)

    def make(library: Any) -> list[Any]:
        return [library.from_numpy(x.copy()).requires_grad_(True), library.from_numpy(y), library.ones(20000)]

    compare(loss, "float32", make)
