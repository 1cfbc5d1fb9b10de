"""Plans: an optimizer's update rule as a list of NumPy calls, which a step runs with no further thought.

Note [Plans]
The rule of an optimizer is written once, in methods that Tensors have. It runs on Tensors where something has to follow it
(`differentiable`, half precision, other libraries' arrays). Where it only has to be quick, it has run once before, on cells: names
of arrays that note what is done to them. What they noted becomes the text of a Python function of arrays, whose lines are calls of
ufuncs that write into the parameter, its buffers and a few scratch arrays; a result takes the scratch of one that is used no more. For
large parameters the same notes become a formula, and the formula a kernel that goes through memory once (`_native/program.py`). A test
checks that the forms of every rule agree.

Numbers of a rule that are None, 0 or 1 (or False, True) may decide what it does: each combination of them has its plan. The others
have names, too, and a rule may compute with them. A step makes 0-d arrays of their values, which NumPy's ufuncs take in a third of
the time of Python's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .. import _thresholds
from .._generated import emit
from .._native.program import Formula, PreparedUpdate

MOST_NUMBERS = 1024  # kept as arrays; rates that change at every step must not fill the memory
LARGE = _thresholds.NATIVE  # parameters of so many elements are updated by kernels
SPECIAL = {  # of others the output is the last argument
    "copy": "copyto({out}, {0})",
    "fill": "copyto({out}, {0}, where={1})",
    "maximum": "maximum({0}, {1}, out={out})",
    "minimum": "minimum({0}, {1}, out={out})",
    "scale": "multiply({0}, {1}, {out})",
}
WORDS = {"absolute": "abs", "sign": "sgn", "scale": "multiply"}  # what `xp` calls them
Pass: TypeAlias = "tuple[str, tuple[Any, ...], Cell]"


class Plan(NamedTuple):
    """How a rule is run."""

    run: Callable[..., None]  # of the parameter, its gradient, the buffers, scratch, masks and numbers
    scratch: int  # how many arrays of the parameter's dtype it needs
    masks: int  # and of truths
    numbers: Callable[[Any], tuple[float, ...]]  # from the rule's
    names: tuple[str, ...]  # of these numbers in the formula
    formula: Formula  # of the same arrays, for large ones
    written: tuple[int, ...]  # which of the arrays the formula's results replace

    def kernel(self, rows: list[Any], values: tuple[float, ...]) -> PreparedUpdate | None:
        """Prepare for updating a large parameter, whose gradient is another at each step; None if there is no kernel."""
        return self.formula.prepared(self.written, 1, *rows, **dict(zip(self.names, values, strict=True)))

    def update(self, rows: list[Any], values: tuple[float, ...]) -> None:
        """Update a large parameter: `rows` are the parameter, its gradient and its buffers."""
        self.formula.into([rows[k] for k in self.written], *rows, **dict(zip(self.names, values, strict=True)))


class Workspace:
    """Scratch memory for plans: rows of which each plan takes the beginnings, so that they stay in the caches."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[tuple[Any, int], Any] = {}

    def take(self, plan: Plan, dtype: Any, size: int) -> list[Any]:
        """Return the scratch and the masks that a plan needs."""
        needed = [(dtype, k) for k in range(plan.scratch)] + [(bool, k) for k in range(plan.masks)]
        for name in needed:
            if name not in self.rows:
                self.rows[name] = np.empty(LARGE, name[0])
        return [self.rows[name][:size] for name in needed]


class Varies:
    """Stands for a number that may be any."""


