"""Which map leads from unconstrained numbers to a set: `biject_to` one to one, `transform_to` any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of sets to functions that make maps onto them."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register a function for a set, or for a class of sets; without a function, return a decorator."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return a map onto a set."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*sets: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register a function in both tables."""

    def declare(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for one in sets:
            biject_to.register(one, factory)
            transform_to.register(one, factory)
        return factory

    return declare


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_above(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _to_below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and lower == 0 and upper == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)]
    )


def _independently(table: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.IndependentTransform(
        table(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


def _cat(table: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.CatTransform(
        [table(one) for one in constraint.cseq], constraint.dim, constraint.lengths
    )


def _stack(table: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.StackTransform([table(one) for one in constraint.cseq], constraint.dim)


for _table in (biject_to, transform_to):
    _table.register(constraints.independent, _independently(_table))
    _table.register(constraints.cat, _cat(_table))
    _table.register(constraints.stack, _stack(_table))

biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
_both(constraints.lower_cholesky)(lambda constraint: transforms.LowerCholeskyTransform())
_both(constraints.positive_definite, constraints.positive_semidefinite)(
    lambda constraint: transforms.PositiveDefiniteTransform()
)
_both(constraints.corr_cholesky)(lambda constraint: transforms.CorrCholeskyTransform())
