"""Distributions of mapped samples."""

from __future__ import annotations

from typing import Any

from .._modes import using
from .._size import Size
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform, _part_of_slope
from .utils import _sum_rightmost, read

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of what maps make of the samples of another."""

    arg_constraints: Any = {}
    has_rsample = read("base_dist.has_rsample")
    _expands: tuple[str, ...] | None = ()

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(one, Transform) for one in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        own = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        needed = whole.domain.event_dim
        if len(shape) < needed:
            raise ValueError(f"base_distribution needs to have shape with size at least {needed}, but got {shape}.")
        image = whole.forward_shape(shape)
        before = whole.inverse_shape(image)
        if before != shape:  # the maps have parameters with more dimensions
            base_distribution = base_distribution.expand(before[: len(before) - own])
        joined = needed - own
        if joined > 0:
            base_distribution = Independent(base_distribution, joined)
        self.base_dist = base_distribution
        rank = whole.codomain.event_dim + max(own - needed, 0)
        if len(image) < rank:
            raise AssertionError(f"forward_shape length {len(image)} must be at least event_dim {rank}")
        cut = len(image) - rank
        super().__init__(Size(image[:cut]), Size(image[cut:]), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new.transforms = self.transforms
        before = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(before[: len(before) - len(self.base_dist.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        return constraints.of_rank(self.transforms[-1].codomain, len(self.event_shape))

    def _mapped(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            return self._mapped(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._mapped(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        rank = len(self.event_shape)
        slopes: Any = 0.0
        for transform in reversed(self.transforms):
            image, value = value, transform.inv(value)
            rank += transform.domain.event_dim - transform.codomain.event_dim
            slopes = slopes + _part_of_slope(transform, value, image, rank)
        return _sum_rightmost(self.base_dist.log_prob(value), rank - len(self.base_dist.event_shape)) - slopes

    def _turned(self, value: Any) -> Any:
        """Return a probability as it is, or its complement if the maps fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._mapped(self.base_dist.icdf(self._turned(value)))
