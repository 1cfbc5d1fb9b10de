"""Schedules made of schedules: one after another, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from ._base import LRScheduler, copied, rates_of, set_option
from ._plateau import ReduceLROnPlateau


def check_schedulers(kind: str, schedulers: Sequence[Any], optimizer: Any) -> Any:
    """Refuse schedules that cannot work together; return the optimizer they share."""
    for at, one in enumerate(schedulers):
        if not hasattr(one, "optimizer"):
            raise TypeError(f"{kind} at index {at} should have `optimizer` as its attribute.")
        if isinstance(one, ReduceLROnPlateau):
            raise ValueError(
                f"{kind} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                f"when calling `step`, but got one at index {at} in the given schedulers sequence."
            )
        optimizer = optimizer or one.optimizer
        if one.optimizer is not optimizer:
            raise ValueError(
                f"{kind} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(one).__name__} at index {at} has {one.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )
    return optimizer


class _Composed(LRScheduler):
    """Keeps schedules, and saves them with itself."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every schedule, and their order."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            one.load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after another; each begins at its milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        check_schedulers("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # undo what the schedules have set when they were made
            set_option(group, "lr", copied(group["initial_lr"]))
        for one in schedulers:
            self._undo_first_step(one)
        first = schedulers[bisect_right(milestones, 0)]  # milestones at or before the start are past
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo_first_step(self, scheduler: Any) -> None:
        if isinstance(scheduler, _Composed):
            for one in scheduler._schedulers:
                self._undo_first_step(one)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules at once: each changes what the one before has set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = check_schedulers("ChainedScheduler", schedulers, optimizer)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = rates_of(self._schedulers[-1].optimizer)

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates_of(self._schedulers[-1].optimizer)
