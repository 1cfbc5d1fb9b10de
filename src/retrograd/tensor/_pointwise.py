"""torch's elementwise functions, as functions and methods."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from .. import _dtypes, _errors
from .._core.arrays import LevelArray, levels_of
from .._core.levels import DUAL
from .._core.primitive import primitives as p
from .._graph.node import PYTHON_SCALARS
from .._modes import current_mode
from .._ops import elementwise as e
from .._ops import index as i
from .._ops import shape as s
from ..overrides import overridable, takes_out
from . import _base
from ._base import edge_of
from ._layout import ordered, output_order
from ._no_derivative import without_derivative
from ._record import (
    Elementwise,
    binary,
    build_node,
    is_operand,
    not_a_tensor,
    plain_scalar,
    promoted,
    unary,
    wrap_outputs,
)
from ._refusals import refuse

# ---- unary ----
neg = negative = unary(e.negative, "neg")
exp = unary(e.exp, "exp", integers_to_float=True)
expm1 = unary(e.expm1, "expm1", integers_to_float=True)
log = unary(e.log, "log", integers_to_float=True)
log1p = unary(e.log1p, "log1p", "Log1PBackward0", integers_to_float=True)
log2 = unary(e.log2, "log2", integers_to_float=True)
log10 = unary(e.log10, "log10", integers_to_float=True)
sqrt = unary(e.sqrt, "sqrt", integers_to_float=True)
rsqrt = unary(e.rsqrt, "rsqrt", integers_to_float=True)
sin = unary(e.sin, "sin", integers_to_float=True)
cos = unary(e.cos, "cos", integers_to_float=True)
tan = unary(e.tan, "tan", integers_to_float=True)
sinh = unary(e.sinh, "sinh", integers_to_float=True)
cosh = unary(e.cosh, "cosh", integers_to_float=True)
tanh = unary(e.tanh, "tanh", integers_to_float=True)
asin = arcsin = unary(e.arcsin, "asin", integers_to_float=True)
acos = arccos = unary(e.arccos, "acos", integers_to_float=True)
atan = arctan = unary(e.arctan, "atan", integers_to_float=True)
sigmoid = unary(e.sigmoid, "sigmoid", integers_to_float=True)
relu = unary(e.relu, "relu")
erf = unary(e.erf, "erf", integers_to_float=True)
reciprocal = unary(e.reciprocal, "reciprocal", integers_to_float=True)
abs = absolute = unary(e.abs_, "abs")
sign = unary(e.sign, "sign")
sgn = unary(e.sgn, "sgn")
floor = unary(e.floor, "floor")
ceil = unary(e.ceil, "ceil")
trunc = fix = unary(e.trunc, "trunc")
isnan = unary(p["isnan"], "isnan")
isinf = unary(p["isinf"], "isinf")
isfinite = unary(p["isfinite"], "isfinite")
logical_not = unary(p["logical_not"], "logical_not")

# ---- binary ----
_add = binary(e.add, "add")
_sub = binary(e.subtract, "sub")
_mul = binary(e.multiply, "mul")
_div = binary(e.divide, "div", integers_to_float=True)
atan2 = arctan2 = binary(e.arctan2, "atan2", integers_to_float=True)
_maximum = binary(e.maximum, "maximum")
_minimum = binary(e.minimum, "minimum")
eq = binary(p["equal"], "eq")
ne = not_equal = binary(p["not_equal"], "ne")
lt = less = binary(p["less"], "lt")
le = less_equal = binary(p["less_equal"], "le")
gt = greater = binary(p["greater"], "gt")
ge = greater_equal = binary(p["greater_equal"], "ge")
logical_and = binary(p["logical_and"], "logical_and")
logical_or = binary(p["logical_or"], "logical_or")
logical_xor = binary(p["logical_xor"], "logical_xor")
_REMAINDER = {n: binary(e.remainder, "remainder", f"RemainderBackward{n}") for n in (0, 1)}
_FMOD = {n: binary(e.fmod, "fmod", f"FmodBackward{n}") for n in (0, 1)}
_floor_divide = binary(e.floor_divide, "floor_divide")

_POW_SCALAR = Elementwise(e.power_scalar, "pow", "PowBackward0", False)
_POW_TENSOR = Elementwise(e.power, "pow_tensors", "PowBackward1", False)
_RPOW = Elementwise(e.power_base, "pow", "PowBackward2", False)
_RSUB = Elementwise(e.subtract, "rsub", "RsubBackward1", False)
_RSUB_TENSORS = Elementwise(e.subtract_from, "rsub", "RsubBackward0", False)
_ADD_SCALED = Elementwise(e.add_scaled, "add", "AddBackward0", False)
_SUB_SCALED = Elementwise(e.subtract_scaled, "sub", "SubBackward0", False)
_ROUND = Elementwise(e.round_, "round", None, False)
_ROUND_DECIMALS = Elementwise(e.round_, "round_decimals", "RoundBackward1", False)
_CLAMP = Elementwise(e.clip, "clamp", "ClampBackward1", False)
_WHERE = Elementwise(e.where, "where", None, False)
_CLAMP_TENSORS = {
    (True, True): Elementwise(e.clip_both, "clamp_tensors", "ClampBackward0", False),
    (True, False): Elementwise(e.clip_both, "clamp", "ClampBackward0", False),
    (False, True): Elementwise(e.clip_both, "clamp", "ClampBackward0", False),
}
_CLAMP_INTEGERS = {
    True: Elementwise(e.maximum, "clamp", None, False),
    False: Elementwise(e.minimum, "clamp", None, False),
}
_CLAMP_MIN = Elementwise(e.clip, "clamp", "ClampMinBackward0", False)
_CLAMP_MAX = Elementwise(e.clip, "clamp", "ClampMaxBackward0", False)
_BITWISE = {name: Elementwise(p[f"bitwise_{name}"], f"bitwise_{name}", None, False) for name in ("and", "or", "xor")}
_INVERT = Elementwise(p["invert"], "bitwise_not", None, False)
_ROUNDED = {
    "floor": Elementwise(e.divide_floor, "div_floor", "DivBackward2", False),
    "trunc": Elementwise(e.divide_trunc, "div_trunc", "DivBackward2", False),
}
_LERP = {
    True: Elementwise(e.lerp, "lerp_tensor", "LerpBackward1", False),
    False: Elementwise(e.lerp, "lerp_scalar", "LerpBackward0", False),
}
_ADDCMUL = Elementwise(e.addcmul, "addcmul", "AddcmulBackward0", False)
_ADDCDIV = Elementwise(e.addcdiv, "addcdiv", "AddcdivBackward0", False)
_CONJ = Elementwise(e.conj, "conj", "ConjBackward0", False)
_COMPLEX = Elementwise(e.complex_, "complex", None, False)


@overridable
def bitwise_not(input: Any) -> Any:
    """Invert the bits of each element."""
    return _INVERT.slow((input,))


def _bitwise(name: str) -> Any:
    rules = _BITWISE[name]

    def call(input: Any, other: Any) -> Any:
        if not is_operand(input) or not is_operand(other):
            return NotImplemented
        return rules.slow((plain_scalar(input), plain_scalar(other)))

    call.__name__ = call.__qualname__ = f"bitwise_{name}"
    call.__doc__ = f"Compute the bitwise {name} of two tensors."
    return overridable(call)


bitwise_and, bitwise_or, bitwise_xor = _bitwise("and"), _bitwise("or"), _bitwise("xor")


@overridable
def remainder(input: Any, other: Any) -> Any:
    """Compute the remainder of a division that rounds down."""
    return _REMAINDER[isinstance(other, _base.Tensor)](input, other)


@overridable
def fmod(input: Any, other: Any) -> Any:
    """Compute the remainder of a division that rounds towards zero."""
    return _FMOD[isinstance(other, _base.Tensor)](input, other)


@overridable
def maximum(input: Any, other: Any) -> Any:
    """Take the larger of two elements; ties share the gradient."""
    return _maximum(*_two_tensors("maximum", input, other))


@overridable
def minimum(input: Any, other: Any) -> Any:
    """Take the smaller of two elements; ties share the gradient."""
    return _minimum(*_two_tensors("minimum", input, other))


def _two_tensors(name: str, *given: Any) -> Any:
    for place, (argument, value) in enumerate(zip(("input", "other"), given, strict=True), 1):
        if not isinstance(value, _base.Tensor):
            raise TypeError(not_a_tensor(name, place, value, argument))
    return given


@overridable
def floor_divide(input: Any, other: Any) -> Any:
    """Divide, rounding down; torch has no derivative for it, and says so in backward."""
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
        first = args[0] if not is_operand(args[0]) else args[1]
        position, argument = (1, "input") if first is args[0] else (2, "other")
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(first).__name__}"
        )
    return result


@takes_out
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Add two tensors, the second times `alpha`."""
    return _with_alpha("add", _add, input, other, alpha)


