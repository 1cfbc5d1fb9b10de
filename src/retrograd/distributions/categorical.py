"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._modes import using
from .._size import Size
from . import constraints
from .distribution import Distribution
from .utils import every, given_parameter, lazy_property, logits_to_probs, probs_to_logits, read, the_given

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of n categories, with weights `probs` or logarithms of weights `logits` along the last dimension.

    Args:
        probs: weights
        logits: or their logarithms
        validate_args: whether parameters and values are checked

    Example:
        >>> d = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
        >>> d.probs, d.entropy()
        (tensor([0.2500, 0.7500]), tensor(0.5623))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _expands = ("probs", "logits")
    variance = read("mean")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = the_given(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        shape = self.param_shape
        self._num_events = shape[-1]
        super().__init__(shape[:-1], validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._num_events = self._num_events

    @property
    def _param(self) -> Any:
        return given_parameter(self)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """Return logarithms of probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """Return probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        """Return the shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        return rg.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        with using(grad=False):
            drawn = rg.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        value = value.long().unsqueeze(-1)
        value, logits = rg.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = rg.clamp(self.logits, min=rg.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return every(rg.arange(self._num_events, dtype=rg.long, device=self._param.device), self, expand)


class OfCategories(Distribution):
    """A distribution of vectors with a number for each category."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical
    logits = read("_categorical.logits", "logarithms of probabilities")
    probs = read("_categorical.probs", "probabilities")
    param_shape = read("_categorical.param_shape", "the shape of the parameter")

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._categorical = self._categorical.expand(batch_shape)
