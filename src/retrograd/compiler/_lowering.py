"""What a step of a program does to numbers: the table by which steps become loops.

`lowered` says of a step that it is
- a `View`: it shows memory that is there, and takes no loop at all;
- a `Map`: every element of its result is an expression of the elements of its operands, which broadcast;
- a `Reduction` of one operand over some axes;
- a `Product` of matrices;
- a `Store`: it writes a value into memory from outside, element by element;
or None, and then it is called as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.numpy_namespace import declared
from .._native import expression as ex
from .._native.expression import Expr
from .._native.trace import DTYPE, STORAGE, TracedNamespace, UntraceableError
from ._program import Step, Value

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
REDUCTIONS = {"sum": "sum", "mean": "sum", "max": "max", "min": "min", "sum_to": "sum", "prod": "prod"}
SAME = frozenset({"copy", "alias", "copy_in_order", "positive", "detach"})  # words that give the numbers as they are


@dataclass(slots=True)
class View:
    """Shows memory that is there."""


@dataclass(slots=True)
class Map:
    """An expression of the elements of `operands`, numbered as inputs."""

    expression: Expr
    operands: list[Value]


@dataclass(slots=True)
class Reduction:
    """A reduction over `axes`; the result is divided by `count`."""

    operation: str
    operand: Value
    axes: tuple[int, ...]
    count: int


@dataclass(slots=True)
class Product:
    """x @ y, of matrices or of their transposes, with `bias` added to each row."""

    x: Value
    y: Value
    turned: tuple[bool, bool]
    bias: Value | None = None


@dataclass(slots=True)
class Store:
    """Writes the elements of `value` into `target`."""

    target: Value
    value: Value


def lowered(step: Step) -> View | Map | Reduction | Product | Store | None:
    """Say what a step does, if it is known."""
    if step.kind == "setitem":
        return _store(step)
    if step.writes or step.kind == "check" or step.several or len(step.makes) != 1:
        return None
    out = step.makes[0]
    if out.buffer is None:
        return None
    if any(value.buffer is out.buffer for value in step.values):
        return View()
    if not _is_dense(out) or out.dtype not in STORAGE or any(v.dtype not in STORAGE for v in step.values):
        return None
    try:
        return _product(step, out) or _reduction(step, out) or _map(step, out)
    except Exception:  # it does what expressions cannot say
        return None


def _store(step: Step) -> Store | None:
    """Understand `target[...] = value` for an input of the program, of one shape and dtype."""
    target, index, value = step.arguments
    if index is not Ellipsis or type(value) is not Value or target.constant is not None or target.step is not None:
        return None
    same = target.shape == value.shape and target.dtype == value.dtype and target.dtype in STORAGE
    return Store(target, value) if same and _is_dense(target) and value.buffer is not target.buffer else None


def _map(step: Step, out: Value) -> Map | None:
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
        return xp.operand(operands.index(tree), tree.dtype, frozenset(range(len(out.shape))))

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
    if expression is None or DTYPE.get(expression.type) != out.dtype:
        return None
    for node in ex.nodes_of(expression):
        if node.op in ("reduce", "position", "scalar"):
            return None
        if node.op in ("div", "rem") and node.type not in ex.FLOATS:  # by zero, at which processors stop
            return None
    return Map(expression, operands)


def _by_word(xp: Any, name: str, arguments: list[Any], options: dict[str, Any]) -> Any:
    primitive = declared.get(name)
    if primitive is not None and primitive.kind != "elementwise":
        return None
    try:
        return getattr(xp, name)(*arguments, **options)
    except UntraceableError:
        if primitive is None or primitive.implementation is None:
            raise
        function = getattr(primitive.implementation, "formula", primitive.implementation)
        return function(xp, *arguments, **options)


def _reduction(step: Step, out: Value) -> Reduction | None:
    operation = REDUCTIONS.get(step.name or "")
    if operation is None or out.dtype not in FLOATS or len(step.values) != 1:
        return None
    (x,) = step.values
    if x.dtype != out.dtype or step.options.get("dtype") not in (None, out.dtype) or 0 in x.shape:
        return None
    rank = len(x.shape)
    if step.name == "sum_to":
        shape = step.options["shape"]
        lead = rank - len(shape)
        axes = [*range(lead), *[k + lead for k, n in enumerate(shape) if n == 1 and x.shape[k + lead] != 1]]
    else:
        axis = step.options.get("axis")
        axes = list(range(rank)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
        axes = sorted({one % rank for one in axes}) if rank else []
    count = math.prod(x.shape[k] for k in axes) if step.name == "mean" else 1
    return Reduction(operation, x, tuple(axes), count)


def _product(step: Step, out: Value) -> Product | None:
    name = step.name
    turned = {
        "matmul": (False, False),
        "matmul_nt": (False, True),
        "matmul_tn": (True, False),
        "linear_map": (False, True),
    }
    if name not in (*turned, "affine") or out.dtype not in FLOATS or step.options:
        return None
    bias, x, y = step.arguments if name == "affine" else (None, *step.arguments)
    if len(x.shape) != 2 or len(y.shape) != 2 or len(out.shape) != 2 or 0 in out.shape or 0 in x.shape:
        return None
    if x.dtype != out.dtype or y.dtype != out.dtype or not _is_plain(out):
        return None
    if bias is not None and (bias.dtype != out.dtype or np.broadcast_shapes(bias.shape, out.shape) != out.shape):
        return None
    return Product(x, y, turned.get(name, (False, True)), bias)


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
