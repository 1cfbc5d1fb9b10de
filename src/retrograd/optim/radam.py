"""torch.optim.radam: Adam that waits until it knows the variance."""

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
    check_betas,
    check_lr,
    count,
    decayed,
    new_count,
    update_tensors,
)
from .optimizer import ParamsT


def radam_numbers(
    step: float, lr: Any, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool
) -> tuple[Any, ...]:
    """Return what the rule needs to know about this step; the last number tells whether the variance is used."""
    correction1, correction2 = 1 - beta1**step, 1 - beta2**step
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * beta2**step / correction2
    known = length > 5.0
    rate = -lr / correction1
    if known:
        part = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        rate = rate * (part * correction2) ** 0.5
    shrink = 1 - lr * weight_decay if decoupled and weight_decay else None
    return shrink, 0 if decoupled else weight_decay, beta1, beta2, eps, rate, known


def radam_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    exp_avg, exp_avg_sq = buffers
    shrink, pull, beta1, beta2, eps, rate, known = numbers
    if shrink is not None:
        p.mul_(shrink)
    g = decayed(g, p, pull)
    exp_avg.lerp_(g, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    if known:
        add_quotient(p, exp_avg, exp_avg_sq.sqrt().add(eps), rate)
    else:
        add_times(p, exp_avg, rate)


class RAdam(RuleOptimizer):
    """Rectified Adam."""

    _rule = staticmethod(radam_rule)
    _missing = (
        ("maximize", False),
        ("foreach", None),
        ("capturable", False),
        ("differentiable", False),
        ("decoupled_weight_decay", False),
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, eps=eps)
        check_betas(betas)
        check_lr(lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        if not state:
            state["step"] = new_count()
            state["exp_avg"] = zeros_like(param)
            state["exp_avg_sq"] = zeros_like(param)
        step = count(state)
        numbers = shared.get(step)
        if numbers is None:
            beta1, beta2 = options["betas"]
            weight_decay, decoupled = options["weight_decay"], options["decoupled_weight_decay"]
            numbers = radam_numbers(step, options["lr"], beta1, beta2, options["eps"], weight_decay, decoupled)
            shared[step] = numbers
        return (state["exp_avg"], state["exp_avg_sq"]), numbers


def radam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    state_steps: list[Any],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
) -> None:
    """Update parameters by their gradients."""
    for at, (p, g) in enumerate(zip(params, grads, strict=True)):
        step = count({"step": state_steps[at]})
        numbers = radam_numbers(step, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay)
        update_tensors(radam_rule, p, g, (exp_avgs[at], exp_avg_sqs[at]), numbers, maximize)


__all__ = ["RAdam", "radam"]
