"""torch.optim.nadam: Adam with Nesterov momentum."""

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
    check_betas,
    check_lr,
    count,
    decayed,
    new_count,
    new_number,
    update_tensors,
)
from .optimizer import ParamsT


def nadam_numbers(
    step: float,
    mu_product: Any,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
) -> tuple[Any, ...]:
    """Advance the product of momenta and return what the rule needs to know about this step."""
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
    mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    mu_product.mul_(mu)
    product = mu_product.item()
    now, ahead = -lr * (1.0 - mu) / (1.0 - product), -lr * mu_next / (1.0 - product * mu_next)
    shrink = 1 - lr * weight_decay if decoupled and weight_decay else None
    return shrink, 0 if decoupled else weight_decay, beta1, beta2, 1 - beta2**step, eps, now, ahead


def nadam_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    exp_avg, exp_avg_sq = buffers
    shrink, pull, beta1, beta2, correction, eps, now, ahead = numbers
    if shrink is not None:
        p.mul_(shrink)
    g = decayed(g, p, pull)
    exp_avg.lerp_(g, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    denominator = exp_avg_sq.div(correction).sqrt().add(eps)
    add_quotient(p, g, denominator, now)
    add_quotient(p, exp_avg, denominator, ahead)


class NAdam(RuleOptimizer):
    """Adam that looks one step of momentum ahead."""

    _captured = "params, mu_products and state_steps"

    _rule = staticmethod(nadam_rule)
    _missing = (
        ("maximize", False),
        ("foreach", None),
        ("capturable", False),
        ("differentiable", False),
        ("decoupled_weight_decay", False),
    )
    _floats = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, eps=eps)
        check_betas(betas)
        check_lr(lr, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        if not state:
            state["step"] = new_count()
            state["mu_product"] = new_number(1.0)
            state["exp_avg"] = zeros_like(param)
            state["exp_avg_sq"] = zeros_like(param)
        beta1, beta2 = options["betas"]
        numbers = nadam_numbers(
            count(state),
            state["mu_product"],
            options["lr"],
            beta1,
            beta2,
            options["eps"],
            options["weight_decay"],
            options["momentum_decay"],
            options["decoupled_weight_decay"],
        )
        return (state["exp_avg"], state["exp_avg_sq"]), numbers


def nadam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    mu_products: list[Any],
    state_steps: list[Any],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Update parameters by their gradients."""
    for at, (p, g) in enumerate(zip(params, grads, strict=True)):
        numbers = nadam_numbers(
            count({"step": state_steps[at]}),
            mu_products[at],
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            momentum_decay,
            decoupled_weight_decay,
        )
        update_tensors(nadam_rule, p, g, (exp_avgs[at], exp_avg_sqs[at]), numbers, maximize)


__all__ = ["NAdam", "nadam"]
