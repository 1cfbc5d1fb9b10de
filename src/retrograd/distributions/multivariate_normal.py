"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from ._around import AroundLoc
from ._covariances import LIMITS, OfCovariance, the_matrix
from ._covariances import _precision_to_scale_tril as _precision_to_scale_tril  # libraries look for it here
from .distribution import Distribution
from .utils import _standard_normal

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Any, vector: Any) -> Any:
    """Multiply matrices with vectors, both with batches."""
    return rg.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(lower: Any, x: Any) -> Any:
    """Return x . (L L^T)^-1 x of a Cholesky factor and vectors; batches broadcast.

    Vectors that share a factor are solved for together.
    """
    own = lower.dim() - 2
    extra = x.dim() - 1 - own
    if extra > 0 and (own == 0 or x.shape[extra:-1] == lower.shape[:-2]):
        flat = x.reshape(-1, *x.shape[extra:]).movedim(0, -1)  # batch, n, samples
        solved: Any = rg.linalg.solve_triangular(lower, flat, upper=False)
        squares: Any = solved.pow(2).sum(-2)
        return squares.movedim(-1, 0).reshape(x.shape[:-1])
    return rg.linalg.solve_triangular(lower, x.unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)


class MultivariateNormal(OfCovariance, AroundLoc, Distribution):
    """A normal distribution of vectors; its covariance is given as such, as its inverse or as its Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector} | LIMITS
    support = constraints.real_vector
    has_rsample = True
    _expands = ("loc", *LIMITS)

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = the_matrix(covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            words = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{words} must be at least two-dimensional, with optional leading batch dimensions")
        batch = rg.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        self.loc = loc.expand((*batch, -1))
        super().__init__(Size(batch), self.loc.shape[-1:], validate_args=validate_args)
        self._factorize(name, matrix)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Any:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
