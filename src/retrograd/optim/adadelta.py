"""torch.optim.adadelta: steps in units of earlier steps."""

from __future__ import annotations

from typing import Any

from ._step import Options, RuleOptimizer, add_times, check_lr, decayed, named, update_lists
from .optimizer import ParamsT


def adadelta_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    square_avg, acc_delta = buffers
    lr, rho, eps, weight_decay = numbers
    g = decayed(g, p, weight_decay)
    square_avg.mul_(rho).addcmul_(g, g, value=1 - rho)
    root = square_avg.add(eps).sqrt()
    delta = acc_delta.add(eps).sqrt().div(root).mul(g)
    acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    add_times(p, delta, -lr)


class Adadelta(RuleOptimizer):
    """Steps whose length comes from the lengths of earlier steps."""

    _rule = staticmethod(adadelta_rule)
    _rate_argument = "add_(): argument 'alpha'"
    _zeros = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_lr(lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, named(locals(), "lr rho eps weight_decay maximize capturable foreach differentiable"))

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        return options["lr"], options["rho"], options["eps"], options["weight_decay"]


def adadelta(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    acc_deltas: list[Any],
    state_steps: list[Any],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update parameters by their gradients."""
    update_lists(Adadelta, locals(), square_avg=square_avgs, acc_delta=acc_deltas)


__all__ = ["Adadelta", "adadelta"]
