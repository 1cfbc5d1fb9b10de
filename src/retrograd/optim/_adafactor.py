"""torch.optim.Adafactor: second moments of matrices from their rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._dtypes import finfo
from ..tensor._functions.creation import zeros_like
from ._step import check_one, count, named, new_number, numbers_to_tensors, plain_numbers
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, loss_of


def adafactor_update(
    p: Any, g: Any, row_var: Any, col_var: Any, variance: Any, step: float, options: dict[str, Any]
) -> None:
    """Update one parameter: a matrix has `row_var` and `col_var`, everything else `variance`."""
    lr, d = options["lr"], options["d"]
    least, eps2 = options["eps"]
    if least is None:
        least = finfo(p.dtype).eps
    fresh = step ** options["beta2_decay"]
    length = math.sqrt(p.numel())
    rate = max(eps2, p.norm(2).item() / length) * min(lr, 1 / math.sqrt(step))
    if options["weight_decay"]:
        p.mul_(1 - lr * options["weight_decay"])
    if g.dim() > 1:
        row_var.lerp_(g.norm(dim=-1, keepdim=True).square_().div_(g.size(-1)), fresh)
        col_var.lerp_(g.norm(dim=-2, keepdim=True).square_().div_(g.size(-2)), fresh)
        estimate = row_var @ col_var
        estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=least))
    else:
        variance.lerp_(g.square(), fresh)
        estimate = variance.clone()
    update = estimate.clamp_(min=least * least).rsqrt_().mul_(g)
    p.add_(update, alpha=-rate / max(1.0, update.norm(2).item() / (length * d)))


class Adafactor(Optimizer):
    """Adaptive rates in little memory."""

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one(lr)
        if not 0.0 <= lr:  # noqa: SIM300 - the order that torch's error names
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:  # noqa: SIM300
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:  # noqa: SIM300
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:  # noqa: SIM300
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, named(locals(), "lr beta2_decay eps d weight_decay foreach maximize"))

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure` computes, if it is given."""
        loss = loss_of(closure)
        for group in self.param_groups:
            options = plain_numbers(group)
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                if p.is_complex():
                    raise RuntimeError("Adafactor does not support complex parameters")
                state = self.state[p]
                if not state:
                    state["step"] = new_number(0.0)
                    if g.dim() > 1:
                        state["row_var"] = g.new_zeros((*g.shape[:-1], 1))
                        state["col_var"] = g.new_zeros((*g.shape[:-2], 1, g.shape[-1]))
                    else:
                        state["variance"] = zeros_like(g)
                moments = state.get("row_var"), state.get("col_var"), state.get("variance")
                adafactor_update(p, g.neg() if group["maximize"] else g, *moments, count(state), options)
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        numbers_to_tensors(self, ("step",))
        for group in self.param_groups:
            group.setdefault("foreach", None)


def adafactor(
    params: list[Any],
    grads: list[Any],
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    state_steps: list[Any],
    foreach: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float,
    eps2: float,
    maximize: bool,
) -> None:
    """Update parameters by their gradients."""
    options = {"lr": lr, "beta2_decay": beta2_decay, "eps": (eps1, eps2), "d": d, "weight_decay": weight_decay}
    for at, (p, g) in enumerate(zip(params, grads, strict=True)):
        step = count({"step": state_steps[at]})
        buffers = row_vars[at], col_vars[at], variances[at]
        adafactor_update(p, g.neg() if maximize else g, *buffers, step, options)


__all__ = ["Adafactor", "adafactor"]
