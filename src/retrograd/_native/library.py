"""NumPy's own functions: on large arrays of floats they are kernels, too.

NumPy computes many of them one by one (log1p takes 17 ns an element, a kernel 1), and half precision slower than float32. What it does in
all lanes already is left to it until threads pay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .. import _thresholds
from .._core.numpy_namespace import install_native, numpy_namespace
from .._settings import get_num_threads
from . import machine
from .program import Formula, formula
from .reductions import reduced
from .trace import HALVES, STORAGE, TracedNamespace
from .turning import copied as turned

__all__ = ["cast", "divided", "library", "product_of_halves", "reduced", "turned"]  # what arrays of NumPy are given to

NDARRAY = np.ndarray
# what NumPy does in all lanes of the processor, and with the same bits
EXACT: Final = frozenset(
    """add subtract multiply divide negative abs square maximum minimum floor ceil trunc rint equal not_equal less less_equal greater
    greater_equal isnan isinf isfinite""".split()  # noqa: SIM905 - names read better as text
)
QUICK: Final = EXACT | {"sqrt", "log", "sin", "cos", "tanh"}
FLOATS: Final = {
    dtype: storage in HALVES for dtype, storage in STORAGE.items() if storage[-3:] in ("f16", "f32", "f64")
}

_TRUTH: Final = np.dtype(bool)
OPERANDS: Final = FLOATS | {_TRUTH: False}


class Library:
    """A function of NumPy of one to three operands, and its kernels."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.start = _thresholds.WIDE if name in QUICK else _thresholds.NATIVE_SLOW
        if name == "exp":
            self.start = _thresholds.NATIVE_EXP
        self.is_exact = name in EXACT
        self.formulas: dict[Any, Formula] = {}  # by the operands that are numbers
        self.ways: dict[
            Any, Any
        ] = {}  # by the types of operands: a formula, and which of them are its arrays and its numbers

    def of_any_size(self, *operands: Any) -> Any:
        """Compute by a kernel if an array is large."""
        for operand in operands:
            if type(operand) is NDARRAY and operand.size >= _thresholds.NATIVE_SLOW:
                half = OPERANDS.get(operand.dtype)
                if half is not None and operand.size >= (_thresholds.NATIVE if half else self.start):
                    return self.large(*operands)
        return self.function(*operands)

    def large(self, *operands: Any) -> Any:
        """Compute by a kernel, if operands are floats of one dtype, truth values and numbers."""
        key = tuple([o.dtype.num if type(o) is NDARRAY else type(o) for o in operands])
        way = self.ways.get(key, self)
        if way is self:
            way = self.ways[key] = self._way(operands)
        if way is None:
            return self.function(*operands)
        formula, places, numbers, is_half = way
        arrays = [operands[k] for k in places]
        first, last = arrays[0], arrays[-1]
        alike = first.strides == last.strides and first.shape == last.shape and first.nbytes < _thresholds.STREAMED
        if alike and self.is_exact and not is_half and get_num_threads() == 1:
            return self.function(*operands)  # memory is all that takes time, and NumPy's call takes less
        return formula.large(numpy_namespace, arrays, {f"n{k}": operands[k] for k in numbers})

    def _way(self, operands: Sequence[Any]) -> Any:
        """Return how operands of such types are computed: see `ways`; None if no kernel is for them."""
        # beside half precision a number comes in float32, in which it is computed
        wide = any(type(o) is NDARRAY and FLOATS.get(o.dtype) for o in operands)
        numbers = tuple([not isinstance(o, NDARRAY | np.generic) or (wide and type(o) is np.float32) for o in operands])
        dtypes = {o.dtype for o, number in zip(operands, numbers, strict=True) if not number} - {_TRUTH}
        if len(dtypes) != 1 or not dtypes <= FLOATS.keys() or any(type(o) is complex for o in operands):
            return None
        # the first array says which precision a result has
        order = sorted(range(len(operands)), key=lambda k: numbers[k] or operands[k].dtype == _TRUTH)
        key = numbers, tuple(order)
        formula = self.formulas.get(key)
        if formula is None:
            formula = self.formulas[key] = self._formula(numbers, order)
        arrays = [k for k in order if not numbers[k]]
        return formula, arrays, [k for k in order if numbers[k]], FLOATS[dtypes.pop()]

    def _formula(self, numbers: Sequence[bool], order: Sequence[int]) -> Formula:
        places = [k for k in order if not numbers[k]]

        def call(xp: Any, *arrays: Any, **params: Any) -> Any:
            given = dict(zip(places, arrays, strict=True)) | {int(name[1:]): value for name, value in params.items()}
            function = getattr(xp, self.name) if xp.module is None else self.function
            return function(*[given[k] for k in range(len(numbers))])

        formula = Formula(call, tuple(f"n{k}" for k, number in enumerate(numbers) if number), ())
        formula.elementwise = True
        return formula


