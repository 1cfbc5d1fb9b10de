"""Runs passes one after another, until nothing changes or a number of rounds is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import GraphModule
from ..pass_manager import this_before_that_pass_constraint as this_before_that_pass_constraint
from .pass_base import PassResult


def pass_result_wrapper(fn: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Let a function that changes a module in place be a pass."""
    if fn is None:
        return None

    def wrapped(gm: GraphModule) -> PassResult:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return result if isinstance(result, PassResult) else PassResult(result, True)

    wrapped.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return wrapped


class PassManager:
    """Runs passes in an order that keeps to the constraints."""

    def __init__(
        self,
        passes: list[Any] | None = None,
        constraints: list[Any] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes: list[Any] = list(passes or [])
        self.constraints: list[Any] = list(constraints or [])
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)

    def add_constraint(self, constraint: Callable[..., Any]) -> None:
        """Demand an order: `constraint(a, b)` tells whether a may stand before b."""
        self.constraints.append(constraint)

    def validate_constraints(self) -> None:
        """Raise an error if the passes stand in an order that is forbidden."""
        for constraint in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {first} before {second} but found otherwise"
                        )

    def check(self, module: Any) -> None:
        """Check the module between passes; subclasses say what for."""

    def __call__(self, module: Any) -> PassResult:
        self.validate_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            round_changed = False
            for each in self.passes:
                name = getattr(each, "__name__", type(each).__name__)
                try:
                    result = each(module)
                except Exception as error:
                    raise type(error)(f"An error occurred when running the '{name}' pass: {error}") from error
                if not isinstance(result, PassResult):
                    raise TypeError(
                        f"The result of the pass {name} should be type PassResult.Please wrap it with pass_result_wrapper()"
                    )
                module, round_changed = result.graph_module, round_changed or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or round_changed
            if not round_changed:
                break
        return PassResult(module, changed)
