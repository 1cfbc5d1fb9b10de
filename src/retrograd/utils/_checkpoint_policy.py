"""Selective checkpointing: the names of torch's policies. Choosing by operation is not built."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

SAC_IGNORED_OPS: set[Any] = set()


class CheckpointPolicy(enum.Enum):
    """Whether the result of an operation is kept or recomputed."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy function is told besides the operation."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> NoReturn:
    """Refuse: retrograd keeps or recomputes whole checkpointed functions."""
    if not callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    raise NotImplementedError(
        "retrograd does not have selective checkpointing: a checkpointed function is recomputed as a whole. "
        "Hint: put checkpoint() around the parts whose values should not be kept."
    )
