"""Draw as torch's _standard_gamma and _sample_dirichlet."""

from __future__ import annotations

import math

import numpy as np

from .ahead import FewUniforms, Normals, Uniforms, uniforms
from .filling import Array, cast, refuse_unless
from .generator import Generator

_THIRD = float(np.float32(1) / np.float32(3))  # torch writes it in single precision


def _one(uniform: Uniforms | FewUniforms, normal_of: Normals, shape: float, is_single: bool) -> float:
    """Draw one number by Marsaglia and Tsang (2000); below a shape of 1 it is boosted by a power of a uniform number."""
    boost = 1.0
    if shape < 1.0:
        if shape == 0.0:
            return 0.0
        power = 1.0 / shape
        boost = math.pow(1.0 - uniform(), float(np.float32(power)) if is_single else power)
        shape += 1.0
    if is_single:  # what torch computes in the tensor's own dtype
        shape = float(np.float32(np.float32(shape) - np.float32(_THIRD)))
    else:
        shape -= _THIRD
    if not 0.0 < shape < math.inf:
        return math.nan
    spread = 1.0 / math.sqrt(9.0 * shape)
    while True:
        root = 0.0
        while root <= 0.0:
            normal = normal_of()
            root = 1.0 + spread * normal
        cube = root * root * root
        chance = 1.0 - uniform()
        square = normal * normal
        if chance < 1.0 - 0.0331 * square * square or math.log(chance) < 0.5 * square + shape * (
            1.0 - cube + math.log(cube)
        ):
            return boost * shape * cube


def _each(gen: Generator, shapes: Array, is_single: bool) -> Array:
    uniform = uniforms(gen, shapes.size)
    normal_of = Normals(gen, uniform)
    try:
        drawn = [_one(uniform, normal_of, shape, is_single) for shape in shapes.ravel().tolist()]
    finally:
        uniform.take_from_stream()
    return np.array(drawn, np.float64).reshape(shapes.shape)


def standard_gamma(gen: Generator, shapes: Array) -> Array:
    """Draw as torch._standard_gamma, one number for each shape."""
    refuse_unless(shapes.dtype, ("float32", "float64"), "gamma_cpu")
    is_single = shapes.dtype == np.float32
    values = cast(_each(gen, shapes, is_single), shapes.dtype)
    np.maximum(values, np.finfo(shapes.dtype).tiny, out=values)
    return values


def dirichlet(gen: Generator, concentrations: Array) -> Array:
    """Draw as torch._sample_dirichlet: gamma numbers of double precision, divided by their sum."""
    refuse_unless(concentrations.dtype, ("float32", "float64"), "dirichlet")
    values = _each(gen, concentrations, False)
    with np.errstate(invalid="ignore"):
        values /= values.sum(-1, keepdims=True) if values.ndim else values
    out = cast(values, concentrations.dtype)
    np.maximum(out, np.finfo(out.dtype).tiny, out=out)
    return out
