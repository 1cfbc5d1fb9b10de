"""Arrays that write down what a formula does to them.

A `Traced` array has an expression for its element, a NumPy dtype and the axes along which its elements differ. `TracedNamespace` is the
vocabulary `xp` over such arrays: a formula that is given both comes back with the graph of what it computes. There are no shapes: a
kernel serves every size, and a size that a formula reads (`x.shape[axis]`) is a number of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from . import expression as ex
from .expression import FLOATS, I1, Expr

# dtypes that kernels know, and what their numbers are stored as
STORAGE: Final = {
    np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16", np.dtype(np.float32): "f32", np.dtype(np.float64): "f64",
    np.dtype(np.bool_): "i1", np.dtype(np.int8): "i8", np.dtype(np.int16): "i16", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "u8", np.dtype(np.uint16): "u16", np.dtype(np.uint32): "u32", np.dtype(np.uint64): "u64",
}  # fmt: skip
DTYPE: Final = {storage: dtype for dtype, storage in STORAGE.items()}
HALVES: Final = ("f16", "bf16")


class UntraceableError(Exception):
    """A formula does what kernels cannot do; it runs on NumPy instead."""


class Traced:
    """An array of which only the element's expression is known."""

    __slots__ = ("axes", "dtype", "expr", "trace")
    __array_ufunc__ = None  # NumPy's scalars leave operators to this class

    def __init__(self, trace: TracedNamespace, expr: Expr, axes: frozenset[int]) -> None:
        self.trace, self.expr, self.axes = trace, expr, axes
        self.dtype = DTYPE[expr.type]

    @property
    def ndim(self) -> int:
        return self.trace.rank

    @property
    def shape(self) -> tuple[Traced, ...]:
        """Sizes, which are numbers of the call."""
        return tuple(self.trace.size_of(axis) for axis in range(self.trace.rank))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return self.trace.astype(self, dtype=dtype)

    def __bool__(self) -> bool:
        raise UntraceableError("a formula branches on a value")

    def __neg__(self) -> Any:
        return Traced(self.trace, ex.neg(self.expr), self.axes)

    def __invert__(self) -> Traced:
        return Traced(self.trace, ~self.expr, self.axes)

    def __pow__(self, exponent: Any) -> Any:
        return self.trace.power_by(self, exponent)


def _operator(function: Callable[[Expr, Expr], Expr], turned: bool = False) -> Any:
    def call(self: Traced, other: Any) -> Any:
        return self.trace.combine(function, other, self) if turned else self.trace.combine(function, self, other)

    return call


for _name, _function in {
    "add": ex.add, "sub": ex.sub, "mul": ex.mul, "truediv": ex.div, "and": Expr.__and__, "or": Expr.__or__, "xor": Expr.__xor__,
    "lshift": Expr.__lshift__, "rshift": Expr.__rshift__,
}.items():  # fmt: skip
    setattr(Traced, f"__{_name}__", _operator(_function))
    setattr(Traced, f"__r{_name}__", _operator(_function, turned=True))
for _name, _function in {
    "lt": Expr.__lt__, "le": Expr.__le__, "gt": Expr.__gt__, "ge": Expr.__ge__, "eq": ex.equal, "ne": ex.not_equal,
}.items():  # fmt: skip
    setattr(Traced, f"__{_name}__", _operator(_function))


