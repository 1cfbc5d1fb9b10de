"""How losses are reduced: torch's words and their numbers."""

from __future__ import annotations

from .._warnings import warn

NONE, MEAN, SUM = 0, 1, 2
_NUMBERS = {"none": NONE, "mean": MEAN, "sum": SUM}


def get_enum(reduction: str) -> int:
    """Return the number of a reduction."""
    number = _NUMBERS.get(reduction) if isinstance(reduction, str) else None
    if number is not None:
        return number
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return MEAN
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that two arguments of old meant, with torch's warning."""
    mean, reduced = size_average is None or bool(size_average), reduce is None or bool(reduce)
    wanted = "none" if not reduced else "mean" if mean else "sum"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{wanted}' instead.")
    return wanted


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that two arguments of old meant."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def in_words(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return a reduction given in new words or old ones."""
    return reduction if size_average is None and reduce is None else legacy_get_string(size_average, reduce)


def chosen(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """Return the number of a reduction given in new words or old ones."""
    return get_enum(in_words(size_average, reduce, reduction))
