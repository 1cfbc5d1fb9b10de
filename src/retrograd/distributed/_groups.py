"""Groups of processes: how they begin, end, and what they say of themselves."""

from __future__ import annotations

import os
from concurrent.futures import wait
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any

from .._public import set_all
from .._tracebacks import guard_listed as _guard_listed
from ..cuda import is_available as is_cuda_available
from . import _mpi
from ._agreement import comparisons_of, set_debug_level_from_env
from ._alone import Alone
from ._dist_errors import DistBackendError, ranks_in_words
from ._farewell import ledger, lost_in_words
from ._meeting import meet
from ._rendezvous import _handlers as _rendezvous_handlers
from ._rendezvous import (
    adopt_environment,
    communicator_of,
    numbers_of,
    rendezvous,
    started_place,
    store_of,
)
from ._work import Line, Waiter, seconds_of

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."
MISSING = {
    "nccl": "NCCL built in",
    "mpi": "MPI built in. MPI is only included if you build PyTorch from source on a host that has MPI installed.\n"
    f"Hint: {_mpi.INSTALL}",
    "ucc": "UCC built in",
    "xccl": "XCCL built in",
}
OUTSIDE = -100  # what `new_group` gives a process that is not in the group
WORD_SECONDS = 2.0  # how long processes that gave up waiting look for others that did, to say who is missing
WORD_TAG = 1
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
    """Some of the processes, each with a number in the group, and the engines that carry what they send.

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.group.WORLD.size()
        1
        >>> torch.distributed.destroy_process_group()
    """

    __module__ = "retrograd.distributed.distributed_c10d"

    def __init__(
        self, backend: str, config: str, ranks: list[int], name: str, description: str, timeout: timedelta, engine: Any
    ) -> None:
        self._backend, self._config = Backend(backend), config
        self._ranks = ranks  # the numbers of its processes among all
        self.group_name, self.group_desc = name, description
        self.timeout = timeout
        self.line = Line()
        self._engine = engine
        self._device_engine: Any = None
        self._waiters: dict[tuple[str, int | None], Waiter] = {}
        self.bound_device_id: Any = None
        self.called = self.checksum = 0  # how many collectives, and which: see Note [What processes agree on]
        self.comparisons = comparisons_of(len(ranks))
        self._entry = _World.enter(self, name) if len(ranks) > 1 else ""  # in the ledger
        self.is_in_background = False
        self.twin: ProcessGroup | None = None  # the same processes, on a channel of their own, for another thread
        self.held_by: set[Any] = set()  # what goes on in other threads, as futures: the group's end waits for it

    def rank(self) -> int:
        """Return the number of this process."""
        return int(self._engine.rank)

    def size(self) -> int:
        """Return how many processes there are."""
        return len(self._ranks)

    def name(self) -> str:
        """Return the name of the backend."""
        return str(self._backend)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} of ranks {self._ranks}>"

    def engine_for(self, tensor: Any) -> Any:
        """Return what carries a tensor: NCCL where it is on a device and the group has NCCL for it, else MPI."""
        if not tensor.is_cuda or "cuda:nccl" not in self._config:
            return self._engine
        if self._device_engine is None:
            from ._nccl import Nccl  # which needs CuPy

            self._device_engine = Nccl(self._engine)
        return self._device_engine

    def waiter(self, what: str, timeout: Any = None, peer: int | None = None) -> Waiter:
        """Return how long processes wait for each other; for a message, for one of them."""
        key = what, peer
        if timeout is not None or key not in self._waiters:
            seconds = seconds_of(self.timeout if timeout is None else timeout)
            made = Waiter(self.line, seconds, what, self._late, partial(self._check, peer=peer), self.is_in_background)
            if timeout is not None:
                return made
            self._waiters[key] = made
        return self._waiters[key]

    def _check(self, what: str, peer: int | None = None) -> None:
        """Raise if a process of this group has died, or has left without what this one waits for."""

        def is_awaited(rank: int, counts: dict[str, int] | None) -> bool:
            if rank not in self._ranks or counts is None:
                return rank in self._ranks
            return self._ranks.index(rank) == peer or counts.get(self._entry, self.called) < self.called

        lost = lost_in_words(what, is_awaited)
        if lost:
            raise DistBackendError(
                f"{lost} (group {self.group_desc}, ranks {self._ranks})\nHint: a process that dies says why. One that has left came to "
                "its end before it called this: all processes must call the same collectives, equally often."
            )

    def _late(self, what: str, seconds: float) -> Exception:
        missing = self._without_word(what)
        _mpi.note_failure()
        hint = (
            f"{ranks_in_words(missing)} did not reach it"
            if missing
            else "all processes wait, but not for the same: they must call the same collectives in the same order"
        )
        return DistBackendError(
            f"Timed out waiting {int(seconds * 1000)}ms for {what} operation to complete on rank {get_rank()}\nHint: {hint}. "
            "A longer limit: init_process_group(timeout=timedelta(...))."
        )

    def _without_word(self, what: str) -> list[int]:
        """Return who else has not given up: those who wait for the same tell each other so."""
        control = _World.control
        if control is None or self.size() == 1:
            return []
        MPI = _mpi.load()  # noqa: N806 - mpi4py's name
        others = [rank for rank in self._ranks if rank != control.Get_rank()]
        sent = [control.Isend([bytearray(b"."), MPI.BYTE], rank, WORD_TAG) for rank in others]
        received = {rank: control.Irecv([bytearray(1), MPI.BYTE], rank, WORD_TAG) for rank in others}
        heard: set[int] = set()

        def all_heard() -> bool:
            MPI.Request.Testall(sent)
            heard.update(rank for rank, request in received.items() if rank not in heard and request.Test())
            return len(heard) == len(others)

        quiet = Waiter(self.line, WORD_SECONDS, what, lambda *_: TimeoutError())
        try:
            quiet.wait_until(all_heard)
        except TimeoutError:
            return [rank for rank in others if rank not in heard]
        return []

    def close(self) -> None:
        """Give back what the group holds."""
        if self.twin is not None:
            self.twin.close()
        wait(self.held_by)
        for engine in (self._device_engine, self._engine):
            if hasattr(engine, "close"):
                engine.close()
        self._device_engine = None
        if self._entry:
            ledger[self._entry] = self.called


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
    """Tell whether there is a package for processes: for one of them.

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Tell whether there is a group.

    Example:
        >>> torch.distributed.is_initialized()
        False
    """
    return _Default.world is not None


