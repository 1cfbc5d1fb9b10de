"""Draw category indices as torch.multinomial does."""

from __future__ import annotations

import numpy as np

from .continuous import exponential
from .filling import SIGNIFICAND_BITS, TORCH_NAMES, Array, fill_in_memory_order, name_of
from .generator import Generator
from .selection import largest

_MOST_CATEGORIES = 1 << 24


def multinomial(gen: Generator, probs: Array, num_samples: int, replacement: bool = False) -> Array:
    """Draw as torch.multinomial; the strides of `probs` matter, as torch draws along its memory."""
    if probs.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if name_of(probs.dtype) not in SIGNIFICAND_BITS:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: " + TORCH_NAMES[name_of(probs.dtype)][0]
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    categories = probs.shape[-1]
    if not replacement and num_samples > categories:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if categories > _MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if probs.ndim == 2 and probs.shape[0] == 0:
        return np.empty((0, num_samples), np.int64)
    rows = probs.reshape(1, -1) if probs.ndim == 1 else probs
    # A single sample needs no replacement, and torch takes the cheaper way.
    draw = _draw_with_replacement if replacement and num_samples > 1 else _draw_by_race
    samples = draw(gen, rows, num_samples)
    return samples[0] if probs.ndim == 1 else samples


def _draw_by_race(gen: Generator, rows: Array, num_samples: int) -> Array:
    """Let every category arrive at an exponential time of its rate, and take the first arrivals."""
    if rows.shape[1] == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    wide = rows.astype(np.float64)
    if not (np.isfinite(wide) & (wide >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not wide.any(axis=1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    # torch's empty_like keeps an expanded dimension (stride 0) in place, NumPy's would move it inwards.
    times = np.empty_like(rows, order="C" if 0 in rows.strides else "K")
    fill_in_memory_order(times, lambda shape: exponential(gen, shape, rows.dtype))
    with np.errstate(all="ignore"):
        keys = (rows / times).astype(np.float64)
    if num_samples == 1:
        first: Array = np.argmax(keys, axis=1, keepdims=True)
        return first
    return np.stack([largest(row, num_samples) for row in keys])


def _draw_with_replacement(gen: Generator, rows: Array, num_samples: int) -> Array:
    """Look every uniform draw up in the row's cumulative distribution."""
    samples = np.empty((rows.shape[0], num_samples), np.int64)
    sum_dtype = np.float64 if rows.dtype == np.float64 else np.float32
    for row, chosen in zip(rows, samples, strict=True):
        weights = row.astype(sum_dtype)
        # Checked per row, so that like torch's the generator has moved past the rows before a bad one.
        refused = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
        if refused.size:
            problem = "= infinity or NaN" if weights[refused[0]] > 0 else "< 0"
            raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {problem})")
        with np.errstate(all="ignore"):
            cumulative = np.cumsum(weights)
            if not (cumulative.size and cumulative[-1] > 0):
                raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
            cumulative /= cumulative[-1]
        cumulative[-1] = 1
        chosen[:] = np.searchsorted(cumulative.astype(np.float64), gen.unit_doubles(num_samples))
    return samples
