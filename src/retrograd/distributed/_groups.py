"""The group of processes, which has one process: how it begins, ends, and what it says of itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from .._public import set_all
from ..cuda import is_available as is_cuda_available

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."
SEVERAL = (
    "torch.distributed with a world size of {size}: retrograd computes in one process\nHint: start the program once, with "
    "WORLD_SIZE=1 and RANK=0 (retrograd run -m torch.distributed.run --nproc-per-node 1 script.py), or without "
    "init_process_group."
)
MISSING = {
    "nccl": "NCCL built in",
    "mpi": "MPI built in. MPI is only included if you build PyTorch from source on a host that has MPI installed.",
    "ucc": "UCC built in",
    "xccl": "XCCL built in",
}
OUTSIDE = -100  # the rank of a process in a group that it is not in
default_pg_timeout = timedelta(minutes=30)


class Backend(str):
    """The name of a means to talk to other processes, in small letters."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}  # noqa: RUF012 - as torch has it
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]  # noqa: RUF012 - as torch has it

    def __new__(cls, name: Any) -> Backend:
        """Take a name in letters of either size."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, but got {name!r}")
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """A group of processes: this one."""

    __module__ = "retrograd.distributed.distributed_c10d"

    def __init__(self, backend: str, config: str) -> None:
        self._backend = Backend(backend)
        self._config = config

    def rank(self) -> int:
        """Return the number of this process."""
        return 0

    def size(self) -> int:
        """Return how many processes there are."""
        return 1

    def name(self) -> str:
        """Return the name of the backend."""
        return str(self._backend)


class _Default(type):
    """The class whose attribute WORLD is the group of all processes, or None."""

    world: ProcessGroup | None = None

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - torch's name
        return _Default.world


class group(metaclass=_Default):  # noqa: N801 - torch's name
    """Where programs find the group of all processes."""


class GroupMember(metaclass=_Default):
    """Where programs find the group of all processes, and what `new_group` gives a process that is not in the group."""

    NON_GROUP_MEMBER = OUTSIDE


# ---- the beginning and the end ----
def is_available() -> bool:
    """Tell whether there is a package for processes: for one of them."""
    return True


def is_initialized() -> bool:
    """Tell whether there is a group."""
    return _Default.world is not None


def is_gloo_available() -> bool:
    """Tell whether the backend for CPUs can be named."""
    return True


def is_nccl_available() -> bool:
    """Tell whether the backend for GPUs can be named."""
    return is_cuda_available()


def _no() -> bool:
    """Tell whether a backend is there: it is not."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = _no


def is_torchelastic_launched() -> bool:
    """Tell whether torchrun has started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Tell whether a backend can be named."""
    return backend.lower() == "gloo" or (backend.lower() == "nccl" and is_nccl_available())


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make the group of all processes; there may be one process. Numbers not given come from torchrun's variables.

    `timeout`, `group_name`, `pg_options` and `device_id` are about how processes talk, which one does not.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    config = _need_backend(backend)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    else:
        rank, world_size = _rendezvous(init_method or "env://", rank, world_size)
    if world_size != 1:
        raise NotImplementedError(SEVERAL.format(size=world_size))
    if rank != 0:
        raise RuntimeError(f"rank < size. {rank} vs {world_size}")
    _Default.world = ProcessGroup("undefined" if backend is None else backend, config)


def _need_backend(given: str | None) -> str:
    """Return what each kind of device uses; raise torch's errors for a backend that is not there."""
    if given is None:
        return "cpu:gloo,cuda:nccl" if is_nccl_available() else "cpu:gloo"
    parts = dict(part.split(":", 1) for part in given.lower().split(",")) if ":" in given else {}
    for name in parts.values() if parts else [Backend(given)]:
        if is_backend_available(name):
            continue
        if name in MISSING:
            raise RuntimeError(f"Distributed package doesn't have {MISSING[name]}")
        raise AssertionError(f"Unknown backend type {name}")
    return given.lower() if parts else f"cpu:{given.lower()},cuda:{given.lower()}"


