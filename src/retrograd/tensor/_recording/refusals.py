"""What torch refuses to compute, by operation and dtype. Only paths off the hot one ask here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _dtypes

# operation -> {kinds of dtype: (class, torch's sentence)}; {} is the dtype's name. Kinds are NumPy's, without signs:
# b(ool), i(nteger), f(loating), c(omplex); h is half precision alone.
Table = dict[str, dict[str, tuple[type[Exception], str]]]


def kernel(name: str) -> tuple[type[Exception], str]:
    """Return torch's error of a kernel that has no version for a dtype."""
    return NotImplementedError, f"\"{name}\" not implemented for '{{}}'"


REFUSED: Table = {}
REFUSED_IN_PLACE: Table = {}


def refused(*names: str, in_place: bool = False, **kinds: tuple[type[Exception], str]) -> None:
    """Say which kinds of dtype torch does not compute operations in; {name} in its sentence is the operation's.

    It stands beside the public function, or above what makes it of the operation.
    """
    table = REFUSED_IN_PLACE if in_place else REFUSED
    for name in names:
        table[name] = {kind: (cls, text.replace("{name}", name)) for kind, (cls, text) in kinds.items()}


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


def refuses_floats(name: str) -> bool:
    """Tell whether torch does not compute an operation of floats."""
    return any("f" in kinds for kinds in REFUSED.get(name, ()))


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
