"""Sets of values: which values a parameter may have, and where a distribution lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

import retrograd as rg

from .._core.arrays import raw_leaf
from .._public import set_all


def all_true(found: Any) -> bool:
    """Tell whether a tensor of truth values holds nothing else; inside vmap, for every sample."""
    array = found._array
    if hasattr(array, "place"):  # its class knows the values
        return bool(found.all())
    return bool((array if type(array) is np.ndarray else raw_leaf(array)).all())


class Constraint:
    """A set of values. `check` tells which values, or which events of `event_dim` dimensions, belong to it."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Tell which events of a tensor belong to the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}()"


class _Bounded(Constraint):
    """A set between bounds, whose attributes the subclass names."""

    _bounds: tuple[str, ...] = ("lower_bound", "upper_bound")

    def __init__(self, *bounds: Any, **named: Any) -> None:
        values = dict(zip(self._bounds, bounds, strict=False)) | named
        if len(bounds) + len(named) != len(self._bounds) or values.keys() != set(self._bounds):
            raise TypeError(f"{type(self).__name__}.__init__() takes the arguments {', '.join(self._bounds)}")
        self.__dict__.update(values)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{type(self).__name__[1:]}({shown})"


# ---- what is known only with the parameters ----
class _Dependent(Constraint):
    """A set that depends on other parameters."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return _known(self._is_discrete, "is_discrete")  # type: ignore[no-any-return]

    @property
    def event_dim(self) -> int:
        return _known(self._event_dim, "event_dim")  # type: ignore[no-any-return]

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Return the same set with what is known of it."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def _known(value: Any, name: str) -> Any:
    if value is NotImplemented:
        raise NotImplementedError(f".{name} cannot be determined statically")
    return value


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a set; on the class it is a dependent one."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Tell whether a set depends on other parameters."""
    return isinstance(constraint, _Dependent)


# ---- sets made of sets ----
def _all_of_last(found: Any, count: int, value: Any, needed: int) -> Any:
    """Tell whether all is true in the last dimensions of what a check has found of a value."""
    if found.dim() < count:
        raise ValueError(f"Expected value.dim() >= {needed} but got {value.dim()}")
    return found.reshape(*found.shape[: found.dim() - count], -1).all(-1)


class _IndependentConstraint(Constraint):
    """Events whose last dimensions all belong to a set."""

    is_discrete = property(attrgetter("base_constraint.is_discrete"))

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> Any:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        return _all_of_last(self.base_constraint.check(value), self.reinterpreted_batch_ndims, value, self.event_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


def of_rank(constraint: Constraint, rank: int) -> Constraint:
    """Return a set of events of at least some rank, whose parts belong to a set."""
    missing = rank - constraint.event_dim
    return _IndependentConstraint(constraint, missing) if missing > 0 else constraint


class MixtureSameFamilyConstraint(Constraint):
    """Values that belong to the support of every component of a mixture."""

    is_discrete = property(attrgetter("base_constraint.is_discrete"))
    event_dim = property(attrgetter("base_constraint.event_dim"))

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of_last(found, self.event_dim, value, self.event_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Pieces(Constraint):
    """Parts of a tensor along one dimension, each with a set of its own."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(one, Constraint) for one in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(one.is_discrete for one in self.cseq)

    @property
    def event_dim(self) -> int:
        return int(max(one.event_dim for one in self.cseq))


class _Cat(_Pieces):
    """Parts of given lengths that were joined by `torch.cat`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"Expected lengths of size {len(self.cseq)}, got {len(self.lengths)}")

    def check(self, value: Any) -> Any:
        parts = value.split(self.lengths, self.dim)
        return rg.cat([one.check(part) for one, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Pieces):
    """Tensors that were joined by `torch.stack`."""

    @property
    def event_dim(self) -> int:
        rank = int(max(one.event_dim for one in self.cseq))
        return rank + (self.dim + rank < 0)

    def check(self, value: Any) -> Any:
        parts = [value.select(self.dim, k) for k in range(value.size(self.dim))]
        return rg.stack([one.check(part) for one, part in zip(self.cseq, parts, strict=True)], self.dim)


# ---- numbers ----
class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # which NaN is not


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _GreaterThan(_Bounded):
    """Numbers above a bound."""

    _bounds = ("lower_bound",)

    def check(self, value: Any) -> Any:
        return self.lower_bound < value  # type: ignore[attr-defined]


class _GreaterThanEq(_Bounded):
    """Numbers from a bound upwards."""

    _bounds = ("lower_bound",)

    def check(self, value: Any) -> Any:
        return self.lower_bound <= value  # type: ignore[attr-defined]


class _LessThan(_Bounded):
    """Numbers below a bound."""

    _bounds = ("upper_bound",)

    def check(self, value: Any) -> Any:
        return value < self.upper_bound  # type: ignore[attr-defined]


class _Interval(_Bounded):
    """Numbers between two bounds, both included."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)  # type: ignore[attr-defined]


class _HalfOpenInterval(_Bounded):
    """Numbers from a lower bound to below an upper one."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)  # type: ignore[attr-defined]


class _IntegerInterval(_Bounded):
    """Whole numbers between two bounds, both included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)  # type: ignore[attr-defined]


class _IntegerGreaterThan(_Bounded):
    is_discrete = True
    _bounds = ("lower_bound",)

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)  # type: ignore[attr-defined]


# ---- vectors ----
class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        binary = (value == 0) | (value == 1)
        return binary.all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return rg.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Rows of counts that sum up to at most a bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(dim=-1) & (value.sum(dim=-1) <= self.upper_bound)


# ---- matrices ----
class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return _LowerTriangular().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        slack = rg.finfo(value.dtype).eps * value.size(-1) * 10  # for the rounding of a row's norm
        norms = rg.linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & (norms - 1).abs().le(slack).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return rg.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=rg.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        if not all_true(square):
            return square
        return rg.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not all_true(symmetric):
            return symmetric
        return rg.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not all_true(symmetric):
            return symmetric
        return rg.linalg.cholesky_ex(value)[1].eq(0)


# ---- torch's names ----
real, boolean = _Real(), _Boolean()
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
positive_integer, nonnegative_integer = _IntegerGreaterThan(1), _IntegerGreaterThan(0)
dependent, dependent_property = _Dependent(), _DependentProperty
independent, cat, stack = _IndependentConstraint, _Cat, _Stack
real_vector, one_hot, simplex, multinomial = independent(real, 1), _OneHot(), _Simplex(), _Multinomial
square, symmetric = _Square(), _Symmetric()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
positive_definite, positive_semidefinite = _PositiveDefinite(), _PositiveSemidefinite()


set_all(globals(), but="all_true of_rank")
