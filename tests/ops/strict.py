"""An array that can do nothing but what rules are promised, and an `xp` over it.

A rule that runs on these uses only operators, `.shape`, `.dtype`, `.ndim`, `.size` and names of the
vocabulary, so it also runs on Tensors, duals and batches, and on array libraries that are not here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._core.primitive import primitives

METADATA = ("shape", "dtype", "ndim", "size")
OPERATORS = ("add", "sub", "mul", "truediv", "pow", "matmul")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = {"and": operator.and_, "or": operator.or_}


class NotPromisedError(TypeError):
    """A rule used something outside the vocabulary."""


class Strict:
    """A wrapped array; everything outside the promise is refused."""

    __slots__ = ("_array",)
    __array_ufunc__ = None  # NumPy's own operators give way
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Any) -> None:
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> Any:
        if name in METADATA:
            value = getattr(self._array, name)
            return tuple(value) if name == "shape" else value
        raise NotPromisedError(f"a rule uses array.{name}, which only some arrays have")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotPromisedError("a rule hands an array to NumPy")

    def __bool__(self) -> bool:
        raise NotPromisedError("a rule decides by an array's value")

    def __iter__(self) -> Any:
        raise NotPromisedError("a rule iterates over an array")

    def __len__(self) -> int:
        raise NotPromisedError("a rule takes len() of an array")

    def __getitem__(self, _: Any) -> Any:
        raise NotPromisedError("a rule indexes an array; xp.getitem is the vocabulary's name")

    def __float__(self) -> float:
        raise NotPromisedError("a rule reads an array's value")

    def __neg__(self) -> Strict:
        return Strict(-self._array)

    def __repr__(self) -> str:
        return f"Strict({self._array!r})"


def _install() -> None:
    def binary(function: Callable[[Any, Any], Any], *, reflected: bool = False) -> Any:
        def method(self: Strict, other: Any) -> Strict:
            a, b = self._array, unwrap(other)
            return Strict(function(b, a) if reflected else function(a, b))

        return method

    for name in OPERATORS:
        setattr(Strict, f"__{name}__", binary(getattr(operator, name)))
        setattr(Strict, f"__r{name}__", binary(getattr(operator, name), reflected=True))
    for name in COMPARISONS:
        setattr(Strict, f"__{name}__", binary(getattr(operator, name)))
    for name, function in LOGICAL.items():
        setattr(Strict, f"__{name}__", binary(function))


_install()


def wrap(value: Any) -> Any:
    """Wrap arrays, also inside tuples; leave everything else."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Strict(value)
    if type(value) is tuple:
        return tuple(wrap(part) for part in value)
    return value


def unwrap(value: Any) -> Any:
    """Return what a strict array holds; a plain array has no business in a rule."""
    if isinstance(value, Strict):
        return value._array
    if isinstance(value, (np.ndarray, np.generic)):
        raise NotPromisedError("a rule mixes in a plain NumPy array")
    if type(value) is tuple:
        return tuple(unwrap(part) for part in value)
    return value


class StrictNamespace:
    """The vocabulary over strict arrays: arrays by position, declared parameters by keyword."""

    def __getattr__(self, name: str) -> Any:
        primitive = primitives.get(name)
        if primitive is None:
            raise NotPromisedError(f"a rule uses xp.{name}, which the vocabulary has not")
        function = getattr(numpy_namespace, name)

        def call(*args: Any, **params: Any) -> Any:
            for arg in args:
                if not isinstance(arg, (Strict, bool, int, float, complex)):
                    raise NotPromisedError(f"xp.{name} is given {type(arg).__name__} by position")
            if len(args) > len(primitive.inputs) and not primitive.variadic and not primitive.rest:
                raise NotPromisedError(f"xp.{name} is given {len(args)} arrays; parameters go by keyword")
            extra = params.keys() - set(primitive.statics)
            if extra:
                raise NotPromisedError(f"xp.{name} has no parameter {sorted(extra)}")
            return wrap(function(*[unwrap(arg) for arg in args], **params))

        return call


strict_namespace = StrictNamespace()
