"""Drawing from gamma, Dirichlet and binomial distributions with tensors as parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._modes import current_mode
from ..._ops import gamma_samples as ops
from ..._random.binomial import binomial as draw_binomial
from ..._random.gamma import dirichlet, standard_gamma
from ...overrides import overridable
from .. import _base
from .._base import edge_of
from .._recording.no_derivative import without_derivative
from .._recording.record import Elementwise, record
from .creation import finish
from .generators import chosen
from .joining import stack
from .random_fills import _sampled
from .stacking import broadcast_tensors

_GAMMA_GRAD = Elementwise(ops.standard_gamma_grad, "_standard_gamma_grad", None, False)
_DIRICHLET_GRAD = Elementwise(ops.dirichlet_grad, "_dirichlet_grad", None, False)


@overridable(forms="function")
def _standard_gamma(input: Any, generator: Any = None) -> Any:
    """Draw gamma numbers of rate 1 with the given shapes; they follow their shapes."""
    gen = chosen("_standard_gamma", generator)
    values = _sampled(input._array, gen, lambda a: standard_gamma(gen, a))
    if not _follows(input):
        return finish(values)
    return record(ops.gamma_sample, (input, values), {}, "StandardGammaBackward0")


@overridable(forms="function")
def _standard_gamma_grad(input: Any, output: Any) -> Any:
    """Return the slopes of gamma samples by their shapes."""
    return _GAMMA_GRAD.slow((input, output), {})


@overridable(forms="function")
def _sample_dirichlet(input: Any, generator: Any = None) -> Any:
    """Draw points of the simplex with the given concentrations."""
    return _untracked("_sample_dirichlet", finish(_dirichlet_values(input, generator)), input)


def _dirichlet_values(input: Any, generator: Any) -> Any:
    gen = chosen("_sample_dirichlet", generator)
    return _sampled(input._array, gen, lambda a: dirichlet(gen, a))


def followed_dirichlet(concentration: Any) -> Any:
    """Draw points of the simplex that follow their concentrations."""
    values = _dirichlet_values(concentration.detach(), None)
    if not _follows(concentration):
        return finish(values)
    return record(ops.dirichlet_sample, (concentration, values), {}, "_DirichletBackward")


@overridable(forms="function")
def _dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """Return the slopes of points of the simplex by their concentrations, before the sum is taken out."""
    return _DIRICHLET_GRAD.slow((x, alpha, total), {})


@overridable
def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """Draw the number of successes in so many trials."""
    gen = chosen("binomial", generator)
    for name, one in (("count", count), ("prob", prob)):
        dtype = _base.dtype_of(one)
        if not dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {dtype._scalar_name}")
    given, own = _base.dtype_of(prob), _base.dtype_of(count)
    if given is not own:
        raise RuntimeError(f"Found dtype {given._scalar_name} but expected {own._scalar_name}")
    pairs = stack(broadcast_tensors(count.detach(), prob.detach()), -1)._array
    drawn = _sampled(pairs, gen, lambda a: draw_binomial(gen, a[..., 0], a[..., 1]))
    return _untracked("binomial", finish(drawn), count, prob)


def _follows(input: Any) -> bool:
    return (input._edge is not None and current_mode().tracks) or _has_tangent(input)


def _has_tangent(input: Any) -> bool:
    return not isinstance(input._array, np.ndarray)


def _untracked(name: str, result: Any, *inputs: Any) -> Any:
    edges = tuple(edge_of(one) for one in inputs if one._edge is not None)
    if edges and current_mode().tracks:
        result._edge = without_derivative(f"aten::{name}", edges)
    return result
