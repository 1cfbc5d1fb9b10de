"""Draw integers as torch's random_, randint and randperm do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._warnings import warn
from .filling import (
    FEW,
    LARGEST_FLOAT,
    NUMBERS,
    SIGNIFICAND_BITS,
    TORCH_NAMES,
    Array,
    cast,
    fill,
    name_of,
    refuse_unless,
)
from .generator import Generator

if TYPE_CHECKING:
    import numpy.typing as npt

_INT64_MIN = -(1 << 63)
INT64 = np.dtype(np.int64)


def randint(gen: Generator, shape: Sequence[int], low: int, high: int, np_dtype: npt.DTypeLike) -> Array:
    """Draw as torch.randint."""
    if np_dtype is INT64 and 0 < high - low < 1 << 28 and -(1 << 62) < low < 1 << 62:  # nothing to check
        count = shape[0] if len(shape) == 1 else math.prod(shape)
        if count <= FEW:
            span = high - low
            few: Array = np.array([word % span + low for word in gen.few32(count)], INT64)
            return few if len(shape) == 1 else few.reshape(shape)
    return random_(gen, shape, np_dtype, low, high)


def random_(
    gen: Generator,
    shape: Sequence[int],
    np_dtype: npt.DTypeLike,
    low: int | None = None,
    high: int | None = None,
) -> Array:
    """Draw as torch's random_: over all of the dtype, from `low` up, or in [low, high)."""
    dtype = np.dtype(np_dtype)
    if low is None and high is None:
        return _random_nonnegative(gen, shape, dtype)
    low = 0 if low is None else low
    if high is not None and low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if high is None and low == _INT64_MIN:
        return _random_all_of_int64(gen, shape, dtype)
    low, last = _settle_bounds(dtype, low, high)
    _check_bounds(dtype, low, last)
    span = (last - low + 1) % (1 << 64)
    base = np.uint64(low % (1 << 64))

    def draw(count: int) -> Array:
        if span < 1 << 28 and -(1 << 62) < low < 1 << 62:
            return np.add(gen.random32(count) % np.uint32(span), low, dtype=np.int64)
        # From 2**28 values on, 32 bits would skew the remainder too much.
        values = (
            gen.random64(count) % np.uint64(span)
            if span >= 1 << 28
            else (gen.random32(count) % np.uint32(span)).astype(np.uint64)
        )
        return (values + base).view(np.int64)

    return fill(shape, dtype, draw)


def _settle_bounds(dtype: np.dtype[Any], low: int, high: int | None) -> tuple[int, int]:
    """Return the first and last value, moved inwards where casting a draw to a float would leave them."""
    digits = SIGNIFICAND_BITS.get(name_of(dtype))
    if digits is None:
        if dtype.kind not in "biu":
            name = "check_random_bounds" if high is not None else "random_from_to_impl"
            raise RuntimeError(f"{name} handles only integral, floating-point and boolean types")
        if high is None:
            # As int64, which is how torch comes to refuse uint64.
            limit = 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
            return low, limit if limit < 1 << 63 else limit - (1 << 64)
        return low, high - 1

    def through_dtype(value: int) -> int:
        rounded = float(cast(np.array(value), dtype))
        return int(rounded) if _INT64_MIN <= rounded < -_INT64_MIN else _INT64_MIN

    after_low = through_dtype(low + 1)
    if after_low < low:
        low = after_low + (1 << (abs(low + 1).bit_length() - digits))
    if high is None:
        last = 1 << digits
        if low >= last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
                f"dtype, but got from={low} > to_inc={last}"
            )
        return low, last
    before_high = through_dtype(high - 1)
    if before_high >= high:
        high = before_high - (1 << (abs(high - 1).bit_length() - digits))
    if low >= high:
        raise RuntimeError(
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
            f"but got from={low} >= to={high}"
        )
    return low, high - 1


def _check_bounds(dtype: np.dtype[Any], low: int, last: int) -> None:
    cpp_name = TORCH_NAMES[name_of(dtype)][1]
    digits = SIGNIFICAND_BITS.get(name_of(dtype))
    least: float
    most: float
    if digits is not None:
        least, most = -LARGEST_FLOAT[name_of(dtype)], LARGEST_FLOAT[name_of(dtype)]
    elif dtype.kind == "b":
        least, most = 0, 1
    else:
        least, most = int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), (1 << 63) - 1)
    for name, value in (("from", low), ("to - 1", last)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name}")
    for name, value in (("from", low), ("to - 1", last)):
        if digits is not None and abs(value) > 1 << digits:
            warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                f"{cpp_name} can support discrete uniform distribution only within this range. This warning "
                "will become an error in version 1.7 release, please fix the code in advance"
            )