class Number:
    """A number whose value comes later: the text that computes it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __neg__(self) -> Number:
        return Number(f"-{self!r}")

    def __rsub__(self, other: Any) -> Number:
        return Number(f"({other!r} - {self!r})")

    def __mul__(self, other: Any) -> Number:
        return Number(f"({self!r} * {other!r})")

    def __rmul__(self, other: Any) -> Number:
        return Number(f"({other!r} * {self!r})")


class Cell:
    """The name of an array that a rule reads and writes; a result gets its name last.

    A part is what an operation computes on its way, and does not round to half precision.
    """

    __slots__ = ("is_mask", "is_part", "name", "passes")

    def __init__(
        self, passes: list[Pass], name: str | None = None, is_mask: bool = False, is_part: bool = False
    ) -> None:
        self.passes = passes
        self.name = name
        self.is_mask, self.is_part = is_mask, is_part

    def _into(self, function: str, *args: Any) -> Cell:
        """Note a call that writes into this cell."""
        self.passes.append((function, args, self))
        return self

    def _new(self, function: str, *args: Any, is_mask: bool = False) -> Cell:
        """Note a call that has a result."""
        return Cell(self.passes, None, is_mask)._into(function, *args)

    def _part(self, function: str, other: Any) -> Cell:
        """Note a call whose result is a part of an operation."""
        return Cell(self.passes, None, is_part=True)._into(function, self, other)

    def _plus(self, out: Callable[..., Cell], term: Cell, factor: Any, multiply: str = "multiply") -> Cell:
        """Note a sum with a number of times a term."""
        if factor == -1:
            return out("subtract", self, term)
        return out("add", self, term if factor == 1 else term._part(multiply, factor))

    # ---- in place ----
    def copy_(self, other: Cell) -> Cell:
        return self._into("copy", other)

    def mul_(self, other: Any) -> Cell:
        return self._into("multiply", self, other)

    def add_(self, other: Cell, alpha: Any = 1) -> Cell:
        return self._plus(self._into, other, alpha, "scale")

    def lerp_(self, end: Cell, weight: Any) -> Cell:
        return self._into("add", self, end._part("subtract", self)._part("multiply", weight))

    def addcmul_(self, one: Cell, other: Cell, value: Any = 1) -> Cell:
        return self._plus(self._into, one._part("multiply", other), value)

    def addcdiv_(self, one: Cell, other: Cell, value: Any = 1) -> Cell:
        return self._plus(self._into, one._part("divide", other), value)

    def clamp_(self, low: Any, high: Any) -> Cell:
        return self._into("maximum", self, low)._into("minimum", self, high)

    # ---- results ----
    def add(self, other: Any, alpha: Any = 1) -> Cell:
        return self._plus(self._new, other, alpha, "scale")

    def addcmul(self, one: Cell, other: Cell, value: Any = 1) -> Cell:
        return self._plus(self._new, one._part("multiply", other), value)

    def sub(self, other: Cell) -> Cell:
        return self._new("subtract", self, other)

    def mul(self, other: Any) -> Cell:
        return self._new("multiply", self, other)

    def div(self, other: Any) -> Cell:
        return self._new("divide", self, other)

    def maximum(self, other: Cell) -> Cell:
        return self._new("maximum", self, other)

    def sqrt(self) -> Cell:
        return self._new("sqrt", self)

    def neg(self) -> Cell:
        return self._new("negative", self)

    def abs(self) -> Cell:
        return self._new("absolute", self)

    def sign(self) -> Cell:
        signs = self._new("sign", self)
        return signs._into("fill", 0, self._new("isnan", self, is_mask=True))  # torch's sign of NaN is 0

    def gt(self, number: Any) -> Cell:
        return self._new("greater", self, number, is_mask=True)

    def lt(self, number: Any) -> Cell:
        return self._new("less", self, number, is_mask=True)

    def eq(self, number: Any) -> Cell:
        return self._new("equal", self, number, is_mask=True)

    def masked_fill(self, mask: Cell, value: Any) -> Cell:
        return self._new("copy", self)._into("fill", value, mask)


def plan_for(
    rule: Callable[..., None], numbers: tuple[Any, ...], has: tuple[bool, ...], maximize: bool, half: Any = None
) -> Plan:
    """Return the plan of a rule with such numbers; `has` tells which buffers there are.

    `half` is the dtype of half precision if parameters have it: their kernel rounds after each operation, as Tensors do.
    """
    kinds = tuple([one if one is None or one == 0 or one == 1 else Varies for one in numbers])
    return _plan(rule, kinds, has, maximize, half)


@lru_cache(maxsize=512)
def _plan(rule: Callable[..., None], kinds: tuple[Any, ...], has: tuple[bool, ...], maximize: bool, half: Any) -> Plan:
    passes: list[Pass] = []
    p, g = Cell(passes, "p"), Cell(passes, "g")
    buffers = [Cell(passes, f"b{k}") if there else None for k, there in enumerate(has)]
    numbers = tuple(Number(f"n[{k}]") if kind is Varies else kind for k, kind in enumerate(kinds))
    rule(p, g.neg() if maximize else g, buffers, numbers)
    passes = _written_at_once(passes)
    scratch, masks = _name_results(passes)
    values: dict[str, str] = {}  # names of numbers by their texts
    lines = [_line(one, values) for one in passes]
    memory = [f"b{k}" for k, there in enumerate(has) if there] + scratch + masks
    text = f"def run({', '.join(['p', 'g', *memory, *values.values()])}):\n " + "\n ".join([*lines, "return"])
    text += f"\n\n\ndef numbers(n):\n return ({''.join(one + ', ' for one in values)})"
    made = emit(f"the plan of {rule.__qualname__}", text, vars(np))
    cells = [p, g, *[b for b in buffers if b is not None]]
    outs = [one for one in cells if any(out is one for _, _, out in passes)]
    names = tuple(values.values())
    formula = Formula(_formula(passes, cells, outs, values, half), names, ())
    return Plan(made["run"], len(scratch), len(masks), made["numbers"], names, formula, tuple(map(cells.index, outs)))


def _formula(
    passes: list[Pass], cells: list[Cell], outs: list[Cell], values: dict[str, str], half: Any
) -> Callable[..., Any]:
    """Return what computes the new values of the cells that passes write, in words of `xp`."""

    def updated(xp: Any, *arrays: Any, **numbers: Any) -> tuple[Any, ...]:
        found: dict[Any, Any] = dict(zip(cells, arrays, strict=True))

        def rounded(value: Any) -> Any:
            return value if half is None else xp.astype(value, dtype=half)

        for function, args, out in passes:
            own = [None if isinstance(one, Cell) else numbers[values[repr(one)]] for one in args]
            if function in ("add", "subtract", "scale"):  # torch rounds the numbers in a sum
                own = [one if one is None else rounded(one) for one in own]
            given = [found[arg] if number is None else number for arg, number in zip(args, own, strict=True)]
            if function == "copy":
                value = given[0]
            elif function == "fill":
                value = xp.where(given[1], given[0], found[out])
            else:
                value = getattr(xp, WORDS.get(function, function))(*given)
            found[out] = value if out.is_part or out.is_mask else rounded(value)
        return tuple(found[one] for one in outs)

    return updated


def _mentions(passes: list[Pass]) -> dict[Cell, list[int]]:
    """Return the numbers of the passes in which each cell occurs."""
    found: dict[Cell, list[int]] = {}
    for k, (_, args, out) in enumerate(passes):
        for one in dict.fromkeys((*args, out)):
            if isinstance(one, Cell):
                found.setdefault(one, []).append(k)
    return found


def _written_at_once(passes: list[Pass]) -> list[Pass]:
    """Leave out copies of a result that is made just before and used no more: it is made where the copy would go."""
    mentions = _mentions(passes)
    found = passes[:1]
    for k, (before, now) in enumerate(pairwise(passes), 1):
        made = before[2]
        if now[0] == "copy" and now[1][0] is made and made.name is None and mentions[made] == [k - 1, k]:
            found[-1] = (*before[:2], now[2])
        else:
            found.append(now)
    return found


def _name_results(passes: list[Pass]) -> tuple[list[str], list[str]]:
    """Give results the names of scratch arrays and masks, the same name to those of which one ends where another begins."""
    last = {one: at[-1] for one, at in _mentions(passes).items()}
    free: tuple[list[str], list[str]] = ([], [])
    made: tuple[list[str], list[str]] = ([], [])
    for k, (_, args, out) in enumerate(passes):
        for one in dict.fromkeys(args):
            if isinstance(one, Cell) and last[one] == k and one.name is not None and one.name[0] in "sm":
                free[one.is_mask].append(one.name)
        if out.name is None:
            names = made[out.is_mask]
            if not free[out.is_mask]:
                names.append(f"{'sm'[out.is_mask]}{len(names)}")
                free[out.is_mask].append(names[-1])
            out.name = free[out.is_mask].pop()
    return made


def _line(one: Pass, values: dict[str, str]) -> str:
    """Write a pass as a line of Python; numbers in it get names."""
    function, args, out = one
    names = [
        str(arg.name) if isinstance(arg, Cell) else values.setdefault(repr(arg), f"n{len(values)}") for arg in args
    ]
    if function == "copy" and names[0] == out.name:
        return "pass"
    return SPECIAL.get(function, f"{function}({', '.join([*names, '{out}'])})").format(*names, out=out.name)


_arrays: dict[Any, dict[float, Any]] = {}


def as_arrays(values: tuple[float, ...], dtype: Any) -> list[Any]:
    """Return numbers as 0-d arrays."""
    known = _arrays.setdefault(dtype, {})
    if len(known) > MOST_NUMBERS:
        known.clear()
    found = []
    for value in values:
        array = known.get(value)
        if array is None:
            array = known[value] = np.array(value, dtype)
        found.append(array)
    return found
