"""torch.optim.rmsprop: gradients over the root of their mean square."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor._functions.creation import zeros_like
from ._step import Options, RuleOptimizer, State, add_quotient, add_times, check_lr, decayed, named, update_lists
from .optimizer import ParamsT


def rmsprop_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    square_avg, buffer, grad_avg = buffers
    lr, alpha, eps, weight_decay, momentum = numbers
    g = decayed(g, p, weight_decay)
    square_avg.mul_(alpha).addcmul_(g, g, value=1 - alpha)
    if grad_avg is None:
        root = square_avg.sqrt()
    else:
        grad_avg.lerp_(g, 1 - alpha)
        root = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt()
    if buffer is None:
        add_quotient(p, g, root.add(eps), -lr)
    else:
        buffer.mul_(momentum).addcdiv_(g, root.add(eps))
        add_times(p, buffer, -lr)


class RMSprop(RuleOptimizer):
    """Gradients divided by the root of their mean square.

    Args:
        params: parameters, or groups of them with options of their own
        lr: the rate
        alpha: how slowly the average of squares changes
        eps: what is added to the divisor
        weight_decay: the rate at which weights shrink
        momentum: the share of the last step in the next one
        centered: divide by the deviation, not by the root of the mean square
        capturable: for torch's sake
        foreach: for torch's sake
        maximize: climb instead of descending
        differentiable: let gradients flow through the steps

    Example:
        >>> w = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.RMSprop([w])
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.9000], requires_grad=True)
    """

    _rule = staticmethod(rmsprop_rule)
    _missing: ClassVar[Options] = {"momentum": 0, "centered": False, **RuleOptimizer._missing}
    _zeros = ("square_avg",)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            named(locals(), "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"),
        )

    def _need_possible(self, group: Options) -> None:
        self._rate_argument = "add_(): argument 'alpha'" if group["momentum"] > 0 else "addcdiv_(): argument 'value'"
        super()._need_possible(group)

    @classmethod
    def _begin(cls, param: Any, state: State, options: Options) -> None:
        super()._begin(param, state, options)
        if options["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if options["centered"]:
            state["grad_avg"] = zeros_like(param)

    @classmethod
    def _buffers(cls, state: State, options: Options) -> tuple[Any, ...]:
        buffer = state["momentum_buffer"] if options["momentum"] > 0 else None
        return state["square_avg"], buffer, state["grad_avg"] if options["centered"] else None

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        return options["lr"], options["alpha"], options["eps"], options["weight_decay"], options["momentum"]


def rmsprop(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    momentum_buffer_list: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Update parameters by their gradients."""
    used = {"momentum_buffer": momentum_buffer_list} if momentum > 0 else {}
    used |= {"grad_avg": grad_avgs} if centered else {}
    update_lists(RMSprop, locals(), square_avg=square_avgs, **used)


__all__ = ["RMSprop", "rmsprop"]
