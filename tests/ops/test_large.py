"""Large arrays take other ways than small ones: in blocks, by bits, by BLAS. Both must give the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special

import retrograd as rg
from retrograd import _thresholds
from retrograd._core import passes

COUNT = 2 * _thresholds.KERNEL_BLOCK + 17  # the last block is a short one
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 0.5, -0.5, 1e-8, 20.0, -20.0, 65519.0],
    np.float32,
)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def normals(scale: float = 3.0, special: bool = True) -> np.ndarray:
    """Draw normal numbers, with special ones in the first and the last block."""
    drawn = (np.random.default_rng(0).standard_normal(COUNT) * scale).astype(np.float32)
    if special:
        drawn[: SPECIAL.size] = drawn[-SPECIAL.size :] = SPECIAL
    return drawn


def positive() -> np.ndarray:
    """Draw positive numbers around 1, of many sizes, among them 1 and 2."""
    drawn = np.exp(normals(2.0, special=False))
    drawn[:4] = [1, 2, 1e-6, 1e4]
    return drawn


def assert_close(got: np.ndarray, wanted: np.ndarray, ulps: float) -> None:
    """Compare float32 with the numbers of float64; NaN and infinities must agree, and zeros' signs."""
    assert got.dtype == np.float32
    rounded = wanted.astype(np.float32)
    exact = ~np.isfinite(rounded) | (rounded == 0)
    np.testing.assert_array_equal(got[exact], rounded[exact])
    some = ~exact
    error = np.abs(got[some].astype(np.float64) - wanted[some]) / np.spacing(np.abs(rounded[some]))
    assert error.max() <= ulps


