"""torch.distributed.algorithms.join: processes that have different numbers of inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..._warnings import warn
from ...tensor._functions.creation import ones, zeros
from .._collectives import all_reduce
from .._groups import get_rank

MANY_STEPS = 1000


class JoinHook:
    """What a process does for those that still compute, and at the end."""

    def main_hook(self) -> None:
        """Take part in a step of the other processes."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish after the last step."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Return the state of something that is not in a block."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """Something that processes do together in every step."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what is done for the others."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device on which processes exchange."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of processes."""


class Join:
    """A block in which processes may have different numbers of steps.

    Every step begins with a sum over the processes, in which those that compute count one. Who has left the block takes part with
    zero, and shadows the step unless the sum is zero.
    """

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = joinables, enable
        self._throw_on_early_termination = throw_on_early_termination
        self._join_hooks = [one.join_hook(**kwargs) for one in joinables]
        for at, one in enumerate(joinables):
            one._join_config = _JoinConfig(enable, throw_on_early_termination, at == 0)
        groups = [one.join_process_group for one in joinables]
        if any(one != groups[0] for one in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._process_group, self._device = groups[0], joinables[0].join_device

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if not self._enable or kind is not None:
            return
        steps = 0
        while self._others_compute():
            if self._throw_on_early_termination:
                all_reduce(ones(1, device=self._device), group=self._process_group)
                raise RuntimeError(f"Rank {get_rank(self._process_group)} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            steps += 1
            if steps == MANY_STEPS + 1:
                warn(
                    f"Detected uneven input skew of greater than {MANY_STEPS}. This means that rank "
                    f"{get_rank(self._process_group)} has at least {MANY_STEPS} fewer inputs than other currently-active ranks. "
                    "This level of skew could lead to performance degradation during training."
                )
        for hook in self._join_hooks:
            hook.post_hook(steps == 0)

    def _others_compute(self) -> bool:
        computing = zeros(1, device=self._device)
        all_reduce(computing, group=self._process_group)
        return bool(computing.item() > 0)

    @staticmethod
    def notify_join_context(joinable: Any) -> Any:
        """Tell the others that this process computes. Return the work whose result is how many do, or None outside of a block."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        device, group = joinable.join_device, joinable.join_process_group
        work = all_reduce(ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            exhausted = zeros(1, device=device)
            all_reduce(exhausted, group=group)
            if exhausted.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


__all__ = ["Join", "JoinHook", "Joinable"]
