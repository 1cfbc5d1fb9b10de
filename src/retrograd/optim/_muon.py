"""torch.optim.Muon: momentum whose singular values are all brought near one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..tensor._functions.creation import zeros_like
from ..tensor._functions.matrix_products import addmm
from ..tensor._tensor import Tensor
from ._step import check_one, named
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, loss_of

MOST_STEPS = 100


def orthogonalised(grad: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Return a matrix with its singular values near one, by Newton-Schulz steps in bfloat16."""
    if steps >= MOST_STEPS:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(grad.shape) != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = grad.bfloat16()
    if hasattr(
        x, "_replicated"
    ):  # parts on a mesh: each product would move as much as the whole has, and round sums of parts
        x = x._replicated()
    tall = grad.size(0) > grad.size(1)
    if tall:
        x = x.T
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def adjusted_rate(lr: float, fn: str | None, shape: Any) -> float:
    """Return the rate for a matrix of a shape."""
    rows, columns = shape[:2]
    if fn is None or fn == "original":
        return lr * math.sqrt(max(1, rows / columns))
    if fn == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr


class Muon(Optimizer):
    """Momentum, orthogonalised; for matrices."""

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one(lr)
        for what, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:  # noqa: SIM300 - the order that torch's error names
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params, named(locals(), "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn")
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure` computes, if it is given."""
        loss = loss_of(closure)
        for group in self.param_groups:
            options = {name: value for name, value in group.items() if name in self.defaults}
            given = [p for p in group["params"] if p.grad is not None]
            for p in given:
                if p.is_complex():
                    raise RuntimeError("Muon does not support complex parameters")
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = zeros_like(p.grad)
            buffers = [self.state[p]["momentum_buffer"] for p in given]
            muon(given, [p.grad for p in given], buffers, has_complex=False, **options)
        return loss


def muon(
    params: list[Any],
    grads: list[Any],
    muon_momentum_bufs: list[Any],
    *,
    foreach: bool | None = None,
    lr: Any,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """Update parameters by their gradients."""
    rate = lr.item() if isinstance(lr, Tensor) else lr
    for p, g, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        if g.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        buffer.lerp_(g, 1 - momentum)
        update = g.lerp(buffer, momentum) if nesterov else buffer
        update = orthogonalised(update, ns_coefficients, ns_steps, eps)
        p.mul_(1 - rate * weight_decay)
        p.add_(update, alpha=-adjusted_rate(rate, adjust_lr_fn, p.shape))


__all__ = ["Muon", "muon"]