FUNCTIONS: dict[str, tuple[Callable[..., object], Callable[..., np.ndarray], Callable[[], np.ndarray], float]] = {
    "erf": (rg.erf, scipy.special.erf, normals, 7),
    "erfc": (rg.erfc, scipy.special.erfc, normals, 3),
    "erfcx": (rg.special.erfcx, scipy.special.erfcx, normals, 3),
    "erfinv": (rg.erfinv, scipy.special.erfinv, lambda: normals(0.4), 6),
    "ndtr": (rg.special.ndtr, scipy.special.ndtr, normals, 3),
    "entr": (rg.special.entr, scipy.special.entr, normals, 3),
    "entr of positive numbers": (rg.special.entr, scipy.special.entr, positive, 4),
    "sigmoid": (rg.sigmoid, scipy.special.expit, lambda: normals(3.0, special=False), 4),
    "lgamma": (rg.lgamma, scipy.special.gammaln, positive, 2),
    "polygamma(1)": (lambda x: rg.polygamma(1, x), lambda x: scipy.special.polygamma(1, x), positive, 8),
    "polygamma(2)": (lambda x: rg.polygamma(2, x), lambda x: scipy.special.polygamma(2, x), positive, 8),
    "frac": (rg.frac, lambda x: x - np.trunc(x), normals, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_a_large_array(name: str) -> None:
    function, reference, draw, ulps = FUNCTIONS[name]
    x = draw()
    assert_close(function(rg.tensor(x)).numpy(), reference(x.astype(np.float64)), ulps)


@pytest.mark.parametrize("name", ["erfc", "erfinv", "lgamma", "frac", "sigmoid"])
def test_function_of_a_large_transposed_matrix(name: str) -> None:
    function, _, draw, _ = FUNCTIONS[name]
    x = draw()[: 256 * 128].reshape(256, 128)
    turned = function(rg.tensor(x).T)
    np.testing.assert_array_equal(turned.numpy(), function(rg.tensor(x)).numpy().T)


PAIRS: dict[str, tuple[Callable[..., object], Callable[..., np.ndarray], float]] = {
    "hypot": (rg.hypot, np.hypot, 2),
    "copysign": (rg.copysign, np.copysign, 0),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("special", [False, True])
def test_function_of_two_large_arrays(name: str, special: bool) -> None:
    function, reference, ulps = PAIRS[name]
    x, y = normals(special=special), normals(special=special)[::-1].copy()
    wanted = reference(x.astype(np.float64), y.astype(np.float64))
    got = function(rg.tensor(x), rg.tensor(y)).numpy()
    assert_close(got, wanted, ulps)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(wanted[~np.isnan(got)]))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("number", [False, True])
def test_rounded_quotient(torch, name: str, special: bool, number: bool) -> None:
    x = normals(special=special)
    y = normals(special=special)[::-1].copy()
    y[np.abs(y) < 1e-3] = 0.75
    x[np.isfinite(x) & (np.abs(x) > 1e30)] = 5  # torch gives NaN there, in vectors only
    divisor = (2.0, 2.0) if number else (rg.tensor(y), torch.from_numpy(y))
    got = getattr(rg, name)(rg.tensor(x), divisor[0]).numpy()
    wanted = getattr(torch, name)(torch.from_numpy(x), divisor[1]).numpy()
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.oracle
@pytest.mark.parametrize("special", [False, True])
def test_lerp_by_weights_and_by_a_number(torch, special: bool) -> None:
    x, y, weight = normals(special=special), normals()[::-1].copy(), normals(1.0)
    for w in (weight, 0.25, 0.75):
        ours = rg.lerp(rg.tensor(x), rg.tensor(y), rg.tensor(w) if isinstance(w, np.ndarray) else w)
        theirs = torch.lerp(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(w) if w is weight else w)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
    ends = rg.lerp(rg.tensor(x), rg.tensor(y), rg.tensor((np.arange(COUNT) % 2).astype(np.float32))).numpy()
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(y - x)
    np.testing.assert_array_equal(ends[finite], np.where(np.arange(COUNT) % 2, y, x)[finite])


def test_halves_to_the_bit() -> None:
    """Every float16 both ways, and numbers around the borders of rounding."""
    every = np.tile(np.arange(1 << 16, dtype=np.uint16).view(np.float16), 2)
    number = ~np.isnan(every)  # the processor makes every NaN a quiet one
    got = rg.tensor(every).float().numpy()
    np.testing.assert_array_equal(got[number].view(np.uint32), every[number].astype(np.float32).view(np.uint32))
    assert np.isnan(got[~number]).all()
    wide = np.concatenate([every.astype(np.float32), normals(1.0), normals(1e-6), normals(4e4)])
    bits = wide.view(np.int32)
    for near in (bits, bits + 0x1000, bits + 0xFFF, bits - 1):
        x = near.view(np.float32)
        np.testing.assert_array_equal(rg.tensor(x).half().numpy(), x.astype(np.float16))


@pytest.mark.parametrize("shape", [(300, 70), (70, 300), (3, 65, 65), (64, 64)])
@pytest.mark.parametrize("k", [-400, -65, -1, 0, 1, 33, 400])
@pytest.mark.parametrize("upper", [False, True])
def test_triangle(shape: tuple[int, ...], k: int, upper: bool) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[..., 0, 0], x[..., 5, 7] = np.nan, np.inf
    for given in (x, x.swapaxes(-1, -2)):
        got = passes.triangle(given, upper, k)
        np.testing.assert_array_equal(got, np.triu(given, k) if upper else np.tril(given, k))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("length", [1, 15, 16, 250, 1021])
def test_running_extremes(torch, name: str, length: int) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (1 << 16) // length * length).astype(np.float32).reshape(-1, length)
    x[::3, length // 2] = np.nan
    values, indices = getattr(rg, name)(rg.tensor(x), 1)
    wanted, places = getattr(torch, name)(torch.from_numpy(x), 1)
    np.testing.assert_array_equal(values.numpy(), wanted.numpy())
    np.testing.assert_array_equal(indices.numpy(), places.numpy())


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("size", [1.0, 50.0, 1e4])
def test_softmax_of_many_rows(torch, name: str, size: float) -> None:
    x = (np.random.default_rng(0).standard_normal((403, 250)) * size).astype(np.float32)
    x[3, 4], x[5], x[6, 7], x[8, 9] = np.inf, -np.inf, np.nan, -np.inf
    ours, theirs = rg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    got, wanted = getattr(rg, name)(ours, 1), getattr(torch, name)(theirs, 1)
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=3e-6, atol=2e-6 * min(size, 1e3))
    weights = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)
    got.backward(rg.tensor(weights))
    wanted.backward(torch.from_numpy(weights))
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.oracle
@pytest.mark.parametrize("repeated", [False, True])
def test_index_add_of_long_rows(torch, repeated: bool) -> None:
    random = np.random.default_rng(0)
    x, source = (random.standard_normal((100, 200)).astype(np.float32) for _ in range(2))
    index = random.integers(0, 100, 100) if repeated else random.permutation(100)
    got = rg.index_add(rg.tensor(x), 0, rg.tensor(index), rg.tensor(source))
    wanted = torch.index_add(torch.from_numpy(x), 0, torch.from_numpy(index), torch.from_numpy(source))
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("short", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sum_of_many_short_rows(short: int, keepdim: bool) -> None:
    x = np.random.default_rng(0).standard_normal((3000, short)).astype(np.float32)
    x[7, 0] = np.inf
    got = rg.tensor(x).sum(1, keepdim=keepdim).numpy()
    np.testing.assert_allclose(got, x.sum(1, keepdims=keepdim), rtol=1e-5, atol=1e-6)


def test_outer_product_as_a_product_of_matrices() -> None:
    x, y = (np.random.default_rng(k).standard_normal(n).astype(np.float32) for k, n in enumerate((90, 110)))
    got = rg.tensor(x[:, None]) @ rg.tensor(y[None])
    np.testing.assert_array_equal(got.numpy(), np.outer(x, y))


def test_equal_looks_at_the_start_first() -> None:
    x = rg.tensor(normals(special=False))
    late, early = x.clone(), x.clone()
    late[-1], early[0] = 7.0, 7.0
    assert rg.equal(x, x.clone())
    assert not rg.equal(x, late)
    assert not rg.equal(x, early)


@pytest.mark.oracle
def test_logit_and_its_slope(torch) -> None:
    x = np.clip(normals(0.5), -3, 3)
    ours, theirs = rg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for eps in (None, 0.1):
        got, wanted = rg.logit(ours, eps), torch.logit(theirs, eps)
        np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
        (mine,) = rg.autograd.grad(got.sum(), ours)
        (his,) = torch.autograd.grad(wanted.sum(), theirs)
        plain = ~np.isnan(x) & (x != 0)  # elsewhere torch's own answer depends on where in the array a number stands
        np.testing.assert_allclose(mine.numpy()[plain], his.numpy()[plain], rtol=1e-5)
