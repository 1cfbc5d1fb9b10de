"""Categories as one-hot vectors."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from .categorical import Categorical, OfCategories
from .utils import read

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OfCategories):
    """A vector with a single 1, at a category drawn with weights `probs` or `logits`."""

    support = constraints.one_hot
    has_enumerate_support = True
    _expands = ()
    _param = read("_categorical._param")
    mean = read("_categorical.probs")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    @property
    def mode(self) -> Any:
        return self._hot(self.probs.argmax(dim=-1)).to(self.probs)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _hot(self, indices: Any) -> Any:
        return rg.nn.functional.one_hot(indices, self._categorical._num_events)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._hot(self._categorical.sample(Size(sample_shape))).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = rg.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with samples through which the probabilities receive gradients."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = self.sample(sample_shape)
        probs = self._categorical.probs
        return drawn + (probs - probs.detach())