@takes_out
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Subtract `alpha` times a tensor from another."""
    return _with_alpha("sub", _sub, input, other, alpha)


subtract = sub


def _with_alpha(name: str, operation: Any, input: Any, other: Any, alpha: Any) -> Any:
    if name == "sub":
        _errors.refuse_bool([v._array if isinstance(v, _base.Tensor) else v for v in (input, other)])
    if alpha != 1 and is_operand(input) and is_operand(other):
        tensors = [v for v in (input, other) if isinstance(v, _base.Tensor)]
        if isinstance(alpha, float) and all(t._array.dtype.kind in "iub" for t in tensors):
            raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
        scaled = _ADD_SCALED if name == "add" else _SUB_SCALED
        result = scaled.slow((plain_scalar(input), plain_scalar(other)), {"alpha": alpha})
    else:
        result = operation(input, other)
    return _checked(name, result, (input, other))


@takes_out
def mul(input: Any, other: Any) -> Any:
    """Multiply two tensors."""
    return _checked("mul", _mul(input, other), (input, other))


multiply = mul


@takes_out
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Divide two tensors, rounding the quotient as asked."""
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


@takes_out
def pow(input: Any, exponent: Any) -> Any:
    """Raise to a power."""
    return power(input, exponent)


def power(base: Any, exponent: Any) -> Any:
    """Raise a tensor or number to a tensor or number."""
    exponent, base = plain_scalar(exponent), plain_scalar(base)
    if isinstance(exponent, (int, float, builtins.complex)):
        dtype = base._array.dtype
        if dtype.kind == "b" and isinstance(exponent, int) and not isinstance(exponent, bool):
            base = base.to(_dtypes.int64)
            dtype = base._array.dtype
        if dtype.kind in "iub" and isinstance(exponent, int) and not isinstance(exponent, bool):
            if exponent < 0 and dtype.kind != "b":
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return _POW_SCALAR.slow((base,), {"exponent": exponent})
        if dtype.kind in "iub" or (isinstance(exponent, builtins.complex) and dtype.kind != "c"):
            _, dtype = promoted([base._array, exponent])
            base = base.to(_dtypes.from_numpy(dtype))
        return _POW_SCALAR.slow((base,), {"exponent": exponent})
    if not isinstance(base, _base.Tensor):
        dtype = promoted([exponent._array, base])[1]
        if dtype != exponent._array.dtype:
            exponent = exponent.to(_dtypes.from_numpy(dtype))
        return _RPOW.slow((exponent,), {"base": base})
    return _POW_TENSOR.slow((base, exponent))


