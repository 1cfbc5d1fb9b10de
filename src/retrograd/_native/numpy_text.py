"""Formulas as text for NumPy: one call after the other, into memory that is there, with numbers as arrays of no dimensions.

NumPy takes a Python number four times as long as an array of no dimensions, and new memory for every step. What a formula does to arrays
of one float dtype and one layout is therefore written down once, as a function of ufuncs that reuse what is no longer read. It
computes the same bits as the formula. Formulas that reduce, or mix dtypes, stay as they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from .._core.numpy_namespace import numpy_namespace
from .._generated import emit
from . import expression as ex
from .expression import FLOATS, I1, Expr
from .trace import DTYPE

_UFUNCS: Final = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "fmod", "neg": "negative", "abs": "absolute",
    "minimum": "minimum", "maximum": "maximum", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
    "copysign": "copysign", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal", "and": "logical_and", "or": "logical_or", "xor": "logical_xor",
}  # fmt: skip
_FUNCTIONS: Final = ("erf", "exact_gelu", "exact_gelu_slope", "ndtr")  # of the vocabulary, which NumPy lacks


def _number(letter: str) -> Callable[[float], np.ndarray]:
    """Return what makes a number an array of no dimensions; those that come often are kept."""
    kept: dict[float, np.ndarray] = {}
    dtype = np.dtype(letter)

    def call(value: float) -> np.ndarray:
        found = kept.get(value)
        if found is None:
            found = np.array(value, dtype)
            if value and len(kept) < 256:  # zeros have two signs
                kept[value] = found
        return found

    return call


_f32, _f64 = _number("f"), _number("d")


class _Writer:
    """Writes the function of some results; `lines` is its body."""

    def __init__(self, results: Sequence[Expr], scalars: Sequence[str]) -> None:
        self.results, self.scalars = results, scalars
        self.scope: dict[str, Any] = {"np": np, "f32": _f32, "f64": _f64}
        self.lines: list[str] = []
        self.names: dict[Expr, str] = {}  # of arrays
        self.numbers: dict[Expr, str] = {}  # what is the same for all elements, as Python computes it
        self.free: dict[str, list[str]] = {}  # by type: memory that is not read any more
        self.made: dict[Expr, str] = {}  # memory that belongs to a value
        nodes = ex.nodes_of(*results)
        self.uses = Counter(arg for node in nodes for arg in node.args)
        self.uses.update(results)
        self.varies = {n for n in nodes if n.op == "input"}
        for node in nodes:
            if any(arg in self.varies for arg in node.args):
                self.varies.add(node)
            if node in self.varies:
                self.write(node)
            elif node.op == "const":
                self.names[node] = self.known(np.array(ex.value_of(node), DTYPE[node.type]), "c")
                self.numbers[node] = repr(ex.value_of(node))
            else:
                given = [self.numbers[a] for a in node.args] or [self.scalars[node.detail]]
                self.numbers[node] = _PYTHON[node.op].format(*given)

    def name(self, node: Expr) -> str:
        """Return the name of an array: of no dimensions if the value is the same for all elements."""
        if node not in self.names:
            self.names[node] = f"n{len(self.names)}"
            self.lines.append(f"{self.names[node]} = {node.type}({self.numbers[node]})")
        return self.names[node]

    def write(self, node: Expr) -> None:
        """Write what computes one value."""
        op, type = node.op, node.type
        if op == "input":
            self.names[node] = f"a{node.detail}"
        elif op == "cast":
            self.new(node, f"{self.name(node.args[0])}.astype({self.known(DTYPE[type], 'd')})")
        elif op == "select":
            self.select(node)
        elif op == "call":
            ufunc = getattr(np, node.detail, None)
            args = list(node.args)
            if isinstance(ufunc, np.ufunc):
                self.ufunc(node, ufunc, args)
            else:
                function = self.known(getattr(numpy_namespace, node.detail), "f")
                self.new(node, f"{function}({', '.join(map(self.name, args))})")
        else:
            self.ufunc(node, getattr(np, _UFUNCS[op]), list(node.args))

    def known(self, value: Any, letter: str) -> str:
        """Return the name of something that the text uses."""
        for name, other in self.scope.items():
            if other is value:
                return name
        name = f"{letter}{len(self.scope)}"
        self.scope[name] = value
        return name

    def new(self, node: Expr, text: str) -> None:
        name = self.names[node] = f"v{len(self.names)}"
        self.lines.append(f"{name} = {text}")
        self.made[node] = name
        self.spent(node.args)

    def ufunc(self, node: Expr, function: np.ufunc, args: list[Expr]) -> None:
        called = self.known(function, "u")
        given = ", ".join(map(self.name, args))
        self.spent(node.args)
        room = self.free.get(node.type)
        if not room:
            self.made[node] = self.names[node] = f"v{len(self.names)}"
            self.lines.append(f"{self.names[node]} = {called}({given})")
        else:
            self.made[node] = self.names[node] = name = room.pop()
            out = "out=" if function in (np.maximum, np.minimum) else ""  # as these want it
            self.lines.append(f"{called}({given}, {out}{name})")

    def select(self, node: Expr) -> None:
        """Write over one of two values where the other is chosen: that takes half the time of NumPy's `where`."""
        condition, x, y = node.args
        chosen = self.name(condition)
        if y not in self.varies or (self.dies(x, node) and not self.dies(y, node)):
            x, y = y, x
            if self.dies(condition, node):
                self.lines.append(f"{self.known(np.logical_not, 'u')}({chosen}, {chosen})")
            else:
                chosen = f"~{chosen}"
        base, value = self.name(y), self.name(x)
        if y not in self.varies or condition not in self.varies:
            self.new(node, f"np.where({chosen}, {value}, {base})")
            return
        if self.dies(y, node):
            self.made[node] = self.names[node] = self.made.pop(y)
        else:
            self.made[node] = self.names[node] = f"v{len(self.names)}"
            self.lines.append(f"{self.names[node]} = {base}.copy('K')")
        self.lines.append(f"{self.known(np.putmask, 'f')}({self.names[node]}, {chosen}, {value})")
        self.spent(node.args)

    def dies(self, value: Expr, reader: Expr) -> bool:
        """Tell whether memory of a value is ours, and this is the last that reads it."""
        return value in self.made and self.uses[value] == reader.args.count(value)

    def spent(self, args: Sequence[Expr]) -> None:
        """Take note that values have been read; the memory of those that nobody reads any more is free."""
        for arg in args:
            self.uses[arg] -= 1
            if not self.uses[arg] and arg in self.made:
                self.free.setdefault(arg.type, []).append(self.made.pop(arg))

    def finish(self) -> list[str]:
        """Return what is returned: memory of its own for each result."""
        given: list[str] = []
        for result in self.results:
            name = self.name(result)
            if result not in self.varies:
                name = f"np.full_like(a0, {name}, {self.known(DTYPE[result.type], 'd')})"
            elif result not in self.made or name in given:
                name = f"{name}.copy()"
            given.append(name)
        return given


