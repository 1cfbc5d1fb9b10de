"""torch.distributed.algorithms.model_averaging.averagers: parameters averaged over processes now and then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...._modes import using
from ...._warnings import warn
from ..._collectives import all_reduce
from ..._groups import need_group


class ModelAverager(ABC):
    """Averages parameters now and then."""

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = need_group(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Any) -> None:
        """Average parameters if it is time."""


class PeriodicModelAverager(ModelAverager):
    """Averages every so many steps, after a number of steps at the beginning."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn(
                "When period is 1, no need to use model averaging because the communication cost "
                "of all-reducing parameters will be no less than the cost of all-reducing gradients "
                "by DistributedDataParallel in the backward pass. Therefore, only "
                "DistributedDataParallel should be used for this case.",
            )
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Any) -> None:
        """Count the step; average parameters that have gradients if it is time."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            _average(params, self.process_group)
        self.step += 1


def _average(params: Any, group: Any) -> None:
    """Average parameters, or those of parameter groups, over the processes."""
    given = [one for part in params for one in (part["params"] if isinstance(part, dict) else [part])]
    with using(grad=False):
        for one in given:
            if one.grad is not None:
                value = one.detach()
                all_reduce(value.div_(group.size()), group=group)


__all__ = ["ModelAverager", "PeriodicModelAverager"]
