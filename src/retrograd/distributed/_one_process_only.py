"""What computes in one process only says so where there are several, before any of them acts as if it were alone."""

from __future__ import annotations

from typing import Any

from ._groups import is_initialized, need_group

SHARDED_INSTEAD = "use torch.distributed.fsdp.fully_shard, which divides a module among several"


def need_one_process(what: str, instead: str, group: Any = None) -> None:
    """Raise if the group has several processes; `instead` says what they can use."""
    if is_initialized() and need_group(group).size() > 1:
        raise NotImplementedError(
            f"{what}: retrograd does this in one process, and the group has {need_group(group).size()}\nHint: {instead}."
        )
