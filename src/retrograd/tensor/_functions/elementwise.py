"""torch's elementwise functions, as functions and methods."""

from __future__ import annotations

import builtins
import math
from types import NoneType
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.arrays import LevelArray, levels_of
from ..._core.levels import DUAL
from ..._core.primitive import primitives as p
from ..._core.primitive import vocabulary
from ..._dtypes import CPP_NAMES
from ..._graph.node import PYTHON_SCALARS
from ..._modes import current_mode
from ..._ops import elementwise as e
from ..._ops import index as i
from ..._ops import shape as s
from ..._warnings import warn
from ...overrides import declared, overridable, takes_old_forms, takes_out
from .. import _base
from .._aliasing.inplace import arithmetic, inplace
from .._aliasing.views import view_op
from .._base import edge_of
from .._object.layout import ordered, output_order
from .._object.numbers import element_of
from .._recording.flat import EXACT
from .._recording.no_derivative import without_derivative
from .._recording.operands import is_operand, not_a_tensor, plain_scalar
from .._recording.out import call_into
from .._recording.record import Elementwise, binary, build_node, promoted, record, run_under, unary, wrap_outputs
from .._recording.refusals import check_alpha, kernel, refuse, refused

_NO_COMPLEX_CLAMP = (NotImplementedError, "clamp is not supported for complex types")

# ---- unary ----
refused(
    "neg",
    b=(
        RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.",
    ),
)
neg = negative = declared(unary(e.negative, "neg"), out_dtype="kernel")
exp = declared(unary(e.exp, "exp", integers_to_float=True), raised="cuda")
expm1 = declared(unary(e.expm1, "expm1", integers_to_float=True), raised="cuda")
log = declared(unary(e.log, "log", integers_to_float=True), raised="cuda")
log1p = declared(unary(e.log1p, "log1p", "Log1PBackward0", integers_to_float=True), raised="cuda")
log2 = declared(unary(e.log2, "log2", integers_to_float=True), raised="cuda")
log10 = declared(unary(e.log10, "log10", integers_to_float=True), raised="cuda")
sqrt = unary(e.sqrt, "sqrt", integers_to_float=True)
rsqrt = declared(unary(e.rsqrt, "rsqrt", integers_to_float=True), raised="cuda")
sin = unary(e.sin, "sin", integers_to_float=True)
cos = unary(e.cos, "cos", integers_to_float=True)
tan = declared(unary(e.tan, "tan", integers_to_float=True), raised="cuda")
sinh = declared(unary(e.sinh, "sinh", integers_to_float=True), raised="cuda")
cosh = declared(unary(e.cosh, "cosh", integers_to_float=True), raised="cuda")
tanh = unary(e.tanh, "tanh", integers_to_float=True)
asin = arcsin = declared(unary(e.arcsin, "asin", integers_to_float=True), raised="cuda")
acos = arccos = declared(unary(e.arccos, "acos", integers_to_float=True), raised="cuda")
atan = arctan = unary(e.arctan, "atan", integers_to_float=True)
sigmoid = unary(e.sigmoid, "sigmoid", integers_to_float=True)
for _in_place in (False, True):
    refused(
        "relu",
        in_place=_in_place,
        c=_NO_COMPLEX_CLAMP,
        b=(RuntimeError, "Boolean inputs not supported for relu"),
    )
