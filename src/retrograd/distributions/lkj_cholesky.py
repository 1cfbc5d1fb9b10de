"""Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._modes import using
from .._size import Size
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The distribution of Lewandowski, Kurowicka and Joe of correlation matrices, as Cholesky factors."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expands = ("concentration",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # rows are drawn by the onion method: a radius of a beta distribution and a direction
        half_rest = self.concentration + 0.5 * (dim - 2)
        offset = rg.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = rg.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, half_rest.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            directions = rg.randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
            directions = directions / directions.norm(dim=-1, keepdim=True)
            directions[..., 0, :].fill_(0.0)
            rows = squares.sqrt() * directions
            tiny = rg.finfo(rows.dtype).tiny
            return rows + rg.clamp(1 - rows.pow(2).sum(dim=-1), min=tiny).sqrt().diag_embed()

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = rg.arange(2, self.dim + 1, dtype=diagonal.dtype, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        log_pi = 0.5 * below * math.log(math.pi)
        return unnormalized - (log_pi + rg.mvlgamma(alpha - 0.5, below) - rg.lgamma(alpha) * below)
