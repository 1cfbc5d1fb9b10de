"""torch.optim.adamw: Adam whose weight decay does not pass through the moments."""

from __future__ import annotations

from typing import Any

from ._step import named
from .adam import Adam, adam
from .optimizer import ParamsT


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Args:
        params: parameters, or groups of them with options of their own
        lr: the rate
        betas: how slowly the averages of gradients and of their squares change
        eps: what is added to the divisor
        weight_decay: the rate at which weights shrink
        amsgrad: divide by the largest average of squares so far
        maximize: climb instead of descending
        foreach: for torch's sake
        capturable: for torch's sake
        differentiable: let gradients flow through the steps
        fused: for torch's sake

    Example:
        >>> w = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.AdamW([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.8990], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        names = "params lr betas eps weight_decay amsgrad foreach maximize capturable differentiable fused"
        super().__init__(**named(locals(), names), decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adamw(
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
    adam(**locals(), decoupled_weight_decay=True)


__all__ = ["AdamW", "adamw"]