relu = unary(e.relu, "relu")
refused("erf", c=kernel("erf_vml_cpu"))
erf = unary(e.erf, "erf", integers_to_float=True)
reciprocal = declared(unary(e.reciprocal, "reciprocal", integers_to_float=True), raised="cuda")
refused("abs", b=kernel("abs_cpu"))
refused(
    "abs",
    "absolute",
    in_place=True,
    b=kernel("abs_cpu"),
    c=(RuntimeError, "In-place abs is not supported for complex tensors."),
)
abs = absolute = declared(unary(e.abs_, "abs"), out_dtype="kernel")
refused(
    "sign",
    c=(
        NotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
)
sign = declared(unary(e.sign, "sign"), out_dtype="kernel")
sgn = declared(unary(e.sgn, "sgn"), out_dtype="kernel")
refused(
    "floor",
    "ceil",
    "trunc",
    c=(NotImplementedError, "{name} is not supported for complex inputs"),
    b=kernel("{name}_vml_cpu"),
)
floor = declared(unary(e.floor, "floor"), out_dtype="kernel")
ceil = declared(unary(e.ceil, "ceil"), out_dtype="kernel")
trunc = fix = declared(unary(e.trunc, "trunc"), out_dtype="kernel")
isnan = unary(p["isnan"], "isnan")
isinf = unary(p["isinf"], "isinf")
isfinite = unary(p["isfinite"], "isfinite")
logical_not = unary(p["logical_not"], "logical_not")

# ---- binary ----
_add = binary(e.add, "add")
_sub = binary(e.subtract, "sub")
_mul = binary(e.multiply, "mul")
_div = binary(e.divide, "div", integers_to_float=True)
radd = declared(binary(e.add, "add", numbers="self"), forms="")
rmul = declared(binary(e.multiply, "mul", numbers="self"), forms="")
refused("atan2", c=kernel("atan2_cpu"))
atan2 = arctan2 = binary(e.arctan2, "atan2", integers_to_float=True, numbers="none")
refused("maximum", "minimum", c=(RuntimeError, "{name} not implemented for complex tensors."))
maximum = binary(e.maximum, "maximum", numbers="none")
minimum = binary(e.minimum, "minimum", numbers="none")
logical_and = binary(p["logical_and"], "logical_and", numbers="none")
logical_or = binary(p["logical_or"], "logical_or", numbers="none")
logical_xor = binary(p["logical_xor"], "logical_xor", numbers="none")
refused("lt", "le", "gt", "ge", c=kernel("{name}_cpu"))
COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
OPERATORS = {name: binary(p[primitive], name) for name, primitive in COMPARISONS.items()}
eq = binary(p["equal"], "eq", numbers="other")
ne = not_equal = binary(p["not_equal"], "ne", numbers="other")
lt = less = binary(p["less"], "lt", numbers="other")
le = less_equal = binary(p["less_equal"], "le", numbers="other")
gt = greater = binary(p["greater"], "gt", numbers="other")
ge = greater_equal = binary(p["greater_equal"], "ge", numbers="other")
refused("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", fc=kernel("{name}_cpu"))
OPERATORS |= {name: binary(p[f"bitwise_{name}"], f"bitwise_{name}") for name in ("and", "or", "xor")}
bitwise_and = binary(p["bitwise_and"], "bitwise_and", numbers="both")
bitwise_or = binary(p["bitwise_or"], "bitwise_or", numbers="both")
bitwise_xor = binary(p["bitwise_xor"], "bitwise_xor", numbers="both")
bitwise_not = unary(p["invert"], "bitwise_not")
refused("remainder", "fmod", bc=kernel("{name}_cpu"))
refused("floor_divide", "div_floor", bc=kernel("div_floor_cpu"))
refused("div_trunc", bc=kernel("div_trunc_cpu"))
_REMAINDER = {n: binary(e.remainder, "remainder", f"RemainderBackward{n}") for n in (0, 1)}
_FMOD = {n: binary(e.fmod, "fmod", f"FmodBackward{n}") for n in (0, 1)}
_floor_divide = binary(e.floor_divide, "floor_divide")

refused("pow_tensors", b=kernel("pow"))
_POW_SCALAR = Elementwise(e.power_scalar, "pow", "PowBackward0", False)
_POW_TENSOR = Elementwise(e.power, "pow_tensors", "PowBackward1", False)
_RPOW = Elementwise(e.power_base, "pow", "PowBackward2", False)
_RSUB = Elementwise(e.subtract, "rsub", "RsubBackward1", False)
_RSUB_TENSORS = Elementwise(e.subtract_from, "rsub", "RsubBackward0", False)
_ADD_SCALED = Elementwise(e.add_scaled, "add", "AddBackward0", False)
_SUB_SCALED = Elementwise(e.subtract_scaled, "sub", "SubBackward0", False)
refused("round", bc=kernel("round_vml_cpu"))
refused("round_decimals", bic=kernel("round_cpu"))
_ROUND = Elementwise(e.round_, "round", None, False)
_ROUND_DECIMALS = Elementwise(e.round_, "round_decimals", "RoundBackward1", False)
refused("clamp", c=_NO_COMPLEX_CLAMP)
refused("clamp_tensors", c=_NO_COMPLEX_CLAMP, b=kernel("clamp_cpu"))
refused("clamp_min", c=kernel("maximum_cpu"))
refused("clamp_max", c=kernel("minimum_cpu"))
_CLAMP = Elementwise(e.clip, "clamp", "ClampBackward1", False)
_CLAMP_BOTH = Elementwise(e.clip_both, "clamp_tensors", "ClampBackward0", False)
_CLAMP_ONE = Elementwise(e.clip_both, "clamp", "ClampBackward0", False)
_CLAMP_SIDE = {
    "min": Elementwise(e.clip_both, "clamp_min", "ClampMinBackward1", False),
    "max": Elementwise(e.clip_both, "clamp_max", "ClampMaxBackward1", False),
}
_CLAMP_INTEGERS = {
    "min": Elementwise(e.maximum, "clamp", None, False),
    "max": Elementwise(e.minimum, "clamp", None, False),
}
NUMBERS = (int, float, NoneType)
_CLAMP_MIN = Elementwise(e.clip, "clamp", "ClampMinBackward0", False)
_CLAMP_MAX = Elementwise(e.clip, "clamp", "ClampMaxBackward0", False)
_ROUNDED = {
    "floor": Elementwise(e.divide_floor, "div_floor", "DivBackward2", False),
    "trunc": Elementwise(e.divide_trunc, "div_trunc", "DivBackward2", False),
}
refused("lerp_scalar", bi=kernel("lerp_kernel_scalar"))
refused("lerp_tensor", bi=kernel("lerp_kernel_tensor"))
_LERP = {
    True: Elementwise(e.lerp, "lerp_tensor", "LerpBackward1", False),
    False: Elementwise(e.lerp, "lerp_scalar", "LerpBackward0", False),
}
refused("addcmul", b=kernel("addcmul_cpu_out"))
refused(
    "addcdiv",
    bi=(
        RuntimeError,
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
        "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
        "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
        "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * "
        "tensor1 / tensor2), for all dtypes.",
    ),
)
_ADDCMUL = Elementwise(e.addcmul, "addcmul", "AddcmulBackward0", False)
_ADDCDIV = Elementwise(e.addcdiv, "addcdiv", "AddcdivBackward0", False)
_COMPLEX = Elementwise(e.complex_, "complex", None, False)


def modulo(input: Any, other: Any) -> Any:
    """Compute the remainder as the operator % does."""
    return _REMAINDER[isinstance(other, _base.Tensor)](input, other)


@takes_out
def remainder(input: Any, other: Any) -> Any:
    """Return the remainder of a division, with the sign of the divisor, as Python's `%`.

    Args:
        input: a tensor, or a number
        other: a tensor, or a number

    Example:
        >>> torch.remainder(torch.tensor([7.0, -7.0]), 3)
        tensor([1., 2.])
    """
    return _checked("remainder", modulo(input, other), (input, other))


@takes_out
def fmod(input: Any, other: Any) -> Any:
    """Return the remainder of a division, with the sign of the dividend, as C's `fmod`.

    Args:
        input: a tensor
        other: a tensor, or a number

    Example:
        >>> torch.fmod(torch.tensor([7.0, -7.0]), 3)
        tensor([ 1., -1.])
    """
    return _checked("fmod", _FMOD[isinstance(other, _base.Tensor)](input, other), (input, other))


@takes_out
def floor_divide(input: Any, other: Any) -> Any:
    """Divide and round down, as Python's `//`.

    Args:
        input: a tensor, or a number
        other: a tensor, or a number

    Example:
        >>> torch.floor_divide(torch.tensor([7.0, -7.0]), 2)
        tensor([ 3., -4.])
    """
    if not isinstance(input, _base.Tensor) and not isinstance(other, _base.Tensor):
        raise TypeError(not_a_tensor("floor_divide", 1, input, "input"))
    return _checked("floor_divide", floor_quotient(input, other), (input, other))


def floor_quotient(input: Any, other: Any) -> Any:
    """Divide as the operator // does."""
    tensors = [one for one in (input, other) if isinstance(one, _base.Tensor)]
    if any(level.kind == DUAL for one in tensors for level in levels_of(one._array)):
        raise NotImplementedError("Trying to use forward AD with aten::floor_divide that does not support it.")
    result = _floor_divide(input, other)
    mode = current_mode()
    if mode.tracks and isinstance(result, _base.Tensor) and result._array.dtype.kind in "fV":
        edges = tuple(edge_of(one) for one in tensors)
        if any(edge is not None for edge in edges):
            result._edge = without_derivative("aten::floor_divide", edges)
    return result


def _checked(name: str, result: Any, args: tuple[Any, ...]) -> Any:
    if result is NotImplemented:
        raise TypeError(f"{name}(): one of {args} is no operand")
    return result


@takes_old_forms(in_place=arithmetic)
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Add two tensors, the second times `alpha`.

    Args:
        input: a tensor
        other: a tensor, or a number; shapes broadcast
        alpha: a factor of `other`

    Example:
        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=2)
        tensor([21., 42.])
    """
    return _with_alpha("add", _add, input, other, alpha)


@takes_old_forms(in_place=arithmetic)
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Subtract a tensor, times `alpha`, from another.

    Args:
        input: a tensor
        other: a tensor, or a number; shapes broadcast
        alpha: a factor of `other`

    Example:
        >>> torch.sub(torch.tensor([5.0, 2.0]), 1)
        tensor([4., 1.])
    """
    return _with_alpha("sub", _sub, input, other, alpha)


