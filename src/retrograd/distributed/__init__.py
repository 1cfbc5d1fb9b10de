"""torch.distributed, as a torch that was built without it: a program asks `is_available()`, and hears no."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

_WITHOUT_GROUP = """all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast
broadcast_object_list gather gather_object get_backend get_global_rank get_group_rank get_process_group_ranks get_rank
get_world_size irecv isend monitored_barrier new_group recv reduce reduce_scatter reduce_scatter_tensor scatter
scatter_object_list send destroy_process_group"""


class ReduceOp(IntEnum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ProcessGroup:
    """The kind of groups of processes, for annotations: none can be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.distributed is not available: retrograd computes in one process")


class group:  # noqa: N801 - torch's name
    """The group of all processes: there is none."""

    WORLD: ProcessGroup | None = None


def is_available() -> bool:
    """Tell whether there is a package for several processes: there is none."""
    return False


def _no() -> bool:
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = _no
is_xccl_available = is_torchelastic_launched = _no


def is_backend_available(backend: str) -> bool:
    """Tell whether there is a means to talk to other processes: there is none."""
    return False


def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
    """Refuse, as a torch without the backend does."""
    name = {"nccl": "NCCL", "mpi": "MPI", "ucc": "UCC", "xccl": "XCCL"}.get(str(backend).lower(), "Gloo")
    raise RuntimeError(
        f"Distributed package doesn't have {name} built in (retrograd computes in one process: leave init_process_group out, "
        "as programs do where torch.distributed.is_available() is False)"
    )


def _without_group(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group. (retrograd "
            f"computes in one process: call {name} only where torch.distributed.is_initialized() is True)"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse: there is no group of processes."
    return refuse


globals().update({name: _without_group(name) for name in _WITHOUT_GROUP.split()})


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch.distributed' has no attribute '{name}' (retrograd computes in one process)")


__all__ = [
    "ProcessGroup",
    "ReduceOp",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    *_WITHOUT_GROUP.split(),
]
