"""Convolutions in direct loops over whole planes."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd import _thresholds
from retrograd._native import direct, machine, nests, patches
from tests.native.test_patches import CONVOLUTIONS, convolved

needs_llvm = pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
SMALL_KERNELS = [one for one in CONVOLUTIONS if one[1][-1] <= 9]


def all_direct(monkeypatch) -> list[str]:
    """Let direct loops take everything; returns the list of those that will have been called."""
    monkeypatch.setattr(nests, "NATIVE", 1)
    monkeypatch.setattr(direct, "takes", lambda *_: True)
    monkeypatch.setattr(patches.Layout, "is_small", False)
    used: list[str] = []
    for name in ("convolve", "convolve_weight"):
        inner = getattr(direct, name)
        monkeypatch.setattr(direct, name, lambda *args, name=name, inner=inner: (used.append(name), inner(*args))[1])
    return used


@needs_llvm
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "kernel", "options"), SMALL_KERNELS)
def test_direct_loops(monkeypatch, shape, kernel, options, threads) -> None:
    """The same as NumPy with patches."""
    monkeypatch.setattr(nests, "NATIVE", 1 << 40)
    wanted = convolved(rg, shape, kernel, options)
    used = all_direct(monkeypatch)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: threads)
    monkeypatch.setattr(direct, "STRIP", 64)
    nests.compiled.cache_clear()
    got = convolved(rg, shape, kernel, options)
    nests.compiled.cache_clear()
    assert {"convolve", "convolve_weight"} <= set(used)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-11)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("shape", "kernel", "options"), [
    ((3, 4, 40, 41), (7, 4, 3, 3), {"padding": 1}),
    ((1, 4, 40, 41), (8, 2, 5, 5), {"padding": 2, "groups": 2}),
    ((2, 3, 60, 61), (5, 3, 3, 3), {"stride": 2, "dilation": 2}),
    ((2, 3, 3000), (4, 3, 9), {"padding": 4}),
])  # fmt: skip
def test_as_torch(shape, kernel, options, dtype) -> None:
    torch = pytest.importorskip("torch")
    close = {"float32": 1e-4, "float64": 1e-11, "bfloat16": 2e-2}[dtype]
    asked = []
    for library in (rg, torch):
        rng = np.random.default_rng(0)
        x, weight, bias = (
            library.tensor(rng.normal(size=s), dtype=getattr(library, dtype), requires_grad=True)
            for s in (shape, kernel, kernel[:1])
        )
        out = getattr(library.nn.functional, f"conv{len(kernel) - 2}d")(x, weight, bias, **options)
        asked.append([a.double().detach().numpy() for a in (out, *library.autograd.grad(out.sum(), (x, weight, bias)))])
    for one, other in zip(*asked, strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=close * (1 + np.abs(other).max()))


@pytest.mark.parametrize("groups", [1, 2])
def test_what_no_window_reads_has_no_gradient(groups) -> None:
    """Between rows of windows zeros are multiplied, also with what lies there: the sums are taken in another way then."""
    x = rg.ones(1, 2, 100, 100)
    x[..., 99] = float("inf")
    weight = rg.ones(2, 2 // groups, 3, 3, requires_grad=True)
    g = rg.ones(1, 2, 98, 98)
    g[..., 97] = 0.0
    (found,) = rg.autograd.grad(rg.nn.functional.conv2d(x, weight, groups=groups), weight, g)
    assert (found[..., :2] == 98 * 97).all()
    assert found[..., 2].isnan().all()  # 0 times infinity