def written(
    what: str, results: Sequence[Expr], scalars: Sequence[Any], params: Iterable[str], count: int, several: bool
) -> Callable[..., Any] | None:
    """Return results as a function of `count` arrays and numbers; None if NumPy's functions cannot be called in a row for them."""
    results = _in_its_words(results)
    nodes = ex.nodes_of(*results)
    if any(type(s) is not str for s in scalars):  # sizes, which formulas that reduce read
        return None
    varying = {n for n in nodes if not _is_number(n)}
    if any(n not in varying and n.op not in _PYTHON and n.op != "const" for n in nodes):
        return None
    if any(
        n.op == "call" and n.detail not in _FUNCTIONS and not isinstance(getattr(np, n.detail, None), np.ufunc)
        for n in nodes
    ):
        return None
    if any(n.type not in (*FLOATS, I1) or (n.op not in _UFUNCS and n.op not in _OTHERS) for n in nodes):
        return None
    writer = _Writer(results, scalars)
    given = writer.finish()
    body = [*writer.lines, f"return {', '.join(given)}" + ("," if several else "")]
    names = [*[f"a{k}" for k in range(count)], *params]
    text = f"def steps({', '.join(names)}):\n    " + "\n    ".join(body)
    return emit(f"the steps of {what}", text, writer.scope)["steps"]  # type: ignore[no-any-return]


def direct(
    what: str,
    arrays: Sequence[str],
    numbers: Sequence[str],
    call: Callable[..., Any],
    steps: dict[Any, Any],
    start: int,
) -> Callable[..., Any]:
    """Return the call of a formula as a function of its own parameters: small arrays of one layout go to the steps that are known."""
    first, *rest = arrays
    asked = [
        f"type({first}) is ndarray and {first}.size < start and (char := {first}.dtype.char) in 'fd' and {first}.ndim"
    ]
    for other in rest:
        asked += [
            f"{other}.{of} {'is' if of == 'dtype' else '=='} {first}.{of}" for of in ("dtype", "shape", "strides")
        ]
    asked += [f"{number} is not None" for number in numbers]
    key = f"char, {len(rest)}" if rest else "char"
    known = ", ".join([*arrays, *numbers])
    given = ", ".join([*arrays, *[f"{number}={number}" for number in numbers]])
    text = f"""def direct(xp, {", ".join([*arrays, *(["*", *numbers] if numbers else [])])}):
    if {" and ".join(asked)} and (steps := known.get(({key}))) is not None:
        return steps({known})
    return call(xp, {given})"""
    scope = {"ndarray": np.ndarray, "start": start, "known": steps, "call": call}
    return emit(f"the call of {what}", text, scope)["direct"]  # type: ignore[no-any-return]


def _in_its_words(results: Sequence[Expr]) -> list[Expr]:
    """Write what NumPy has in other words, such as `x < c ? c : x`, which is its `maximum(c, x)`.

    Of equal numbers that is the second: x keeps NaN and the sign of its zero.
    """
    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(*results):
        args = tuple(done[a] for a in node.args)
        made = ex.node(node.op, args, node.type, node.detail)
        if node.op == "select" and args[0].args == (args[2], args[1]) and _is_number(args[1]):
            op = {"lt": "maximum", "gt": "minimum"}.get(args[0].op)
            made = made if op is None else ex.node(op, args[1:], node.type)
        done[node] = made
    return [done[r] for r in results]


_PYTHON: Final = {
    "scalar": "{}",
    "neg": "-{}",
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
}
_OTHERS: Final = {"input", "const", "scalar", "cast", "select", "call"}


def _is_number(value: Expr) -> bool:
    """Tell whether a value is the same for all elements."""
    return all(n.op != "input" for n in ex.nodes_of(value))
