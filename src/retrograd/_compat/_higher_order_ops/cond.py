"""torch._higher_order_ops.cond: one of two functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd import Tensor
from retrograd.ops import HigherOrderOperator, higher_order


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Call the first function if `pred` holds, else the second."""
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    return cond_op(pred, true_fn, false_fn, tuple(operands))


class CondOp(HigherOrderOperator):
    """`torch.ops.higher_order.cond`."""

    def __call__(self, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
        return (true_fn if bool(pred) else false_fn)(*operands)


cond_op = higher_order.add(CondOp("cond"))
__all__ = ["cond", "cond_op"]
