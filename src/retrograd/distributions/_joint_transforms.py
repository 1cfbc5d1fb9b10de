"""Maps of shapes, of parts of a tensor, and the distribution function of a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import retrograd as rg

from .._size import Size
from . import constraints
from .transforms import TOO_FEW, Transform
from .utils import _sum_rightmost


class _Joint(Transform):
    """Maps of the parts of a tensor along one dimension."""

    transforms: list[Any]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(one, Transform) for one in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [one.with_cache(cache_size) if cache_size else one for one in tseq]
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(one.bijective for one in self.transforms)

    def _need(self, x: Any, count: int) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        if x.size(self.dim) != count:
            raise AssertionError(f"Size mismatch at dim {self.dim}: expected {count}, got {x.size(self.dim)}")


class CatTransform(_Joint):
    """Maps of pieces of given lengths."""

    _made_of = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths must have length {len(self.transforms)}, got {len(self.lengths)}")

    @property
    def event_dim(self) -> int:
        return int(max(one.event_dim for one in self.transforms))

    @property
    def length(self) -> int:
        """Return the length of all pieces."""
        return sum(self.lengths)

    def _pieces(self, x: Any) -> Any:
        self._need(x, self.length)
        return zip(self.transforms, x.split(self.lengths, self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return rg.cat([one(piece) for one, piece in self._pieces(x)], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        return rg.cat([one.inv(piece) for one, piece in self._pieces(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        found = []
        for (one, before), (_, after) in zip(self._pieces(x), self._pieces(y), strict=True):
            term = one.log_abs_det_jacobian(before, after)
            found.append(_sum_rightmost(term, self.event_dim - one.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return rg.cat(found, dim=dim) if dim < 0 else sum(found[1:], found[0])

    @property
    def domain(self) -> Any:
        return constraints.cat([one.domain for one in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([one.codomain for one in self.transforms], self.dim, self.lengths)


class StackTransform(_Joint):
    """Maps of the slices of a dimension."""

    _made_of = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _slices(self, x: Any) -> Any:
        self._need(x, len(self.transforms))
        return zip(self.transforms, x.unbind(self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return rg.stack([one(part) for one, part in self._slices(x)], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        return rg.stack([one.inv(part) for one, part in self._slices(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        both = zip(self._slices(x), self._slices(y), strict=True)
        return rg.stack([one.log_abs_det_jacobian(before, after) for (one, before), (_, after) in both], dim=self.dim)

    @property
    def domain(self) -> Any:
        return constraints.stack([one.domain for one in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([one.codomain for one in self.transforms], self.dim)


class ReshapeTransform(Transform):
    """A new shape for the last dimensions."""

    bijective = True
    _made_of = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Any, before: Any, after: Any) -> Any:
    if len(shape) < len(before):
        raise ValueError(TOO_FEW)
    cut = len(shape) - len(before)
    if shape[cut:] != before:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
    return shape[:cut] + after


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1
    _made_of = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
