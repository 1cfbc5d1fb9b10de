"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from ._covariances import LIMITS, OfCovariance, the_matrix
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .utils import is_number, vec_to_tril_matrix, where

__all__ = ["Wishart"]


def _mvdigamma(x: Any, p: int) -> Any:
    return rg.digamma(x.unsqueeze(-1) - rg.arange(p, dtype=x.dtype, device=x.device).div(2)).sum(-1)


class Wishart(OfCovariance, ExponentialFamily):
    """The distribution of the scatter of `df` normal vectors, whose covariance is given in one of three forms."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _expands = ("df", *LIMITS)

    @property
    def arg_constraints(self) -> Any:
        return LIMITS | {"df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = the_matrix(covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if is_number(df):
            batch = Size(matrix.shape[:-2])
            self.df = rg.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch = Size(rg.broadcast_shapes(matrix.shape[:-2], df.shape))
            self.df = df.expand(batch)
        event = matrix.shape[-2:]
        if not constraints.all_true(self.df > event[-1] - 1):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        super().__init__(batch, event, validate_args=validate_args)
        self._factorize(name, matrix)
        self._dist_chi2 = self._chi2(batch)

    def _chi2(self, batch: Any) -> Any:
        n = self._event_shape[-1]
        degrees = self.df.unsqueeze(-1) - rg.arange(n, dtype=self.df.dtype, device=self.df.device)
        return Chi2(df=degrees.expand((*batch, n)))

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self._event_shape)
        new._dist_chi2 = self._chi2(batch_shape)

    @property
    def mean(self) -> Any:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = where(factor <= 0, math.nan, factor)
        return factor.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self._batch_shape, 1, 1)) * (v.pow(2) + products)

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Any:
        """Draw by Bartlett's decomposition: chi-squared numbers on a diagonal, normal ones below it.

        torch takes samples that are not singular for singular ones, and draws them again; here every sample is drawn once.
        """
        n = self._event_shape[-1]
        sample_shape = Size(sample_shape)
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        below = n * (n - 1) // 2
        normals = rg.randn((*sample_shape, *self._batch_shape, below), dtype=diagonal.dtype, device=diagonal.device)
        lower = vec_to_tril_matrix(normals, diag=-1) + diagonal.diag_embed() if below else diagonal.diag_embed()
        root = self._unbroadcasted_scale_tril @ lower
        return root @ root.mT

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        nu, p = self.df, self._event_shape[-1]
        solved = rg.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * math.log(2) / 2 + self._half_log_det())
            - rg.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * rg.linalg.slogdet(value)[1]
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + self._half_log_det())
            + rg.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-rg.linalg.slogdet(-2 * x)[1] + math.log(2) * p) + rg.mvlgamma(half, p)
