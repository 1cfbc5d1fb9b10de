"""Interpolation, padding by what is in an array, and adaptive means by kernels, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import _thresholds
from retrograd._native import machine, nests, resampling

CASES = [
    ("interpolate", (2, 3, 17, 20), {"scale_factor": 2, "mode": "nearest"}),
    ("interpolate", (2, 3, 17, 20), {"size": (40, 9), "mode": "nearest-exact"}),
    ("interpolate", (2, 3, 17, 20), {"scale_factor": 2, "mode": "bilinear", "align_corners": False}),
    ("interpolate", (2, 3, 17, 20), {"size": (5, 31), "mode": "bilinear", "align_corners": True}),
    ("interpolate", (2, 3, 17, 20), {"size": (40, 20), "mode": "bilinear", "align_corners": False}),
    ("interpolate", (2, 3, 17, 20), {"size": (5, 7), "mode": "bilinear", "antialias": True}),
    ("interpolate", (2, 3, 17, 20), {"scale_factor": 1.7, "mode": "bicubic", "align_corners": False}),
    ("interpolate", (2, 3, 50), {"scale_factor": 3, "mode": "linear", "align_corners": False}),
    ("interpolate", (2, 3, 7, 8, 9), {"size": (10, 9, 20), "mode": "trilinear", "align_corners": False}),
    ("pad", (2, 3, 17, 20), {"pad": (3, 4, 1, 2), "mode": "reflect"}),
    ("pad", (2, 3, 17, 20), {"pad": (3, 0, 0, 2), "mode": "replicate"}),
    ("adaptive_avg_pool2d", (2, 3, 17, 20), {"output_size": (5, 6)}),
]


def answers(library: Any, name: str, shape: tuple[int, ...], options: dict[str, Any], dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x = library.tensor(rng.normal(size=shape), dtype=getattr(library, dtype), requires_grad=True)
    out = getattr(library.nn.functional, name)(x, **options)
    g = library.tensor(rng.normal(size=tuple(out.shape)), dtype=out.dtype)
    return [a.detach().double().numpy() for a in (out, *library.autograd.grad(out, x, g))]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "shape", "options"), CASES)
def test_results_and_gradients_are_torchs(monkeypatch, name, shape, options, dtype) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nests, "NATIVE", 1)
    used = []
    inner = resampling.resampled
    monkeypatch.setattr(resampling, "resampled", lambda *args: (used.append(1), inner(*args))[1])
    close = 1e-10 if dtype == "float64" else 2e-5
    found = answers(rg, name, shape, options, dtype)
    for one, other in zip(found, answers(torch, name, shape, options, dtype), strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close)
    assert bool(used) is machine.is_available()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("name", "shape", "options"), [case for case in CASES if "antialias" not in case[2]])
def test_the_same_as_in_passes(monkeypatch, name, shape, options, dtype) -> None:
    monkeypatch.setattr(nests, "NATIVE", 1)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: 2)
    found = answers(rg, name, shape, options, dtype)
    monkeypatch.setattr(nests, "NATIVE", 1 << 40)
    close = 1e-6 if dtype == "float32" else 6e-2
    for one, other in zip(found, answers(rg, name, shape, options, dtype), strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


def test_nan_and_infinity_stay_where_they_are(monkeypatch) -> None:
    x = rg.randn(1, 1, 40, 40)
    x[0, 0, 3, 5], x[0, 0, 30, 7] = float("nan"), float("inf")
    made = []
    for least in (1, 1 << 40):
        monkeypatch.setattr(nests, "NATIVE", least)
        made.append(rg.nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False).numpy())
    np.testing.assert_array_equal(*[np.isnan(a) for a in made])
    np.testing.assert_array_equal(*[np.isinf(a) for a in made])


def test_large_images_take_kernels_by_themselves() -> None:
    x = rg.randn(2, 3, 100, 90)
    wide = rg.nn.functional.interpolate(x.permute(0, 1, 3, 2), scale_factor=2, mode="nearest")
    assert rg.equal(wide, x.permute(0, 1, 3, 2).repeat_interleave(2, 2).repeat_interleave(2, 3))
