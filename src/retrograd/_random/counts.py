"""Draw counts: torch's poisson."""

from __future__ import annotations

import math

import numpy as np

from .ahead import Uniforms
from .filling import Array, cast
from .generator import Generator

# From this rate on counting arrivals takes longer than rejection.
_LARGE_RATE = 10.0


def poisson(gen: Generator, rates: Array) -> Array:
    """Draw as torch.poisson, one count for each rate."""
    wide = rates.astype(np.float64)
    uniform = Uniforms(gen)
    counts = []
    try:
        for rate in wide.ravel().tolist():
            if not rate >= 0:
                raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
            counts.append(_by_rejection(rate, uniform) if rate >= _LARGE_RATE else _by_arrivals(rate, uniform))
    finally:
        uniform.take_from_stream()
    return cast(np.array(counts, np.float64), rates.dtype).reshape(rates.shape)


def _by_arrivals(rate: float, uniform: Uniforms) -> float:
    """Count arrivals until the time is up: the product of uniform numbers falls below exp(-rate)."""
    if rate == 0:
        return 0.0
    limit, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= uniform()
        if product <= limit:
            return float(count)
        count += 1


def _by_rejection(rate: float, uniform: Uniforms) -> float:
    """Transformed rejection with squeeze: Hörmann's algorithm PTRS (1993), with its constants."""
    root = math.sqrt(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        if us == 0.0:
            continue
        count = math.floor((2.0 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return float(count)
        if count < 0 or (us < 0.013 and v > us):
            continue
        hat = (math.log(v) if v else -math.inf) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if hat <= -rate + count * math.log(rate) - math.lgamma(count + 1.0):
            return float(count)
