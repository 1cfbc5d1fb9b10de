"""torch.distributed.algorithms.join: processes that have different numbers of inputs. There is one: it is the last to join."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from .._groups import need_one


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


class Joinable(ABC):
    """Something that processes do together in every step."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig(False, False, False)

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
    """A block in which processes may have different numbers of steps."""

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        if enable:
            need_one(joinables[0].join_process_group, "Join")
        self._joinables, self._enable = joinables, enable
        self._join_hooks = [one.join_hook(**kwargs) for one in joinables]
        for at, one in enumerate(joinables):
            one._join_config = _JoinConfig(enable, throw_on_early_termination, at == 0)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._enable and kind is None:
            for hook in self._join_hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Tell the others that this process computes: there are none."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")


__all__ = ["Join", "JoinHook", "Joinable"]
