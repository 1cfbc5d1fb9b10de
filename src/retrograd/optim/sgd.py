"""torch.optim.sgd: gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor._functions.creation import empty_like
from ._step import Options, Prepared, RuleOptimizer, Shared, State, add_times, check_one, decayed, named, update_tensors
from .optimizer import ParamsT


def sgd_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    lr, momentum, dampening, weight_decay, nesterov, first = numbers
    (buffer,) = buffers
    g = decayed(g, p, weight_decay)
    if buffer is not None:
        if first:
            buffer.copy_(g)
        else:
            buffer.mul_(momentum).add_(g, alpha=1 - dampening)
        g = g.add(buffer, alpha=momentum) if nesterov else buffer
    add_times(p, g, -lr)


class SGD(RuleOptimizer):
    """Stochastic gradient descent.

    Args:
        params: parameters, or groups of them with options of their own
        lr: the rate
        momentum: the share of the last step in the next one
        dampening: how much less a gradient counts with momentum
        weight_decay: the rate at which weights shrink
        nesterov: look ahead along the momentum
        maximize: climb instead of descending
        foreach: for torch's sake
        differentiable: let gradients flow through the steps
        fused: for torch's sake

    Example:
        >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = torch.optim.SGD([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.8000, 1.6000], requires_grad=True)
    """

    _foreach_differentiates = True

    _rule = staticmethod(sgd_rule)
    _missing: ClassVar[Options] = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }
    _floats = ()

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_one(lr)
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0.0:  # NaN is no error here, in torch as well
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params, named(locals(), "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused")
        )

    @classmethod
    def _prepare(cls, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        buffer, first = None, False
        if options["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                first = True
                buffer = state["momentum_buffer"] = empty_like(param)
        numbers = shared.get(first)
        if numbers is None:
            numbers = shared[first] = (*cls._numbers(0.0, options)[:-1], first)
        return (buffer,), numbers

    @classmethod
    def _buffers(cls, state: State, options: Options) -> tuple[Any, ...]:
        return (state["momentum_buffer"] if options["momentum"] else None,)

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        weight_decay, nesterov = options["weight_decay"], options["nesterov"]
        return (
            options["lr"],
            options["momentum"],
            options["dampening"],
            weight_decay,
            nesterov,
            False,
        )  # not the first step


def sgd(
    params: list[Any],
    d_p_list: list[Any],
    momentum_buffer_list: list[Any],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Update parameters by their gradients; buffers that are None are made."""
    for at, (p, g) in enumerate(zip(params, d_p_list, strict=True)):
        buffer, first = momentum_buffer_list[at], False
        if momentum and buffer is None:
            first = True
            buffer = momentum_buffer_list[at] = empty_like(p)
        numbers = lr, momentum, dampening, weight_decay, nesterov, first
        update_tensors(sgd_rule, p, g, (buffer if momentum else None,), numbers, maximize)


__all__ = ["SGD", "sgd"]
