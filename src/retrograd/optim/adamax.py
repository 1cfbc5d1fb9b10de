"""torch.optim.adamax: Adam by the infinity norm."""

from __future__ import annotations

from typing import Any

from ._step import Options, RuleOptimizer, add_quotient, check_lr, decayed, named, update_lists
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
    _rate_argument = "addcdiv_(): argument 'value'"
    _zeros = ("exp_avg", "exp_inf")

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
        check_lr(lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params, named(locals(), "lr betas eps weight_decay foreach maximize differentiable capturable")
        )

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        beta1, beta2 = options["betas"]
        return beta1, beta2, options["eps"], options["weight_decay"], options["lr"] / (1 - beta1**step)


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
    update_lists(Adamax, {**locals(), "betas": (beta1, beta2)}, exp_avg=exp_avgs, exp_inf=exp_infs)


__all__ = ["Adamax", "adamax"]
