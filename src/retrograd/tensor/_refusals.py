"""What torch refuses to compute, by operation and dtype. Only paths off the hot one ask here."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtypes

# operation -> {kinds of dtype: (class, torch's sentence)}; {} is the dtype's name. Kinds are NumPy's, without signs:
# b(ool), i(nteger), f(loating), c(omplex).
Table = dict[str, dict[str, tuple[type[Exception], str]]]
_COMPLEX_CLAMP = (NotImplementedError, "clamp is not supported for complex types")


def _kernel(name: str) -> tuple[type[Exception], str]:
    return NotImplementedError, f"\"{name}\" not implemented for '{{}}'"


REFUSED: Table = {
    "neg": {
        "b": (
            RuntimeError,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
            "`~` or `logical_not()` operator instead.",
        )
    },
    "abs": {"b": _kernel("abs_cpu")},
    "erf": {"c": _kernel("erf_vml_cpu")},
    "relu": {"c": _COMPLEX_CLAMP, "b": (RuntimeError, "Boolean inputs not supported for relu")},
    "sign": {
        "c": (
            NotImplementedError,
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
        )
    },
    "round": {"bc": _kernel("round_vml_cpu")},
    "round_decimals": {"bic": _kernel("round_cpu")},
    "div_floor": {"bc": _kernel("div_floor_cpu")},
    "div_trunc": {"bc": _kernel("div_trunc_cpu")},
    "floor_divide": {"bc": _kernel("div_floor_cpu")},
    "pow_tensors": {"b": _kernel("pow")},
    "atan2": {"c": _kernel("atan2_cpu")},
    "remainder": {"bc": _kernel("remainder_cpu")},
    "fmod": {"bc": _kernel("fmod_cpu")},
    "lerp_scalar": {"bi": _kernel("lerp_kernel_scalar")},
    "lerp_tensor": {"bi": _kernel("lerp_kernel_tensor")},
    "addcmul": {"b": _kernel("addcmul_cpu_out")},
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
    "clamp_tensors": {"c": _COMPLEX_CLAMP, "b": _kernel("clamp_cpu")},
    "amax": {"c": _kernel("max_values_cpu")},
    "amin": {"c": _kernel("min_values_cpu")},
    "softmax": {"bic": _kernel("softmax_kernel_impl")},
    "softmax_lastdim": {"bic": _kernel("softmax_lastdim_kernel_impl")},
    "log_softmax": {"bic": _kernel("log_softmax_kernel_impl")},
    "log_softmax_lastdim": {"bic": _kernel("log_softmax_lastdim_kernel_impl")},
    "sort": {"c": (RuntimeError, "Sort does not support complex dtypes on CPU")},
    "dot": {"b": _kernel("dot")},
    "mv": {"b": _kernel("addmv_impl_cpu")},
    "mm": {"b": _kernel("addmm_impl_cpu_")},
    "bmm": {"b": _kernel("bmm")},
}
for _name in ("floor", "ceil", "trunc"):
    REFUSED[_name] = {
        "c": (NotImplementedError, f"{_name} is not supported for complex inputs"),
        "b": _kernel(f"{_name}_vml_cpu"),
    }
for _name in ("lt", "le", "gt", "ge"):
    REFUSED[_name] = {"c": _kernel(f"{_name}_cpu")}
for _name in ("maximum", "minimum"):
    REFUSED[_name] = {"c": (RuntimeError, f"{_name} not implemented for complex tensors.")}
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"):
    REFUSED[_name] = {"fc": _kernel(f"{_name}_cpu")}
for _name in ("max", "min"):
    REFUSED[f"{_name}_at"] = {"c": (RuntimeError, f"{_name}(): does not support complex input")}
    REFUSED[f"{_name}_all"] = {"c": _kernel(f"{_name}_all")}
    REFUSED[f"arg{_name}"] = {
        "c": (RuntimeError, f"arg{_name}(): does not support complex input"),
        "b": (RuntimeError, f"arg{_name}(): does not support bool input"),
    }

REFUSED_IN_PLACE: Table = {
    "abs": {
        "b": _kernel("abs_cpu"),
        "c": (RuntimeError, "In-place abs is not supported for complex tensors."),
    },
    "relu": REFUSED["relu"],
    "cumsum": {"b": _kernel("cumsum_out_cpu")},
}
_KINDS = {"u": "i", "V": "f"}  # bfloat16 is NumPy's V


def refuse(name: str, dtype: np.dtype[Any], table: Table = REFUSED) -> None:
    """Raise torch's error if it does not compute an operation in a dtype."""
    found = table.get(name)
    if found is None:
        return
    kind = _KINDS.get(dtype.kind, dtype.kind)
    for kinds, (cls, text) in found.items():
        if kind in kinds:
            raise cls(text.replace("{}", _dtypes.from_numpy(dtype)._scalar_name))


def refuse_in_place(name: str, dtype: np.dtype[Any], numbers: Any) -> None:
    """Raise torch's error if it does not compute an operation in place; `numbers` are its other arguments."""
    refuse(name, dtype, REFUSED_IN_PLACE)
    kinds = {type(one) for one in numbers}
    if name == "clamp" and dtype.kind in "biu" and (float in kinds or (int in kinds and dtype.kind == "b")):
        words = {"bool": "bool", "int64": "long int", "int32": "int", "uint8": "unsigned char"}
        kind = words.get(dtype.name, dtype.name)
        default = _dtypes.get_default_dtype()._scalar_name if float in kinds else "Long"
        raise RuntimeError(f"result type {default} can't be cast to the desired output type {kind}")


def refuse_zero_divisor(name: str, arrays: Any, dtype: np.dtype[Any]) -> None:
    """Raise torch's error for an integer division by zero."""
    if name in ("floor_divide", "remainder", "fmod", "div_floor", "div_trunc") and dtype.kind in "iu":
        divisor = arrays[1]
        if isinstance(divisor, (np.ndarray, np.generic, int)) and not np.all(divisor):
            raise RuntimeError("ZeroDivisionError")
