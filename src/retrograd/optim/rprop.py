"""torch.optim.rprop: steps by the sign of the gradient."""

from __future__ import annotations

from typing import Any

from ..tensor._functions.creation import full_like, zeros_like
from ._step import Options, Prepared, RuleOptimizer, Shared, State, check_lr, count, new_count, update_tensors
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
    _missing = (
        ("maximize", False),
        ("foreach", None),
        ("capturable", False),
        ("differentiable", False),
    )

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
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _number_from_rate(options: Options) -> str:
        return "full_like(): argument 'fill_value' (position 2)"

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        if not state:
            state["step"] = new_count()
            state["prev"] = zeros_like(param)
            rate = options["lr"]
            state["step_size"] = full_like(param, complex(rate, rate) if param.is_complex() else float(rate))
        count(state)
        return (state["prev"], state["step_size"]), (*options["etas"], *options["step_sizes"])


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
    for p, g, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps, strict=True):
        count({"step": step})
        numbers = etaminus, etaplus, step_size_min, step_size_max
        update_tensors(rprop_rule, p, g, (prev, step_size), numbers, maximize)


__all__ = ["Rprop", "rprop"]