def _rendezvous(method: str, rank: int, size: int) -> tuple[int, int]:
    """Return the number of this process and of all: as given, from the address, or from the environment."""
    address = urlparse(method)
    if address.scheme not in ("env", "tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {address.scheme}://")
    asked = dict(parse_qsl(address.query))
    numbers = {"rank": rank, "world_size": size}
    for name, given in numbers.items():
        if given < 0 and name in asked:
            numbers[name] = int(asked[name])
        elif given < 0 and address.scheme == "env":
            numbers[name] = int(_variable(name.upper()))
        elif given < 0:
            what = f"Error initializing torch.distributed using {address.scheme}:// rendezvous"
            raise ValueError(f"{what}: {name.replace('_', ' ')} parameter missing")
    if address.scheme == "env":
        _variable("MASTER_ADDR")
        int(_variable("MASTER_PORT"))
    return numbers["rank"], numbers["world_size"]


def _variable(name: str) -> str:
    found = os.environ.get(name)
    if found is None:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
        )
    return found


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group: that of all processes unless another is given."""
    if group is None and not is_initialized():
        raise AssertionError("Process group cannot be None")
    if group is None or group is _Default.world:
        _Default.world = None


def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup:
    """Make a group of some of the processes: of this one.

    Only `ranks` and `backend` matter; the rest is about how processes talk, which one does not.
    """
    world = need_group(None)
    wanted = [0] if ranks is None else sorted(ranks)
    if len(wanted) > 1:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if wanted != [0]:
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    config = world._config if backend is None else _need_backend(backend)
    return ProcessGroup(world._backend if backend is None else backend, config)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Any,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:
    """Make groups of lists of processes, and return the one that this process is in, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made = [new_group(ranks, backend=backend) for ranks in ranks_per_subgroup_list]
    return made[0], made


# ---- what it says ----
def need_group(group: Any) -> ProcessGroup:
    """Return the group that is meant; raise torch's error where there is none."""
    if _Default.world is None:
        raise ValueError(NO_GROUP)
    return group if isinstance(group, ProcessGroup) else _Default.world


def _get_default_group() -> ProcessGroup:
    """Return the group of all processes."""
    return need_group(None)


def _rank_not_in_group(group: Any) -> bool:
    """Tell whether this process is outside of a group."""
    return group is not None and group == OUTSIDE


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """Return the group of a name: the one there is."""
    return need_group(None)


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[None, int, int]]:
    """Yield what processes need to meet: no store, the number of this one, and how many there are."""
    yield None, *_rendezvous(url, rank, world_size)


class _World:
    """What is known of groups."""

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The group of all processes."""
        return _Default.world

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, Any]]:
        """The groups, with the backend of each."""
        return {} if _Default.world is None else {_Default.world: (str(_Default.world._backend), None)}

    @property
    def pg_group_ranks(self) -> dict[ProcessGroup, dict[int, int]]:
        """The groups, with the numbers that processes have among all and in each."""
        return {} if _Default.world is None else {_Default.world: {0: 0}}


_world = _World()


def get_rank(group: Any = None) -> int:
    """Return the number of this process in a group."""
    return need_group(group).rank()


def get_world_size(group: Any = None) -> int:
    """Return how many processes are in a group."""
    return need_group(group).size()


def get_backend(group: Any = None) -> Backend:
    """Return the name of the backend of a group."""
    return need_group(group)._backend


def get_backend_config(group: Any = None) -> str:
    """Return which backend each kind of device has."""
    return need_group(group)._config


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return the numbers that the processes of a group have among all."""
    need_group(group)
    return [0]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the number in a group of the process that has a number among all."""
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {need_group(group)}")
    return 0


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the number among all of the process that has a number in a group."""
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {need_group(group)}")
    return 0


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process on this machine, which torchrun says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


set_all(globals(), "ProcessGroup", "default_pg_timeout", but="need_group rendezvous")
