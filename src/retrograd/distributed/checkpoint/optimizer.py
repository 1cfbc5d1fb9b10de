"""torch.distributed.checkpoint.optimizer: the states of an optimizer out of a checkpoint."""

from __future__ import annotations

from typing import Any

from .default_planner import _EmptyStateDictLoadPlanner
from .state_dict_loader import _load_state_dict


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any], optimizer_key: str, storage_reader: Any, planner: Any = None
) -> dict[str, Any]:
    """Read the optimizer's part of a checkpoint, which one process reads whole."""
    state: dict[str, Any] = {}
    _load_state_dict(state, storage_reader, planner=planner or _EmptyStateDictLoadPlanner({optimizer_key}))
    return state


__all__ = ["load_sharded_optimizer_state_dict"]
