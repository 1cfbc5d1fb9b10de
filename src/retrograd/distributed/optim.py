"""torch.distributed.optim: the optimizer that divides its states among processes, for a group of one, which keeps them all."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .._absent import finder
from ..optim.optimizer import Optimizer
from ..tensor import Tensor
from ._groups import get_rank, get_world_size, group, need_one


class ZeroRedundancyOptimizer(Optimizer):
    """Does what the optimizer inside does; its states are saved once `consolidate_state_dict` has collected them."""

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        groups = _checked(params)
        need_one(process_group, "ZeroRedundancyOptimizer")
        self.process_group = process_group or group.WORLD
        self.world_size, self.rank = get_world_size(process_group), get_rank(process_group)
        self.parameters_as_bucket_view, self._overlap_with_ddp = parameters_as_bucket_view, overlap_with_ddp
        self._collected: dict[str, Any] | None = None
        super().__init__(groups, defaults)
        self._optim_constructor = optimizer_class
        self.optim = optimizer_class(self.param_groups, **defaults)
        self.param_groups = self.optim.param_groups  # one list: what a schedule sets here holds inside

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Take a step of the optimizer inside."""
        return self.optim.step(closure=closure, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to those that are trained."""
        if "optim" in self.__dict__:
            self.optim.add_param_group(param_group)
        else:  # the first ones: the optimizer inside is made of them
            super().add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all processes at one of them."""
        self._collected = deepcopy(self.optim.state_dict()["state"])

    def state_dict(self) -> dict[str, Any]:
        """Return the groups and the states that were collected last."""
        if self._collected is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        return {**self.optim.state_dict(), "state": self._collected}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over groups and states."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups


def _checked(params: Any) -> list[Any]:
    if isinstance(params, Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {params.type()}")
    given = list(params)
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not all(isinstance(one, Tensor) for one in given) and not all(isinstance(one, dict) for one in given):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    held = given if isinstance(given[0], Tensor) else [one for part in given for one in _listed(part["params"])]
    other = next((one for one in held if one.type() != held[0].type()), None)
    if other is not None:
        raise ValueError(
            "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both "
            f"{held[0].type()} and {other.type()}"
        )
    return given


def _listed(params: Any) -> list[Any]:
    return [params] if isinstance(params, Tensor) else list(params)


__getattr__ = finder("torch.distributed.optim")

__all__ = ["ZeroRedundancyOptimizer"]
