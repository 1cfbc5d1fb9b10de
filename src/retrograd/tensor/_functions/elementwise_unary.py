"""torch's elementwise functions of one tensor that few programs use."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ... import _dtypes
from ..._ops import elementwise_unary as f
from ...overrides import declared, overridable, takes_out
from .._aliasing.inplace import inplace
from .._object.return_types import make
from .._recording.out import call_into
from .._recording.record import Elementwise, record, unary
from .._recording.refusals import kernel, refuse, refused


def boolean(function: Any) -> Any:
    """Let a function refuse an `out=` that is not for truth values."""

    def check(name: str, targets: Any, results: Any) -> None:
        if targets[0]._array.dtype.kind != "b":
            raise RuntimeError(f"{name} does not support non-boolean outputs.")

    function.check_out = check
    return function


acosh = arccosh = unary(f.arccosh, "acosh", integers_to_float=True)
asinh = arcsinh = unary(f.arcsinh, "asinh", integers_to_float=True)
atanh = arctanh = unary(f.arctanh, "atanh", integers_to_float=True)
acosh_ = arccosh_ = inplace("acosh", unary(f.arccosh, "acosh", "AcoshBackward1", integers_to_float=True))
asinh_ = arcsinh_ = inplace("asinh", unary(f.arcsinh, "asinh", "AsinhBackward1", integers_to_float=True))
atanh_ = arctanh_ = inplace("atanh", unary(f.arctanh, "atanh", "AtanhBackward1", integers_to_float=True))
conj_physical_ = inplace("conj_physical", unary(f.conj_physical, "conj_physical", "ConjPhysicalBackward1"))
exp2 = unary(f.exp2, "exp2", integers_to_float=True)
refused("deg2rad", "rad2deg", c=(RuntimeError, "{name} is not supported for complex tensors."))
deg2rad = unary(f.deg2rad, "deg2rad", "Deg2RadBackward0", integers_to_float=True)
rad2deg = unary(f.rad2deg, "rad2deg", "Rad2DegBackward0", integers_to_float=True)
refused("frac", bic=kernel("frac_cpu"))
frac = declared(unary(f.frac, "frac"), out_dtype="kernel")
sinc = unary(f.sinc, "sinc", integers_to_float=True)
angle = unary(f.angle, "angle", integers_to_float=True)
refused("signbit", c=(NotImplementedError, "signbit is not implemented for complex tensors."))
refused("isposinf", "isneginf", c=(RuntimeError, "{name} does not support complex inputs."))
signbit = boolean(unary(f.signbit, "signbit"))
isposinf = boolean(unary(f.isposinf, "isposinf"))
isneginf = boolean(unary(f.isneginf, "isneginf"))
isreal = unary(f.isreal, "isreal")

_CONJ = Elementwise(f.conj_physical, "conj_physical", None, False)
_NAN_TO_NUM = Elementwise(f.nan_to_num, "nan_to_num", None, False)
refused("logit", c=kernel("logit_cpu"))
_LOGIT = Elementwise(f.logit, "logit", None, True)


refused("positive", b=(RuntimeError, "The `+` operator, on a bool tensor is not supported."))


@overridable
def positive(input: Any) -> Any:
    """Return the tensor itself."""
    refuse("positive", input._array.dtype)
    return input


@takes_out(out_dtype="kernel")
def conj_physical(input: Any) -> Any:
    """Conjugate; a real tensor is returned as it is."""
    return _CONJ.slow((input,)) if input._array.dtype.kind == "c" else input


@overridable
def resolve_conj(input: Any) -> Any:
    """Return a tensor whose memory holds what it shows, as far as conjugates go."""
    return input.clone() if input.is_conj() else input


@overridable
def resolve_neg(input: Any) -> Any:
    """Return a tensor whose memory holds what it shows, as far as negatives go."""
    return input.clone() if input.is_neg() else input


@overridable(forms="function method")
def _conj(input: Any) -> Any:
    """View as the conjugate; a real tensor is returned as it is."""
    return input.conj()


@overridable(forms="function method")
def _neg_view(input: Any) -> Any:
    """View as the negative."""
    from .._aliasing.signs import negative_view

    return negative_view(input)


@cache
def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    limits = _dtypes.finfo(_dtypes.from_numpy(dtype))
    return limits.min, limits.max


@takes_out
def nan_to_num(input: Any, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Replace NaN and infinities by numbers.

    Args:
        input: a tensor
        nan: what NaN becomes
        posinf: what infinity becomes; the largest number of the dtype if it is not given
        neginf: what minus infinity becomes; the smallest number of the dtype if it is not given

    Example:
        >>> torch.nan_to_num(torch.tensor([float("nan"), float("inf"), 1.0]), nan=0.0, posinf=9.0)
        tensor([0., 9., 1.])
    """
    dtype = input._array.dtype
    if dtype.kind in "fVc" and (posinf is None or neginf is None):
        low, high = _limits(dtype)
        posinf = high if posinf is None else posinf
        neginf = low if neginf is None else neginf
    replaced = {"nan": 0.0 if nan is None else nan, "posinf": posinf, "neginf": neginf}
    return _NAN_TO_NUM.slow((input,), replaced)


@takes_out
def logit(input: Any, eps: float | None = None) -> Any:
    """Return log(x / (1 - x)) of each element x, the inverse of `sigmoid`.

    Args:
        input: a tensor of numbers between 0 and 1
        eps: bring them into [eps, 1 - eps] first

    Example:
        >>> torch.logit(torch.tensor([0.5, 0.8808]))
        tensor([0.0000, 2.0000])
    """
    return _LOGIT.slow((input,), {"eps": eps})


refused("frexp", bic=(RuntimeError, "torch.frexp() only supports floating-point dtypes"))


@overridable
def frexp(input: Any, *, out: Any = None) -> Any:
    """Split into a mantissa of size [0.5, 1) and a power of two."""
    refuse("frexp", input._array.dtype)
    if out is not None:
        if out[1]._array.dtype != np.int32:
            kind = {"float32": "float", "float64": "double", "int64": "long int"}.get(out[1]._array.dtype.name)
            raise RuntimeError(f"torch.frexp() expects exponent to have int dtype but got {kind}")
        return call_into(frexp, (input,), {}, tuple(out))
    return make("frexp", "mantissa", "exponent")(*record(f.frexp, (input,), {}))