subtract = sub


def _with_alpha(name: str, operation: Any, input: Any, other: Any, alpha: Any) -> Any:
    if type(input) in EXACT and type(other) in EXACT and type(alpha) in (int, float):
        if alpha == 1 and type(alpha) is int:
            return operation(input, other)
        if input._array.dtype.kind == "f":
            return (_ADD_SCALED if name == "add" else _SUB_SCALED).slow((input, other), {"alpha": alpha})
    if (alpha != 1 or alpha is True) and is_operand(input) and is_operand(other):
        tensors = [v for v in (input, other) if isinstance(v, _base.Tensor)]
        if name == "sub":
            _errors.refuse_bool([v._array if isinstance(v, _base.Tensor) else v for v in (input, other)])
        check_alpha(alpha, tensors, isinstance(input, float) or isinstance(other, float))
        scaled = _ADD_SCALED if name == "add" else _SUB_SCALED
        result = scaled.slow((plain_scalar(input), plain_scalar(other)), {"alpha": alpha})
    else:
        result = operation(input, other)
    return _checked(name, result, (input, other))


@takes_out(in_place=arithmetic)
def mul(input: Any, other: Any) -> Any:
    """Multiply two tensors, element by element.

    Args:
        input: a tensor
        other: a tensor, or a number; shapes broadcast

    Example:
        >>> torch.mul(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    return _checked("mul", _mul(input, other), (input, other))


multiply = mul


@takes_out(in_place=arithmetic)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Divide two tensors, element by element.

    Args:
        input: a tensor
        other: a tensor, or a number; shapes broadcast
        rounding_mode: "trunc" rounds the quotients towards 0, "floor" down; without it integers give floats

    Example:
        >>> torch.div(torch.tensor([7, -7]), 2)
        tensor([ 3.5000, -3.5000])
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
        tensor([ 3, -4])
    """
    if rounding_mode is None:
        result = _checked("div", _div(input, other), (input, other))
    elif rounding_mode in _ROUNDED:
        result = _ROUNDED[rounding_mode].slow((plain_scalar(input), plain_scalar(other)))
    else:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return result