def is_gloo_available() -> bool:
    """Tell whether the backend for CPUs can be named."""
    return True


def is_nccl_available() -> bool:
    """Tell whether the backend for GPUs can be named."""
    return is_cuda_available()


def is_mpi_available() -> bool:
    """Tell whether mpi4py is installed."""
    return _mpi.is_available()


def _no() -> bool:
    """Tell whether a backend is there: it is not."""
    return False


is_ucc_available = is_xccl_available = _no


def is_torchelastic_launched() -> bool:
    """Tell whether torchrun has started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Tell whether a backend can be named."""
    answers = {"gloo": is_gloo_available, "nccl": is_nccl_available, "mpi": is_mpi_available}
    return answers.get(backend.lower(), _no)()


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
    """Make the group of all processes. Numbers not given come from mpiexec, srun, or torchrun's variables.

    Args:
        backend: "mpi", "nccl", or "gloo", which is MPI here, too
        init_method: where processes meet: "env://", "file://...", "tcp://..."
        timeout: how long they wait for each other
        world_size: how many processes there are
        rank: the number of this one
        store: where processes meet, instead of `init_method`

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_rank(), torch.distributed.get_world_size()
        (0, 1)
        >>> torch.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {type(timeout)}\nHint: timedelta(seconds=30)"
        )
    if "TORCH_DISTRIBUTED_DEBUG" in os.environ:
        set_debug_level_from_env()
    config = _need_backend(backend)
    limit = timeout or default_pg_timeout
    method = init_method or "env://"
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    elif method.partition("://")[0] in _rendezvous_handlers:
        store, rank, world_size = next(iter(rendezvous(method, rank, world_size, timeout=limit)))
    else:
        if method == "env://" and (backend == "mpi" or started_place() is not None):
            adopt_environment()
        rank, world_size = numbers_of(method, rank, world_size)
    if not 0 <= rank < world_size:
        raise RuntimeError(f"rank < size. {rank} vs {world_size}")
    engine: Any = Alone()
    if world_size > 1:
        _mpi.need()

        def meeting_place() -> Any:
            return store if store is not None else store_of(method, rank, world_size, limit)

        communicator = communicator_of(rank, world_size, meeting_place, limit)
        _World.control = communicator.Dup()
        _World.started += 1
        engine = _mpi.Mpi(communicator)
    name = "undefined" if backend is None else backend
    _Default.world = ProcessGroup(name, config, list(range(world_size)), "0", "default_pg", limit, engine)
    _Default.world.bound_device_id = device_id
    _world.groups[_Default.world] = None
    _world.store = store


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


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group: that of all processes unless another is given.

    Args:
        group: the group to end

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.destroy_process_group()
        >>> torch.distributed.is_initialized()
        False
    """
    if group is None and not is_initialized():
        raise AssertionError("Process group cannot be None")
    if _rank_not_in_group(group):
        return
    if group is not None and group is not _Default.world:
        if group not in _world.groups:
            raise ValueError("Invalid process group specified or has been destroyed.")
        del _world.groups[group]
        group.close()
        return
    for one in list(_world.groups):
        one.close()
    if _World.control is not None:
        _World.control = None
    _world.groups.clear()
    _world.made = 0
    _Default.world = None


