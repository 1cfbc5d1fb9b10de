"""Expressions: what a formula computes for one element, as a graph in which equal nodes are one node.

An expression has an operation, arguments, a type and a detail (the value of a constant, the number of an input). Types are names:
"f32", "f64" for numbers, "i8" to "i64" and "u8" to "u64" for integers, "i1" for truth values. Half precision is a storage format: a
load gives "f32", a store rounds.
The functions below are the only way to make one. They simplify as they go, but only what is exact for every input: `x * 1` is `x`, while
`x + 0` is not (of -0.0), nor is `x * 0` zero (of NaN and infinity).
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final
from weakref import WeakValueDictionary

F32, F64, I1, I32, I64 = "f32", "f64", "i1", "i32", "i64"
FLOATS: Final = ("f32", "f64")
BITS_OF: Final = {"f32": "i32", "f64": "i64"}  # the integers of the same width
WIDTH: Final = {
    "i1": 1, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64, "f32": 32, "f64": 64,
}  # fmt: skip

RARE: Final = "rare"  # the detail of a selection, see `rare`

_known: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()


class Expr:
    """A node of the graph. Equal nodes are identical, so `is` compares them and sets hold them."""

    __slots__ = ("__weakref__", "args", "detail", "op", "reductions", "type")

    op: str
    args: tuple[Expr, ...]
    type: str
    detail: Any
    reductions: int  # how many reductions follow one another on the longest way to the leaves

    def __add__(self, other: Any) -> Expr:
        return add(self, other)

    def __radd__(self, other: Any) -> Expr:
        return add(other, self)

    def __sub__(self, other: Any) -> Expr:
        return sub(self, other)

    def __rsub__(self, other: Any) -> Expr:
        return sub(other, self)

    def __mul__(self, other: Any) -> Expr:
        return mul(self, other)

    def __rmul__(self, other: Any) -> Expr:
        return mul(other, self)

    def __truediv__(self, other: Any) -> Expr:
        return div(self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return div(other, self)

    def __neg__(self) -> Expr:
        return neg(self)

    def __and__(self, other: Any) -> Expr:
        return _binary("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return _binary("or", self, other)

    def __xor__(self, other: Any) -> Expr:
        return _binary("xor", self, other)

    def __invert__(self) -> Expr:
        return self ^ (True if self.type == I1 else -1)

    def __lshift__(self, other: Any) -> Expr:
        return _binary("shl", self, other)

    def __rshift__(self, other: Any) -> Expr:
        """Shift to the right: signed integers keep their sign."""
        return _binary("shr", self, other)

    def __lt__(self, other: Any) -> Expr:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return compare("ge", self, other)

    def __repr__(self) -> str:
        if self.op in ("const", "input", "scalar"):
            return f"{self.op}({self.detail!r}: {self.type})"
        return f"{self.op}({', '.join(map(repr, self.args))})"


# What NumPy's operations and reductions are of truth values, whose LLVM type has one bit and a sign.
OF_TRUTHS: Final = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and", "max": "any", "min": "all"}


def node(op: str, args: tuple[Expr, ...], type: str, detail: Any = None) -> Expr:
    """Return the node of an operation; there is one for equal arguments."""
    if type == I1:
        op = OF_TRUTHS.get(op, op)
    key = (op, args, type, detail)
    found = _known.get(key)
    if found is None:
        found = Expr()
        found.op, found.args, found.type, found.detail = op, args, type, detail
        found.reductions = max([a.reductions for a in args], default=0) + (op == "reduce")
        _known[key] = found
    return found


# ---- leaves ----
def const(value: float, type: str) -> Expr:
    """Return a constant; floats are told apart by their bits, so that 0.0 and -0.0 differ and NaN equals itself."""
    if type in FLOATS:
        packed = struct.pack("<d", _rounded(float(value), type))
        return node("const", (), type, struct.unpack("<q", packed)[0])
    if type == I1:
        return node("const", (), type, bool(value))
    return node("const", (), type, int(value))


def value_of(constant: Expr) -> float:
    """Return the number that a constant stands for."""
    if constant.type in FLOATS:
        return struct.unpack("<d", struct.pack("<q", constant.detail))[0]  # type: ignore[no-any-return]
    return constant.detail  # type: ignore[no-any-return]


def _rounded(value: float, type: str) -> float:
    if type == "f64" or math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return math.copysign(math.inf, value)


def input(number: int, type: str) -> Expr:
    """Return the element of an operand that the loop is at."""
    return node("input", (), type, number)


def scalar(number: int, type: str) -> Expr:
    """Return a number that is given to each call."""
    return node("scalar", (), type, number)


def position() -> Expr:
    """Return where in the row the loop is."""
    return node("position", (), I64)


def is_number(value: Expr, number: float) -> bool:
    """Tell whether an expression is this constant, with this sign of zero."""
    if value.op != "const":
        return False
    known = value_of(value)
    return known == number and math.copysign(1, known) == math.copysign(1, number)


# ---- arithmetic ----
def _pair(x: Any, y: Any) -> tuple[Expr, Expr]:
    """Make two arguments expressions of one type; a Python number takes the type of the other."""
    first: Expr = x if isinstance(x, Expr) else const(x, y.type)
    second: Expr = y if isinstance(y, Expr) else const(y, first.type)
    if first.type != second.type:
        raise TypeError(f"an operation of {first.type} and {second.type}: cast one of them")
    return first, second


def _binary(op: str, x: Any, y: Any) -> Expr:
    x, y = _pair(x, y)
    return node(op, (x, y), x.type)


def add(x: Any, y: Any) -> Expr:
    """x + y; -0.0 is what changes nothing when it is added, and 0 for integers."""
    a, b = _pair(x, y)
    nothing = -0.0 if a.type in FLOATS else 0
    return b if is_number(a, nothing) else a if is_number(b, nothing) else node("add", (a, b), a.type)


def sub(x: Any, y: Any) -> Expr:
    """x - y."""
    a, b = _pair(x, y)
    return a if is_number(b, 0) else neg(b) if is_number(a, -0.0) else node("sub", (a, b), a.type)


def mul(x: Any, y: Any) -> Expr:
    """x * y."""
    a, b = _pair(x, y)
    for one, other in ((a, b), (b, a)):
        if is_number(one, 1):
            return other
        if is_number(one, -1) and one.type in FLOATS:
            return neg(other)
    return node("mul", (a, b), a.type)


def div(x: Any, y: Any) -> Expr:
    """x / y; integers are divided towards zero."""
    a, b = _pair(x, y)
    if is_number(b, 1):
        return a
    if b.op == "const" and b.type in FLOATS and (value := value_of(b)) and math.frexp(value)[0] in (0.5, -0.5):
        power = 1 / value  # of two, so that the product is exact, too
        if math.isfinite(power) and abs(power) >= 2.0**-126:
            return mul(a, power)
    return node("div", (a, b), a.type)


def rem(x: Any, y: Any) -> Expr:
    """Return what a division towards zero leaves."""
    return _binary("rem", x, y)


def neg(x: Expr) -> Expr:
    """-x, also of zeros."""
    if x.op == "neg":
        return x.args[0]
    if x.type not in FLOATS:
        return node("sub", (const(0, x.type), x), x.type)
    return const(-value_of(x), x.type) if x.op == "const" else node("neg", (x,), x.type)


def fma(x: Any, y: Any, z: Any) -> Expr:
    """x * y + z, rounded once."""
    given = next(a for a in (x, y, z) if isinstance(a, Expr))
    x, y, z = (a if isinstance(a, Expr) else const(a, given.type) for a in (x, y, z))
    return node("fma", (x, y, z), x.type)


def compare(op: str, x: Any, y: Any) -> Expr:
    """Compare: lt, le, gt, ge, eq are false of NaN, ne is true."""
    x, y = _pair(x, y)
    return node(op, (x, y), I1)


def equal(x: Any, y: Any) -> Expr:
    """Tell whether x == y."""
    return compare("eq", x, y)


def not_equal(x: Any, y: Any) -> Expr:
    """Tell whether x != y."""
    return compare("ne", x, y)


def is_nan(x: Expr) -> Expr:
    """Tell whether x is NaN."""
    return compare("ne", x, x) if x.type in FLOATS else const(False, I1)


def select(condition: Expr, x: Any, y: Any) -> Expr:
    """X where the condition holds, else y."""
    a, b = _pair(x, y)
    if condition.op == "const":
        return a if condition.detail else b
    return a if a is b else node("select", (condition, a, b), a.type)


def rare(condition: Expr, x: Expr, y: Expr) -> Expr:
    """Select where the condition seldom holds: a loop over a block looks for it first, and computes y alone if it never does."""
    return node("select", (condition, x, y), y.type, RARE)


def minimum(x: Any, y: Any) -> Expr:
    """Return the smaller of two; NaN if one is."""
    return _binary("minimum", x, y)


def maximum(x: Any, y: Any) -> Expr:
    """Return the greater of two; NaN if one is."""
    return _binary("maximum", x, y)


def _unary(op: str) -> Any:
    def function(x: Expr) -> Expr:
        return node(op, (x,), x.type)

    return function


def _rounding(op: str) -> Any:
    def function(x: Expr) -> Expr:
        return node(op, (x,), x.type) if x.type in FLOATS else x

    return function


sqrt = _unary("sqrt")
floor, ceil, trunc, rint = map(_rounding, ("floor", "ceil", "trunc", "rint"))


def absolute(x: Expr) -> Expr:
    """|x|."""
    return node("abs", (x,), x.type) if x.type in FLOATS else select(x < 0, -x, x)


def copysign(x: Any, y: Any) -> Expr:
    """|x| with the sign of y."""
    return _binary("copysign", x, y)


def cast(x: Expr, type: str) -> Expr:
    """Convert to another type: floats to integers towards zero, anything to a truth value by comparing with 0."""
    if x.type == type:
        return x
    if type == I1:
        return not_equal(x, 0)
    if x.op == "const" and (type in FLOATS or x.type not in FLOATS) and WIDTH[type] >= 32:
        return const(value_of(x), type)
    return node("cast", (x,), type)


def rounded(x: Expr, storage: str) -> Expr:
    """Round float32 to what half precision can store: "f16" or "bf16"."""
    return node("rounded", (x,), x.type, storage)


def bitcast(x: Expr, type: str) -> Expr:
    """Read the bits of a number as another type of the same width."""
    if x.op == "bitcast":
        x = x.args[0]
    return x if x.type == type else node("bitcast", (x,), type)


def call(name: str, *args: Expr) -> Expr:
    """Call a function of `math`; how it is computed is decided when loops are made."""
    return node("call", args, args[0].type, name)


# ---- reductions ----
def reduce(op: str, x: Expr) -> Expr:
    """Reduce the row: "sum", "prod", "max", "min" (NaN if there is one), "any", "all"."""
    return node("reduce", (x,), x.type, OF_TRUTHS.get(op, op) if x.type == I1 else op)


def nodes_of(*results: Expr) -> list[Expr]:
    """Return every node that results need, arguments before what uses them."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(result, False) for result in reversed(results)]
    while stack:
        at, ready = stack.pop()
        if ready:
            order.append(at)
        elif at not in seen:
            seen.add(at)
            stack.append((at, True))
            stack.extend((arg, False) for arg in reversed(at.args) if arg not in seen)
    return order
