"""Round as torch's compiled kernels do: with libm's functions and fused multiply-adds."""

from __future__ import annotations

import math

import numpy as np

from .._thresholds import NATIVE
from .filling import Array

# Up to here libm is called per element, which reproduces torch's last bit; NumPy's loops may be 1 ulp off.
_LIBM_LIMIT = 1 << 12


def libm(function: str, values: Array) -> Array:
    """Apply a function of both math and NumPy, by libm itself where there are few values."""
    if values.size <= _LIBM_LIMIT:
        try:
            return np.array(list(map(getattr(math, function), values.tolist())), np.float64)
        except (ValueError, OverflowError):
            pass  # math refuses log(0) and exp(1000), to which C++ and NumPy give an infinity
    with np.errstate(all="ignore"):
        result: Array = getattr(np, function)(values)
    return result


def multiply_add32(values: Array, scale: float, offset: float) -> Array:
    """Return `values * scale + offset` in float32, rounded once, as a fused instruction rounds it."""
    if values.size >= NATIVE:
        from .of_words import multiply_add  # only when asked for: kernels take time to import

        if (many := multiply_add(values, scale, offset)) is not None:
            return many
    with np.errstate(over="ignore", invalid="ignore"):
        scale, offset = float(np.float32(scale)), float(np.float32(offset))
        if offset == 0.0:
            return values * np.float32(scale) + np.float32(0.0)
        total = values * np.float64(scale)
        total += offset
    # The product is exact; rounding the sum twice goes wrong only where the first rounding makes a tie.
    ties = np.flatnonzero((total.view(np.uint64) & np.uint64(0x1FFFFFFF)) == 0x10000000)
    for index in ties.tolist():
        product, whole = float(values[index]) * scale, float(total[index])
        error = (product - (whole - (whole - product))) + (offset - (whole - product))
        total[index] = math.nextafter(whole, math.copysign(math.inf, error)) if error else whole
    with np.errstate(over="ignore"):
        return total.astype(np.float32)


def multiply_add64(values: Array, scale: float, offset: float) -> Array:
    """Return `values * scale + offset` in float64, rounded once, as a fused instruction rounds it."""
    with np.errstate(over="ignore", invalid="ignore"):
        if offset == 0.0 or math.frexp(scale)[0] == 0.5:
            return values * scale + offset
        product, product_error = _two_product(values, scale)
        total = product + offset
        shadow = total - product
        rest = offset - shadow
        rest += product - (total - shadow)
        rest += product_error
        fused: Array = total + rest
        if not np.isfinite(fused).all():
            fused = np.where(np.isfinite(fused), fused, product + offset)
    # Rounding the rest matters only where it made a tie of the last sum, so only if few of its bits are set.
    is_short = (rest.view(np.int64) & ((1 << 50) - 1)) == 0
    is_short &= rest != 0.0
    for index in np.flatnonzero(is_short).tolist():
        if math.isfinite(fused[index]):
            fused[index] = _exactly(float(values[index]), scale, offset)
    return fused


def _exactly(value: float, scale: float, offset: float) -> float:
    from fractions import Fraction  # rarely needed, and costs import time

    return float(Fraction(value) * Fraction(scale) + Fraction(offset))


def _two_product(values: Array, scale: float) -> tuple[Array, Array]:
    """Return the rounded product and its exact error (Dekker)."""
    splitter = float(2**27 + 1)
    scale_high = scale * splitter - (scale * splitter - scale)
    scale_low = scale - scale_high
    high = values * splitter
    high -= high - values
    low = values - high
    product = values * scale
    error = high * scale_high
    error -= product
    high *= scale_low
    error += high
    error += low * scale_high
    low *= scale_low
    error += low
    return product, error