class TracedNamespace:
    """The vocabulary `xp` over traced arrays of one rank."""

    is_meta = False
    module = None

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.sized: frozenset[int] = frozenset()  # axes along which some array has elements
        self.scalars: list[
            Any
        ] = []  # what each number of a call is: the name of a parameter, or an axis whose size it is

    # ---- leaves ----
    def operand(self, number: int, dtype: np.dtype[Any], axes: frozenset[int]) -> Traced:
        """Return an array that is given; half precision is read as float32."""
        storage = STORAGE[dtype]
        self.sized |= axes
        return Traced(self, ex.input(number, "f32" if storage in HALVES else storage), axes)

    def number(self, source: Any, type: str) -> Traced:
        """Return a number that each call brings."""
        if source not in self.scalars:
            self.scalars.append(source)
        return Traced(self, ex.scalar(self.scalars.index(source), type), frozenset())

    def constant(self, value: Any, like: Traced) -> Traced:
        """Return an array of one number."""
        return Traced(self, ex.const(value, like.expr.type), frozenset())

    def size_of(self, axis: int) -> Traced:
        return self.number(axis, "f64")

    # ---- arithmetic ----
    def combine(self, function: Callable[..., Expr], *values: Any) -> Any:
        """Apply a function of expressions of one type; Python's numbers and numbers of the call take that of the arrays."""
        arrays = [v for v in values if isinstance(v, Traced)]
        if not arrays:
            raise UntraceableError("numbers alone")
        axes = frozenset().union(*[a.axes for a in arrays])
        type = self._common([a for a in arrays if a.expr.op != "scalar"] or arrays, values)
        return Traced(self, function(*[self._as(v, type) for v in values]), axes)

    def _common(self, arrays: Sequence[Traced], values: Sequence[Any]) -> str:
        type = DTYPE[arrays[0].expr.type]
        for array in arrays[1:]:
            type = np.promote_types(type, array.dtype)
        found = STORAGE[type]
        if found not in FLOATS and any(isinstance(v, float | np.floating) for v in values):
            raise UntraceableError("a float with integers")
        return found

    def _as(self, value: Any, type: str) -> Expr:
        if not isinstance(value, Traced):
            return ex.const(value.item() if hasattr(value, "item") else value, type)
        if value.expr.op == "scalar":
            if type not in FLOATS:  # it may have more digits than a float64
                raise UntraceableError("a number of the call with integers")
            return ex.scalar(value.expr.detail, type)
        return ex.cast(value.expr, type)

    def _call(self, name: str, *values: Any) -> Any:
        from .math import NARROW

        made = self.combine(lambda *args: ex.call(name, *args), *values)
        if made.expr.type not in FLOATS or (made.expr.type == ex.F64 and name in NARROW):
            raise UntraceableError(f"{name} of {made.dtype}")
        return made

    def __getattr__(self, name: str) -> Any:
        from .._core.numpy_namespace import declared
        from .math import FUNCTIONS

        if name in FUNCTIONS:
            return lambda *values: self._call(name, *values)
        formula = getattr(getattr(declared.get(name), "implementation", None), "formula", None)
        if formula is not None:  # one formula in another
            return lambda *arrays, **params: formula(self, *arrays, **params)
        raise UntraceableError(f"xp.{name} in a formula")

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        chosen = condition.expr if condition.expr.type == I1 else ex.cast(condition.expr, I1)
        made = self.combine(lambda a, b: ex.select(chosen, a, b), x, y)
        return Traced(self, made.expr, made.axes | condition.axes)

    def astype(self, x: Any, *, dtype: Any) -> Any:
        """Convert; an array in half precision is one of float32 that has been rounded."""
        storage = STORAGE.get(np.dtype(getattr(dtype, "numpy", dtype)))
        if storage is None:
            raise UntraceableError(f"a conversion to {dtype} in a formula")
        if storage in HALVES:
            return Traced(self, ex.rounded(ex.cast(x.expr, "f32"), storage), x.axes)
        return Traced(self, ex.cast(x.expr, storage), x.axes)

    def reinterpret(self, x: Any, dtype: Any) -> Any:
        """Read the bits of numbers as another dtype of the same width."""
        return Traced(self, ex.bitcast(x.expr, STORAGE[np.dtype(dtype)]), x.axes)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """x * y + z, rounded once."""
        return self.combine(ex.fma, x, y, z)

    def abs(self, x: Any) -> Any:
        return Traced(self, ex.absolute(x.expr), x.axes)

    def square(self, x: Any) -> Any:
        return x * x

    def sgn(self, x: Any) -> Any:
        return self.where(x > 0, self.ones_like(x), self.where(x < 0, -self.ones_like(x), self.zeros_like(x)))

    def relu(self, x: Any) -> Any:
        return self.bounded(x, 0, None)

    def bounded(self, x: Any, low: Any, high: Any) -> Any:
        """Bound by numbers or arrays; NaN stays, also of a bound, and so does the sign of a zero at the bound."""
        out = x if low is None else self.where(self._or_is_nan(x < low, low), low, x)
        return out if high is None else self.where(self._or_is_nan(out > high, high), high, out)

    def _or_is_nan(self, condition: Any, bound: Any) -> Any:
        return self.logical_or(condition, self.isnan(bound)) if isinstance(bound, Traced) else condition

    def power_by(self, x: Any, exponent: Any) -> Any:
        if isinstance(exponent, int | float) and 1 <= abs(exponent) <= 64 and exponent == int(exponent):
            from .._core.passes import integer_power

            power: Any = integer_power(x, abs(int(exponent)))
            return power if exponent > 0 else 1 / power
        if isinstance(exponent, float) and exponent in (0.5, -0.5):
            return self.sqrt(x) if exponent > 0 else 1 / self.sqrt(x)
        if isinstance(exponent, complex):
            raise UntraceableError("a complex exponent")
        return self._call("power", x, exponent)

    def real(self, x: Any) -> Any:
        return x

    conj = copy = real

    def isinf(self, x: Any) -> Any:
        return self.abs(x) == float("inf")

    def fmax(self, x: Any, y: Any) -> Any:
        return self.where(self.logical_or(x >= y, self.isnan(y)), x, y)

    def fmin(self, x: Any, y: Any) -> Any:
        return self.where(self.logical_or(x <= y, self.isnan(y)), x, y)

    def hypot(self, x: Any, y: Any) -> Any:
        """Return the length of (x, y): the squares of the quotient by the longer side stay in range."""
        x, y = self.abs(x), self.abs(y)
        longer, shorter = self.maximum(x, y), self.minimum(x, y)
        quotient = shorter / self.where(longer == 0, 1, longer)
        length = longer * self.sqrt(quotient * quotient + 1)
        return self.where(self.logical_or(self.isinf(x), self.isinf(y)), float("inf"), length)

    def isnan(self, x: Any) -> Any:
        return Traced(self, ex.is_nan(x.expr), x.axes)

    def isfinite(self, x: Any) -> Any:
        return self.abs(x) < float("inf")

    def zeros_like(self, x: Any) -> Any:
        return Traced(self, ex.const(0, x.expr.type), frozenset())

    def ones_like(self, x: Any) -> Any:
        return Traced(self, ex.const(1, x.expr.type), frozenset())

    # ---- reductions ----
    def _reduce(self, op: str, x: Traced, axis: Any, keepdims: bool) -> Any:
        if not keepdims and axis is not None:
            raise UntraceableError("a reduction that drops axes")
        axes = range(self.rank) if axis is None else (axis,) if isinstance(axis, int) else axis
        reduced = frozenset(a % self.rank for a in axes) & self.sized
        missing = reduced - x.axes
        if x.expr.type == I1 and op in ("sum", "prod"):
            raise UntraceableError("truth values that are counted")
        if missing and op in ("sum", "prod"):
            raise UntraceableError("a sum over an axis that an array does not have")
        if not reduced & x.axes:
            return Traced(self, ex.add(x.expr, 0.0), x.axes) if op == "sum" and x.expr.type in FLOATS else x
        op = ex.OF_TRUTHS.get(op, op) if x.expr.type == I1 else op
        made = ex.node("reduce", (x.expr,), x.expr.type, (op, tuple(sorted(reduced & x.axes))))
        return Traced(self, made, x.axes - reduced)

    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        if dtype is not None:
            x = self.astype(x, dtype=dtype)
        return self._reduce("sum", x, axis, keepdims)

    def prod(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduce("prod", x, axis, keepdims)

    def max(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduce("max", x, axis, keepdims)

    def min(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduce("min", x, axis, keepdims)

    def any(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduce("any", self.astype(x, dtype=np.bool_), axis, keepdims)

    def all(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduce("all", self.astype(x, dtype=np.bool_), axis, keepdims)


def _named(name: str, function: Callable[..., Expr]) -> None:
    def call(self: TracedNamespace, *values: Any) -> Any:
        return self.combine(function, *values)

    call.__name__ = name
    setattr(TracedNamespace, name, call)


def _of_truths(function: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda *values: function(*[ex.cast(value, I1) for value in values])


for _name, _function in {
    "add": ex.add, "subtract": ex.sub, "multiply": ex.mul, "divide": ex.div, "true_divide": ex.div, "negative": ex.neg,
    "maximum": ex.maximum, "minimum": ex.minimum, "sqrt": ex.sqrt, "floor": ex.floor, "ceil": ex.ceil, "trunc": ex.trunc,
    "rint": ex.rint, "copysign": ex.copysign, "greater": Expr.__gt__, "less": Expr.__lt__, "greater_equal": Expr.__ge__,
    "less_equal": Expr.__le__, "equal": ex.equal, "not_equal": ex.not_equal, "logical_and": _of_truths(Expr.__and__),
    "logical_or": _of_truths(Expr.__or__), "logical_xor": _of_truths(Expr.__xor__),
    "logical_not": _of_truths(Expr.__invert__), "fmod": ex.rem,
}.items():  # fmt: skip
    _named(_name, _function)
