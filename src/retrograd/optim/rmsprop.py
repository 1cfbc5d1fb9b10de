"""torch.optim.rmsprop: gradients over the root of their mean square."""

from __future__ import annotations

from typing import Any

from ..tensor._functions.creation import zeros_like
from ._step import (
    Options,
    Prepared,
    RuleOptimizer,
    Shared,
    State,
    add_quotient,
    add_times,
    check_lr,
    count,
    decayed,
    new_count,
    update_tensors,
)
from .optimizer import ParamsT


def rmsprop_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    square_avg, buffer, grad_avg = buffers
    lr, alpha, eps, weight_decay, momentum = numbers
    g = decayed(g, p, weight_decay)
    square_avg.mul_(alpha).addcmul_(g, g, value=1 - alpha)
    if grad_avg is None:
        root = square_avg.sqrt()
    else:
        grad_avg.lerp_(g, 1 - alpha)
        root = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt()
    if buffer is None:
        add_quotient(p, g, root.add(eps), -lr)
    else:
        buffer.mul_(momentum).addcdiv_(g, root.add(eps))
        add_times(p, buffer, -lr)


class RMSprop(RuleOptimizer):
    """Gradients divided by the root of their mean square."""

    _rule = staticmethod(rmsprop_rule)
    _missing = (
        ("momentum", 0),
        ("centered", False),
        ("maximize", False),
        ("foreach", None),
        ("capturable", False),
        ("differentiable", False),
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _number_from_rate(options: Options) -> str:
        return "add_(): argument 'alpha'" if options["momentum"] > 0 else "addcdiv_(): argument 'value'"

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        momentum, centered = options["momentum"], options["centered"]
        if not state:
            state["step"] = new_count()
            state["square_avg"] = zeros_like(param)
            if momentum > 0:
                state["momentum_buffer"] = zeros_like(param)
            if centered:
                state["grad_avg"] = zeros_like(param)
        count(state)
        buffer = state["momentum_buffer"] if momentum > 0 else None
        buffers = state["square_avg"], buffer, state["grad_avg"] if centered else None
        return buffers, (options["lr"], options["alpha"], options["eps"], options["weight_decay"], momentum)


def rmsprop(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    momentum_buffer_list: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Update parameters by their gradients."""
    for at, (p, g) in enumerate(zip(params, grads, strict=True)):
        count({"step": state_steps[at]})
        buffer = momentum_buffer_list[at] if momentum > 0 else None
        buffers = square_avgs[at], buffer, grad_avgs[at] if centered else None
        update_tensors(rmsprop_rule, p, g, buffers, (lr, alpha, eps, weight_decay, momentum), maximize)


__all__ = ["RMSprop", "rmsprop"]
