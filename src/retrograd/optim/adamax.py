"""torch.optim.adamax: Adam by the infinity norm."""

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
    update_tensors,
)
from .optimizer import ParamsT


def adamax_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    exp_avg, exp_inf = buffers
    beta1, beta2, eps, weight_decay, rate = numbers
    g = decayed(g, p, weight_decay)
    exp_avg.lerp_(g, 1 - beta1)
    exp_inf.copy_(exp_inf.mul(beta2).maximum(g.abs().add(eps)))
    add_quotient(p, exp_avg, exp_inf, -rate)


class Adamax(RuleOptimizer):
    """Adam whose second moment is the largest gradient, fading."""

    _rule = staticmethod(adamax_rule)
    _missing = (
        ("maximize", False),
        ("foreach", None),
        ("capturable", False),
        ("differentiable", False),
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr, eps=eps)
        check_betas(betas)
        check_lr(lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _number_from_rate(options: Options) -> str:
        return "addcdiv_(): argument 'value'"

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        if not state:
            state["step"] = new_count()
            state["exp_avg"] = zeros_like(param)
            state["exp_inf"] = zeros_like(param)
        beta1, beta2 = options["betas"]
        rate = options["lr"] / (1 - beta1 ** count(state))
        return (state["exp_avg"], state["exp_inf"]), (beta1, beta2, options["eps"], options["weight_decay"], rate)


def adamax(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_infs: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
) -> None:
    """Update parameters by their gradients."""
    for p, g, exp_avg, exp_inf, step in zip(params, grads, exp_avgs, exp_infs, state_steps, strict=True):
        numbers = beta1, beta2, eps, weight_decay, lr / (1 - beta1 ** count({"step": step}))
        update_tensors(adamax_rule, p, g, (exp_avg, exp_inf), numbers, maximize)


__all__ = ["Adamax", "adamax"]