@overridable
def square(input: Any) -> Any:
    """Square each element."""
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


@overridable
def round(input: Any, *, decimals: int = 0) -> Any:
    """Round half to even."""
    return (_ROUND_DECIMALS if decimals else _ROUND).slow((input,), {"decimals": decimals})


@takes_out
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Limit each element to [min, max]; the bounds are numbers or tensors."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, _base.Tensor) or isinstance(max, _base.Tensor):
        bounds = [b for b in (min, max) if b is not None]
        if len(bounds) == 1 and promoted([input._array, bounds[0]._array])[1].kind in "iub":
            result = _CLAMP_INTEGERS[min is not None].slow((input, *bounds))
        else:
            low, high = -math.inf if min is None else min, math.inf if max is None else max
            result = _CLAMP_TENSORS[min is not None, max is not None].slow((input, low, high))
    else:
        result = _CLAMP.slow((_as_bounds(input, min, max),), {"low": min, "high": max})
    return result


clip = clamp


def _as_bounds(tensor: Any, *bounds: Any) -> Any:
    """Convert a tensor of integers whose bounds are not."""
    if tensor._array.dtype.kind in "iub" and any(isinstance(b, float) for b in bounds):
        return tensor.to(_dtypes.get_default_dtype())
    return tensor


def clamp_min(input: Any, min: Any) -> Any:
    """Limit each element from below."""
    if isinstance(min, _base.Tensor):
        return clamp(input, min)
    return _CLAMP_MIN.slow((_as_bounds(input, min),), {"low": min, "high": None})