divide = true_divide = div


def true_divide_(self: Any, other: Any) -> Any:
    """Divide in place."""
    return self.div_(other)


@takes_out(raised="cuda")
def pow(input: Any, exponent: Any) -> Any:
    """Raise to a power, element by element.

    Args:
        input: a tensor, or a number
        exponent: a tensor, or a number; shapes broadcast

    Example:
        >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2), 2 ** torch.tensor([1.0, 2.0, 3.0])
        (tensor([1., 4., 9.]), tensor([2., 4., 8.]))
    """
    return power(input, exponent)


def power(base: Any, exponent: Any) -> Any:
    """Raise a tensor or number to a tensor or number."""
    exponent, base = plain_scalar(exponent), plain_scalar(base)
    if isinstance(exponent, (int, float, builtins.complex)):
        dtype = base._array.dtype
        if dtype.kind == "b" and isinstance(exponent, bool):
            return base.clone() if exponent else base.logical_or(base.logical_not())
        if dtype.kind == "b" and isinstance(exponent, int):
            base = base.to(_dtypes.int64)
            dtype = base._array.dtype
        if dtype.kind in "iub" and isinstance(exponent, int) and not isinstance(exponent, bool):
            if exponent < 0 and dtype.kind != "b":
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return _POW_SCALAR.slow((base,), {"exponent": int(element_of(exponent, dtype))})
        if dtype.kind in "iub" or (isinstance(exponent, builtins.complex) and dtype.kind != "c"):
            _, dtype = promoted([base._array, exponent])
            base = base.to(_dtypes.from_numpy(dtype))
        return _POW_SCALAR.slow((base,), {"exponent": exponent})
    if not isinstance(base, _base.Tensor):
        dtype = promoted([exponent._array, base])[1]
        if dtype != exponent._array.dtype:
            exponent = exponent.to(_dtypes.from_numpy(dtype))
        if dtype.kind in "biu":
            refuse("pow_tensors", dtype)
            base = int(np.asarray(base).astype(dtype))
        return _RPOW.slow((exponent,), {"base": base})
    return _POW_TENSOR.slow((base, exponent))


