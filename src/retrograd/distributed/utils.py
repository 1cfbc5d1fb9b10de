"""torch.distributed.utils: helpers of the wrappers of modules."""

from __future__ import annotations

from typing import Any

from ._collectives import _broadcast_coalesced
from ._groups import need_group


def _sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Any,
    broadcast_buffers: bool = True,
) -> None:
    """Give all processes the parameters and buffers of one."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [tensor.detach() for name, tensor in named if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(
    process_group: Any, module_states: list[Any], broadcast_bucket_size: int, src: int
) -> None:
    """Give all processes the tensors of one."""
    group = need_group(process_group)
    if module_states and group.size() > 1:
        _broadcast_coalesced(group, module_states, broadcast_bucket_size, src)


__all__ = ["_sync_module_states", "_sync_params_and_buffers"]
