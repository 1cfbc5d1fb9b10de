"""What a step of a program does to numbers: the table by which steps become loops.

`lowered` says of a step that it is a `View`, which shows memory that is there and takes no loop at all, or a list of nodes:
- a `Map`: every element of its result is an expression of the elements of its operands, which broadcast;
- a `Reduction` of one operand over some axes;
- a `Product` of matrices, or of as many as there are in leading axes;
- a `Store`: it writes a value into memory from outside, element by element;
- a `Check`: it asks whether a value is true or false, as it was when the program was recorded;
or None, and then it is called as it is. A step of several nodes (softmax: a maximum, differences, exponentials, their sum...) has
values of its own between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.numpy_namespace import declared
from .._native import expression as ex
from .._native.expression import Expr
from .._native.trace import DTYPE, HALVES, STORAGE, TracedNamespace, UntraceableError
from ._program import Buffer, Step, Value

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
REDUCTIONS = {
    "sum": "sum", "mean": "sum", "max": "max", "min": "min", "amax": "max", "amin": "min", "sum_to": "sum", "prod": "prod", "any": "any",
    "all": "all",
}  # fmt: skip
SAME = frozenset({"copy", "alias", "copy_in_order", "positive", "detach"})  # words that give the numbers as they are
PRODUCTS = frozenset({"matmul", "matmul_nt", "matmul_tn", "linear_map", "affine"})


class View:
    """Shows memory that is there."""


@dataclass(slots=True, eq=False)
class Map:
    """An expression of the elements of `operands`, numbered as inputs. `out` may be part of a result, or show it in another shape."""

    out: Value
    expression: Expr
    operands: list[Value]
    whole: Value | None = None  # what `out` is part of


@dataclass(slots=True, eq=False)
class Reduction:
    """A reduction over `axes`; the result is divided by `count`.

    Its axes are dropped, or stay with one element; a sum to a shape may drop the leading ones alone.
    """

    out: Value
    operation: str
    operand: Value
    axes: tuple[int, ...]
    count: int = 1
    whole: Value | None = None  # what `out` is, or shows in another shape

    @property
    def operands(self) -> list[Value]:
        return [self.operand]


@dataclass(slots=True, eq=False)
class Matrices:
    """A value as matrices: their distances in memory, from batch to batch, from row to row and from column to column."""

    value: Value
    batch: tuple[int, ...]
    row: int
    column: int

    def turned(self) -> Matrices:
        return Matrices(self.value, self.batch, self.column, self.row)


@dataclass(slots=True, eq=False)
class Product:
    """x @ y, matrices of `sizes` (rows, columns, and what is summed over) in a batch of any shape."""

    out: Value
    x: Matrices
    y: Matrices
    to: Matrices
    batch: tuple[int, ...]
    sizes: tuple[int, int, int]

    @property
    def operands(self) -> list[Value]:
        return [self.x.value, self.y.value]


@dataclass(slots=True, eq=False)
class Store:
    """Writes the elements of `value` into `target`."""

    target: Value
    value: Value

    @property
    def operands(self) -> list[Value]:
        return [self.value]


@dataclass(slots=True, eq=False)
class Check:
    """Asks whether a value is what it was."""

    value: Value
    outcome: bool

    @property
    def operands(self) -> list[Value]:
        return [self.value]


Node = Map | Reduction | Product | Store | Check


def lowered(step: Step) -> type[View] | list[Node] | None:
    """Say what a step does, if it is known."""
    if step.kind == "setitem":
        return _store(step)
    if step.kind == "check":
        return _check(step)
    if step.writes or step.several or len(step.makes) != 1:
        return None
    out = step.makes[0]
    if out.buffer is None:
        return None
    if any(value.buffer is out.buffer for value in step.values):
        return View
    if not _is_dense(out) or out.dtype not in STORAGE or any(v.dtype not in STORAGE for v in step.values):
        return None
    found = _product(step, out) or _reduction(step, out) or _arranged(step, out)
    if found is not None:
        return found
    try:
        return _map(step, out)
    except Exception:  # it does what expressions cannot say
        return None


def between(shape: Sequence[int], dtype: Any) -> Value:
    """Return a value between the nodes of a step, laid out in the order of its axes."""
    made = Value("between", None, None)
    made.shape, made.dtype, made.buffer = tuple(shape), np.dtype(dtype), Buffer(-3, False)
    strides, step = [], made.dtype.itemsize
    for n in reversed(made.shape):
        strides.append(step)
        step *= n
    made.strides = tuple(reversed(strides))
    return made


def _store(step: Step) -> list[Node] | None:
    """Understand `target[...] = value` for an input of the program, of one shape and dtype."""
    target, index, value = step.arguments
    if index is not Ellipsis or type(value) is not Value or target.constant is not None or target.step is not None:
        return None
    same = target.shape == value.shape and target.dtype == value.dtype and target.dtype in STORAGE
    return [Store(target, value)] if same and _is_dense(target) and value.buffer is not target.buffer else None


def _check(step: Step) -> list[Node] | None:
    value, outcome = step.arguments
    if type(value) is not Value or value.shape or value.dtype not in STORAGE or value.constant is not None:
        return None
    return [Check(value, outcome)]


# ---- maps ----
def _map(step: Step, out: Value) -> list[Node] | None:
    name = step.name
    if step.kind == "method" and step.label in ("astype", "copy"):
        name = step.label
    if name is None:
        return None
    operands: list[Value] = []
    xp = TracedNamespace(len(out.shape))

    def operand(tree: Any) -> Any:
        if type(tree) is not Value:
            if isinstance(tree, (tuple, list, np.ndarray)):
                raise UntraceableError("an argument with parts")
            return tree
        if tree not in operands:
            operands.append(tree)
        lead = len(out.shape) - len(tree.shape)
        return xp.operand(
            operands.index(tree), tree.dtype, frozenset(k + lead for k, n in enumerate(tree.shape) if n != 1)
        )

    arguments = [operand(one) for one in step.arguments]
    options = {key: operand(one) if type(one) is Value else one for key, one in step.options.items()}
    if any(np.broadcast_shapes(out.shape, one.shape) != out.shape for one in operands) or not operands:
        return None
    if name in SAME:
        found: Any = arguments[0]
    elif name == "astype":
        found = xp.astype(arguments[0], dtype=arguments[1] if len(arguments) > 1 else options["dtype"])
    else:
        found = _by_word(xp, name, arguments, options)
    expression = getattr(found, "expr", None)
    if expression is None or not _is_known(expression):
        return None
    storage = STORAGE[out.dtype]
    if storage in HALVES and expression.type == "f32":
        expression = ex.rounded(expression, storage)
    elif expression.type != storage:
        return None
    return _parted(out, expression, operands)


def _is_known(expression: Expr) -> bool:
    for node in ex.nodes_of(expression):
        if node.op in ("position", "scalar"):
            return False
        if node.op in ("div", "rem") and node.type not in ex.FLOATS:  # by zero, at which processors stop
            return False
    return True


def _by_word(xp: Any, name: str, arguments: list[Any], options: dict[str, Any]) -> Any:
    primitive = declared.get(name)
    formula = _formulas().get(name)
    if formula is not None:
        return formula(xp, *arguments, **options)
    if primitive is not None and primitive.kind != "elementwise":
        return None
    try:
        return getattr(xp, name)(*arguments, **options)
    except UntraceableError:
        if primitive is None or primitive.implementation is None:
            raise
        function = getattr(primitive.implementation, "formula", primitive.implementation)
        return function(xp, *arguments, **options)


def _formulas() -> dict[str, Callable[..., Any]]:
    """Return the formulas of operations along rows."""
    from .._ops import softmax

    return {
        "softmax": softmax._softmax.formula,
        "log_softmax": softmax._log_softmax.formula,
        "softmax_back": softmax.softmax_back.implementation.formula,
        "log_softmax_back": softmax.log_softmax_back.implementation.formula,
    }


def _parted(out: Value, expression: Expr, operands: list[Value]) -> list[Node]:
    """Make nodes of an expression: what its reductions read and give are values between, and what is the same along a row."""
    nodes: list[Node] = []
    given = list(operands)
    rank = len(out.shape)
    every = ex.nodes_of(expression)
    axes: dict[Expr, frozenset[int]] = {}  # along which a part differs
    for node in every:
        found = frozenset().union(*[axes[a] for a in node.args])
        if node.op == "input":
            lead = rank - len(operands[node.detail].shape)
            found = frozenset(k + lead for k, n in enumerate(operands[node.detail].shape) if n != 1)
        axes[node] = found - set(node.detail[1]) if node.op == "reduce" else found
    apart = {a for node in every for a in node.args if node.op == "reduce" or (axes[a] < axes[node] and a.reductions)}
    known: dict[Expr, Expr] = {}  # parts, of the values that there are by then

    def as_input(value: Value, part: Expr) -> Expr:
        given.append(value)
        return ex.input(len(given) - 1, part.type)

    for node in every:
        args = tuple([known[a] for a in node.args])
        if node.op == "reduce":
            operation, over = node.detail
            operand = given[args[0].detail]
            lead = rank - len(operand.shape)
            total = between([n if k in axes[node] else 1 for k, n in enumerate(out.shape)], DTYPE[node.type])
            nodes.append(Reduction(total, operation, operand, tuple([k - lead for k in over if k >= lead])))
            known[node] = as_input(total, node)
            continue
        made = node if args == node.args else ex.node(node.op, args, node.type, node.detail)
        if node in apart and made.op != "input":
            value = between([n if k in axes[node] else 1 for k, n in enumerate(out.shape)], DTYPE[node.type])
            nodes.append(_mapped(value, made, given))
            made = as_input(value, node)
        known[node] = made
    nodes.append(_mapped(out, known[expression], given))
    return nodes


def _mapped(out: Value, expression: Expr, given: list[Value]) -> Map:
    """Make a map of those values that an expression reads."""
    operands: list[Value] = []
    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(expression):
        if node.op == "input":
            value = given[node.detail]
            if value not in operands:
                operands.append(value)
            done[node] = ex.input(operands.index(value), node.type)
        else:
            args = tuple([done[a] for a in node.args])
            done[node] = node if args == node.args else ex.node(node.op, args, node.type, node.detail)
    return Map(out, done[expression], operands)


# ---- numbers that are put elsewhere ----
def _arranged(step: Step, out: Value) -> list[Node] | None:
    """Understand reshapes that copy, and arrays side by side."""
    name = step.label if step.kind == "method" else step.name
    values = step.values
    if not _is_plain(out) or any(value.dtype != out.dtype for value in values) or 0 in out.shape:
        return None
    parts: list[tuple[Value, Value]] = []  # what is written, and what is written there
    if name in ("reshape", "ravel", "flatten") and len(values) == 1:
        parts = [(_part(out, values[0].shape, between(values[0].shape, out.dtype).strides, 0), values[0])]
    elif (
        name in ("concat", "stack") and set(step.options) == {"axis"} and all(type(a) is Value for a in step.arguments)
    ):
        axis, at = step.options["axis"] % len(out.shape), 0
        for one in step.arguments:
            shape, strides = one.shape, out.strides
            if name == "stack":
                strides = strides[:axis] + strides[axis + 1 :]
            if 0 not in shape:
                parts.append((_part(out, shape, strides, at * out.strides[axis]), one))
            at += 1 if name == "stack" else shape[axis]
    return [Map(part, ex.input(0, computed(value)), [value], out) for part, value in parts] or None


def _part(whole: Value, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Value:
    made = Value(whole.name, None, None)
    made.shape, made.strides, made.dtype, made.buffer = shape, strides, whole.dtype, whole.buffer
    made.offset = whole.offset + offset
    return made


def computed(value: Value) -> str:
    """Return the type in which the numbers of a value are computed with."""
    storage = STORAGE[value.dtype]
    return "f32" if storage in HALVES else storage


# ---- reductions ----
def _reduction(step: Step, out: Value) -> list[Node] | None:
    name = step.label if step.kind == "method" else step.name
    operation = REDUCTIONS.get(name or "")
    if operation is None or len(step.values) != 1 or len(step.arguments) != 1:
        return None
    (x,) = step.values
    if x.dtype != out.dtype or step.options.get("dtype") not in (None, out.dtype) or 0 in x.shape:
        return None
    if out.dtype not in FLOATS and (operation not in ("max", "min", "any", "all") or STORAGE[out.dtype] in HALVES):
        return None
    if STORAGE[x.dtype] == "i1":
        operation = ex.OF_TRUTHS.get(operation, operation)
    elif operation in ("any", "all"):
        return None
    if set(step.options) - {"axis", "keepdims", "dtype", "shape"}:
        return None
    rank = len(x.shape)
    if name == "sum_to":
        shape = step.options["shape"]
        lead = rank - len(shape)
        axes = [*range(lead), *[k + lead for k, n in enumerate(shape) if n == 1 and x.shape[k + lead] != 1]]
    else:
        axis = step.options.get("axis")
        axes = list(range(rank)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
        axes = sorted({one % rank for one in axes}) if rank else []
    if not axes:  # of a number alone, or over no axis
        number = ex.input(0, computed(x))
        number = ex.add(number, 0.0) if operation == "sum" else number  # which makes -0.0 a sum
        return [_mapped(out, number, [x])] if x.shape == out.shape else None
    count = math.prod(x.shape[k] for k in axes) if name == "mean" else 1
    return [Reduction(out, operation, x, tuple(axes), count)]


# ---- products ----
def _product(step: Step, out: Value) -> list[Node] | None:
    name = step.name
    if name not in PRODUCTS or out.dtype not in FLOATS or step.options:
        return None
    bias, x, y = step.arguments if name == "affine" else (None, *step.arguments)
    if any(one is not None and (type(one) is not Value or one.dtype != out.dtype) for one in (bias, x, y)):
        return None
    if len(x.shape) < 2 or len(y.shape) < 2 or 0 in (*out.shape, *x.shape):
        return None
    made = out if bias is None else between(out.shape, out.dtype)
    if made.strides != out.strides and not _is_plain(out):
        return None
    x_matrices, y_matrices = _matrices(x, out.shape[:-2]), _matrices(y, out.shape[:-2])
    if name == "matmul_tn":
        x_matrices = x_matrices.turned()
    if name in ("matmul_nt", "linear_map", "affine"):
        y_matrices = y_matrices.turned()
    rows, columns = out.shape[-2:]
    inner = x.shape[-2 if name == "matmul_tn" else -1]
    to = _matrices(made, out.shape[:-2])
    nodes: list[Node] = [Product(made, *_folded(x_matrices, y_matrices, to, out.shape[:-2], (rows, columns, inner)))]
    if bias is not None:
        if np.broadcast_shapes(bias.shape, out.shape) != out.shape:
            return None
        both = [ex.input(k, STORAGE[out.dtype]) for k in range(2)]
        nodes.append(Map(out, ex.add(*both), [made, bias]))
    return nodes


def _matrices(value: Value, batch: tuple[int, ...]) -> Matrices:
    """Look at a value as matrices, as many as `batch` says."""
    lead = len(batch) - (len(value.shape) - 2)
    steps = [0] * lead + [0 if n == 1 else s for n, s in zip(value.shape[:-2], value.strides[:-2], strict=True)]
    rows, columns = (0 if n == 1 else s for n, s in zip(value.shape[-2:], value.strides[-2:], strict=True))
    return Matrices(value, tuple(steps), rows, columns)


def _folded(
    x: Matrices, y: Matrices, to: Matrices, batch: tuple[int, ...], sizes: tuple[int, int, int]
) -> tuple[Matrices, Matrices, Matrices, tuple[int, ...], tuple[int, int, int]]:
    """Fold the last axes of a batch into the rows, where the second matrix is the same for all of it."""
    rows, columns, inner = sizes
    while batch:
        n = batch[-1]
        if n == 1:
            x_row, to_row = x.row, to.row
        elif y.batch[-1] == 0 and (rows == 1 or (x.batch[-1], to.batch[-1]) == (x.row * rows, to.row * rows)):
            x_row, to_row = (x.batch[-1], to.batch[-1]) if rows == 1 else (x.row, to.row)
        else:
            break
        rows, batch = rows * n, batch[:-1]
        x = Matrices(x.value, x.batch[:-1], x_row, x.column)
        y = Matrices(y.value, y.batch[:-1], y.row, y.column)
        to = Matrices(to.value, to.batch[:-1], to_row, to.column)
    return x, y, to, batch, (rows, columns, inner)


# ---- memory ----
def _is_plain(value: Value) -> bool:
    """Tell whether the elements of a value lie in memory in their order."""
    step = value.dtype.itemsize
    for n, stride in zip(reversed(value.shape), reversed(value.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


def _is_dense(value: Value) -> bool:
    """Tell whether the elements of a value fill its memory, in any order."""
    step = value.dtype.itemsize
    for stride, n in sorted(zip(value.strides, value.shape, strict=True)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True
