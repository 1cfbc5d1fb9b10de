"""Maps onto the simplex and onto triangular and positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .transforms import TOO_FEW, Transform, _clipped_sigmoid, _OfOneKind
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


def _need_vector(shape: Any) -> Any:
    if len(shape) < 1:
        raise ValueError(TOO_FEW)
    return shape


class SoftmaxTransform(_OfOneKind):
    """Softmax along the last dimension; its inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _need_vector(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _need_vector(shape)


class StickBreakingTransform(_OfOneKind):
    """A vector of n numbers says how to break a stick into n + 1 parts: each a share of what is left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Any) -> Any:
        shares = _clipped_sigmoid(x - _log_parts_left(x))
        left = (1 - shares).cumprod(-1)
        one = x.new_ones((*x.shape[:-1], 1))
        return rg.cat([shares, one], -1) * rg.cat([one, left], -1)

    def _inverse(self, y: Any) -> Any:
        parts = y[..., :-1]
        left = rg.clamp(1 - parts.cumsum(-1), min=rg.finfo(y.dtype).tiny)
        return parts.log() - left.log() + _log_parts_left(parts)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - _log_parts_left(x)
        return (-x + rg.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return (*_need_vector(shape)[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*_need_vector(shape)[:-1], shape[-1] - 1)


def _log_parts_left(x: Any) -> Any:
    """Return log(n), ..., log(1), so that a vector of zeros makes equal parts."""
    return rg.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()


class LowerCholeskyTransform(_OfOneKind):
    """The lower triangle with the exponential of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfOneKind):
    """The product of such a triangle with its transpose."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(rg.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers become the Cholesky factor of a correlation matrix: tanh of each is a partial correlation."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = rg.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(rg.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        diagonal = rg.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + diagonal) * _after_one(left)

    def _inverse(self, y: Any) -> Any:
        left = _after_one(1 - rg.cumsum(y * y, dim=-1))
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        """Return log |dy/dx|; `intermediates` may be given, as to torch, and are not used."""
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_sticks = 0.5 * left.log().sum(-1)
        of_tanh = -2 * (x + rg.nn.functional.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return of_sticks + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        count = _need_vector(shape)[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(TOO_FEW)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _after_one(x: Any) -> Any:
    """Move the entries of rows by one and put 1 in front."""
    return rg.cat([x.new_ones((*x.shape[:-1], 1)), x[..., :-1]], -1)
