"""What torch.distributed has beside its collectives: options, levels of talk; and names of other files that torch has here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Any

from ._agreement import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from ._collectives import all_gather_coalesced, all_gather_single, all_reduce_coalesced, reduce_scatter_single
from ._dist_errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._groups import Backend, ProcessGroup, get_rank, need_group, new_group, new_subgroups, split_group
from ._reductions import ReduceOp, supports_complex
from ._rendezvous import register_rendezvous_handler, rendezvous

GroupName = str
default_pg_nccl_timeout = timedelta(minutes=10)
_UNSET = timedelta(milliseconds=-1)


# ---- options of collectives ----
@dataclass
class _Options:
    timeout: timedelta = _UNSET
    asyncOp: bool = True  # noqa: N815 - torch's name


@dataclass
class AllToAllOptions(_Options):
    """Options of `all_to_all`."""


@dataclass
class AllreduceOptions(_Options):
    """Options of `all_reduce`."""

    reduceOp: Any = ReduceOp.SUM  # noqa: N815 - torch's name


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `all_reduce_coalesced`."""


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """Options of `reduce_scatter`."""


@dataclass
class BarrierOptions(_Options):
    """Options of `barrier`."""

    device_ids: list[int] = field(default_factory=list)
    device: Any = None


@dataclass
class BroadcastOptions(_Options):
    """Options of `broadcast`."""

    rootRank: int = 0  # noqa: N815 - torch's name
    rootTensor: int = 0  # noqa: N815 - torch's name


@dataclass
class ReduceOptions(BroadcastOptions):
    """Options of `reduce`."""

    reduceOp: Any = ReduceOp.SUM  # noqa: N815 - torch's name


@dataclass
class GatherOptions(_Options):
    """Options of `gather`."""

    rootRank: int = 0  # noqa: N815 - torch's name


@dataclass
class ScatterOptions(GatherOptions):
    """Options of `scatter`."""


class BuiltinCommHookType(IntEnum):
    """What torch does with gradients before it adds them."""

    ALLREDUCE, FP16_COMPRESS = 1, 2


class BackendConfig:
    """Which backend carries messages of which kind of device."""

    def __init__(self, backend: Any) -> None:
        pairs = [one.partition(":") for one in str(backend).lower().split(",")]
        if any(colon for _, colon, _ in pairs):
            self.device_backend_map = {kind: Backend(name) for kind, _, name in pairs}
        else:
            kinds = ("cuda",) if str(backend) == "nccl" else ("cpu", "cuda")
            self.device_backend_map = dict.fromkeys(kinds, Backend(str(backend)))

    def get_device_backend_map(self) -> dict[str, Any]:
        """Return the backends by kind of device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{kind}:{name}" for kind, name in self.device_backend_map.items())


def get_default_backend_for_device(device: Any) -> str:
    """Return what would carry messages of a kind of device."""
    kind = device.type if hasattr(device, "type") else str(device).partition(":")[0]
    known = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}
    if kind not in known:
        raise ValueError(f"Default backend not registered for device : {device}")
    return known[kind]


def get_pg_count() -> int:
    """Return how many groups there are."""
    from ._groups import _world

    return len(_world.pg_map)


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = 0, pg_options: Any = None) -> Any:
    """Make a group without some processes; those that stay call it, and it takes the place of the old one."""
    old = need_group(group)
    rest = [rank for at, rank in enumerate(old._ranks) if at not in ranks_to_exclude]
    return new_group(rest, old.timeout, use_local_synchronization=True, group_desc=old.group_desc)


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Run a block under a name: one process sends nothing that could be named."""
    yield


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Stop for the debugger, in one process."""
    if get_rank() == rank:
        import pdb

        pdb.set_trace()


_elsewhere = (  # what `_compat/names_elsewhere.txt` finds here
    *(all_gather_coalesced, all_gather_single, all_reduce_coalesced, reduce_scatter_single, supports_complex),
    *(DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env),
    *(DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError),
    *(ProcessGroup, new_subgroups, split_group, register_rendezvous_handler, rendezvous),
)
