"""torch's elementwise functions of two tensors that few programs use."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ..._core.arrays import levels_of
from ..._core.levels import DUAL
from ..._core.passes import LARGE
from ..._modes import current_mode
from ..._ops import elementwise_pairs as o
from ...overrides import declared, overridable, takes_out
from .. import _base
from .._base import edge_of, wrap
from .._recording.flat import EXACT
from .._recording.no_derivative import without_derivative
from .._recording.operands import plain_scalar
from .._recording.out import call_into
from .._recording.record import NDARRAY, Elementwise, binary
from .._recording.refusals import kernel, refuse, refused
from .casting import to_dtype
from .elementwise import _POW_SCALAR, check_parts, mul, pow, sub

refused("fmax", "fmin", c=(RuntimeError, "{name} not implemented for complex tensors."))
fmax = binary(o.fmax, "fmax", numbers="none")
fmin = binary(o.fmin, "fmin", numbers="none")
refused("hypot", "logaddexp2", "nextafter", bic=kernel("{name}_cpu"))
refused("logaddexp", bi=kernel("logaddexp_cpu"))
hypot = binary(o.hypot, "hypot", numbers="none")
logaddexp = binary(o.logaddexp, "logaddexp", numbers="none")
logaddexp2 = binary(o.logaddexp2, "logaddexp2", numbers="none")
nextafter = binary(o.nextafter, "nextafter", numbers="none")
refused("gcd", "lcm", bfc=kernel("{name}_cpu"))
gcd = binary(o.gcd, "gcd", numbers="none")
lcm = binary(o.lcm, "lcm", numbers="none")
refused("ldexp", in_place=True, bi=(RuntimeError, "ldexp can't be cast to the desired output type {}"))
refused("bitwise_left_shift", bfc=kernel("lshift_cpu"))
refused("bitwise_right_shift", bfc=kernel("rshift_cpu"))
_LDEXP = binary(o.ldexp, "ldexp", integers_to_float=True, numbers="none")
left_shift = declared(binary(o.left_shift, "bitwise_left_shift"), forms="")
right_shift = declared(binary(o.right_shift, "bitwise_right_shift"), forms="")
bitwise_left_shift = binary(o.left_shift, "bitwise_left_shift", numbers="both")
bitwise_right_shift = binary(o.right_shift, "bitwise_right_shift", numbers="both")
refused("copysign", "xlogy", c=kernel("{name}_cpu"))
_COPYSIGN = binary(o.copysign, "copysign", integers_to_float=True, numbers="none")
_COPYSIGN_NUMBER = Elementwise(o.copysign, "copysign", "CopysignBackward1", True)
refused("heaviside", c=(RuntimeError, "heaviside is not yet implemented for complex tensors."))
_HEAVISIDE = binary(o.heaviside, "heaviside", numbers="none")
refused("polar", h=kernel("polar_cpu"))
_POLAR = Elementwise(o.polar, "polar", None, False)


def with_number(rules: dict[str, Any], input: Any, other: Any) -> Any:
    """Call the variant of a function for two tensors, or for a number on either side; torch's nodes are numbered so."""
    numbers = isinstance(input, _base.Tensor), isinstance(other, _base.Tensor)
    kind = {(True, True): "both", (False, True): "first", (True, False): "second"}[numbers]
    return rules[kind].slow((plain_scalar(input), plain_scalar(other)))


def variants(primitive: Any, name: str, node: str) -> dict[str, Any]:
    """Return the variants of a function whose operands may be numbers."""
    numbered = {"both": 0, "first": 1, "second": 2}
    return {kind: Elementwise(primitive, name, f"{node}{i}", True) for kind, i in numbered.items()}


_XLOGY = variants(o.xlogy, "xlogy", "XlogyBackward")
_xlogy = binary(o.xlogy, "xlogy", integers_to_float=True, numbers="both")


