"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from .binomial import Binomial
from .categorical import Categorical, OfCategories
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OfCategories):
    """How often each category is drawn in `total_count` draws."""

    total_count: int
    _expands = ()

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        super()._expand_more(new, batch_shape)
        new.total_count = self.total_count
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample(Size((self.total_count,)) + Size(sample_shape)).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape)).scatter_add(-1, drawn, rg.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Any:
        n = rg.tensor(self.total_count)
        support = self._binomial.enumerate_support(expand=False)[1:]
        of_factorials = rg.exp(self._binomial.log_prob(support)) * rg.lgamma(support + 1)
        return self.total_count * self._categorical.entropy() - rg.lgamma(n + 1) + of_factorials.sum([0, -1])

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return rg.lgamma(value.sum(-1) + 1) - rg.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)
