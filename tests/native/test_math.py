"""Functions that kernels compute themselves: how exact they are, and what they make of the ends of the number line."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._native import machine
from retrograd._native.math import FUNCTIONS, NARROW
from retrograd._native.program import formula
from tools.check_math import exact, kernel, measure_doubles, units_off

pytestmark = pytest.mark.skipif(not machine.is_available(), reason="kernels need llvmlite")

PAIRS = ("arctan2", "power")  # functions of two arguments
SINGLE = [name for name in FUNCTIONS if name not in PAIRS]
# where functions overflow, underflow, become constant, or change the way they are computed
ENDS = (
    0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 1e-10, 1e-5, 0.25, 0.34657359, 0.5, 0.693147, 0.75, 0.7517915, 1.0, 1.3333334, 1.5, 2.0,
    3.95, 9.1, 13.1, 14.4, 14.7, 16.0, 17.32868, 24.0, 64.0, 87.33655, 88.37626, 88.72284, 89.0, 89.41598, 103.27893, 103.97208, 126.0,
    127.0, 128.0, 149.0, 150.0, 1e10, 1e30, 3.4028235e38, float("inf"), float("nan"),
)  # fmt: skip


def _neighbours(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        below, above = np.nextafter(x, np.float32(-np.inf)), np.nextafter(x, np.float32(np.inf))
    return np.concatenate([x, below, above, -x, -below, -above])


def _sample() -> np.ndarray:
    bits = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), _neighbours(np.array(ENDS, np.float32))])


@pytest.mark.parametrize("name", SINGLE)
def test_float32_is_within_two_units_of_float64(name: str) -> None:
    """Every 4099th float32, and what lies beside the ends of ranges; `tools/check_math.py --all` takes them all."""
    x = _sample()
    off = units_off(kernel(name)(x), exact(name, x))
    worst = off.argmax()
    assert off[worst] <= 2, f"{name}({x[worst]!r}) is {off[worst]} units off"


LOOSE = {
    "erfcx",
    "exact_gelu",
    "exact_gelu_slope",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "ndtr",
}  # in float64 within four units


@pytest.mark.parametrize("name", [name for name in SINGLE if name not in NARROW])
def test_float64_is_within_two_units_of_mpmath(name: str) -> None:
    pytest.importorskip("mpmath")
    off, at = measure_doubles(name, 700)
    assert off <= (4 if name in LOOSE else 2), f"{name}({at!r}) is {off} units off"


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_any_angle_is_reduced_exactly(name: str) -> None:
    """Quarter turns of angles up to the end of float64; the last ones are as close to a multiple of them as float64 gets."""
    mp = pytest.importorskip("mpmath")
    draw = np.random.default_rng(0)
    spread = draw.uniform(-1, 1, 300) * 2.0 ** draw.integers(-30, 1024, 300)
    closest = [6381956970095103 * 2.0**797, float.fromhex("0x1.6ac5b262ca1ffp+849"), 1e22, 2.0**42, 2.0**1023]
    x = np.concatenate([spread, np.arange(1, 100) * np.pi / 2, closest])
    with mp.workprec(1300):
        for at, found in zip(x.tolist(), kernel(name)(x).tolist(), strict=True):
            right = getattr(mp, name)(mp.mpf(at))
            assert abs(mp.mpf(found) - right) <= 2 * mp.mpf(np.spacing(abs(float(right)))), (
                f"{name}({at!r}) is {found!r}"
            )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exact_gelu", "exact_gelu_slope"])
def test_what_half_precision_computes_by_shorter_polynomials_is_rounded_as_float64_is(name: str, dtype: str) -> None:
    """Every number there is: the result is not farther from the exact one than its rounding takes it, but for a twentieth."""
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    x = x[np.isfinite(x.astype(np.float32))]
    compiled = formula(lambda xp, x: getattr(xp, name)(x))
    found, right = compiled.large(numpy_namespace, (x,), {}).astype(np.float64), exact(name, x)
    about = ml_dtypes.finfo(kind)
    exponent = np.frexp(np.maximum(np.abs(right), float(about.smallest_normal)))[1] - 1
    off = np.abs(found - right) / np.ldexp(float(about.eps), exponent)
    assert off.max() <= 0.55, f"{name}({x[off.argmax()]!r}) is {off.max()} units off"
    ends = compiled.large(numpy_namespace, (np.tile(np.array([np.nan, np.inf, -np.inf], kind), 4000),), {})
    assert np.isnan(ends[[0, 2]]).all()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_with_and_without_large_angles_agree(name: str, dtype: type) -> None:
    """A block that has no large angle is gone over by a loop of its own: every angle has the bits that it has beside large ones."""
    draw = np.random.default_rng(0)
    near, far = draw.uniform(-100, 100, 20_001).astype(dtype), draw.uniform(-1e30, 1e30, 20_001).astype(dtype)
    some = near.copy()
    some[9000] = far[9000]
    run = kernel(name)
    alone, large, mixed = run(near), run(far), run(some)
    assert (run(np.where(np.arange(near.size) % 2, near, far))[1::2] == alone[1::2]).all()
    assert (np.delete(mixed, 9000) == np.delete(alone, 9000)).all()
    assert mixed[9000] == large[9000]
    assert np.abs(large - getattr(np, name)(far.astype(np.float64))).max() <= 4 * np.spacing(np.abs(large).max())


def test_powers_in_float64_are_within_two_units_of_mpmath() -> None:
    mp = pytest.importorskip("mpmath")
    draw = np.random.default_rng(0)
    x = np.concatenate(
        [np.exp(draw.normal(0, 3, 300)), draw.uniform(0.9, 1.1, 300), 2.0 ** draw.uniform(-1070, 1020, 300)]
    )
    y = np.concatenate([draw.normal(0, 20, 300), draw.uniform(-6000, 6000, 300), draw.uniform(-0.95, 0.95, 300)])
    with mp.workprec(200):
        for a, b, found in zip(x.tolist(), y.tolist(), kernel("power")(x, y).tolist(), strict=True):
            right = mp.power(mp.mpf(a), mp.mpf(b))
            assert abs(mp.mpf(found) - right) <= 2 * mp.mpf(np.spacing(float(right))), (
                f"power({a!r}, {b!r}) is {found!r}"
            )


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 100.0, -100.0, 1e30, -1e30, np.inf, -np.inf, np.nan]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SINGLE)
def test_special_values_are_those_of_torch(name: str, dtype: str) -> None:
    import torch

    found = kernel(name)(np.array(SPECIAL, dtype))
    named = {
        "exact_gelu": torch.nn.functional.gelu,
        "exact_gelu_slope": lambda x: torch.ops.aten.gelu_backward(torch.ones_like(x), x),
    }
    function = named.get(name) or getattr(torch, name, None) or getattr(torch.special, name)
    # one by one: its vectors have another gelu of infinity
    right = torch.stack([function(x) for x in torch.tensor(SPECIAL, dtype=getattr(torch, dtype))]).numpy()
    # torch takes a detour over infinity, and finds 0
    right[(name == "sigmoid") & (right == 0)] = found[(name == "sigmoid") & (right == 0)]
    for at, got, want in zip(SPECIAL, found, right, strict=True):
        if not np.isfinite(want) or want in (0, 1, -1):
            np.testing.assert_equal(got, want, err_msg=f"{name}({at})")
            assert np.signbit(got) == np.signbit(want) or np.isnan(want), f"{name}({at}) is {got}, not {want}"
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=f"{name}({at})")


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_special_values_give_what_torch_gives(name: str, dtype: str) -> None:
    import torch

    values = [*SPECIAL, 3.0, -3.0, 1e-30, -1e-30, 2.5, -2.5]
    x, y = (a.reshape(-1) for a in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))
    found = kernel(name)(x, y)
    function = {"arctan2": torch.atan2, "power": torch.pow}[name]
    right = function(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    for a, b, got, want in zip(x, y, found, right, strict=True):
        what = f"{name}({a}, {b}) is {got}, not {want}"
        assert got == want or (np.isnan(got) and np.isnan(want)) or np.isclose(got, want, rtol=1e-5, atol=1e-44), what
        assert np.signbit(got) == np.signbit(want) or np.isnan(want), what


def test_pairs_in_float32_are_within_two_units_of_float64() -> None:
    draw = np.random.default_rng(0)
    x, y = (np.exp(draw.normal(0, 5, 200_000)) * draw.choice([-1, 1], 200_000) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    for name in PAIRS:
        given = (np.abs(x), y / 10) if name == "power" else (x, y)
        off = units_off(kernel(name)(*given), exact(name, *given))
        assert off.max() <= 2, (name, off.max(), [a[off.argmax()] for a in given])


def test_large_tensors_have_the_same_results_in_any_place() -> None:
    """A vector loop and what is left behind it compute the same bits."""
    for name in SINGLE:
        x = np.full(20011, 0.7, np.float32)
        assert len(np.unique(kernel(name)(x))) == 1, name


def test_functions_keep_their_type() -> None:
    from retrograd._native.expression import input

    for name, function in FUNCTIONS.items():
        for type in ("f32", "f64"):
            args = [input(k, type) for k in range(1 + (name in PAIRS))]
            assert function(*args).type == type, name


def test_coefficients_are_numbers_of_their_format() -> None:
    from retrograd._native.coefficients import COEFFICIENTS

    wide = {
        "cos",
        "erfc",
        "erfinv",
        "erfinv_far",
        "i0",
        "i0_far",
        "i1",
        "i1_far",
        "lgamma",
        "log_ratio",
        "sin",
    }  # computed in float64 for both
    for name, formats in COEFFICIENTS.items():
        if name not in wide:
            assert all(float(np.float32(c)) == c for c in formats.get("f32", ())), name
