"""torch.distributed: processes that work together, on MPI and NCCL. A group of one needs neither."""

from __future__ import annotations

from .._absent import finder
from .._public import all_of, set_all
from . import _collectives, _groups, _messages, _objects, _reducer, _reductions, _stores
from ._collectives import *  # noqa: F403
from ._collectives import _all_gather_base, _broadcast_coalesced, _reduce_scatter_base
from ._groups import *  # noqa: F403
from ._groups import _get_default_group, _rank_not_in_group
from ._messages import *  # noqa: F403
from ._objects import *  # noqa: F403
from ._reducer import *  # noqa: F403
from ._reducer import _compute_bucket_assignment_by_size, _verify_params_across_processes
from ._reductions import *  # noqa: F403
from ._reductions import _make_nccl_premul_sum
from ._stores import *  # noqa: F403
from ._work import Work

__getattr__ = finder(  # torch loads these modules with the package
    "torch.distributed", modules="algorithms autograd distributed_c10d device_mesh fsdp nn optim rpc tensor"
)

_private = (
    Work,
    *(_all_gather_base, _broadcast_coalesced, _reduce_scatter_base),
    *(_compute_bucket_assignment_by_size, _verify_params_across_processes),
    *(_get_default_group, _make_nccl_premul_sum, _rank_not_in_group),
)

set_all(globals(), "Work", *all_of(_collectives, _groups, _messages, _objects, _reducer, _reductions, _stores))
