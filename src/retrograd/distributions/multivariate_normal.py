"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from .distribution import Distribution
from .utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


def batch_mv(matrix: Any, vector: Any) -> Any:
    """Multiply matrices with vectors, both with batches."""
    return rg.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(lower: Any, x: Any) -> Any:
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


def precision_to_scale_tril(precision: Any) -> Any:
    """Return the Cholesky factor of the inverse: of the matrix read backwards, then read backwards."""
    backwards = rg.linalg.cholesky(rg.flip(precision, (-2, -1)))
    inverse = rg.transpose(rg.flip(backwards, (-2, -1)), -2, -1)
    identity = rg.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return rg.linalg.solve_triangular(inverse, identity, upper=False)


class MultivariateNormal(Distribution):
    """A normal distribution of vectors; its covariance is given as such, as its inverse or as its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

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
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [name for name, value in matrices.items() if value is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name,) = given
        matrix: Any = matrices[name]
        if matrix.dim() < 2:
            words = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{words} must be at least two-dimensional, with optional leading batch dimensions")
        batch = rg.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        self.loc = loc.expand((*batch, -1))
        super().__init__(Size(batch), self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = rg.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        for name in ("loc", "covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                rank = 1 if name == "loc" else 2
                value = self.__dict__[name]
                setattr(new, name, value.expand(batch_shape + value.shape[value.dim() - rank :]))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the Cholesky factor of the covariance."""
        n = self._event_shape[0]
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, n, n))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        lower, n = self._unbroadcasted_scale_tril, self._event_shape[0]
        return rg.matmul(lower, lower.mT).expand((*self._batch_shape, n, n))

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        n = self._event_shape[0]
        return rg.cholesky_inverse(self._unbroadcasted_scale_tril).expand((*self._batch_shape, n, n))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Any:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
