"""What torch.distributed has beside its collectives: options, errors, levels of talk, more forms. One process needs little of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Any

from ._collectives import (
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    reduce_scatter_tensor,
)
from ._groups import Backend, get_rank, get_world_size, need_group, new_group, new_subgroups_by_enumeration
from ._groups import rendezvous as _rendezvous

GroupName = str
default_pg_nccl_timeout = timedelta(minutes=10)
_UNSET = timedelta(milliseconds=-1)


# ---- errors ----
class DistError(RuntimeError):
    """An error of processes that work together."""


class DistBackendError(DistError):
    """An error of what carries messages."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of the store of notes."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing."""


# ---- levels of talk ----
class DebugLevel(IntEnum):
    """How much is told of messages."""

    OFF, INFO, DETAIL = range(3)


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """Return how much is to be told: one process sends nothing."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Accept how much is to be told."""
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Read how much is to be told from TORCH_DISTRIBUTED_DEBUG."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, but got {word}.")
    set_debug_level(DebugLevel[word])


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


def supports_complex(reduceOp: Any) -> bool:  # noqa: N803 - torch's name
    """Tell whether complex numbers can be reduced so."""
    return reduceOp not in (
        *(ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR),
    )


# ---- more forms of collectives ----
def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce several tensors over all processes."""
    need_group(group)
    given = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    done = [all_reduce(one, op, group, async_op) for one in given]
    return done[-1] if done else None


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather several tensors of all processes."""
    need_group(group)
    outputs = list(zip(*output_tensor_lists, strict=True))
    done = [all_gather(list(out), one, group, async_op) for out, one in zip(outputs, input_tensor_list, strict=True)]
    return done[-1] if done else None


all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide all processes into groups of a size."""
    size = get_world_size()
    if group_size is None:
        group_size = 1
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    return new_subgroups_by_enumeration([[0]], timeout=timeout, backend=backend)


def split_group(parent_pg: Any = None, split_ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Divide a group into groups of ranks."""
    need_group(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    return new_group([0])


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = 0, pg_options: Any = None) -> Any:
    """Leave processes out of a group: one process can leave nobody out."""
    need_group(group)
    raise NotImplementedError("shrink_group needs several processes: retrograd computes in one")


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Run a block under a name: one process sends nothing that could be named."""
    yield


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Stop for the debugger, in one process."""
    if get_rank() == rank:
        import pdb

        pdb.set_trace()


# ---- how processes find each other ----
_rendezvous_handlers: dict[str, Callable[..., Any]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Any]) -> None:
    """Say what brings processes together for addresses of a kind."""
    if scheme in _rendezvous_handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _rendezvous_handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
    """Bring processes together by an address."""
    handler = _rendezvous_handlers.get(url.partition("://")[0])
    return _rendezvous(url, rank, world_size, **kwargs) if handler is None else handler(url, **kwargs)
