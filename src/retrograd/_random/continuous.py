"""Draw single uniform values and transform them: torch's uniform_, bernoulli_, exponential_ and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arithmetic import libm, multiply_add32, multiply_add64
from .filling import (
    FEW,
    LARGEST_FLOAT,
    NUMBERS,
    SIGNIFICAND_BITS,
    TORCH_NAMES,
    Array,
    cast,
    draw_complex,
    fill,
    name_of,
    refuse_unless,
)
from .gaussian import standard_normals
from .generator import Generator

if TYPE_CHECKING:
    import numpy.typing as npt


SINGLE = np.dtype(np.float32)


def uniform(
    gen: Generator, shape: Sequence[int], np_dtype: npt.DTypeLike, low: float = 0.0, high: float = 1.0
) -> Array:
    """Draw as torch's uniform_."""
    if len(shape) == 1 and shape[0] <= FEW and np_dtype is SINGLE and low == 0.0 and high == 1.0:  # what is quickest
        return gen.few_floats(shape[0])
    dtype = np_dtype if isinstance(np_dtype, np.dtype) else np.dtype(np_dtype)
    if dtype.kind == "c" or dtype.fields:
        return draw_complex(shape, dtype, lambda parts, real: uniform(gen, parts, real, low, high))
    refuse_unless(dtype, SIGNIFICAND_BITS, "check_uniform_bounds")
    if low == 0.0 and high == 1.0 and dtype.itemsize > 2:  # nothing to scale, and no bound to reach
        count = math.prod(shape)
        if count <= FEW:
            few: Array = np.array(gen.few_doubles(count), dtype) if dtype.itemsize == 8 else gen.few_floats(count)
            return few if len(shape) == 1 else few.reshape(shape)
        return fill(shape, dtype, gen.unit_doubles if dtype.itemsize == 8 else gen.unit_floats)
    largest = LARGEST_FLOAT[name_of(dtype)]
    scalar_name, cpp_name = TORCH_NAMES[name_of(dtype)]
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    low_rounded, high_rounded = cast(np.array([low, high]), dtype)

    def draw(count: int) -> Array:
        if name_of(dtype) == "float64":
            values = multiply_add64(gen.unit_doubles(count), high - low, low)
        else:
            span = float(np.float32(high) - np.float32(low))
            values = cast(multiply_add32(gen.unit_floats(count), span, low), dtype)
        # Rounding may reach the excluded upper bound, which torch turns into the lower one.
        if (reached := values == high_rounded).any():
            values[reached] = low_rounded
        return values

    return fill(shape, dtype, draw)


def bernoulli(gen: Generator, p: float | Array, shape: Sequence[int], np_dtype: npt.DTypeLike = np.float32) -> Array:
    """Draw as torch's bernoulli_, with one probability or with an array that broadcasts to `shape`."""
    dtype = np_dtype if isinstance(np_dtype, np.dtype) else np.dtype(np_dtype)
    if isinstance(p, np.ndarray):
        if p.dtype is dtype is SINGLE and 0 < p.size <= FEW and p.shape == shape and p.ndim == 1:
            chances = p.tolist()
            if min(chances) >= 0 and max(chances) <= 1:
                few: Array = np.less(gen.few_floats(p.size), p).astype(SINGLE)
                return few
        return _bernoulli_each(gen, p, shape, dtype)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    refuse_unless(dtype, ("bool", *NUMBERS), "bernoulli_scalar_cpu_")
    return fill(shape, dtype, lambda count: gen.with_chance(count, p))


def _bernoulli_each(gen: Generator, p: Array, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    refuse_unless(dtype, ("bool", *NUMBERS), "bernoulli_tensor_cpu_self_")
    refuse_unless(p.dtype, SIGNIFICAND_BITS, "bernoulli_tensor_cpu_p_")
    # Only float64 probabilities are compared with float64 draws, which take two words each.
    is_double = p.dtype == np.float64
    draw = gen.unit_doubles if is_double else gen.unit_floats
    each = np.broadcast_to(p.astype(np.float64 if is_double else np.float32), shape).ravel()
    if each.size <= FEW and min(chances := each.tolist()) >= 0 and max(chances) <= 1:
        units = gen.few_doubles(each.size) if is_double else gen.few_floats(each.size).tolist()
        found = np.array([unit < chance for unit, chance in zip(units, chances, strict=True)])
        return cast(found, dtype).reshape(shape)
    refused = np.flatnonzero(~((each >= 0) & (each <= 1)))
    if refused.size:
        draw(int(refused[0]))  # torch has drawn for the elements before the one it refuses
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
            "(Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    return cast(draw(each.size) < each, dtype).reshape(shape)


def exponential(gen: Generator, shape: Sequence[int], np_dtype: npt.DTypeLike, rate: float = 1.0) -> Array:
    """Draw as torch's exponential_, whose rate is the argument lambd."""
    dtype = np.dtype(np_dtype)
    if not rate > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    _refuse_discrete("Exponential", dtype, TORCH_NAMES[name_of(dtype)][0])
    return fill(shape, dtype, lambda count: (-1.0 / rate) * libm("log1p", -gen.unit_doubles(count)))


def cauchy(
    gen: Generator, shape: Sequence[int], np_dtype: npt.DTypeLike, median: float = 0.0, sigma: float = 1.0
) -> Array:
    """Draw as torch's cauchy_."""
    dtype = np.dtype(np_dtype)
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _refuse_discrete("Cauchy", dtype, TORCH_NAMES[name_of(dtype)][1])

    def draw(count: int) -> Array:
        return multiply_add64(libm("tan", math.pi * (gen.unit_doubles(count) - 0.5)), sigma, median)

    return fill(shape, dtype, draw)


def log_normal(
    gen: Generator, shape: Sequence[int], np_dtype: npt.DTypeLike, mean: float = 1.0, std: float = 2.0
) -> Array:
    """Draw as torch's log_normal_, which never takes the block algorithm of normal_."""
    dtype = np.dtype(np_dtype)
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    refuse_unless(dtype, SIGNIFICAND_BITS, "log_normal_cpu")
    return fill(shape, dtype, lambda n: libm("exp", multiply_add64(standard_normals(gen, n), std, mean)))


def geometric(gen: Generator, shape: Sequence[int], np_dtype: npt.DTypeLike, p: float) -> Array:
    """Draw as torch's geometric_."""
    dtype = np.dtype(np_dtype)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    refuse_unless(dtype, NUMBERS, "geometric_cpu")
    return fill(shape, dtype, lambda count: np.ceil(libm("log", gen.unit_doubles(count)) / math.log1p(-p)))


def _refuse_discrete(distribution: str, dtype: np.dtype[Any], name: str) -> None:
    if name_of(dtype) not in SIGNIFICAND_BITS:
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {name}"
        )
