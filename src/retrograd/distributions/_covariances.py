"""What distributions with a covariance share: it is given as such, as its inverse or as its Cholesky factor."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from . import constraints
from .utils import lazy_property

LIMITS: dict[str, Any] = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def the_matrix(*matrices: Any) -> tuple[str, Any]:
    """Return the name and the value of the one of the three matrices that is given."""
    given = [(name, matrix) for name, matrix in zip(LIMITS, matrices, strict=True) if matrix is not None]
    if len(given) != 1:
        raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return given[0]


def _precision_to_scale_tril(precision: Any) -> Any:
    """Return the Cholesky factor of the inverse: of the matrix read backwards, then read backwards."""
    backwards = rg.linalg.cholesky(rg.flip(precision, (-2, -1)))
    inverse = rg.transpose(rg.flip(backwards, (-2, -1)), -2, -1)
    identity = rg.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return rg.linalg.solve_triangular(inverse, identity, upper=False)


class OfCovariance:
    """The three matrices, made of the Cholesky factor when they are asked for."""

    _unbroadcasted_scale_tril: Any
    _batch_shape: Any
    _event_shape: Any

    def _factorize(self, name: str, matrix: Any) -> None:
        """Find the Cholesky factor; after the checks of parameters, which have more to say of a matrix without one."""
        if name == "covariance_matrix":
            matrix = rg.linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _in_batch(self, matrix: Any) -> Any:
        n = self._event_shape[-1]
        return matrix.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the Cholesky factor of the covariance."""
        return self._in_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        lower = self._unbroadcasted_scale_tril
        return self._in_batch(lower @ lower.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        return self._in_batch(rg.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
