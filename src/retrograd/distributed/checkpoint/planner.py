"""torch.distributed.checkpoint.planner: the kinds of plans; `default_planner` has the two that `save` and `load` follow here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class SavePlanner:
    """Says what is written where."""


class LoadPlanner:
    """Says what is read where."""


@dataclass(frozen=True)
class LoadPlan:
    """What is read."""

    items: list[Any] = field(default_factory=list)
    storage_data: Any = None
    planner_data: Any = None


@dataclass(frozen=True)
class SavePlan:
    """What is written."""

    items: list[Any] = field(default_factory=list)
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


__all__ = ["LoadPlan", "LoadPlanner", "SavePlan", "SavePlanner"]
