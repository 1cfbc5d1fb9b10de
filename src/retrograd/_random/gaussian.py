"""Draw normally distributed values by torch's two Box-Muller algorithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arithmetic import libm, multiply_add32, multiply_add64
from .filling import BLOCK, FEW, SIGNIFICAND_BITS, Array, cast, draw_complex, fill, name_of, refuse_unless
from .generator import Generator

if TYPE_CHECKING:
    import numpy.typing as npt

_TWO_PI = 2.0 * math.pi
SINGLE = np.dtype(np.float32)
log1p, sqrt, cos, sin = math.log1p, math.sqrt, math.cos, math.sin


def normal(
    gen: Generator,
    shape: Sequence[int],
    np_dtype: npt.DTypeLike,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    contiguous: bool = True,
) -> Array:
    """Draw as torch's normal_, on a contiguous tensor or on a strided one."""
    if len(shape) == 1 and shape[0] < 16 and mean == 0.0 and std == 1.0 and np_dtype is SINGLE:  # what is quickest
        return np.array(_few_normals(gen, shape[0]), SINGLE)
    dtype = np.dtype(np_dtype)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    if dtype.kind == "c" or dtype.fields:
        # The variance is split evenly between the two parts.
        part_std = std / math.sqrt(2.0)
        return draw_complex(
            shape, dtype, lambda parts, real: normal(gen, parts, real, mean, part_std, contiguous=contiguous)
        )
    refuse_unless(dtype, SIGNIFICAND_BITS, "normal_kernel_cpu")
    if contiguous and math.prod(shape) >= 16:
        return _normal_in_sixteens(gen, shape, dtype, mean, std)
    if math.prod(shape) <= FEW and mean == 0.0 and std == 1.0 and dtype.itemsize > 2:
        few: Array = np.array(_few_normals(gen, math.prod(shape)), dtype)
        return few if len(shape) == 1 else few.reshape(shape)
    return fill(shape, dtype, lambda count: multiply_add64(standard_normals(gen, count), std, mean))


def standard_normals(gen: Generator, count: int) -> Array:
    """Draw one by one, in pairs; the second of a pair waits in the generator."""
    if count <= FEW:
        return np.array(_few_normals(gen, count), np.float64)
    samples = np.empty(count)
    waiting = 0
    if gen.next_normal is not None:
        samples[0], waiting = gen.next_normal, 1
        gen.next_normal = None
    uniforms = gen.unit_doubles((count - waiting + 1) // 2 * 2)
    radius = np.sqrt(-2.0 * libm("log1p", -uniforms[1::2]))
    angle = _TWO_PI * uniforms[0::2]
    pairs = np.empty(uniforms.size)
    pairs[0::2] = radius * libm("cos", angle)
    pairs[1::2] = radius * libm("sin", angle)
    samples[waiting:] = pairs[: count - waiting]
    if pairs.size > count - waiting:
        gen.next_normal = float(pairs[-1])
    return samples


def _few_normals(gen: Generator, count: int) -> list[float]:
    few: list[float] = []
    if (waiting := gen.next_normal) is not None and count:
        few.append(waiting)
        gen.next_normal = None
    uniforms = iter(gen.few_doubles((count - len(few) + 1) // 2 * 2))
    for turn in uniforms:
        radius, angle = sqrt(-2.0 * log1p(-next(uniforms))), _TWO_PI * turn
        few.append(radius * cos(angle))
        few.append(radius * sin(angle))
    if len(few) > count:
        gen.next_normal = few.pop()
    return few


def _normal_in_sixteens(gen: Generator, shape: Sequence[int], dtype: np.dtype[Any], mean: float, std: float) -> Array:
    """Draw in blocks of sixteen: eight radii and eight angles become eight cosines and eight sines."""
    is_double = name_of(dtype) == "float64"
    out = np.empty(math.prod(shape), dtype)
    remainder = out.size % 16
    whole = out.size - remainder
    for start in range(0, whole, BLOCK):
        stop = min(start + BLOCK, whole)
        count, unused, redone = stop - start, 0, 0
        if remainder and stop == whole:
            # torch draws for the remainder too, but then redoes the last sixteen elements with new draws.
            # Its kernel for 16-bit floats does not draw for the remainder.
            unused, redone = (remainder if dtype.itemsize > 2 else 0), 16
        draw = gen.unit_doubles if is_double else gen.random32
        drawn = draw(count + unused + redone)
        if unused:
            drawn = np.concatenate((drawn[:count], drawn[count + unused :]))
        samples = _box_muller(drawn)
        samples = (multiply_add64 if is_double else multiply_add32)(samples, std, mean)
        samples = cast(samples, dtype)
        out[start:stop] = samples[:count]
        if redone:
            out[-16:] = samples[-16:]
    return out.reshape(shape)


def _box_muller(drawn: Array) -> Array:
    """Return standard normals in the precision of the draws, which are float64 values or 32-bit words."""
    if drawn.dtype != np.float64:
        from .of_words import normals32  # only when asked for: kernels take time to import

        return normals32(drawn)
    first, second = np.ascontiguousarray(drawn.reshape(-1, 2, 8).swapaxes(0, 1)).reshape(2, -1)
    radius = np.sqrt(-2.0 * libm("log", 1.0 - first))
    angle = _TWO_PI * second
    samples = np.empty((drawn.size // 16, 2, 8))
    samples[:, 0] = (radius * libm("cos", angle)).reshape(-1, 8)
    samples[:, 1] = (radius * libm("sin", angle)).reshape(-1, 8)
    return samples.ravel()