def clamp_max(input: Any, max: Any) -> Any:
    """Limit each element from above."""
    if isinstance(max, _base.Tensor):
        return clamp(input, None, max)
    return _CLAMP_MAX.slow((_as_bounds(input, max),), {"low": None, "high": max})


@takes_out
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Choose from two tensors by a condition; with the condition alone, return the indices where it holds."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition._array.dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{_base.dtype_of(condition)._scalar_name}"
        )
    return _where_slow(condition, input, other)


def _where_slow(condition: Any, x: Any, y: Any) -> Any:
    """Choose; operands of several dtypes are promoted inside, so that the node has the tensors themselves as inputs."""
    args = (condition, plain_scalar(x), plain_scalar(y))
    given = [v._array if isinstance(v, _base.Tensor) else v for v in args[1:]]
    operands, dtype = promoted(given)
    operands = [np.asarray(v).astype(dtype)[()] if type(v) in PYTHON_SCALARS else v for v in operands]
    chosen = condition._array
    try:
        out = e.where.bind([chosen, *operands], {})
    except ValueError:
        wide: tuple[int, ...] = ()
        for shape in (tuple(np.shape(a)) for a in (chosen, *operands)):
            try:
                wide = np.broadcast_shapes(wide, shape)
            except ValueError:
                raise _errors.broadcast_error(wide, shape) from None
        raise
    arrays = [chosen, *operands]
    if isinstance(out, np.ndarray) and not all(np.asarray(a).flags.c_contiguous for a in arrays if not is_leveled(a)):
        steps = [np.broadcast_to(a, out.shape).strides for a in arrays]
        out = ordered(out, output_order(out.shape, steps))
    mode = current_mode()
    edges = (None, *[edge_of(v) if mode.tracks and isinstance(v, _base.Tensor) else None for v in args[1:]])
    if edges == (None, None, None):
        return wrap_outputs(e.where, out, None, mode)
    node = build_node(e.where, None, args, [chosen, *_as_arrays(given, operands)], out, {}, edges, mode)
    node.record_place()
    return wrap_outputs(e.where, out, node, mode)


def _as_arrays(given: Any, operands: Any) -> list[Any]:
    return [o if type(g) in PYTHON_SCALARS else g for g, o in zip(given, operands, strict=True)]


def is_leveled(array: Any) -> bool:
    """Tell whether an array belongs to a transform."""
    return isinstance(array, LevelArray)


def real_view(tensor: Any, part: str) -> Any:
    """Return the real or imaginary part as torch's view_as_real + select."""
    if tensor._array.dtype.kind != "c":
        if part == "imag":
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        return tensor
    from ._views import view_op

    pairs = view_op(tensor, s.view_as_real, {}, "ViewAsRealBackward0")
    at = 0 if part == "real" else 1
    index = (slice(None),) * tensor._array.ndim + (at,)
    return view_op(pairs, i.getitem, {"index": index}, "SelectBackward0", shown={"dim": -1, "index": at})


@overridable
def conj(input: Any) -> Any:
    """Conjugate; a real tensor is returned as it is."""
    if input._array.dtype.kind != "c":
        return input
    return _CONJ.slow((input,))


@takes_out
def complex(real: Any, imag: Any) -> Any:
    """Build a complex tensor of its real and imaginary parts."""
    names = [_base.dtype_of(part)._scalar_name for part in (real, imag)]
    if not {"Half", "Float", "Double"}.issuperset(names):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if real._array.dtype != imag._array.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {_base.dtype_of(real)._scalar_name} but got scalar type "
            f"{_base.dtype_of(imag)._scalar_name} for second argument"
        )
    return _COMPLEX.slow((real, imag))


@overridable
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """Interpolate linearly between two tensors."""
    rules = _LERP[isinstance(weight, _base.Tensor)]
    refuse(rules.name, input._array.dtype)
    return rules.slow((input, end, plain_scalar(weight)))


@overridable
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Add `value` times a product."""
    value = plain_scalar(value)
    if input._array.dtype.kind in "iu":
        value = int(value)
    return _ADDCMUL.slow((input, tensor1, tensor2), {"value": value})


@overridable
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Add `value` times a quotient."""
    return _ADDCDIV.slow((input, tensor1, tensor2), {"value": plain_scalar(value)})
