"""Operations that take functions: torch.cond and torch.while_loop, which run as they come, and calls under modes in graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._modes import current_mode
from .amp.autocast_mode import autocast
from .autograd.grad_mode import set_grad_enabled
from .jit._marks import recordings
from .ops import HigherOrderOperator, higher_order
from .tensor import Tensor


def _check_recording(name: str) -> None:
    """Refuse to be recorded: what runs with the example would be all that the graph has."""
    recorder: Any = recordings[-1] if recordings else None
    if recorder is not None and not recorder.is_over and not recorder._busy:
        if recorder.is_jit_trace:
            raise RuntimeError(
                "Detected that you are using FX to torch.jit.trace a dynamo-optimized function. This is not supported at the "
                f"moment.\nHint: a trace has one of the ways of torch.{name}. Script the part with an `if` or a `while` by "
                "torch.jit.script."
            )
        raise _not_recorded(name, "torch.export.export")
    if current_mode().dispatch_modes:
        from .fx.experimental.proxy_tensor import get_proxy_mode

        mode = get_proxy_mode()
        if mode is not None and mode.enable_tracing:
            raise _not_recorded(name, "make_fx")


def _not_recorded(name: str, by: str) -> NotImplementedError:
    return NotImplementedError(
        f"torch.{name} in a program for {by}: its graph would keep what runs with the example\n"
        "Hint: write torch.where, or record the functions by themselves."
    )


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
        if isinstance(pred, Tensor):  # else the same function runs each time
            _check_recording("cond")
        return (true_fn if bool(pred) else false_fn)(*operands)


cond_op = higher_order.add(CondOp("cond"))


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
        _check_recording("while_loop")
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


class WrapWithSetGradEnabled(HigherOrderOperator):
    """`torch.ops.higher_order.wrap_with_set_grad_enabled`."""

    def __call__(self, enable_grad: bool, wrapped_func: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


class WrapWithAutocast(HigherOrderOperator):
    """`torch.ops.higher_order.wrap_with_autocast`."""

    def __call__(
        self,
        device_type: str,
        dtype: Any,
        enabled: bool,
        cache_enabled: bool | None,
        wrapped_func: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


wrap_with_set_grad_enabled = higher_order.add(WrapWithSetGradEnabled("wrap_with_set_grad_enabled"))
wrap_with_autocast = higher_order.add(WrapWithAutocast("wrap_with_autocast"))

__all__ = ["cond", "while_loop"]