def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Make a group of some of the processes. All call it, in the same order; a process that is not in it gets a number instead."""
    world = need_group(None)
    wanted = list(range(world.size())) if ranks is None else sorted(ranks)
    if len(wanted) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
    for rank in wanted:
        if not 0 <= rank < world.size():
            valid = f"Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            raise ValueError(f"Rank {rank} is out of range. {valid}")
    config = world._config if backend is None else _need_backend(backend)
    name = f"{wanted}" if use_local_synchronization else str(_world.next_number())
    if world.rank() not in wanted:
        _world.ranks_outside = wanted
        return OUTSIDE
    engine: Any = Alone()
    limit = timeout or world.timeout
    if len(wanted) > 1:
        whole = world._engine.communicator
        tag = sum(rank * 31 + 7 for rank in wanted) % 30000  # the members call it in the same order, so tags may repeat
        meet(_World.control, wanted, "new_group", str(wanted), seconds_of(limit))  # see Note [Meetings]
        engine = _mpi.Mpi(whole.Create_group(whole.Get_group().Incl(wanted), tag))
    name_of_backend = world._backend if backend is None else backend
    made = ProcessGroup(name_of_backend, config, wanted, name, group_desc or "undefined", limit, engine)
    _world.groups[made] = None
    return made


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Any,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make groups of lists of processes, and return the one that this process is in, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    owner: dict[int, Any] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in owner:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {owner[rank]} and {ranks}")
            owner[rank] = ranks
    made = [new_group(ranks, timeout, backend, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    return next((one for one in made if isinstance(one, ProcessGroup)), None), made


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide all processes into groups of a size: by default those of a machine."""
    whole = get_process_group_ranks(group)
    size = len(whole)
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    parts = [whole[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout=timeout, backend=backend, group_desc=group_desc)


def split_group(
    parent_pg: Any = None,
    split_ranks: Any = None,
    timeout: Any = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Divide a group into groups of ranks, given by their numbers in it, and return the one of this process, or None."""
    parent = need_group(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    made = [new_group([parent._ranks[rank] for rank in ranks], timeout, group_desc=group_desc) for ranks in split_ranks]
    return next((one for one in made if isinstance(one, ProcessGroup)), None)


# ---- what it says ----
def need_group(group: Any) -> ProcessGroup:
    """Return the group that is meant; raise torch's error where there is none."""
    if _Default.world is None:
        raise ValueError(NO_GROUP)
    if group is None:
        return _Default.world
    if isinstance(group, ProcessGroup):
        return group
    if group == OUTSIDE:
        raise ValueError("Invalid process group specified: this process is not in it")
    return _Default.world


def _get_default_group() -> ProcessGroup:
    """Return the group of all processes."""
    return need_group(None)


def _rank_not_in_group(group: Any) -> bool:
    """Tell whether this process is outside of a group."""
    return group is not None and group == OUTSIDE


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """Return the group of a name."""
    need_group(None)
    for one in _world.groups:
        if one.group_name == group_name:
            return one
    raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")


class _World:
    """What is known of groups."""

    control: Any = None  # a communicator on which processes say what they wait for
    started = 0  # how often processes have come together

    @classmethod
    def enter(cls, group: ProcessGroup, name: str) -> str:
        """Note a group under a name that no other has had, the same in all of its processes; return the name."""
        name = f"{cls.started}:{name.replace(' ', '')}"
        entry = next(one for one in (f"{name}.{number}" for number in count()) if one not in ledger)
        ledger[entry] = group
        return entry

    def __init__(self) -> None:
        self.groups: dict[ProcessGroup, None] = {}  # in the order of their making
        self.made = 0
        self.store: Any = None
        self.ranks_outside: list[
            int
        ] = []  # of the last group that this process is not in: all of them are one to it, as in torch

    def next_number(self) -> int:
        """Return the number of a new group, the same in all processes."""
        self.made += 1
        return self.made

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The group of all processes."""
        return _Default.world

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, Any]]:
        """The groups, with the backend of each."""
        return {one: (str(one._backend), None) for one in self.groups}

    @property
    def pg_names(self) -> dict[ProcessGroup, str]:
        """The groups, with their names."""
        return {one: one.group_name for one in self.groups}

    @property
    def pg_group_ranks(self) -> dict[ProcessGroup, dict[int, int]]:
        """The groups, with the numbers that processes have among all and in each."""
        return {one: {rank: at for at, rank in enumerate(one._ranks)} for one in self.groups}


_world = _World()


def get_rank(group: Any = None) -> int:
    """Return the number of this process in a group; -1 if it is not in it.

    Args:
        group: which processes; all unless it is given

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_rank()
        0
        >>> torch.distributed.destroy_process_group()
    """
    return -1 if _rank_not_in_group(group) else need_group(group).rank()


def get_world_size(group: Any = None) -> int:
    """Return how many processes are in a group; -1 if this one is not in it.

    Args:
        group: which processes; all unless it is given

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    return -1 if _rank_not_in_group(group) else need_group(group).size()


def get_backend(group: Any = None) -> Backend:
    """Return the name of the backend of a group.

    Args:
        group: which processes; all unless it is given

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_backend()
        'gloo'
        >>> torch.distributed.destroy_process_group()
    """
    return need_group(group)._backend


def get_backend_config(group: Any = None) -> str:
    """Return which backend each kind of device has."""
    return need_group(group)._config


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return the numbers that the processes of a group have among all."""
    return list(_ranks_of(group))


def _ranks_of(group: Any) -> list[int]:
    return _world.ranks_outside if _rank_not_in_group(group) else need_group(group)._ranks


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the number in a group of the process that has a number among all."""
    if group is None:
        return global_rank
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the number among all of the process that has a number in a group."""
    if group is None:
        return group_rank
    ranks = _ranks_of(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


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


set_all(globals(), "ProcessGroup", "default_pg_timeout", but="need_group new_subgroups split_group")
_guard_listed(globals())