def library(name: str, function: Callable[..., Any]) -> Library | None:
    """Return a function of NumPy with its kernels; None if there are none for its name."""
    if hasattr(TracedNamespace, name):
        return Library(name, function)
    from .math import FUNCTIONS  # which takes time to import

    return Library(name, function) if name in FUNCTIONS else None


@formula
def _quotient(xp: Any, x: Any, y: Any, *, rounded: str, rest: bool) -> Any:
    # in float64 the product of a float32 and a whole number below 2^29 is exact, and so is the difference
    wide, divisor = xp.astype(x, dtype=np.float64), xp.astype(y, dtype=np.float64)
    whole = getattr(xp, rounded)(wide / divisor)
    if not rest:
        return xp.astype(whole, dtype=np.float32)
    left = wide - whole * divisor
    if rounded == "trunc":
        left = xp.copysign(left, wide)  # also where nothing is left
    return xp.astype(left, dtype=np.float32)


def divided(x: Any, y: Any, rounded: str, *, rest: bool) -> np.ndarray | None:
    """Compute q = rounded(x / y) of many numbers of float32, or the rest x - y q; None where it cannot, or not exactly."""
    if type(y) in (int, float):
        y = np.float32(y)
    if x.dtype != np.float32 or getattr(y, "dtype", None) != np.float32 or y.shape not in ((), x.shape):
        return None
    sizes = np.abs(y)
    smallest = sizes.min()
    if not smallest or not max(x.max(), -x.min()) / smallest < 1 << 27 or sizes.max() == np.inf:  # or NaN
        return None
    return _quotient.large(numpy_namespace, (x, y), {"rounded": rounded, "rest": rest})  # type: ignore[no-any-return]


@formula
def _doubled(xp: Any, x: Any) -> Any:
    return xp.astype(x, dtype=np.float64)


CAST: Final = {"i1", "f16", "bf16", "f32", "f64"}
_casts: dict[str, Formula] = {"f64": _doubled}


def cast(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Convert a large array to another dtype: half precision, and float32 to float64, which takes NumPy a fifth longer, by a kernel."""
    before, after = STORAGE.get(x.dtype), STORAGE.get(dtype)
    both = {before, after}
    slow = before in HALVES or after in HALVES or (before == "f32" and after == "f64")
    if len(both) != 2 or not slow or not both <= CAST or after == "i1" or not machine.is_available():
        return x.astype(dtype)
    formula = _casts.get(str(after))
    if formula is None:
        formula = _casts[str(after)] = Formula(lambda xp, x: xp.astype(x, dtype=np.float32), (), ())
        formula.stored = after
    return formula.large(None, [x], {})  # type: ignore[no-any-return]


def product_of_halves(x: Any, y: Any, bias: Any) -> Any:
    """Multiply matrices of bfloat16, and add a bias to rows; None where there is no kernel for them."""
    from .half_products import multiplied  # few programs need it

    return multiplied(x, y, bias)


install_native(sys.modules[__name__])
