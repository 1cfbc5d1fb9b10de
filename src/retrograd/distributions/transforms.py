"""Maps of tensors with their inverses and the logarithms of their Jacobian determinants."""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import retrograd as rg

from .._public import set_all
from .._size import Size
from .._tracebacks import guard_methods, guard_own
from . import constraints
from .utils import _sum_rightmost, broadcast_all, read, tril_matrix_to_vec, vec_to_tril_matrix

TOO_FEW = "Too few dimensions on input"


class Transform:
    """A map from `domain` to `codomain`, which keeps the last pair of values if `cache_size` is 1.

    A subclass with a constructor of its own names in `_made_of` the attributes that are its arguments, for `with_cache`.
    """

    bijective = False
    _made_of: tuple[str, ...] | None = None
    domain: Any
    codomain: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard_own(cls, "__init__")

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: Any = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_inv": None}  # a weak reference

    @property
    def event_dim(self) -> int:
        """Return how many dimensions the map takes together."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim  # type: ignore[no-any-return]

    @property
    def inv(self) -> Any:
        """Return the inverse."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """Return 1 where the map rises and -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """Return the same map with or without a cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        if self._made_of is None:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        kind: Any = next(each for each in type(self).__mro__ if "_made_of" in each.__dict__)
        return kind(*(getattr(self, name) for name in self._made_of), cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """Map x."""
        return self._call(x) if self._cache_size == 0 else self._remembered(self._call, x, 0)

    def _inv_call(self, y: Any) -> Any:
        return self._inverse(y) if self._cache_size == 0 else self._remembered(self._inverse, y, 1)

    def _remembered(self, function: Callable[[Any], Any], given: Any, side: int) -> Any:
        """Return the partner of a value that stands on one side of the pair; a new pair replaces the last."""
        pair = self._cached_x_y
        if given is not pair[side]:
            made = function(given)
            pair = self._cached_x_y = (made, given) if side else (given, made)
        return pair[1 - side]

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return log |dy/dx| of x and its image."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the image of a tensor of some shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of what is mapped to a tensor of some shape."""
        return shape

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}()"


class _OfOneKind(Transform):
    """A map without parameters: any two of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = object.__hash__


class _InverseTransform(Transform):
    """The inverse of a map."""

    domain = read("_inv.codomain")
    codomain = read("_inv.domain")
    sign = read("_inv.sign")
    bijective = read("_inv.bijective")
    forward_shape = read("_inv.inverse_shape")
    inverse_shape = read("_inv.forward_shape")
    inv = read("_inv")

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and bool(self._inv == other._inv)

    __hash__ = object.__hash__

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Maps one after the other."""

    _made_of = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:
        return _far_end([(part.codomain, part.domain) for part in reversed(self.parts)])

    @property
    def codomain(self) -> Any:
        return _far_end([(part.domain, part.codomain) for part in self.parts])

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self) -> Any:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        total = None
        rank = self.domain.event_dim
        for left, part in zip(reversed(range(len(self.parts))), self.parts, strict=True):
            image = part(x) if left else y  # the last one is known
            slope = _part_of_slope(part, x, image, rank)
            total = slope if total is None else total + slope
            rank += part.codomain.event_dim - part.domain.event_dim
            x = image
        return rg.zeros_like(x) if total is None else total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inner = ",\n    ".join(repr(part) for part in self.parts)
        return f"{self.__class__.__name__}(\n    {inner}\n)"


def _far_end(steps: list[tuple[Any, Any]]) -> Any:
    """Return the set to which steps from set to set lead, with the dimensions that all of them together need."""
    if not steps:
        return constraints.real
    rank = steps[0][0].event_dim
    for near, far in steps:
        rank = max(far.event_dim, rank - near.event_dim + far.event_dim)
    return constraints.of_rank(steps[-1][1], rank)


def _part_of_slope(part: Transform, x: Any, y: Any, rank: int) -> Any:
    """Return log |dy/dx| of one of several maps, where x has events of some rank."""
    return _sum_rightmost(part.log_abs_det_jacobian(x, y), rank - part.domain.event_dim)


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A map whose Jacobian is summed over further dimensions."""

    _made_of = ("base_transform", "reinterpreted_batch_ndims")
    sign = read("base_transform.sign")
    bijective = read("base_transform.bijective")
    forward_shape = read("base_transform.forward_shape")
    inverse_shape = read("base_transform.inverse_shape")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError(TOO_FEW)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError(TOO_FEW)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


# ---- elementwise ----
class ExpTransform(_OfOneKind):
    """exp."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class _Broadcasting(Transform):
    """A map of each number whose parameters are numbers, or tensors that broadcast with the values."""

    def forward_shape(self, shape: Any) -> Any:
        parameters = (getattr(self, name) for name in self._made_of or ())
        return rg.broadcast_shapes(shape, *(getattr(one, "shape", ()) for one in parameters))

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class PowerTransform(_Broadcasting):
    """A power of positive numbers."""

    _made_of = ("exponent",)
    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(_OfOneKind):
    """The logistic function, kept away from 0 and 1."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        y = _inside_unit(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        softplus = rg.nn.functional.softplus
        return -softplus(-x) - softplus(x)


def _clipped_sigmoid(x: Any) -> Any:
    """Return the logistic function, kept away from 0 and 1."""
    return _inside_unit(rg.sigmoid(x))


def _inside_unit(x: Any) -> Any:
    """Keep numbers inside of (0, 1)."""
    limits = rg.finfo(x.dtype)
    return x.clamp(min=limits.tiny, max=1.0 - limits.eps)


class SoftplusTransform(_OfOneKind):
    """log(1 + exp(x))."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return rg.nn.functional.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -rg.nn.functional.softplus(-x)


class TanhTransform(_OfOneKind):
    """tanh."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return rg.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - rg.nn.functional.softplus(-2.0 * x))


class AbsTransform(_OfOneKind):
    """The absolute value, whose inverse takes the positive side."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(_Broadcasting):
    """loc + scale * x."""

    _made_of = ("loc", "scale", "_event_dim")
    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool(rg.as_tensor(a == b).all()) for a, b in pairs)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        shape = x.shape
        number = isinstance(self.scale, (int, float))
        result = rg.full_like(x, math.log(abs(self.scale))) if number else rg.abs(self.scale).log()
        if self.event_dim:
            result = _sum_rightmost(result, self.event_dim)
            shape = shape[: -self.event_dim]
        return result.expand(shape)


# ---- onto the simplex and onto triangular and positive definite matrices ----
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


# ---- of shapes, of parts of a tensor, and the distribution function of a distribution ----
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
    domain = read("distribution.support")

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


set_all(globals())


guard_methods(Transform, "__init__")
