"""torch.optim.adagrad: gradients over the root of their summed squares."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor._functions.creation import full_like
from ._step import Options, RuleOptimizer, State, add_quotient, check_lr, decayed, named, new_number, update_lists
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
    _missing: ClassVar[Options] = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _rate_argument = "addcdiv_(): argument 'value'"

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
        super().__init__(
            params,
            named(
                locals(), "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
            ),
        )
        for group in self.param_groups:  # torch makes the state here
            for param in group["params"]:
                self._begin(param, self.state[param], group)

    @classmethod
    def _begin(cls, param: Any, state: State, options: Options) -> None:
        first = options["initial_accumulator_value"]
        state["step"] = new_number(0.0, options["fused"])
        state["sum"] = full_like(param, complex(first, first) if param.is_complex() else first)

    def share_memory(self) -> None:
        """Let processes share the sums."""
        for state in self.state.values():
            state["sum"].share_memory_()

    @classmethod
    def _buffers(cls, state: State, options: Options) -> tuple[Any, ...]:
        return (state["sum"],)

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        return options["lr"] / (1 + (step - 1) * options["lr_decay"]), options["weight_decay"], options["eps"]


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
    update_lists(Adagrad, locals(), sum=state_sums)


__all__ = ["Adagrad", "adagrad"]
