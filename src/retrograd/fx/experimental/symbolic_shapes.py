"""Questions about sizes that may be symbols. Sizes here are numbers, so every question has its answer."""

from __future__ import annotations

from typing import Any


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818 - torch's name
    """An answer would depend on data. It never does here."""


def statically_known_true(x: Any) -> bool:
    """Tell whether something is true."""
    return bool(x)


def guard_or_false(a: Any) -> bool:
    """Tell whether something is true."""
    return bool(a)


guard_or_true = guard_bool = guard_size_oblivious = sym_eq_or_false = guard_or_false


def guard_int(a: Any) -> int:
    """Return a number."""
    return int(a)


def guard_float(a: Any) -> float:
    """Return a number."""
    return float(a)


def hint_int(a: Any, fallback: int | None = None) -> int:
    """Return a number."""
    return int(a)


def free_symbols(val: Any) -> set[Any]:
    """Return the symbols in a value: there are none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Tell whether a value has symbols."""
    return False


has_free_unbacked_symbols = is_symbolic = is_concrete_false = has_free_symbols


def is_concrete_int(a: Any) -> bool:
    """Tell whether a size is a number."""
    return isinstance(a, int)


def is_concrete_bool(a: Any) -> bool:
    """Tell whether an answer is known."""
    return isinstance(a, bool)
