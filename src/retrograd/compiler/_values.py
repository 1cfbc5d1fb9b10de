"""What the proof of purity knows of a value: a set of possibilities, each of which says what may be done with it.

A `Value` is a frozenset of possibilities. An empty one means that no value comes out: the operation raises. Operations on
objects of builtin and library types may raise, but have no effect that anybody could notice; on objects of a user's classes they run
the user's code, which is looked at in turn.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ._guards import Source, strict_key


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """An immutable value that is known: a literal, or what a guard says."""

    key: str
    value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is Const and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Of:
    """Some value of exactly this builtin immutable type."""

    kind: type


@dataclass(frozen=True, slots=True)
class Lib:
    """Something that the library made: a tensor, a number, a dtype, a tuple, list or dictionary of these, None."""

    kind: str = "value"


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An object that existed before the call, and where it was found."""

    value: Any
    source: Source
    place: int = 0  # tells objects apart that are found at different places; 0 for those that a guard knows by identity

    def __eq__(self, other: object) -> bool:
        return type(other) is Known and other.value is self.value and other.place == self.place

    def __hash__(self) -> int:
        return hash((id(self.value), self.place))


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple made in the call, of known length."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """A tuple, an iterator or a view of unknown length, made in the call."""

    item: Value


@dataclass(frozen=True, slots=True)
class Local:
    """A list, dictionary, set or object made in the call, at this place of the program."""

    kind: type
    site: Any


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A function made in the call: its tree and the frame around it."""

    site: Any
    node: ast.AST
    frame: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is Made and other.site == self.site

    def __hash__(self) -> int:
        return hash(self.site)


@dataclass(frozen=True, slots=True)
class Bound:
    """A method: a function that existed before the call, and what it is bound to."""

    function: Known
    owner: Possibility


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a builtin or library type, by its name."""

    owner: Possibility
    name: str


@dataclass(frozen=True, slots=True)
class Super:
    """What `super()` returns."""

    after: type
    owner: Possibility


@dataclass(frozen=True, slots=True)
class Applied:
    """A function that a transform of the library made of another, as `grad(f)` is."""

    kind: str  # the transform
    function: Value
    aux: Value  # whether the function returns something besides its result


Possibility = Const | Of | Lib | Known | Tup | Many | Local | Made | Bound | Method | Super | Applied
Value = frozenset[Any]

NOTHING: Value = frozenset()
LIB: Value = frozenset({Lib()})
NONE: Value = frozenset({Const("NoneType:None", None)})
BOTH: Value = frozenset({Of(bool)})


def const(value: Any) -> Value:
    """Return the value that is this one."""
    return frozenset({Const(strict_key(value), value)})


def one_of(kind: type) -> Value:
    """Return some value of an immutable type."""
    return frozenset({Of(kind)})


MOST = 24  # possibilities that are told apart


def join(*values: Value) -> Value:
    """Return a value that may be any of several; many numbers become any number."""
    joined: Value = frozenset().union(*values)
    return joined if len(joined) <= MOST else widened(joined)


def widened(value: Value) -> Value:
    """Forget which constants a value may be, but not their types."""
    return frozenset(Of(type(one.value)) if type(one) is Const and one.value is not None else one for one in value)


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of a call: known ones, and what further ones may be, from `*some` and `**some`."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    more: Value = NOTHING
    more_keywords: Value = NOTHING

    def after(self, first: Value) -> Args:
        """Return the arguments with one before them, as a method passes its owner."""
        return Args((first, *self.positional), self.keywords, self.more, self.more_keywords)

    def all(self) -> list[Value]:
        """Return every value that is passed."""
        return [*self.positional, *(value for _, value in self.keywords), self.more, self.more_keywords]
