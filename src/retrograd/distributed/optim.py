"""torch.distributed.optim: the optimizer whose states are divided among processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from .._absent import finder
from .._modes import using
from ..optim.optimizer import Optimizer
from ..tensor import Tensor
from ._collectives import _broadcast_coalesced
from ._groups import get_global_rank, need_group
from ._objects import gather_object
from .algorithms.join import Join, Joinable, JoinHook

ROW_BYTES = 1 << 25  # how much of a process's parameters is sent at once


class _ZeROJoinHook(JoinHook):
    """A process without inputs goes on with the steps of its part."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Take a step: the gradients are those of the others."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Each process updates some of the parameters, keeps the states of these only, and sends them to the others.

    The states are saved once `consolidate_state_dict` has collected them.
    """

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
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True is not implemented\nHint: leave it False; the result is the same."
            )
        Joinable.__init__(self)
        self.process_group = need_group(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.parameters_as_bucket_view, self._overlap_with_ddp = parameters_as_bucket_view, overlap_with_ddp
        self._collected: dict[Any, Any] | None = None
        Optimizer.__init__(self, groups, defaults)
        self._optim_constructor = optimizer_class
        self.optim = optimizer_class(self._part(self.rank), **defaults)
        _copy_options(self.optim.param_groups, self.param_groups)

    # ---- who has what ----
    def _owners(self) -> dict[int, int]:
        """Return the process of each parameter, by ids: in each group the largest first, each to who has least."""
        sizes, owners = [0] * self.world_size, {}
        for group in self.param_groups:
            for one in sorted(group["params"], key=lambda one: -one.numel()):
                owner = sizes.index(min(sizes))
                owners[id(one)] = owner
                sizes[owner] += one.numel()
        return owners

    def _part(self, rank: int) -> list[dict[str, Any]]:
        """Return the groups with a process's parameters only."""
        owners = self._owners()
        return [
            {**group, "params": [one for one in group["params"] if owners[id(one)] == rank]}
            for group in self.param_groups
        ]

    def _numbers(self) -> dict[int, int]:
        """Return the number of each parameter among all, by ids."""
        return {id(one): at for at, one in enumerate(_all_of(self.param_groups))}

    # ---- steps ----
    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Take a step of this process's part, and exchange parameters."""
        Join.notify_join_context(self)
        _copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure=closure, **kwargs)
        self._exchange()
        _copy_options(self.optim.param_groups, self.param_groups)
        return loss

    def _exchange(self) -> None:
        """Send every process the parameters that another has updated."""
        if self.world_size == 1:
            return
        with using(grad=False):
            for rank in range(self.world_size):
                updated = [one.detach() for one in _all_of(self._part(rank))]
                _broadcast_coalesced(self.process_group, updated, ROW_BYTES, rank)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to those that are trained."""
        super().add_param_group(param_group)
        if "optim" in self.__dict__:  # the optimizer inside is made of the first ones
            self.optim.add_param_group(self._part(self.rank)[-1])
            _copy_options(self.optim.param_groups, self.param_groups)

    # ---- processes with different numbers of inputs ----
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what this process does for the others once it has no batches left."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group

    # ---- states ----
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all processes at one of them."""
        _copy_options(self.param_groups, self.optim.param_groups)
        numbers = self._numbers()
        mine = [numbers[id(one)] for one in _all_of(self.optim.param_groups)]
        own = {mine[at]: state for at, state in self.optim.state_dict()["state"].items()}
        parts: list[Any] | None = [None] * self.world_size if self.rank == to else None
        if self.world_size == 1:
            parts = [deepcopy(own)]
        else:
            gather_object(own, parts, get_global_rank(self.process_group, to), self.process_group)
        if parts is not None:
            self._collected = {at: part[at] for part in parts for at in sorted(part)}

    def state_dict(self) -> dict[str, Any]:
        """Return the groups and the states that were collected last."""
        if self._collected is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        return {**super().state_dict(), "state": self._collected}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over groups, and the states of this process's parameters."""
        super().load_state_dict({**state_dict, "state": {}})
        numbers = self._numbers()
        mine = [numbers[id(one)] for one in _all_of(self._part(self.rank))]
        local = self.optim.state_dict()
        for group, given in zip(local["param_groups"], state_dict["param_groups"], strict=True):
            group.update({name: value for name, value in given.items() if name != "params"})
        held = state_dict["state"]
        local["state"] = {at: held[number] for at, number in enumerate(mine) if number in held}
        self.optim.load_state_dict(local)
        _copy_options(self.optim.param_groups, self.param_groups)


def _all_of(groups: Iterable[dict[str, Any]]) -> list[Any]:
    return [one for group in groups for one in group["params"]]


def _copy_options(groups: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Let groups have the options of others, in place: a schedule sets those of all parameters."""
    for group, other in zip(groups, others, strict=True):
        other.update({name: value for name, value in group.items() if name not in ("params", "param_names")})


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
