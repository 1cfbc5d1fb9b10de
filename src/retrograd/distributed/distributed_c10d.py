"""torch.distributed.distributed_c10d: where torch has its functions for processes, private ones included."""

from __future__ import annotations

from typing import Any

from .._absent import finder
from . import _groups
from ._collectives import *  # noqa: F403
from ._collectives import Work, _all_gather_base, _broadcast_coalesced, _reduce_scatter_base
from ._groups import *  # noqa: F403
from ._groups import _get_default_group, _rank_not_in_group, _resolve_process_group, _world, get_global_rank
from ._messages import *  # noqa: F403
from ._objects import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._reductions import _make_nccl_premul_sum
from ._rendezvous import rendezvous
from ._stores import *  # noqa: F403

_get_global_rank = get_global_rank
_absent = finder("torch.distributed.distributed_c10d")


def __getattr__(name: str) -> Any:
    if name == "_pg_map":
        return _groups._world.pg_map
    return _absent(name)


_names = (
    *(Work, _all_gather_base, _broadcast_coalesced, _make_nccl_premul_sum, _reduce_scatter_base),
    *(_get_default_group, _rank_not_in_group, _resolve_process_group, _world, rendezvous),
)
