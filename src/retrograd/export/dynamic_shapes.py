"""Which sizes of the inputs of an exported program may change: `Dim`, and where it is said."""

from __future__ import annotations

import inspect
from enum import Enum, auto
from importlib import import_module
from typing import Any

from .._tracebacks import guard_public
from ..tensor import Tensor
from ..utils import _pytree as pytree

UNLIMITED = float("inf")


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


class _DimHint:
    """A word about one size: it may change, it stays, or whatever the program makes of it."""

    def __init__(self, type: _DimHintType, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = type, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """Return the same word with limits."""
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        limits = [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join([self.type.name, *limits])})"


class Dim:
    """A size that may change, by name: equal sizes of several inputs have the same."""

    AUTO = _DimHint(_DimHintType.AUTO)
    STATIC = _DimHint(_DimHintType.STATIC)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    factor, start = 1, 0

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, UNLIMITED if max is None else max
        if high < low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.root: Dim = self  # from which others are computed
        self.min, self.max = low, high

    def size_of(self, value: int) -> int | None:
        """Return what the root of the dim is if the dim is `value`; None if it cannot be."""
        found, rest = divmod(value - self.start, self.factor)
        return None if rest else found

    def __add__(self, other: int) -> Dim:
        return _DerivedDim(f"{self.__name__} + {_whole(other)}", self.root, self.factor, self.start + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return _DerivedDim(f"{self.__name__} - {_whole(other)}", self.root, self.factor, self.start - other)

    def __mul__(self, other: int) -> Dim:
        if _whole(other) <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {self.__name__} by {other}, where a positive integer was expected."
            )
        return _DerivedDim(f"{other}*{self.__name__}", self.root, self.factor * other, self.start * other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        limits = (
            [f"min={self.min}"] if self.min != 2 else []
        )  # torch does not show the smallest size that is none of 0 and 1
        if self.max != UNLIMITED:
            limits.append(f"max={self.max}")
        return f"Dim({', '.join([repr(self.__name__), *limits])})"


class _DerivedDim(Dim):
    """A size that is computed from another one, as `2 * batch`: `factor * root + start`."""

    def __init__(self, name: str, root: Dim, factor: int, start: int) -> None:
        self.__name__ = name
        self.root, self.factor, self.start = root, factor, start
        self.min = factor * int(root.min) + start
        self.max = UNLIMITED if root.max == UNLIMITED else factor * int(root.max) + start

    def __repr__(self) -> str:
        return self.__name__


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise NotImplementedError(f"Attempted to compute a Dim from {value}, where an integer was expected.")
    return value


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Make several dims."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ValueRange:
    """The sizes that a dim may have."""

    def __init__(self, lower: float, upper: float) -> None:
        self.lower, self.upper = lower, upper

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueRange) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper == UNLIMITED else self.upper}]"


class ConstraintViolationError(RuntimeError):
    """An example has a size that its dim does not allow."""


class ShapesCollection:
    """What is said of the sizes of inputs, by the inputs themselves."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        self._shapes[id(t)] = shape

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Return it in the form that `export` takes: by the names of the arguments."""
        named = named_arguments(m, args, kwargs or {})
        return pytree.tree_map(lambda value: self._shapes.get(id(value)), named)


class AdditionalInputs:
    """More examples: a size that differs among them may change."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add an example."""
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Return what the examples say, in the form that `export` takes."""
        every = [named_arguments(m, *example) for example in [(args, kwargs or {}), *self._examples]]

        def differing(*values: Any) -> Any:
            if not isinstance(values[0], Tensor):
                return None
            sizes = zip(*(value.shape for value in values), strict=True)
            return tuple(Dim.DYNAMIC if len(set(each)) > 1 else None for each in sizes)

        return pytree.tree_map(differing, *every)


def named_arguments(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by the names that the module has for them."""
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


def sizes_that_change(named: dict[str, Any], said: Any) -> dict[int, dict[int, Any]]:
    """Return, by the id of a tensor, the dims of its sizes that may change; raise an error if what is said does not fit."""
    errors = import_module("retrograd._dynamo.exc")
    if said is None:
        return {}
    if isinstance(said, dict) and said.keys() != named.keys():
        raise errors.UserError(
            errors.UserErrorType.INVALID_INPUT,
            "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
            f"{list(named)} of `inputs`, but here they are {list(said)}. Alternatively, you could also ignore arg names "
            "entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`.",
        )
    if isinstance(said, (list, tuple)) and len(said) != len(named):
        raise errors.UserError(
            errors.UserErrorType.INVALID_INPUT,
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has {len(named)} elements, but "
            f"`dynamic_shapes` has {len(said)} elements",
        )
    found: dict[int, dict[int, Any]] = {}
    words = said if isinstance(said, dict) else dict(zip(named, said, strict=True))
    for name, value in named.items():
        _collect(value, words[name], name, found)
    _check_sizes(named, found)
    return found


def _collect(value: Any, said: Any, name: str, found: dict[int, dict[int, Any]]) -> None:
    if said is None:
        return
    if isinstance(value, Tensor):
        by_dim = said if isinstance(said, dict) else dict(enumerate(said))
        for dim, word in by_dim.items():
            if not -value.dim() <= dim < value.dim():
                raise IndexError(f"dynamic_shapes: '{name}' has no dimension {dim}, its shape is {tuple(value.shape)}")
            if (
                word is None
                or isinstance(word, int)
                or (isinstance(word, _DimHint) and word.type is _DimHintType.STATIC)
            ):
                continue
            found.setdefault(id(value), {})[dim % value.dim()] = word
    elif isinstance(value, dict):
        for key, each in value.items():
            _collect(each, said[key], f"{name}[{key!r}]", found)
    elif isinstance(value, (list, tuple)):
        for i, (each, word) in enumerate(zip(value, said, strict=True)):
            _collect(each, word, f"{name}[{i}]", found)


def _check_sizes(named: dict[str, Any], found: dict[int, dict[int, Any]]) -> None:
    errors = import_module("retrograd._dynamo.exc")
    roots: dict[str, int] = {}
    defined: dict[str, Dim] = {}
    for value in pytree.tree_leaves(named):
        for dim, word in found.get(id(value), {}).items():
            size = int(value.shape[dim])
            if not isinstance(word, Dim):
                continue
            first = defined.setdefault(word.root.__name__, word.root)
            if (first.min, first.max) != (word.root.min, word.root.max):
                raise errors.UserError(
                    errors.UserErrorType.INVALID_INPUT,
                    f"Found different definitions {first} and {word.root} for the same symbolic dimension {word}!",
                )
            if not word.min <= size <= word.max:
                limit = "int_oo" if word.max == UNLIMITED else word.max
                raise ConstraintViolationError(f"{size} not in range [{word.min}, {limit}]")
            root = word.size_of(size)
            name = word.root.__name__
            if root is None or roots.setdefault(name, root) != root:
                raise ConstraintViolationError(
                    f"Constraints violated ({name})! The sizes of the examples do not agree: {word.__name__} is {size}"
                )


def ranges(found: dict[int, dict[int, Any]]) -> dict[str, ValueRange]:
    """Return the limits of the dims by their names."""
    every = [word.root for words in found.values() for word in words.values() if isinstance(word, Dim)]
    return {dim.__name__: ValueRange(dim.min, dim.max) for dim in every}


guard_public(globals(), methods=True)
