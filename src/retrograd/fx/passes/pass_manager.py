"""Functions that change something, run one after another in an order that keeps to rules."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..._public import set_all

logger = logging.getLogger(__name__)
Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def inplace_wrapper(fn: Pass) -> Pass:
    """Let a function that changes its argument return that argument."""

    @wraps(fn)
    def changing(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return changing


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """Let a function write what it returns into the log."""

    @wraps(fn)
    def logging_it(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return logging_it


def loop_pass(base_pass: Pass, n_iter: int | None = None, predicate: Callable[[Any], bool] | None = None) -> Pass:
    """Run a function on its own result, `n_iter` times or as long as `predicate` holds."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def repeating(source: Any) -> Any:
        if predicate is not None:
            while predicate(source):
                source = base_pass(source)
        elif n_iter is not None and n_iter > 0:
            for _ in range(n_iter):
                source = base_pass(source)
        else:
            raise RuntimeError(
                f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate (given {predicate})"
            )
        return source

    return repeating


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """Demand that one pass runs before another."""
    return lambda a, b: not (a == that and b == this)


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """Demand that one pass runs before another, also where they are wrapped."""
    order = this_before_that_pass_constraint(these, those)
    return lambda a, b: order(inspect.unwrap(a), inspect.unwrap(b))


class PassManager:
    """Runs passes, each on what the one before returned; `constraints` tell which may stand before which."""

    def __init__(self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """Return a manager of these passes."""
        return PassManager(passes)

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Demand an order."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Take away the passes of these names."""
        if _passes is not None:
            self.passes = [each for each in self.passes if each.__name__ not in _passes]
            self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Put a pass in the place of those with the name of another."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raise an error if the passes stand in an order that is forbidden."""
        if self._validated:
            return
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :]):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at "
                            f"index{j} in pass list."
                        )
        self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for each in self.passes:
            source = each(source)
        return source


set_all(globals())
