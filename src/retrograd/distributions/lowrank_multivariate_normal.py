"""Multivariate normal distributions of low rank."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from ._around import AroundLoc
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _capacitance_tril(factor: Any, diagonal: Any) -> Any:
    """Return the Cholesky factor of I + W^T D^-1 W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    rank = factor.size(-1)
    return rg.linalg.cholesky(rg.matmul(scaled, factor) + rg.eye(rank, dtype=factor.dtype, device=factor.device))


class LowRankMultivariateNormal(AroundLoc, Distribution):
    """A normal distribution of vectors of covariance W W^T + D: `cov_factor` is W, `cov_diag` the diagonal of D."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _expands = ("loc", "cov_factor", "cov_diag")

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = rg.broadcast_shapes(loc.shape[:-1], cov_diag.shape[:-1], cov_factor.shape[:-2])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(Size(batch) + event)
        self.cov_diag = cov_diag.expand(Size(batch) + event)
        self.cov_factor = cov_factor.expand(Size(batch) + cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)
        super().__init__(Size(batch), event, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, self.__dict__[name])

    @lazy_property
    def variance(self) -> Any:
        """Return the variance."""
        own = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return own.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the Cholesky factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        n = self._event_shape[0]
        whole = rg.matmul(scaled, scaled.mT) + rg.eye(n, dtype=scaled.dtype, device=scaled.device)
        return (root * rg.linalg.cholesky(whole)).expand((*self._batch_shape, n, n))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        factor = self._unbroadcasted_cov_factor
        n = self._event_shape[0]
        whole = rg.matmul(factor, factor.mT) + rg.diag_embed(self._unbroadcasted_cov_diag)
        return whole.expand((*self._batch_shape, n, n))

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance, by Woodbury's identity."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        a = rg.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        n = self._event_shape[0]
        whole = rg.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - a.mT @ a
        return whole.expand((*self._batch_shape, n, n))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        of_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        of_diagonal = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, of_factor)
            + self._unbroadcasted_cov_diag.sqrt() * of_diagonal
        )

    def _log_det(self) -> Any:
        of_capacitance = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * of_capacitance + self._unbroadcasted_cov_diag.log().sum(-1)

    def _mahalanobis(self, x: Any) -> Any:
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        direct = (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return direct - _batch_mahalanobis(self._capacitance_tril, _batch_mv(scaled, x))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        distance = self._mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Any:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