@takes_out
def square(input: Any) -> Any:
    """Multiply each element by itself.

    Args:
        input: a tensor

    Example:
        >>> torch.square(torch.tensor([1.0, -2.0]))
        tensor([1., 4.])
    """
    if isinstance(input, _base.Tensor) and input._array.dtype.kind in "fcV":
        return _POW_SCALAR.slow((input,), {"exponent": 2})
    return power(input, 2)


@overridable
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Subtract `alpha` times the first tensor from the second."""
    if isinstance(other, _base.Tensor):
        return _RSUB_TENSORS.slow((input, other), {"alpha": alpha})
    return reversed_subtract(_mul(input, alpha) if alpha != 1 else input, other)


def reversed_subtract(tensor: Any, number: Any) -> Any:
    """Compute number - tensor."""
    return _RSUB.slow((plain_scalar(number), tensor))


@takes_out(out_dtype="kernel")
def round(input: Any, *, decimals: int = 0) -> Any:
    """Round to whole numbers, halves to the even one, or to a number of decimals.

    Args:
        input: a tensor
        decimals: how many digits behind the point; negative ones stand before it

    Example:
        >>> torch.round(torch.tensor([0.5, 1.5, 2.4])), torch.round(torch.tensor([3.14159]), decimals=2)
        (tensor([0., 2., 2.]), tensor([3.1400]))
    """
    return (_ROUND_DECIMALS if decimals else _ROUND).slow((input,), {"decimals": decimals})


@takes_out
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Bring elements that are out of a range to its ends.

    Args:
        input: a tensor
        min: the lower end, a number or a tensor; none by default
        max: the upper end, a number or a tensor; none by default

    Example:
        >>> torch.clamp(torch.tensor([-1.0, 0.5, 2.0]), min=0.0, max=1.0)
        tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, _base.Tensor) or isinstance(max, _base.Tensor):
        if not all(b is None or isinstance(b, _base.Tensor) for b in (min, max)):
            raise TypeError("clamp(): one bound is a tensor, the other a number")
        if min is not None and max is not None:
            return _CLAMP_BOTH.slow((input, min, max))
        return _clamp_by("max" if min is None else "min", input, max if min is None else min, _CLAMP_ONE)
    return _CLAMP.slow((_as_bounds(input, min, max),), {"low": min, "high": max})


def _clamp_by(side: str, input: Any, bound: Any, rules: Any = None) -> Any:
    """Limit each element from one side by a tensor."""
    if promoted([input._array, bound._array])[1].kind in "iub":
        return _CLAMP_INTEGERS[side].slow((input, bound))
    low, high = (bound, math.inf) if side == "min" else (-math.inf, bound)
    return (rules or _CLAMP_SIDE[side]).slow((input, low, high))


clip = clamp


def _as_bounds(tensor: Any, *bounds: Any) -> Any:
    """Convert a tensor of integers or truth values whose bounds are of a greater kind."""
    for bound in bounds:
        if type(bound) is builtins.complex:
            raise NotImplementedError("clamp is not supported for complex types")
    if tensor._array.dtype.kind not in "iub":
        return tensor
    dtype = promoted([tensor._array, *[plain_scalar(b) for b in bounds if b is not None]])[1]
    return tensor if dtype == tensor._array.dtype else tensor.to(_dtypes.from_numpy(dtype))


@takes_out
def clamp_min(input: Any, min: Any) -> Any:
    """Limit each element from below."""
    if isinstance(min, _base.Tensor):
        return _clamp_by("min", input, min)
    return _CLAMP_MIN.slow((_as_bounds(input, min),), {"low": min, "high": None})


@takes_out
def clamp_max(input: Any, max: Any) -> Any:
    """Limit each element from above."""
    if isinstance(max, _base.Tensor):
        return _clamp_by("max", input, max)
    return _CLAMP_MAX.slow((_as_bounds(input, max),), {"low": None, "high": max})


@takes_out
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Choose from two tensors by a condition; with the condition alone, return the indices where it holds.

    Args:
        condition: a tensor of booleans; all three broadcast
        input: what is taken where it is True, a tensor or a number
        other: what is taken where it is False

    Example:
        >>> x = torch.tensor([-1.0, 2.0])
        >>> torch.where(x > 0, x, 0.0)
        tensor([0., 2.])
        >>> torch.where(x > 0)
        (tensor([1]),)
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition._array.dtype == np.uint8:
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )
        condition = condition.to(_dtypes.bool_)
    if condition._array.dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{_base.dtype_of(condition)._scalar_name}"
        )
    return _where_slow(condition, input, other)


def _where_slow(condition: Any, x: Any, y: Any) -> Any:
    """Choose; operands of several dtypes are promoted inside, so that the node has the tensors themselves as inputs."""
    if type(x) in EXACT and type(y) in EXACT:
        if _are_alike(condition._array, x._array, y._array):
            return record(e.where, (condition, x, y), {})
    elif (
        type(x) in EXACT
        and type(y) is float
        and (dtype := x._array.dtype).kind == "f"
        and dtype.itemsize > 2
        and _are_alike(condition._array, x._array, x._array)
    ):
        return record(e.where, (condition, x, dtype.type(y)), {})
    args = (condition, plain_scalar(x), plain_scalar(y))
    given = [v._array if isinstance(v, _base.Tensor) else v for v in args[1:]]
    operands, dtype = promoted(given)
    operands = [vocabulary.astype(np.asarray(v), dtype=dtype) if type(v) in PYTHON_SCALARS else v for v in operands]
    chosen = condition._array
    try:
        out = run_under(current_mode(), e.where, None, args, [chosen, *operands], {})
    except ValueError:
        wide: tuple[int, ...] = ()
        for shape in (tuple(np.shape(a)) for a in (chosen, *operands)):
            try:
                wide = np.broadcast_shapes(wide, shape)
            except ValueError:
                raise _errors.broadcast_error(wide, shape) from None
        raise
    arrays = [chosen, *operands]
    if isinstance(out, np.ndarray) and not all(
        a.flags.c_contiguous for a in arrays if hasattr(a, "flags") and not is_leveled(a)
    ):
        steps = [np.broadcast_to(a, out.shape).strides for a in arrays]
        out = ordered(out, output_order(out.shape, steps))
    mode = current_mode()
    edges = (None, *[edge_of(v) if mode.tracks and isinstance(v, _base.Tensor) else None for v in args[1:]])
    if edges == (None, None, None):
        return wrap_outputs(e.where, out, None, mode)
    node = build_node(e.where, None, args, [chosen, *_as_arrays(given, operands)], out, {}, edges, mode)
    return wrap_outputs(e.where, out, node, mode)


def _are_alike(condition: Any, x: Any, y: Any) -> bool:
    """Tell whether arrays are dense and have one shape and, but for the condition, one dtype: nothing to settle then."""
    for array in (condition, x, y):
        if type(array) is not np.ndarray or not array.flags.c_contiguous:
            return False
    return bool(condition.shape == x.shape == y.shape and x.dtype is y.dtype)


def _as_arrays(given: Any, operands: Any) -> list[Any]:
    return [o if type(g) in PYTHON_SCALARS else g for g, o in zip(given, operands, strict=True)]


def is_leveled(array: Any) -> bool:
    """Tell whether an array belongs to a transform."""
    return isinstance(array, LevelArray)


def real_view(tensor: Any, part: str) -> Any:
    """Return the real or imaginary part as torch's view_as_real + select."""
    if not _base.dtype_of(tensor).is_complex:
        if part == "imag":
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        return tensor
    opposite = tensor.is_conj()
    pairs = view_op(conj(tensor) if opposite else tensor, s.view_as_real, {}, "ViewAsRealBackward0")
    if opposite and part == "imag":
        from .._aliasing.signs import negative_view

        pairs = negative_view(pairs)
    at = 0 if part == "real" else 1
    index = (slice(None),) * tensor._array.ndim + (at,)
    return view_op(
        pairs, i.getitem, {"index": index}, "SelectBackward0", shown={"dim": tensor._array.ndim, "index": at}
    )


