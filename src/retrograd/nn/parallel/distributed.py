"""A module on several processes, which retrograd does not have: the name is there for programs that only ask for it."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module


class DistributedDataParallel(Module):
    """The kind of modules that average gradients over processes; none can be made."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group. (retrograd "
            "computes in one process: use the module itself)"
        )


__all__ = ["DistributedDataParallel"]
