"""torch.optim.radam: Adam that waits until it knows the variance."""

from __future__ import annotations

from typing import Any, ClassVar

from ._step import (
    Options,
    RuleOptimizer,
    add_quotient,
    add_times,
    check_lr,
    decayed,
    named,
    shrink_and_pull,
    update_lists,
)
from .optimizer import ParamsT


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
    _missing: ClassVar[Options] = {**RuleOptimizer._missing, "decoupled_weight_decay": False}
    _zeros = ("exp_avg", "exp_avg_sq")

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
        check_lr(lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params,
            named(
                locals(), "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
            ),
        )

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        """Return what the rule needs to know about a step; the last number tells whether the variance is used."""
        beta1, beta2 = options["betas"]
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / correction2
        known = length > 5.0
        rate = -options["lr"] / correction1
        if known:
            part = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            rate = rate * (part * correction2) ** 0.5
        return *shrink_and_pull(options), beta1, beta2, options["eps"], rate, known


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
    update_lists(RAdam, {**locals(), "betas": (beta1, beta2)}, exp_avg=exp_avgs, exp_avg_sq=exp_avg_sqs)


__all__ = ["RAdam", "radam"]