def _random_nonnegative(gen: Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    refuse_unless(dtype, ("bool", *NUMBERS), "random_kernel_cpu")
    if name_of(dtype) in SIGNIFICAND_BITS:
        span = (1 << SIGNIFICAND_BITS[name_of(dtype)]) + 1
    else:
        span = 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1
    if name_of(dtype) in ("int64", "float64"):
        return fill(shape, dtype, lambda count: (gen.random64(count) % np.uint64(span)).view(np.int64))
    return fill(shape, dtype, lambda count: gen.random32(count) % np.uint32(span))


def _random_all_of_int64(gen: Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    kernel = "random_full_64_bits_range_kernel_cpu"
    refuse_unless(dtype, [name for name in NUMBERS if name != "float16"], kernel)
    if dtype.kind in "iu" and name_of(dtype) != "int64":
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
    return fill(shape, dtype, lambda count: gen.random64(count).view(np.int64))


# Above this length torch draws 64 bits per element and builds the permutation inside out.
_LONG_PERMUTATION = 0xFFFFFFFF // 20
_LONGEST_FLOAT_PERMUTATION = {
    "float16": (2049, "2049"),
    "float32": ((1 << 24) + 1, "2^24+1"),
    "float64": ((1 << 53) + 1, "2^53+1"),
}


def randperm(gen: Generator, n: int, np_dtype: npt.DTypeLike = np.int64) -> Array:
    """Draw as torch.randperm."""
    dtype = np.dtype(np_dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype.kind in "iu" and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {name_of(dtype)}_t without overflow")
    longest, description = _LONGEST_FLOAT_PERMUTATION.get(name_of(dtype), (n, ""))
    if n > longest:
        scalar_name = TORCH_NAMES[name_of(dtype)][0]
        raise RuntimeError(f"n cannot be greater than {description} for {scalar_name} type.")
    refuse_unless(dtype, NUMBERS, "randperm")
    if n >= _LONG_PERMUTATION:
        partners = (gen.random64(n) % np.arange(1, n + 1, dtype=np.uint64)).view(np.int64)
        return cast(_shuffle_inside_out(partners), dtype)
    if n <= FEW:
        few = list(range(n))
        for k, word in enumerate(gen.few32(max(n - 1, 0))):
            at = k + word % (n - k)
            few[k], few[at] = few[at], few[k]
        return cast(np.array(few, np.int64), dtype)
    partners = np.arange(n)
    partners[:-1] += (gen.random32(max(n - 1, 0)) % np.arange(n, 1, -1, dtype=np.uint32)).astype(np.int64)
    return cast(_shuffle_forwards(partners), dtype)


def _link_equal_partners(partners: Array) -> tuple[Array, Array]:
    """Return for each position the last step with it as partner, for each step the one before with the same.

    Either is -1 where there is none.
    """
    last = np.full(partners.size, -1)
    before = np.full(partners.size, -1)
    steps = np.arange(partners.size)
    # NumPy keeps the last of several values assigned to one place; every round takes those steps away.
    last[partners] = steps
    newest = last.copy()
    left = np.flatnonzero(newest[partners] != steps)
    places = partners[left]
    while left.size:
        follower = newest[places]
        newest[places] = left
        found = newest[places]
        before[follower] = found
        not_found = np.flatnonzero(found != left)
        left, places = left[not_found], places[not_found]
    return last, before


def _follow(links: Array) -> Array:
    """Return where each chain of links ends, an end being a link to itself."""
    links = links.copy()
    moving = np.flatnonzero(links != np.arange(links.size))
    while moving.size:
        here = links[moving]
        there = links[here]
        links[moving] = there
        moving = moving[np.flatnonzero(there != here)]
    return links


def _shuffle_forwards(partners: Array) -> Array:
    """Swap every position in turn with its partner, which is not before it.

    A swap moves what stood at its own position to the partner's, where it stays until the next step with
    the same partner takes it, or the partner's own step.
    """
    steps = np.arange(partners.size)
    last, before = _link_equal_partners(partners)
    arrived_from = np.where(last == steps, before, last)
    own = _follow(np.where(arrived_from < 0, steps, arrived_from))
    return np.where(before < 0, partners, own[before])


def _shuffle_inside_out(partners: Array) -> Array:
    """Add every number in turn: what stands at its partner moves to the end, the number takes its place."""
    steps = np.arange(partners.size)
    last, before = _link_equal_partners(partners)
    moved = np.where(before < 0, steps, before)
    moved = moved[_follow(np.where(before < 0, partners, steps))]
    return np.where(last < 0, moved, last)
