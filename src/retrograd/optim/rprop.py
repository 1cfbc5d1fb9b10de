"""torch.optim.rprop: steps by the sign of the gradient."""

from __future__ import annotations

from typing import Any

from ..tensor._functions.creation import full_like
from ._step import Options, RuleOptimizer, State, check_lr, named, update_lists
from .optimizer import ParamsT


def rprop_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    prev, step_size = buffers
    shrink, grow, smallest, largest = numbers
    agreement = prev.mul(g).sign()  # 0 where the gradient is NaN
    same, turned, stood = agreement.gt(0), agreement.lt(0), agreement.eq(0)
    factor = agreement.masked_fill(same, grow).masked_fill(turned, shrink).masked_fill(stood, 1)
    step_size.mul_(factor).clamp_(smallest, largest)
    g = g.masked_fill(turned, 0)
    prev.copy_(g)
    p.addcmul_(g.sign(), step_size, value=-1)


class Rprop(RuleOptimizer):
    """A step length for every number, which grows while its gradient keeps its sign."""

    _rule = staticmethod(rprop_rule)
    _rate_argument = "full_like(): argument 'fill_value' (position 2)"
    _zeros = ("prev",)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, named(locals(), "lr etas step_sizes foreach maximize differentiable capturable"))

    @classmethod
    def _begin(cls, param: Any, state: State, options: Options) -> None:
        super()._begin(param, state, options)
        rate = options["lr"]
        state["step_size"] = full_like(param, complex(rate, rate) if param.is_complex() else float(rate))

    @classmethod
    def _buffers(cls, state: State, options: Options) -> tuple[Any, ...]:
        return state["prev"], state["step_size"]

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        return *options["etas"], *options["step_sizes"]


def rprop(
    params: list[Any],
    grads: list[Any],
    prevs: list[Any],
    step_sizes: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Update parameters by their gradients."""
    options = {**locals(), "etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max)}
    update_lists(Rprop, options, prev=prevs, step_size=step_sizes)


__all__ = ["Rprop", "rprop"]