@overridable
def conj(input: Any) -> Any:
    """View as the conjugate; a real tensor is returned as it is."""
    if not _base.dtype_of(input).is_complex:
        return input
    from .._aliasing.signs import conjugate_view

    return conjugate_view(input)


@overridable
def complex(real: Any, imag: Any, *, out: Any = None) -> Any:
    """Make complex numbers of real and imaginary parts.

    Args:
        real: a tensor of floats
        imag: a tensor of the same dtype

    Example:
        >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([1.+2.j])
    """
    check_parts("complex", {"real": real, "imag": imag}, out)
    return _COMPLEX.slow((real, imag)) if out is None else call_into(complex, (real, imag), {}, out)


def check_parts(name: str, parts: dict[str, Any], out: Any) -> None:
    """Refuse parts of a complex tensor that are no floats or of two dtypes, and an `out` of another dtype."""
    names = [_base.dtype_of(part)._scalar_name for part in parts.values()]
    if not {"Half", "Float", "Double"}.issuperset(names):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {' and '.join(names)}")
    if names[0] != names[1]:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
    if out is not None and _base.dtype_of(out)._scalar_name != f"Complex{names[0]}":
        raise RuntimeError(
            f"Expected object of scalar type Complex{names[0]} but got scalar type {_base.dtype_of(out)._scalar_name} "
            "for argument 'out'"
        )


