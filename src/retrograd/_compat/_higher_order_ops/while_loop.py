"""torch._higher_order_ops.while_loop: a function again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.ops import HigherOrderOperator, higher_order


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Replace values by what `body_fn` makes of them as long as `cond_fn` holds for them."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, got {type(carried_inputs)}")
    return while_loop_op(cond_fn, body_fn, tuple(carried_inputs), ())


class WhileLoopOp(HigherOrderOperator):
    """`torch.ops.higher_order.while_loop`."""

    def __call__(self, cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any = ()) -> Any:
        values = carried_inputs
        while bool(cond_fn(*values, *additional_inputs)):
            values = body_fn(*values, *additional_inputs)
            values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
            if len(values) != len(carried_inputs):
                raise RuntimeError(
                    f"body_fn should return the same number of elements as carried_inputs: {len(values)} and {len(carried_inputs)}"
                )
        return values


while_loop_op = higher_order.add(WhileLoopOp("while_loop"))
__all__ = ["while_loop", "while_loop_op"]
