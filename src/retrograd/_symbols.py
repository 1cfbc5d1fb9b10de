"""Numbers that a trace does not know yet (`torch.SymInt`): nothing is one here, because sizes are known whenever programs run.

The functions are what torch's do with plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .overrides import wrap_torch_function

_overridable = wrap_torch_function(lambda *values: values)


class _Symbol:
    def __init__(self, node: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} needs torch's compiler, which traces programs with sizes that it does not know"
        )


class SymInt(_Symbol):
    """A whole number that a trace does not know yet."""


class SymFloat(_Symbol):
    """A number that a trace does not know yet."""


class SymBool(_Symbol):
    """A truth value that a trace does not know yet."""


@_overridable
def sym_not(a: Any) -> bool:
    """Return the opposite."""
    return not a


@_overridable
def sym_float(a: Any) -> Any:
    """Return a floating-point number."""
    return float(a)


@_overridable
def sym_int(a: Any) -> int:
    """Return a whole number, towards zero."""
    return int(math.ceil(a) if a < 0 else math.floor(a))


@_overridable
def sym_max(a: Any, b: Any) -> Any:
    """Return the larger number, a float if either is one."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


@_overridable
def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number, a float if either is one."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


@_overridable
def sym_sum(args: Iterable[Any]) -> Any:
    """Add numbers up."""
    return sum(args)


@_overridable
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Choose one of two values."""
    return t if b else f


@_overridable
def sym_sqrt(a: float) -> float:
    """Return the square root."""
    return math.sqrt(a)
