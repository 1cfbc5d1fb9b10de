"""What torch refuses to compute, by operation and dtype. Only paths off the hot one ask here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _dtypes

# operation -> {kinds of dtype: (class, torch's sentence)}; {} is the dtype's name. Kinds are NumPy's, without signs:
# b(ool), i(nteger), f(loating), c(omplex); h is half precision alone.
Table = dict[str, dict[str, tuple[type[Exception], str]]]
_COMPLEX_CLAMP = (NotImplementedError, "clamp is not supported for complex types")


def kernel(name: str) -> tuple[type[Exception], str]:
    """Return torch's error of a kernel that has no version for a dtype."""
    return NotImplementedError, f"\"{name}\" not implemented for '{{}}'"


REFUSED: Table = {
    "neg": {
        "b": (
            RuntimeError,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
            "`~` or `logical_not()` operator instead.",
        )
    },
    "abs": {"b": kernel("abs_cpu")},
    "erf": {"c": kernel("erf_vml_cpu")},
    "relu": {"c": _COMPLEX_CLAMP, "b": (RuntimeError, "Boolean inputs not supported for relu")},
    "sign": {
        "c": (
            NotImplementedError,
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
        )
    },
    "round": {"bc": kernel("round_vml_cpu")},
    "round_decimals": {"bic": kernel("round_cpu")},
    "div_floor": {"bc": kernel("div_floor_cpu")},
    "div_trunc": {"bc": kernel("div_trunc_cpu")},
    "floor_divide": {"bc": kernel("div_floor_cpu")},
    "pow_tensors": {"b": kernel("pow")},
    "atan2": {"c": kernel("atan2_cpu")},
    "remainder": {"bc": kernel("remainder_cpu")},
    "fmod": {"bc": kernel("fmod_cpu")},
    "lerp_scalar": {"bi": kernel("lerp_kernel_scalar")},
    "lerp_tensor": {"bi": kernel("lerp_kernel_tensor")},
    "addcmul": {"b": kernel("addcmul_cpu_out")},
    "addcdiv": {
        "bi": (
            RuntimeError,
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
            "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * "
            "tensor1 / tensor2), for all dtypes.",
        )
    },
    "clamp": {"c": _COMPLEX_CLAMP},
    "clamp_tensors": {"c": _COMPLEX_CLAMP, "b": kernel("clamp_cpu")},
    "clamp_min": {"c": kernel("maximum_cpu")},
    "clamp_max": {"c": kernel("minimum_cpu")},
    "amax": {"c": kernel("max_values_cpu")},
    "amin": {"c": kernel("min_values_cpu")},
    "softmax": {"bic": kernel("softmax_kernel_impl")},
    "softmax_lastdim": {"bic": kernel("softmax_lastdim_kernel_impl")},
    "log_softmax": {"bic": kernel("log_softmax_kernel_impl")},
    "log_softmax_lastdim": {"bic": kernel("log_softmax_lastdim_kernel_impl")},
    "sort": {"c": (RuntimeError, "Sort does not support complex dtypes on CPU")},
    "dot": {"b": kernel("dot")},
    "mv": {"b": kernel("addmv_impl_cpu")},
    "mm": {"b": kernel("addmm_impl_cpu_")},
    "bmm": {"b": kernel("bmm")},
    "baddbmm": {"b": kernel("baddbmm")},
    "cross": {"b": kernel("cross")},
    "trace": {"b": kernel("trace")},
}
REFUSED |= {
    "positive": {"b": (RuntimeError, "The `+` operator, on a bool tensor is not supported.")},
    "frac": {"bic": kernel("frac_cpu")},
    "digamma": {"c": kernel("digamma")},
    "trigamma": {"c": kernel("trigamma")},
    "polygamma": {"c": kernel("polygamma")},
    "mvlgamma": {"c": kernel("arange_cpu")},
    "signbit": {"c": (NotImplementedError, "signbit is not implemented for complex tensors.")},
    "heaviside": {"c": (RuntimeError, "heaviside is not yet implemented for complex tensors.")},
    "frexp": {"bic": (RuntimeError, "torch.frexp() only supports floating-point dtypes")},
    "polar": {"h": kernel("polar_cpu")},
    "ndtr": {"c": kernel("erf_vml_cpu")},
    "logaddexp": {"bi": kernel("logaddexp_cpu")},
    "bitwise_left_shift": {"bfc": kernel("lshift_cpu")},
    "bitwise_right_shift": {"bfc": kernel("rshift_cpu")},
}
for _name in ("erfc", "erfinv", "i0", "lgamma"):
    REFUSED[_name] = {"c": kernel(f"{_name}_vml_cpu")}
for _name in ("deg2rad", "rad2deg"):
    REFUSED[_name] = {"c": (RuntimeError, f"{_name} is not supported for complex tensors.")}
for _name in ("isposinf", "isneginf"):
    REFUSED[_name] = {"c": (RuntimeError, f"{_name} does not support complex inputs.")}
