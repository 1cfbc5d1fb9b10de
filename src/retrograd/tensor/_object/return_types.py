"""torch's named results: tuples whose parts have names, such as `values` and `indices`."""

from __future__ import annotations

from operator import itemgetter
from typing import Any


class NamedResult(tuple[Any, ...]):
    """Base of the named results. Takes its parts one by one or, as torch's do, in one sequence and a dictionary."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *parts: Any) -> NamedResult:
        if len(parts) != len(cls._fields) or (len(parts) == 2 and type(parts[1]) is dict):
            if not parts:
                raise TypeError("structseq() missing required argument 'sequence' (pos 1)")
            if not hasattr(parts[0], "__iter__"):
                raise TypeError("constructor requires a sequence")
            parts = tuple(parts[0])
            if len(parts) != len(cls._fields):
                raise TypeError(
                    f"torch.return_types.{cls.__name__}() takes a {len(cls._fields)}-sequence "
                    f"({len(parts)}-sequence given)"
                )
        return tuple.__new__(cls, parts)

    def __repr__(self) -> str:
        parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{parts})"

    def __reduce__(self) -> Any:
        from .._files.pickling import is_torch

        if is_torch():  # the class is where its name says it is
            return type(self), (tuple(self), {})
        return made_of, (type(self).__name__, self._fields, tuple(self))


named: Any = tuple.__new__  # (class, parts): makes a named result of as many parts as it has names

_made: dict[str, type[NamedResult]] = {}


def make(name: str, *fields: str) -> Any:
    """Return the class of torch's results called `name`; the same class each time."""
    found = _made.get(name)
    if found is None:
        body: dict[str, Any] = {field: property(itemgetter(at)) for at, field in enumerate(fields)}
        body |= {"__slots__": (), "__match_args__": fields, "_fields": fields, "__module__": "torch.return_types"}
        body |= {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
        found = _made[name] = type(name, (NamedResult,), body)
    return found


def made_of(name: str, fields: tuple[str, ...], parts: tuple[Any, ...]) -> Any:
    """Make a named result again: what a pickle calls."""
    return named(make(name, *fields), parts)
