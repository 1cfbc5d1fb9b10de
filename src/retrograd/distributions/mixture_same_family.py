"""Mixtures."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .utils import read

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of the last dimension of a batch of distributions."""

    arg_constraints: Any = {}
    has_rsample = False
    _expands = ()
    mixture_distribution = read("_mixture_distribution", "the distribution of components")
    component_distribution = read("_component_distribution", "the components")

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        weights = mixture_distribution.batch_shape
        batch = component_distribution.batch_shape[:-1]
        for n, m in zip(reversed(weights), reversed(batch), strict=False):
            if n != 1 and m != 1 and n != m:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        components = component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch_shape=batch, event_shape=event, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Any:
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Any:
        return rg.sum(self._weights() * self._component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        dim = -1 - self._event_ndims
        within = rg.sum(self._weights() * self._component_distribution.variance, dim=dim)
        distance = (self._component_distribution.mean - self.mean.unsqueeze(dim)).pow(2.0)
        return within + rg.sum(self._weights() * distance, dim=dim)

    def cdf(self, x: Any) -> Any:
        found = self._component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims))
        return rg.sum(found * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        found = self._component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        weights = rg.log_softmax(self._mixture_distribution.logits, dim=-1)
        return rg.logsumexp(found + weights, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            which = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = drawn.dim() - self._event_ndims - 1
            shape = (*drawn.shape[:dim], 1, *drawn.shape[dim + 1 :])
            index = which.reshape(which.shape + (1,) * (self._event_ndims + 1))
            return rg.gather(drawn, dim, index.expand(shape)).squeeze(dim)

    def __repr__(self) -> str:
        inner = f"\n  {self._mixture_distribution},\n  {self._component_distribution}"
        return "MixtureSameFamily(" + inner + ")"
