"""Transforms, windows, statistics and counts called with every option and with nonsense: torch's results and words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import Raised, outcome

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(0)
VALUES = RNG.random((3, 4))
SIGNAL = RNG.random((2, 20))
SPECTRA = RNG.random((2, 3, 6)) + 1j * RNG.random((2, 3, 6))


def t(lib: Any, values: Any = VALUES, dtype: str = "float32") -> Any:
    return lib.tensor(np.asarray(values).tolist()).to(getattr(lib, dtype))


def _transforms() -> dict[str, Any]:
    found: dict[str, Any] = {}
    one = [{}, {"n": 0}, {"n": -1}, {"n": 3}, {"n": 7}, {"dim": 0}, {"dim": 5}, {"norm": "ortho"}, {"norm": "x"}]
    several = [{}, {"s": (3,)}, {"s": (0, 3)}, {"s": (-1, 3)}, {"s": (3, -1)}, {"s": (1, 2, 3)}, {"dim": (0, 0)}]
    several += [{"dim": ()}, {"dim": (7,)}, {"dim": 1}, {"s": (3,), "dim": (0, 1)}, {"norm": "forward"}]
    for stem in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        for name, options in ((stem, one), (f"{stem}2", several), (f"{stem}n", several)):
            for kw in options:
                found[f"{name} {kw}"] = lambda lib, name=name, kw=kw: getattr(lib.fft, name)(t(lib), **kw)
            for dtype in ("int64", "float16", "complex128"):
                found[f"{name} {dtype}"] = lambda lib, name=name, dtype=dtype: getattr(lib.fft, name)(
                    t(lib, VALUES, dtype)
                )
            for shape in ((), (0,), (0, 3), (3, 0)):
                found[f"{name} {shape}"] = lambda lib, name=name, shape=shape: getattr(lib.fft, name)(lib.zeros(shape))
            found[f"{name} of a number"] = lambda lib, name=name: getattr(lib.fft, name)(3.0)
            found[f"{name} into integers"] = lambda lib, name=name: getattr(lib.fft, name)(
                t(lib), out=lib.empty(0, dtype=lib.int64)
            )
    for name in ("fftfreq", "rfftfreq"):
        for n in (0, 1, 4, 5):
            for dtype in (None, "float64", "bfloat16", "int64", "complex64"):
                found[f"{name} {n} {dtype}"] = lambda lib, name=name, n=n, dtype=dtype: getattr(lib.fft, name)(
                    n, 0.3, dtype=dtype and getattr(lib, dtype)
                )
    for name in ("fftshift", "ifftshift"):
        for dim in (None, 0, (0, 1), (), 7):
            found[f"{name} {dim}"] = lambda lib, name=name, dim=dim: getattr(lib.fft, name)(t(lib), dim)
    return found


def _windows() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in torch.signal.windows.__all__:
        kw = {"a": [0.5, 0.3, 0.2]} if name == "general_cosine" else {}
        for m in (-1, 0, 1, 2, 7):
            for sym in (True, False):
                for dtype in (None, "float64", "float16"):
                    found[f"{name} {m} {sym} {dtype}"] = lambda lib, name=name, m=m, sym=sym, dtype=dtype, kw=kw: (
                        getattr(lib.signal.windows, name)(m, sym=sym, dtype=dtype and getattr(lib, dtype), **kw)
                    )
    found |= {
        "exponential centered": lambda lib: lib.signal.windows.exponential(4, center=1.0, sym=False),
        "exponential centered symmetric": lambda lib: lib.signal.windows.exponential(4, center=1.0),
        "exponential tau": lambda lib: lib.signal.windows.exponential(4, tau=0),
        "gaussian std": lambda lib: lib.signal.windows.gaussian(4, std=-1.0),
        "kaiser beta": lambda lib: lib.signal.windows.kaiser(4, beta=-1.0),
        "cosines of nothing": lambda lib: lib.signal.windows.general_cosine(4, a=[]),
        "cosines of a number": lambda lib: lib.signal.windows.general_cosine(4, a=3.0),
        "a sparse window": lambda lib: lib.signal.windows.hann(4, layout=lib.sparse_coo),
    }
    for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
        for m in (-1, 0, 1, 5):
            for periodic in (True, False):
                for dtype in (None, "float64", "int64", "complex64"):
                    found[f"{name}_window {m} {periodic} {dtype}"] = (
                        lambda lib, name=name, m=m, periodic=periodic, dtype=dtype: getattr(lib, f"{name}_window")(
                            m, periodic, dtype=dtype and getattr(lib, dtype)
                        )
                    )
    return found


def _pieces() -> dict[str, Any]:
    found: dict[str, Any] = {}
    options: list[dict[str, Any]] = [{}, {"hop_length": 0}, {"win_length": 5}, {"win_length": 0}, {"center": False}]
    options += [{"pad_mode": mode} for mode in ("constant", "replicate", "circular", "bogus")]
    options += [{"onesided": False}, {"normalized": True}, {"return_complex": None}, {"align_to_window": True}]
    options += [{"align_to_window": True, "center": False}, {"n_fft": 0}, {"n_fft": 41}, {"n_fft": -1}]
    for kw in options:
        for dtype in ("float32", "complex64", "int64"):
            found[f"stft {kw} {dtype}"] = lambda lib, kw=kw, dtype=dtype: lib.stft(
                t(lib, SIGNAL, dtype), **{"n_fft": 4, "window": lib.ones(4), "return_complex": True} | kw
            )
    for shape in ((), (0,), (2, 2, 20)):
        found[f"stft {shape}"] = lambda lib, shape=shape: lib.stft(
            lib.zeros(shape), 4, window=lib.ones(4), return_complex=True
        )
    back: list[dict[str, Any]] = [{}, {"length": 3}, {"length": 0}, {"center": False}, {"return_complex": True}]
    back += [{"hop_length": 0}, {"hop_length": 5}, {"win_length": 5}, {"n_fft": 5}, {"n_fft": 3}, {"onesided": False}]
    for kw in back:
        found[f"istft {kw}"] = lambda lib, kw=kw: lib.istft(
            t(lib, SPECTRA, "complex64"), **{"n_fft": 4, "window": lib.ones(4)} | kw
        )
    found["istft of nothing"] = lambda lib: lib.istft(t(lib, SPECTRA, "complex64"), 4, window=lib.zeros(4))
    found["istft real"] = lambda lib: lib.istft(t(lib, SPECTRA.real), 4, window=lib.ones(4))
    for name, make in {
        "integers": lambda lib: lib.arange(4),
        "number": lambda lib: lib.tensor(1.0),
        "three": lambda lib: lib.ones(3),
        "transposed": lambda lib: lib.ones(2, 3).t(),
        "odd strides": lambda lib: lib.ones(2, 3)[:, :2],
        "odd offset": lambda lib: lib.arange(5.0)[1:3],
        "nothing": lambda lib: lib.ones(0, 2),
    }.items():
        found[f"view_as_complex {name}"] = lambda lib, make=make: lib.view_as_complex(make(lib))
    found["view_as_real real"] = lambda lib: lib.view_as_real(lib.ones(2))
    return found


def _statistics() -> dict[str, Any]:
    found: dict[str, Any] = {
        "cov 3-d": lambda lib: lib.cov(lib.ones(2, 2, 2)),
        "cov bool": lambda lib: lib.cov(lib.ones(2, 2) > 0),
        "cov int": lambda lib: lib.cov(lib.arange(6).reshape(2, 3)),
        "cov nothing": lambda lib: lib.cov(lib.ones(2, 0)),
        "cov counts 2-d": lambda lib: lib.cov(t(lib), fweights=lib.ones(1, 4, dtype=lib.int64)),
        "cov counts float": lambda lib: lib.cov(t(lib), fweights=lib.ones(4)),
        "cov counts too few": lambda lib: lib.cov(t(lib), fweights=lib.tensor([1, 2, 3])),
        "cov counts negative": lambda lib: lib.cov(t(lib), fweights=lib.tensor([1, 2, 3, -4])),
        "cov weights int": lambda lib: lib.cov(t(lib), aweights=lib.tensor([1, 2, 3, 4])),
        "cov weights zero": lambda lib: lib.cov(t(lib), aweights=lib.zeros(4)),
        "cov both": lambda lib: lib.cov(
            t(lib), fweights=lib.tensor([1, 2, 3, 4]), aweights=lib.tensor([0.1, 0.5, 0.3, 1])
        ),
        "corrcoef 3-d": lambda lib: lib.corrcoef(lib.ones(2, 2, 2)),
        "corrcoef number": lambda lib: lib.corrcoef(lib.tensor(2.0)),
        "diff order": lambda lib: lib.diff(t(lib), -1),
        "diff number": lambda lib: lib.diff(lib.tensor(1.0)),
        "diff bool": lambda lib: lib.diff(lib.tensor([True, False, True]), 2),
        "diff prepend rank": lambda lib: lib.diff(t(lib), prepend=t(lib)[0]),
        "diff prepend size": lambda lib: lib.diff(t(lib), prepend=t(lib)[:2]),
        "gradient uint8": lambda lib: lib.gradient(lib.ones(3, dtype=lib.uint8)),
        "gradient order": lambda lib: lib.gradient(t(lib), edge_order=3),
        "gradient short": lambda lib: lib.gradient(t(lib)[:1]),
        "gradient twice": lambda lib: lib.gradient(t(lib), dim=(0, 0)),
        "gradient spacings": lambda lib: lib.gradient(t(lib), spacing=[1.0, 2.0, 3.0]),
        "gradient spacings of dims": lambda lib: lib.gradient(t(lib), spacing=[1.0], dim=(0, 1)),
        "gradient spacing 2-d": lambda lib: lib.gradient(t(lib), spacing=(lib.ones(1, 2),), dim=0),
        "trapezoid bool": lambda lib: lib.trapezoid(t(lib) > 0),
        "trapezoid points": lambda lib: lib.trapezoid(t(lib), lib.ones(3)),
        "trapezoid number": lambda lib: lib.trapezoid(lib.tensor(1.0)),
        "trapezoid int": lambda lib: lib.trapezoid(lib.arange(4), dx=2),
        "cumulative_trapezoid bool": lambda lib: lib.cumulative_trapezoid(t(lib), t(lib) > 0),
        "cumulative_trapezoid number": lambda lib: lib.cumulative_trapezoid(lib.tensor(1.0)),
    }
    with_nan = VALUES.copy()
    with_nan[0, 1] = with_nan[2] = np.nan
    for name in ("quantile", "nanquantile"):
        for q in (0.3, -0.1, 1.1, [0.1, 0.9], [], [1.2], [[0.5]]):
            for kw in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": 5}, {"interpolation": "x"}):
                found[f"{name} {q} {kw}"] = lambda lib, name=name, q=q, kw=kw: getattr(lib, name)(
                    t(lib, with_nan), lib.tensor(q) if isinstance(q, list) else q, **kw
                )
        found[f"{name} int"] = lambda lib, name=name: getattr(lib, name)(lib.arange(3), 0.5)
        found[f"{name} nothing"] = lambda lib, name=name: getattr(lib, name)(lib.ones(0), 0.5)
        found[f"{name} q dtype"] = lambda lib, name=name: getattr(lib, name)(
            t(lib), lib.tensor([0.5], dtype=lib.float64)
        )
        found[f"{name} out dtype"] = lambda lib, name=name: getattr(lib, name)(
            t(lib), 0.5, out=lib.empty(0, dtype=lib.float64)
        )
    return found


def _counts() -> dict[str, Any]:
    rows = [[1.0, 3, 5, 7], [2.0, 6, 10, 14]]
    points = [[0.0, 1], [1, 0], [2, 0], [2, 2]]
    return {
        "histc": lambda lib: lib.histc(t(lib), 4),
        "histc one value": lambda lib: lib.histc(lib.ones(3), 3),
        "histc bins": lambda lib: lib.histc(t(lib), 0),
        "histc range": lambda lib: lib.histc(t(lib), 3, 3, 1),
        "histc infinite": lambda lib: lib.histc(lib.tensor([1.0, float("inf")]), 3),
        "histc nan in range": lambda lib: lib.histc(lib.tensor([1.0, float("nan")]), 3, 0, 2),
        "histc bfloat16": lambda lib: lib.histc(t(lib, VALUES * 9, "bfloat16"), 30, -10, 10),
        "histc int": lambda lib: lib.histc(lib.arange(3), 3),
        "histc nothing": lambda lib: lib.histc(lib.ones(0), 3),
        "histc out": lambda lib: lib.histc(t(lib), 3, out=lib.empty(0, dtype=lib.float64)),
        "histogram": lambda lib: lib.histogram(t(lib), 4),
        "histogram edges": lambda lib: lib.histogram(t(lib), lib.tensor([0.0, 0.5, 0.75])),
        "histogram density": lambda lib: lib.histogram(t(lib), 3, range=(0.0, 1.0), weight=t(lib) + 1, density=True),
        "histogram one value": lambda lib: lib.histogram(lib.ones(3), 2),
        "histogram range": lambda lib: lib.histogram(t(lib), 3, range=(3.0, 1.0)),
        "histogram infinite": lambda lib: lib.histogram(lib.tensor([1.0, float("inf")]), 3),
        "histogram edges 2-d": lambda lib: lib.histogram(t(lib), lib.ones(1, 2)),
        "histogram no edges": lambda lib: lib.histogram(t(lib), lib.ones(0)),
        "histogram one edge": lambda lib: lib.histogram(t(lib), lib.ones(1)),
        "histogram edges dtype": lambda lib: lib.histogram(t(lib), lib.ones(2, dtype=lib.float64)),
        "histogram weights": lambda lib: lib.histogram(t(lib), 3, weight=lib.ones(4)),
        "histogram int": lambda lib: lib.histogram(lib.arange(3), 3),
        "histogram half": lambda lib: lib.histogram(t(lib, VALUES, "float16"), 3, range=(0.0, 1.0)),
        "histogramdd": lambda lib: lib.histogramdd(t(lib, points), [2, 3])[0],
        "histogramdd edges": lambda lib: lib.histogramdd(t(lib, points), [lib.arange(3.0), lib.arange(2.0)])[0],
        "histogramdd density": lambda lib: lib.histogramdd(t(lib, points), 2, density=True)[0],
        "histogramdd 1-d": lambda lib: lib.histogramdd(lib.ones(3), [2]),
        "histogramdd bins": lambda lib: lib.histogramdd(t(lib, points), [2]),
        "histogramdd range": lambda lib: lib.histogramdd(t(lib, points), [2, 2], range=[0.0, 1.0]),
        "bincount": lambda lib: lib.bincount(lib.tensor([1, 2, 2]), minlength=5),
        "bincount weights": lambda lib: lib.bincount(lib.tensor([1, 2, 2]), lib.tensor([0.5, 0.25, 1])),
        "bincount int weights": lambda lib: lib.bincount(lib.tensor([1, 2, 2]), lib.tensor([1, 2, 3])),
        "bincount nothing": lambda lib: lib.bincount(lib.zeros(0, dtype=lib.int64), minlength=2),
        "bincount negative": lambda lib: lib.bincount(lib.tensor([1, -2])),
        "bincount float": lambda lib: lib.bincount(lib.ones(2)),
        "bincount length": lambda lib: lib.bincount(lib.tensor([1]), minlength=-1),
        "bincount lengths": lambda lib: lib.bincount(lib.tensor([1, 2]), lib.ones(1)),
        "searchsorted rows": lambda lib: lib.searchsorted(t(lib, rows), t(lib, [[2.0], [6.0]]), right=True),
        "searchsorted nan": lambda lib: lib.searchsorted(t(lib, [1.0, 3, np.nan]), t(lib, [np.nan, 4, 2])),
        "searchsorted number": lambda lib: lib.searchsorted(t(lib, rows[0]), 3),
        "searchsorted mixed": lambda lib: lib.searchsorted(t(lib, rows[0]), lib.tensor([2, 3]), out_int32=True),
        "searchsorted side": lambda lib: lib.searchsorted(t(lib, rows[0]), 3, side="x"),
        "searchsorted sides": lambda lib: lib.searchsorted(t(lib, rows[0]), 3, side="left", right=True),
        "searchsorted row of numbers": lambda lib: lib.searchsorted(t(lib, rows), 3),
        "searchsorted shapes": lambda lib: lib.searchsorted(t(lib, rows), lib.ones(3, 2)),
        "searchsorted sorter": lambda lib: lib.searchsorted(t(lib, rows[0]), 3, sorter=lib.tensor([0, 1])),
        "searchsorted sorter dtype": lambda lib: lib.searchsorted(t(lib, rows[0]), 3, sorter=lib.ones(4)),
        "searchsorted sorter range": lambda lib: lib.searchsorted(t(lib, rows[0]), 3, sorter=lib.tensor([0, 1, 2, 9])),
        "searchsorted out": lambda lib: lib.searchsorted(t(lib, rows[0]), 3, out=lib.empty(0, dtype=lib.int32)),
        "searchsorted complex": lambda lib: lib.searchsorted(t(lib, rows[0]) + 0j, lib.ones(2) + 0j),
        "bucketize 2-d": lambda lib: lib.bucketize(lib.ones(2), t(lib, rows)),
        "bucketize number": lambda lib: lib.bucketize(3.5, t(lib, rows[0])),
    }


CASES = _transforms() | _windows() | _pieces() | _statistics() | _counts()


def arrays_or_error(lib: Any, call: Any) -> Any:
    """Return a call's results as arrays with their dtypes, or its error."""
    result = outcome(call, lib, words=lambda error: str(error).split("\nException raised")[0].strip())
    if isinstance(result, Raised):
        return result
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    wide = {"bfloat16": "float32"}
    arrays = []
    for one in parts:
        name = str(one.dtype).removeprefix("torch.")
        one = one.to(getattr(lib, wide.get(name, name)))
        arrays.append((name, np.asarray(one.resolve_conj().numpy())))
    return arrays


@pytest.mark.parametrize("name", CASES)
def test_call(name: str) -> None:
    theirs, ours = arrays_or_error(torch, CASES[name]), arrays_or_error(retrograd, CASES[name])
    if isinstance(theirs, Raised):
        assert isinstance(ours, Raised), f"no error; torch: {theirs}"
        assert ours.kind == theirs.kind, f"{ours}; torch: {theirs}"
        assert ours.words.startswith(theirs.words), f"{ours}\ntorch: {theirs}"
        return
    assert not isinstance(ours, Raised), f"{ours}"
    assert [n for n, _ in ours] == [n for n, _ in theirs]
    for (dtype, a), (_, b) in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(
            dtype, 2e-6 if "float32" in dtype or "64" in dtype else 1e-12
        )
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
