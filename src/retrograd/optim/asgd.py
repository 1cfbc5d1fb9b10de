"""torch.optim.asgd: averaged gradient descent."""

from __future__ import annotations

from typing import Any

from ..tensor._functions.creation import zeros_like
from ._helpers import _get_value
from ._step import (
    Options,
    Prepared,
    RuleOptimizer,
    Shared,
    State,
    add_times,
    check_lr,
    count,
    decayed,
    new_count,
    new_number,
    update_tensors,
)
from .optimizer import ParamsT


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


def next_rates(state: dict[str, Any], step: float, lr: Any, lambd: float, alpha: float, t0: float) -> None:
    """Set the rates of the step after this one."""
    state["eta"].fill_(lr / (1 + lambd * lr * step) ** alpha)
    state["mu"].fill_(1 / max(1, step - t0))


class ASGD(RuleOptimizer):
    """Gradient descent that keeps the mean of where it was."""

    _captured = "params, mus, etas, and state_steps"

    _rule = staticmethod(asgd_rule)
    _missing = (
        ("maximize", False),
        ("foreach", None),
        ("capturable", False),
        ("differentiable", False),
    )
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
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        lr, lambd = options["lr"], options["lambd"]
        if not state:
            state["step"] = new_count()
            state["eta"] = new_number(float(_get_value(lr)))
            state["mu"] = new_number(1.0)
            state["ax"] = zeros_like(param)
        step = count(state)
        numbers = state["eta"].item(), state["mu"].item(), lambd, options["weight_decay"]
        next_rates(state, step, lr, lambd, options["alpha"], options["t0"])
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
    for p, g, mean, mu, eta, step in zip(params, grads, axs, mus, etas, state_steps, strict=True):
        state = {"step": step, "eta": eta, "mu": mu}
        now = count(state)
        numbers = eta.item(), mu.item(), lambd, weight_decay
        next_rates(state, now, lr, lambd, alpha, t0)
        update_tensors(asgd_rule, p, g, (mean,), numbers, maximize)


__all__ = ["ASGD", "asgd"]
