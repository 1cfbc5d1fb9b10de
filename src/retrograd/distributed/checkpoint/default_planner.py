"""torch.distributed.checkpoint.default_planner: the options of writing and reading."""

from __future__ import annotations

from typing import Any

from .planner import LoadPlanner, SavePlanner


class DefaultSavePlanner(SavePlanner):
    """Writes every value once."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict


class DefaultLoadPlanner(LoadPlanner):
    """Reads what the given values ask for; with `allow_partial_load`, what the checkpoint lacks stays as it is."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads all there is, or what begins with some keys, into an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys

    def wants(self, name: str, place: tuple[Any, ...]) -> bool:
        """Whether a value is asked for by its name, or by that of something around it."""
        if self.keys is None or name in self.keys:
            return True
        around = [".".join(map(str, place[:count])) for count in range(1, len(place) + 1)]
        return any(one in self.keys for one in around)


__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]