for _name in ("copysign", "logit", "xlogy", "xlog1py", "entr", "i0e", "i1", "i1e"):
    REFUSED[_name] = {"c": kernel(f"{_name}_cpu")}
for _name in ("hypot", "igamma", "igammac", "logaddexp2", "nextafter"):
    REFUSED[_name] = {"bic": kernel(f"{_name}_cpu")}
for _name in ("gcd", "lcm"):
    REFUSED[_name] = {"bfc": kernel(f"{_name}_cpu")}
for _name in ("erfcx", "log_ndtr", "ndtri", "zeta", "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
              "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
              "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"):  # fmt: skip
    REFUSED[_name] = {"hc": kernel(f"{_name}_cpu")}
for _name in ("floor", "ceil", "trunc"):
    REFUSED[_name] = {
        "c": (NotImplementedError, f"{_name} is not supported for complex inputs"),
        "b": kernel(f"{_name}_vml_cpu"),
    }
for _name in ("lt", "le", "gt", "ge"):
    REFUSED[_name] = {"c": kernel(f"{_name}_cpu")}
for _name in ("maximum", "minimum", "fmax", "fmin"):
    REFUSED[_name] = {"c": (RuntimeError, f"{_name} not implemented for complex tensors.")}
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"):
    REFUSED[_name] = {"fc": kernel(f"{_name}_cpu")}
for _name in ("max", "min"):
    REFUSED[f"{_name}_at"] = {"c": (RuntimeError, f"{_name}(): does not support complex input")}
    REFUSED[f"{_name}_all"] = {"c": kernel(f"{_name}_all")}
    REFUSED[f"arg{_name}"] = {
        "c": (RuntimeError, f"arg{_name}(): does not support complex input"),
        "b": (RuntimeError, f"arg{_name}(): does not support bool input"),
    }

REFUSED_IN_PLACE: Table = {
    "abs": {
        "b": kernel("abs_cpu"),
        "c": (RuntimeError, "In-place abs is not supported for complex tensors."),
    },
    "relu": REFUSED["relu"],
    "cumsum": {"b": kernel("cumsum_out_cpu")},
    "mvlgamma": {"i": (RuntimeError, "mvlgamma: result type {} can't be cast to the desired output type Float")},
    "ldexp": {"bi": (RuntimeError, "ldexp can't be cast to the desired output type {}")},
}
REFUSED_IN_PLACE["absolute"] = REFUSED_IN_PLACE["abs"]
CLAMPS = ("clamp", "clip", "clamp_min", "clamp_max")


def refuse(name: str, dtype: np.dtype[Any], table: Table = REFUSED) -> None:
    """Raise torch's error if it does not compute an operation in a dtype."""
    found = table.get(name)
    if found is None:
        return
    kind = "bifc"[_dtypes.from_numpy(dtype).kind]
    for kinds, (cls, text) in found.items():
        if kind in kinds or ("h" in kinds and dtype.itemsize == 2 and kind == "f"):
            raise cls(text.replace("{}", _dtypes.from_numpy(dtype)._scalar_name))


def for_floats(name: str, function: Any) -> Any:
    """Return what an operation runs on floats: `function`, or what refuses them."""
    refused = any("f" in kinds for kinds in REFUSED.get(name, ()))
    return (lambda x, y=None: refuse(name, x.dtype)) if refused else function


def refuse_in_place(name: str, dtype: np.dtype[Any], numbers: Any) -> None:
    """Raise torch's error if it does not compute an operation in place; `numbers` are its other arguments."""
    refuse(name, dtype, REFUSED_IN_PLACE)
    kinds = {type(one) for one in numbers}
    if name in CLAMPS and dtype.kind in "biu" and (float in kinds or (int in kinds and dtype.kind == "b")):
        words = {"bool": "bool", "int64": "long int", "int32": "int", "uint8": "unsigned char"}
        kind = words.get(dtype.name, dtype.name)
        default = _dtypes.get_default_dtype()._scalar_name if float in kinds else "Long"
        raise RuntimeError(f"result type {default} can't be cast to the desired output type {kind}")


def check_alpha(alpha: Any, tensors: Any, has_float: bool) -> None:
    """Raise torch's error for a factor of `add` or `sub` of a greater kind than its operands, or a truth value."""
    kinds = [tensor._array.dtype.kind for tensor in tensors]
    if isinstance(alpha, bool) and any(kind != "b" for kind in kinds):
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and "c" not in kinds:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and not has_float and all(kind in "iub" for kind in kinds):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


def refuse_zero_divisor(name: str, arrays: Any, dtype: np.dtype[Any]) -> None:
    """Raise torch's error for an integer division by zero."""
    if name in ("floor_divide", "remainder", "fmod", "div_floor", "div_trunc") and dtype.kind in "iu":
        divisor = arrays[1]
        if isinstance(divisor, (np.ndarray, np.generic, int)) and not np.all(divisor):
            raise RuntimeError("ZeroDivisionError")
