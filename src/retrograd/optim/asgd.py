"""torch.optim.asgd: averaged gradient descent."""

from __future__ import annotations

from typing import Any

from ._step import Options, Prepared, RuleOptimizer, Shared, State, add_times, check_lr, decayed, named, update_lists
from .optimizer import ParamsT, _get_value


def asgd_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    (mean,) = buffers
    eta, mu, lambd, weight_decay = numbers
    g = decayed(g, p, weight_decay)
    p.mul_(1 - lambd * eta)
    add_times(p, g, -eta)
    if mu == 1:
        mean.copy_(p)
    else:
        add_times(mean, p.sub(mean), mu)


class ASGD(RuleOptimizer):
    """Gradient descent that keeps the mean of where it was."""

    _captured = "params, mus, etas, and state_steps"

    _rule = staticmethod(asgd_rule)
    _zeros = ("ax",)
    _floats = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr, weight_decay=weight_decay)
        super().__init__(
            params, named(locals(), "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable")
        )

    @staticmethod
    def _first_numbers(options: Options) -> dict[str, float]:
        return {"eta": float(_get_value(options["lr"])), "mu": 1.0}

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        """Return the rates of the step after this one."""
        lr, lambd = options["lr"], options["lambd"]
        return lr / (1 + lambd * lr * step) ** options["alpha"], 1 / max(1, step - options["t0"])

    @classmethod
    def _prepare(cls, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        """Exchange the rates, too: every parameter has its own."""
        _, rates = super()._prepare(param, state, options, shared)
        numbers = state["eta"].item(), state["mu"].item(), options["lambd"], options["weight_decay"]
        for name, rate in zip(("eta", "mu"), rates, strict=True):
            state[name].fill_(rate)
        return (state["ax"],), numbers


def asgd(
    params: list[Any],
    grads: list[Any],
    axs: list[Any],
    mus: list[Any],
    etas: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: Any,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Update parameters by their gradients."""
    update_lists(ASGD, locals(), ax=axs, mu=mus, eta=etas)


__all__ = ["ASGD", "asgd"]
