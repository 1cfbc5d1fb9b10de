"""torch.distributed.utils: helpers of the wrappers of modules."""

from __future__ import annotations

from typing import Any

from ._groups import need_group


def _sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Any,
    broadcast_buffers: bool = True,
) -> None:
    """Give all processes the state of one: of the only one."""
    need_group(process_group)


__all__ = ["_sync_module_states"]
