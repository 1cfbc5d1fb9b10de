"""torch.optim.nadam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from ._step import (
    Options,
    Prepared,
    RuleOptimizer,
    Shared,
    State,
    add_quotient,
    check_lr,
    decayed,
    named,
    shrink_and_pull,
    update_lists,
)
from .optimizer import ParamsT


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
    _missing: ClassVar[Options] = {**RuleOptimizer._missing, "decoupled_weight_decay": False}
    _zeros = ("exp_avg", "exp_avg_sq")
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
        check_lr(lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            named(
                locals(),
                "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable",
            ),
        )

    @staticmethod
    def _first_numbers(options: Options) -> dict[str, float]:
        return {"mu_product": 1.0}

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        """Return the momenta of this step and the next, and what else all parameters share."""
        beta1, beta2 = options["betas"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * options["momentum_decay"]))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * options["momentum_decay"]))
        return mu, mu_next, (*shrink_and_pull(options), beta1, beta2, 1 - beta2**step, options["eps"])

    @classmethod
    def _prepare(cls, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        """Advance the product of momenta, too: every parameter has its own."""
        buffers, (mu, mu_next, numbers) = super()._prepare(param, state, options, shared)
        lr, mu_product = options["lr"], state["mu_product"]
        mu_product.mul_(mu)
        product = mu_product.item()
        now, ahead = -lr * (1.0 - mu) / (1.0 - product), -lr * mu_next / (1.0 - product * mu_next)
        return buffers, (*numbers, now, ahead)


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
    own = {"mu_product": mu_products, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    update_lists(NAdam, {**locals(), "betas": (beta1, beta2)}, **own)


__all__ = ["NAdam", "nadam"]