@takes_out
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """Interpolate between two tensors: input + weight * (end - input).

    Args:
        input: where the way begins
        end: where it ends
        weight: a number, or a tensor

    Example:
        >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([1.0, 20.0]), 0.5)
        tensor([ 0.5000, 15.0000])
    """
    rules = _LERP[isinstance(weight, _base.Tensor)]
    dtype = input._array.dtype
    for name, one in (("end", end), ("weight", weight)):
        if isinstance(one, _base.Tensor) and one._array.dtype is not dtype and one._array.dtype != dtype:
            if one is weight and not one._array.ndim:
                dtype = promoted((input._array, end._array, one._array))[1]
                continue
            wanted, given = (CPP_NAMES[v._array.dtype.name] for v in (input, one))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {given}")
    refuse(rules.name, dtype)
    return rules.slow((input, end, plain_scalar(weight)))


@takes_old_forms
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Add `value` times a product: input + value * tensor1 * tensor2.

    Args:
        input: a tensor
        tensor1: a factor
        tensor2: the other one
        value: a number

    Example:
        >>> torch.addcmul(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=0.5)
        tensor([1.5000, 4.0000])
    """
    value = plain_scalar(value)
    if all(t._array.dtype.kind in "iu" for t in (input, tensor1, tensor2)):
        value = int(value)
    return _ADDCMUL.slow((input, tensor1, tensor2), {"value": value})


@takes_old_forms
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Add `value` times a quotient: input + value * tensor1 / tensor2.

    Args:
        input: a tensor
        tensor1: the dividend
        tensor2: the divisor
        value: a number

    Example:
        >>> torch.addcdiv(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]))
        tensor([0.5000, 0.5000])
    """
    return _ADDCDIV.slow((input, tensor1, tensor2), {"value": plain_scalar(value)})


# ---- comparisons in place: what they write is flat, and they say so in the graph ----
def _comparison_in_place(name: str) -> Any:
    function = OPERATORS[name]
    recorded = [Elementwise(e.compared, name, f"{name.capitalize()}Backward{n}", False) for n in (0, 1)]

    def compare(input: Any, other: Any) -> Any:
        if input._array.dtype.kind not in "fVc" or not current_mode().tracks:
            return _checked(name, function(input, other), (input, other))
        rules = recorded[isinstance(other, _base.Tensor)]
        return rules.slow((input, plain_scalar(other)), {"comparison": COMPARISONS[name]})

    return inplace(name, compare)


eq_, lt_, le_ = _comparison_in_place("eq"), _comparison_in_place("lt"), _comparison_in_place("le")
ne_, gt_, ge_ = _comparison_in_place("ne"), _comparison_in_place("gt"), _comparison_in_place("ge")
not_equal_, less_, less_equal_, greater_, greater_equal_ = ne_, lt_, le_, gt_, ge_
