"""Draw as torch.binomial."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .ahead import uniforms
from .filling import Array, cast
from .generator import Generator

_MANY = 10.0  # from this many expected successes on, rejection is quicker
_LOG_ROOT_TURN = 0.5 * math.log(2.0 * math.pi)


def binomial(gen: Generator, counts: Array, chances: Array) -> Array:
    """Draw the number of successes in `counts` trials, element by element."""
    pairs = zip(counts.ravel().tolist(), chances.ravel().tolist(), strict=True)
    uniform = uniforms(gen, counts.size)
    try:
        drawn = [_one(count, chance, uniform) for count, chance in pairs]
    finally:
        uniform.take_from_stream()
    return cast(np.array(drawn, np.float64), counts.dtype).reshape(counts.shape)


def _one(count: float, chance: float, uniform: Callable[[], float]) -> float:
    if count <= 0 or chance <= 0:
        return 0.0
    if chance >= 1:
        return count
    if count != count or chance != chance:
        return math.nan
    rare = min(chance, 1.0 - chance)
    successes = _by_rejection(count, rare, uniform) if count * rare >= _MANY else _by_gaps(count, rare, uniform)
    return successes if chance <= 0.5 else count - successes


def _by_gaps(count: float, chance: float, uniform: Callable[[], float]) -> float:
    """Count successes whose gaps, geometric numbers, fit into the trials."""
    scale, passed, successes = math.log1p(-chance), 0.0, 0.0
    while True:
        number = uniform()
        passed += math.ceil(math.log(number) / scale) if number else math.inf
        if passed > count:
            return successes
        successes += 1.0


def _by_rejection(count: float, chance: float, uniform: Callable[[], float]) -> float:
    """Transformed rejection with squeeze: Hörmann's algorithm BTRS (1993), with its constants."""
    deviation = math.sqrt(count * chance * (1.0 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    centre = count * chance + 0.5
    v_r = 0.92 - 4.2 / b
    odds = chance / (1.0 - chance)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1.0) * chance)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        if us == 0.0:
            continue
        k = math.floor((2.0 * a / us + b) * u + centre)
        if us >= 0.07 and v <= v_r:
            return float(k)
        if k < 0 or k > count:
            continue
        bound = (
            (mode + 0.5) * math.log((mode + 1.0) / (odds * (count - mode + 1.0)))
            + (count + 1.0) * math.log((count - mode + 1.0) / (count - k + 1.0))
            + (k + 0.5) * math.log(odds * (count - k + 1.0) / (k + 1.0))
            + (_stirling_rest(mode) + _stirling_rest(count - mode))
            - (_stirling_rest(k) + _stirling_rest(count - k))
        )
        if not v or math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


def _stirling_rest(k: float) -> float:
    """Return what Stirling's formula lacks of log(k!)."""
    if k <= 9:
        return math.lgamma(k + 1.0) - (k + 0.5) * math.log(k + 1.0) + k + 1.0 - _LOG_ROOT_TURN
    inverse = 1.0 / (k + 1.0)
    square = inverse * inverse
    return (1.0 / 12 - (1.0 / 360 - square / 1260) * square) * inverse