@takes_out
def xlogy(input: Any, other: Any) -> Any:
    """Return input * log(other), which is 0 where `input` is 0.

    Args:
        input: a tensor, or a number
        other: a tensor, or a number

    Example:
        >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    if isinstance(input, _base.Tensor) and isinstance(other, _base.Tensor):
        return _xlogy(input, other)
    return with_number(_XLOGY, input, other)


@takes_out
def copysign(input: Any, other: Any) -> Any:
    """Give each element the sign of another.

    Args:
        input: a tensor, whose absolute values are taken
        other: a tensor, or a number, whose signs are taken

    Example:
        >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-0.0, 3.0]))
        tensor([-1.,  2.])
    """
    if isinstance(other, _base.Tensor):
        return _COPYSIGN(input, other)
    return _COPYSIGN_NUMBER.slow((input, plain_scalar(other)))


@takes_out
def ldexp(input: Any, other: Any) -> Any:
    """Multiply by powers of two; exponents are integers most of the time, and have no gradient then."""
    if type(input) in EXACT and type(other) in EXACT:
        x, y = input._array, other._array
        if type(x) is NDARRAY and type(y) is NDARRAY and y.dtype.kind in "iu" and (dtype := x.dtype).kind == "f":
            other = wrap(y.astype(dtype))
    return _LDEXP(input, other)


@takes_out
def heaviside(input: Any, values: Any) -> Any:
    """Compute 0 below 0, 1 above it, and `values` at it; torch has no derivative for it, and says so in backward."""
    tensors = (input, values)
    for one in tensors:
        refuse("heaviside", one._array.dtype)
    if input._array.dtype != values._array.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if any(level.kind == DUAL for one in tensors for level in levels_of(one._array)):
        raise NotImplementedError("Trying to use forward AD with aten::heaviside that does not support it.")
    result = _HEAVISIDE(input, values)
    if current_mode().tracks and result._array.dtype.kind in "fV":
        edges = tuple(edge_of(one) for one in tensors)
        if any(edge is not None for edge in edges):
            result._edge = without_derivative("aten::heaviside", edges)
    return result


@overridable
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise to a power in double precision."""
    if out is None and type(input) in EXACT and type(exponent) is float and input._array.dtype.kind == "f":
        return _POW_SCALAR.slow((to_dtype(input, _dtypes.float64),), {"exponent": exponent})
    operands = [plain_scalar(v) for v in (input, exponent)]
    dtype = float_power_dtype(*operands)
    if out is not None:
        if _base.dtype_of(out) is not dtype:
            raise RuntimeError(
                f"the output given to float_power has dtype {_base.dtype_of(out)._scalar_name} but the operation's "
                f"result requires dtype {dtype._scalar_name}"
            )
        return call_into(float_power, (input, exponent), {}, out)
    number = complex if dtype.is_complex else float
    return pow(*[v.to(dtype) if isinstance(v, _base.Tensor) else number(v) for v in operands])


def float_power_dtype(*operands: Any) -> _dtypes.dtype:
    """Return the dtype in which a power is computed."""
    kinds = [_base.dtype_of(v).is_complex if isinstance(v, _base.Tensor) else isinstance(v, complex) for v in operands]
    return _dtypes.complex128 if any(kinds) else _dtypes.float64


def float_power_(self: Any, exponent: Any) -> Any:
    """Raise to a power in place: the tensor must be of double precision."""
    dtype, own = float_power_dtype(self, plain_scalar(exponent)), _base.dtype_of(self)
    if own is not dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {own._scalar_name} but the operation's result requires dtype "
            f"{dtype._scalar_name}"
        )
    return self.pow_(exponent.to(dtype) if isinstance(exponent, _base.Tensor) else exponent)


@overridable(raised="cpu")
def polar(abs: Any, angle: Any, *, out: Any = None) -> Any:
    """Build a complex tensor of sizes and angles."""
    check_parts("polar", {"abs": abs, "angle": angle}, out)
    refuse("polar", abs._array.dtype)
    return _POLAR.slow((abs, angle)) if out is None else call_into(polar, (abs, angle), {}, out)


# ---- closeness ----
@overridable
def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Tell for each pair of elements whether they are close: |input - other| <= atol + rtol * |other|.

    Args:
        input: a tensor
        other: a tensor
        rtol: the tolerance relative to `other`
        atol: the absolute tolerance
        equal_nan: whether two NaN are close

    Example:
        >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0 + 1e-6, 2.1]))
        tensor([ True, False])
    """
    dtypes = [_base.dtype_of(v) for v in (input, other)]
    if dtypes[0] is not dtypes[1]:
        raise RuntimeError(f"{dtypes[0]._scalar_name} did not match {dtypes[1]._scalar_name}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance:g}")
    input, other = input.detach(), other.detach()
    close = input.eq(other)
    if equal_nan and dtypes[0].kind >= _dtypes.FLOAT_KIND:
        close = close.logical_or(input.isnan().logical_and(other.isnan()))
    if rtol == 0 and atol == 0:
        return close
    if dtypes[0].kind < _dtypes.FLOAT_KIND:
        input, other = input.to(_dtypes.get_default_dtype()), other.to(_dtypes.get_default_dtype())
    error = sub(input, other).abs()
    allowed = mul(other, rtol).abs() + atol
    return close.logical_or(error.isfinite().logical_and(error.le(allowed)))


@overridable
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Tell whether all elements of two tensors are close: see `isclose`.

    Args:
        input: a tensor
        other: a tensor
        rtol: the tolerance relative to `other`
        atol: the absolute tolerance
        equal_nan: whether two NaN are close

    Example:
        >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]))
        True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


@overridable
def equal(input: Any, other: Any) -> bool:
    """Tell whether two tensors have the same shape and elements.

    Args:
        input: a tensor
        other: a tensor

    Example:
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
    """
    if type(input) in EXACT and type(other) in EXACT:
        x, y = input._array, other._array
        if type(x) is type(y) is NDARRAY and x.dtype is y.dtype and x.dtype.kind in "fiub":
            if x.shape != y.shape:
                return False
            if x.size < 16:
                return bool(x.tolist() == y.tolist())
            if x.size >= LARGE and (few := len(x) >> 10) and not (x[:few] == y[:few]).all():
                return False  # most arrays that differ do so at once
            return bool((x == y).all())
    if input.is_meta or other.is_meta:
        raise NotImplementedError(
            "aten::equal: no shape rule for the meta device (whether tensors are equal depends on their values)"
        )
    return tuple(input.shape) == tuple(other.shape) and bool(input.eq(other).all().item())
