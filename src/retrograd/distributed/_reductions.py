"""How values of several processes become one: `ReduceOp`, and what each does with arrays."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from .._public import set_all


class ReduceOp(IntEnum):
    """How values of several processes become one.

    Example:
        >>> torch.distributed.ReduceOp.SUM == torch.distributed.ReduceOp.MAX
        False
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined] # where torch has the members a second time
reduce_op = ReduceOp


class ScaledSum:
    """A sum whose terms are multiplied first: what `_make_nccl_premul_sum` makes."""

    name = "PREMUL_SUM"

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def __str__(self) -> str:
        return str(ReduceOp.PREMUL_SUM)


def _make_nccl_premul_sum(factor: Any) -> ScaledSum:
    """Return the reduction that adds values after multiplying them."""
    return ScaledSum(factor)


OF_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_UFUNCS: dict[Any, np.ufunc] = {
    ReduceOp.SUM: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
}


def need_op(tensor: Any, op: Any, backend: str, name: str) -> None:
    """Raise torch's error for a reduction that a dtype does not have, or for what is none."""
    if op is ReduceOp.SUM:  # which every dtype has
        return
    if not hasattr(op, "name"):
        raise TypeError(
            f"{name}(): argument 'op' must be ReduceOp, not {type(op).__name__}\nHint: torch.distributed.ReduceOp.SUM, for example."
        )
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    if op in OF_BITS and tensor.is_floating_point():
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op.name == "PREMUL_SUM" and "gloo" in backend:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if op is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {tensor.dtype._scalar_name}")


def supports_complex(reduceOp: Any) -> bool:  # noqa: N803 - torch's name
    """Tell whether complex numbers can be reduced so."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, *OF_BITS)


def before(flat: Any, op: Any) -> Any:
    """Return the terms of a reduction: the values, or the values times a factor."""
    if not isinstance(op, ScaledSum):
        return flat
    factor = op.factor._array if hasattr(op.factor, "_array") else op.factor
    return (flat * factor).astype(flat.dtype)


def plain(op: Any) -> Any:
    """Return the reduction that processes do together: averages and scaled sums are sums."""
    return ReduceOp.SUM if op is ReduceOp.AVG or isinstance(op, ScaledSum) else op


def combined(parts: Any, op: Any) -> Any:
    """Reduce the rows of an array, in float32 at least, and round once; where one is NaN, the least and the most are."""
    wide = parts if parts.dtype == np.float64 else parts.astype(np.float32, copy=False)
    total = _UFUNCS[plain(op)].reduce(wide, axis=0)
    if op is ReduceOp.AVG:
        total /= len(parts)
    return total.astype(parts.dtype, copy=False)


set_all(globals(), but="ScaledSum before combined need_op plain supports_complex")
