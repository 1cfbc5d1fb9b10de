"""torch.optim.adagrad: gradients over the root of their summed squares."""

from __future__ import annotations

from typing import Any

from ..tensor._functions.creation import full_like
from ._step import (
    Options,
    Prepared,
    RuleOptimizer,
    Shared,
    State,
    add_quotient,
    check_fused,
    check_lr,
    count,
    decayed,
    new_count,
    update_tensors,
)
from .optimizer import ParamsT


def adagrad_rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
    """Update one parameter."""
    (total,) = buffers
    rate, weight_decay, eps = numbers
    g = decayed(g, p, weight_decay)
    total.addcmul_(g, g)
    add_quotient(p, g, total.sqrt().add(eps), -rate)


class Adagrad(RuleOptimizer):
    """Gradients divided by the root of the sum of their squares."""

    _rule = staticmethod(adagrad_rule)
    _missing = (
        ("foreach", None),
        ("maximize", False),
        ("differentiable", False),
        ("fused", None),
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(
            lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:  # torch makes the state here
            for param in group["params"]:
                self._begin(param, self.state[param], group)

    @staticmethod
    def _begin(param: Any, state: dict[str, Any], options: dict[str, Any]) -> None:
        first = options["initial_accumulator_value"]
        state["step"] = new_count(options["fused"])
        state["sum"] = full_like(param, complex(first, first) if param.is_complex() else first)

    def share_memory(self) -> None:
        """Let processes share the sums."""
        for state in self.state.values():
            state["sum"].share_memory_()

    @staticmethod
    def _number_from_rate(options: Options) -> str:
        return "addcdiv_(): argument 'value'"

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        if not state:
            self._begin(param, state, options)
        rate = options["lr"] / (1 + (count(state) - 1) * options["lr_decay"])
        return (state["sum"],), (rate, options["weight_decay"], options["eps"])


def adagrad(
    params: list[Any],
    grads: list[Any],
    state_sums: list[Any],
    state_steps: list[Any],
    fused: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update parameters by their gradients."""
    for p, g, total, step in zip(params, grads, state_sums, state_steps, strict=True):
        rate = lr / (1 + (count({"step": step}) - 1) * lr_decay)
        update_tensors(adagrad_rule, p, g, (total,), (rate, weight_decay, eps), maximize)


__all__ = ["Adagrad", "adagrad"]
