"""torch.optim.adam: moments of the gradient, corrected for their beginning at zero."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor._functions.creation import zeros_like
from ..tensor._tensor import Tensor
from ._step import (
    Options,
    RuleOptimizer,
    State,
    add_product,
    add_quotient,
    check_lr,
    decayed,
    keep_larger,
    named,
    shrink_and_pull,
    update_lists,
)
from .optimizer import ParamsT


def adam_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    exp_avg, exp_avg_sq, largest = buffers
    shrink, pull, new1, beta2, new2, eps, rate = numbers
    if shrink is not None:
        p.mul_(shrink)
    g = decayed(g, p, pull)
    exp_avg.lerp_(g, new1)
    exp_avg_sq.mul_(beta2)
    add_product(exp_avg_sq, g, g, new2)
    if largest is not None:
        keep_larger(largest, exp_avg_sq)
        exp_avg_sq = largest
    add_quotient(p, exp_avg, exp_avg_sq.sqrt().add(eps), rate)


class Adam(RuleOptimizer):
    """Adaptive moments; with `decoupled_weight_decay` it is AdamW.

    Args:
        params: parameters, or groups of them with options of their own
        lr: the rate
        betas: how slowly the averages of gradients and of their squares change
        eps: what is added to the divisor
        weight_decay: the rate at which weights shrink
        amsgrad: divide by the largest average of squares so far
        foreach: for torch's sake
        maximize: climb instead of descending
        capturable: for torch's sake
        differentiable: let gradients flow through the steps
        fused: for torch's sake
        decoupled_weight_decay: let weights shrink apart from the gradient

    Example:
        >>> model = nn.Linear(3, 1)
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        >>> x, y = torch.eye(3), torch.tensor([[1.0], [2.0], [3.0]])
        >>> for _ in range(1000):
        ...     optimizer.zero_grad()
        ...     loss = F.mse_loss(model(x), y)
        ...     loss.backward()
        ...     optimizer.step()
        >>> bool(loss < 0.001)
        True
    """

    _rule = staticmethod(adam_rule)
    _missing: ClassVar[Options] = {
        "amsgrad": False,
        **RuleOptimizer._missing,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _zeros = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr, eps=eps, betas=betas, weight_decay=weight_decay)
        are_tensors = [isinstance(beta, Tensor) for beta in betas]
        if any(are_tensors) and not all(are_tensors):
            raise ValueError("betas must be either both floats or both Tensors")
        for at, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if foreach and not capturable:
                    raise ValueError(f"betas[{at}] as a Tensor is not supported for capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{at}] must be 1-element")
        names = (
            "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
        )
        super().__init__(params, named(locals(), names))

    @classmethod
    def _begin(cls, param: Any, state: State, options: Options) -> None:
        super()._begin(param, state, options)
        if options["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)

    @classmethod
    def _buffers(cls, state: State, options: Options) -> tuple[Any, ...]:
        return state["exp_avg"], state["exp_avg_sq"], state["max_exp_avg_sq"] if options["amsgrad"] else None

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        beta1, beta2 = options["betas"]
        correction = (1 - beta2**step) ** 0.5
        rate = options["lr"] / (1 - beta1**step)
        # m / (sqrt(v) / c + eps) is m c / (sqrt(v) + eps c), which goes over the array once less
        eps, rate = options["eps"] * correction, -rate * correction
        return *shrink_and_pull(options), 1 - beta1, beta2, 1 - beta2, eps, rate


def adam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update parameters by their gradients."""
    largest = {"max_exp_avg_sq": max_exp_avg_sqs} if amsgrad else {}
    update_lists(Adam, {**locals(), "betas": (beta1, beta2)}, exp_avg=exp_avgs, exp_avg_sq=exp_avg_sqs, **largest)


__all__ = ["Adam", "adam"]
