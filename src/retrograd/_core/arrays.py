"""The array types of forward mode and vmap: values that carry a level."""

from __future__ import annotations

from typing import Any

import numpy as np

from .levels import BATCH, DUAL, Level

KNOWN = frozenset({np.ndarray, np.float32, np.float64, float, int, bool})  # operands beside arrays with levels

# Filled by `primitive.py`: operator name -> primitive. The arrays cannot import it, it imports them.
operators: dict[str, Any] = {}


class LevelArray:
    """An array that belongs to a transform; operations on it are handled by its level."""

    __slots__ = ("level",)
    __array_ufunc__ = None  # NumPy's operators give way to ours
    level: Level
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    def __neg__(self) -> Any:
        return operators["negative"](self)

    def __getitem__(self, index: Any) -> Any:
        return operators["getitem"](self, index=index if isinstance(index, tuple) else (index,))


def _install_operators() -> None:
    def forward(name: str) -> Any:
        def operate(self: Any, other: Any) -> Any:
            if isinstance(other, LevelArray) or type(other) in KNOWN:  # no Tensor: straight to the level
                return operators[name].bind_level((self, other), {})
            return operators[name](self, other)

        return operate

    def reflected(name: str) -> Any:
        def operate(self: Any, other: Any) -> Any:
            if type(other) in KNOWN:
                return operators[name].bind_level((other, self), {})
            return operators[name](other, self)

        return operate

    names = {
        "add": "add",
        "sub": "subtract",
        "mul": "multiply",
        "truediv": "divide",
        "pow": "power",
        "matmul": "matmul",
    }
    for python, ours in names.items():
        setattr(LevelArray, f"__{python}__", forward(ours))
        setattr(LevelArray, f"__r{python}__", reflected(ours))
    comparisons = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}
    comparisons |= {"gt": "greater", "ge": "greater_equal"}
    for python, ours in comparisons.items():
        setattr(LevelArray, f"__{python}__", forward(ours))
    for python, ours in {"and": "bitwise_and", "or": "bitwise_or"}.items():
        setattr(LevelArray, f"__{python}__", forward(ours))
    LevelArray.__hash__ = object.__hash__  # type: ignore[method-assign]


_install_operators()


class Dual(LevelArray):
    """primal + tangent * eps at one level; a tangent of None is zero."""

    __slots__ = ("primal", "tangent")

    def __init__(self, level: Level, primal: Any, tangent: Any) -> None:
        self.level = level
        self.primal = primal
        self.tangent = tangent

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.primal.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.primal.ndim  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.primal.dtype  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Dual({self.level!r}, {self.primal!r}, {self.tangent!r})"


class Batched(LevelArray):
    """An array whose first axis is hidden: the batch of one vmap."""

    __slots__ = ("array",)

    def __init__(self, level: Level, array: Any) -> None:
        self.level = level
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.array.shape[1:]  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.array.ndim - 1  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.array.dtype  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Batched({self.level!r}, {self.array!r})"


LEVEL_TYPES = frozenset({Batched, Dual})
NO_LEVELS: frozenset[Level] = frozenset()


def levels_of(array: Any) -> frozenset[Level]:
    """Return every level in an array, outermost to innermost."""
    if not isinstance(array, LevelArray):
        return NO_LEVELS
    if type(array) is Batched and not isinstance(array.array, LevelArray):
        return array.level.alone or frozenset((array.level,))
    found = []
    pending = [array]
    while pending:
        value = pending.pop()
        found.append(value.level)
        inner = (value.primal, value.tangent) if isinstance(value, Dual) else (value.array,)  # type: ignore[attr-defined]
        pending += [part for part in inner if isinstance(part, LevelArray)]
    return frozenset(found)


def highest_level(arrays: Any) -> Level | None:
    """Return the level that handles a call on these arrays: the one with the largest number."""
    top = None
    for array in arrays:
        if isinstance(array, LevelArray) and (top is None or array.level.number > top.number):
            top = array.level
    return top


def raw_leaf(array: Any) -> Any:
    """Return one raw array inside `array`, for its kind of device."""
    while isinstance(array, LevelArray):
        array = array.primal if isinstance(array, Dual) else array.array  # type: ignore[attr-defined]
    return array


def is_meta(array: Any) -> bool:
    """Tell whether a raw array has a shape and no elements. See Note [Meta arrays]."""
    return getattr(array, "is_meta", False)


def owner_of_memory(array: Any) -> Any:
    """Return the raw array at the bottom of a view; `as_strided` puts an object between, which is no array."""
    while hasattr(array.base, "base"):
        array = array.base
    return array


def samples_apart(out: Any, arrays: Any) -> Any:
    """Let the samples of an expanded batch follow each other in memory, as torch does; NumPy may mix such samples."""
    if type(out) is not np.ndarray or out.ndim < 2 or out.strides[0] != out.itemsize or out.shape[0] < 2:
        return out
    expanded = any([type(one) is np.ndarray and one.ndim and one.strides[0] == 0 for one in arrays])
    return np.stack(list(out)) if expanded else out


def has_nan(array: Any) -> bool:
    """Tell whether an array of any level, or a number, holds NaN."""
    raw = raw_leaf(array)
    dtype = getattr(raw, "dtype", None)
    if dtype is None or dtype.kind not in "fcV" or is_meta(raw):
        return isinstance(raw, float) and raw != raw
    return bool((raw != raw).any())


__all__ = ["BATCH", "DUAL", "Batched", "Dual", "LevelArray", "has_nan", "highest_level", "levels_of", "raw_leaf"]
