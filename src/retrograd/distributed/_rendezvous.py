"""How processes find each other and become one MPI job: started by mpiexec or srun, or by themselves."""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from . import _mpi, _pmi
from ._dist_errors import DistStoreError, ranks_in_words
from ._farewell import ask_manager, is_joined, line_of, set_channel, set_manager
from ._meeting import meet
from ._siblings import watching
from ._stores import FileStore, PrefixStore, Store, TCPStore

LEFT = (
    "init_process_group: {} left before calling it\n"
    "Hint: it came to its end without an error. All processes that were started must call it."
)
LOOK_SECONDS = 1.0  # how often processes that wait for others to come look whether one has left

# What starters of processes say: the number of this process, and how many there are; then both on this machine. srun --mpi=pmi2 says the
# first two as MPICH does, and leaves the others to Slurm's own names.
STARTERS = (
    ("PMI_RANK", "PMI_SIZE"),  # MPICH and Intel MPI; srun --mpi=pmi2
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # any srun
)
ON_THIS_MACHINE = (
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)
PORTS = range(10000, 32768)  # below those that systems give to connections by themselves


@dataclass
class Place:
    """Where a process stands among those that were started with it, and whether MPI knows of them."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    variable: str  # of the starter, with the rank

    def is_known_to_mpi(self) -> bool:
        """Tell whether MPI joins the processes by itself. Slurm's PMIx is spoken by Open MPI, and by MPICH only if it was built so."""
        return not self.variable.startswith("SLURM") or ("PMIX_RANK" in os.environ and _mpi.speaks_pmix())


def started_place() -> Place | None:
    """Return what the starter of this process says of it; None if it was started by itself."""
    said = _said_first(STARTERS)
    if said is None:
        return None
    variable, rank, size = said
    _, local_rank, local_size = _said_first(ON_THIS_MACHINE) or ("", "0", "1")
    here = _on_machine(local_size, int(os.environ.get("SLURM_NODEID", "0")))
    return Place(int(rank), int(size), int(local_rank), here, variable)


def _said_first(pairs: Sequence[tuple[str, str]]) -> tuple[str, str, str] | None:
    """Return the first two variables that are both there: the first one's name, and their values."""
    found = (pair for pair in pairs if pair[0] in os.environ and pair[1] in os.environ)
    pair = next(found, None)
    return None if pair is None else (pair[0], os.environ[pair[0]], os.environ[pair[1]])


def _on_machine(listed: str, machine: int) -> int:
    """Return how many processes a machine has, in a list as Slurm writes it: 4(x2),1 is four on each of two machines, one on the third."""
    counts: list[int] = []
    for part in listed.split(","):
        count, _, times = part.partition("(x")
        counts += [int(count)] * int(times.rstrip(")") or 1)
    return counts[min(machine, len(counts) - 1)]


def adopt_environment() -> None:
    """Give a process that mpiexec or srun has started the variables that torchrun would set."""
    place = started_place()
    if place is None or "RANK" in os.environ:
        return
    job, step = (int(os.environ.get(name, "0")) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    variables = {
        "RANK": place.rank,
        "WORLD_SIZE": place.size,
        "LOCAL_RANK": place.local_rank,
        "LOCAL_WORLD_SIZE": place.local_size,
        "MASTER_ADDR": _first_machine(),
        "MASTER_PORT": PORTS[(job * 31 + step) % len(PORTS)] if job else 29500,  # steps of a job may run at once
    }
    for name, value in variables.items():
        os.environ.setdefault(name, str(value))


def _first_machine() -> str:
    """Return the first machine of a Slurm job, whose list reads like gpu[07-09,12],login1."""
    listed = re.match(r"([^,\[]+)(?:\[(\d+))?", os.environ.get("SLURM_STEP_NODELIST", "127.0.0.1"))
    return (listed[1] + (listed[2] or "")) if listed else "127.0.0.1"


# ---- addresses ----
_handlers: dict[str, Callable[..., Any]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Any]) -> None:
    """Say what brings processes together for addresses of a kind."""
    if not scheme:
        raise RuntimeError("Rendezvous scheme must be specified")
    if scheme in (*_handlers, "env", "tcp", "file"):
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def numbers_of(method: str, rank: int, size: int) -> tuple[int, int]:
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


def store_of(method: str, rank: int, size: int, timeout: timedelta, waits: bool = False) -> Store:
    """Return the store in which the processes of an address meet; that of a network may wait until all have."""
    address = urlparse(method)
    if address.scheme == "file":
        return FileStore(address.path, size)
    host, port = (
        (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if address.scheme == "env"
        else (address.hostname or "localhost", address.port or 0)
    )
    return _MeetingPlace(host, port, size, rank == 0, timeout, wait_for_workers=waits, multi_tenant=True)


class _MeetingPlace(TCPStore):
    """The store that rank 0 runs for all."""

    def _refused(self) -> None:
        if os.path.exists(left_note(0)):
            raise DistStoreError(LEFT.format("rank 0"))


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Any, int, int]]:
    """Yield what processes need to meet: a store, the number of this one, and how many there are."""
    scheme = url.partition("://")[0]
    if scheme in _handlers:
        yield from _handlers[scheme](url, **kwargs)
        return
    rank, size = numbers_of(url, rank, world_size)
    timeout = kwargs.get("timeout", timedelta(minutes=5))
    yield store_of(url, rank, size, timeout, waits=True), rank, size


# ---- MPI ----
def communicator_of(rank: int, size: int, store: Callable[[], Store], timeout: timedelta) -> Any:
    """Return MPI's communicator of all processes, in which this one has the number that it wants."""
    place = started_place()
    seconds = timeout.total_seconds()
    if _Met.channel is not None:  # not for the first time
        meet(_Met.channel, list(range(_Met.channel.Get_size())), "init_process_group", f"world_size={size}", seconds)
    elif place is not None and place.size == size and place.is_known_to_mpi():
        first = place.rank - place.local_rank
        _mpi.load(watching(place.variable, range(first, first + place.local_size), seconds))
    else:
        join(store(), rank, size, timeout)
    world = _mpi.load().COMM_WORLD
    if world.Get_size() != size:
        raise RuntimeError(
            f"torch.distributed: the world size is {size}, but MPI started {world.Get_size()} processes\n{_why_alone(size)}"
        )
    communicator = world.Split(0, rank)
    if _Met.channel is None:
        _Met.channel = communicator.Dup()
        set_channel(_Met.channel)
    return communicator


class _Met:
    channel: Any = None  # a communicator of all processes, for what they say beside their collectives


def _why_alone(size: int) -> str:
    if is_joined():
        return (
            "Hint: Open MPI joins only what its own mpiexec, or srun --mpi=pmix, has started: "
            f"mpiexec -n {size} retrograd run script.py. MPICH ({_mpi.INSTALL}) joins processes that were started in any way."
        )
    return (
        "Hint: WORLD_SIZE, or world_size=, must be the number that mpiexec -n or srun -n was given. If MPI says 1, this process was not "
        "started by the mpiexec of the MPI library that mpi4py uses: start the program with "
        f"retrograd run --nproc-per-node {size} script.py, or install MPICH ({_mpi.INSTALL})."
    )


# Note [Processes that nobody started with mpiexec]
# torch.multiprocessing.spawn and torchrun start processes that find each other through a store. MPI's own means for that, a chain of
# MPI_Comm_accept and MPI_Comm_connect, fails from the third process on (MPICH 5.0.2 over UCX: "Local and remote groups ... must be
# disjoint"). So rank 0 starts a process manager that speaks PMI (`_pmi.py`), leaves its address in the store, and every process hands
# its connection to MPI's start, as if mpiexec had made it. The messages themselves are MPI's: shared memory, and the network.
def join(store: Store, rank: int, size: int, timeout: timedelta) -> None:
    """Make one MPI job of processes that share a store, before MPI starts in them."""
    if "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized():
        raise RuntimeError(
            "torch.distributed: MPI has been started in this process, which mpiexec has not started, so it is alone\n"
            "Hint: import mpi4py.MPI after init_process_group, or start the program with mpiexec."
        )
    if rank == 0:
        store.set("retrograd/pmi", f"{_own_host(store)} {_start_helper(size)}")
    address = _manager_address(store, timeout)
    connection = socket.create_connection(address, timeout=timeout.total_seconds())
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)
    connection.sendall(f"hello rank={rank} host={socket.gethostname()}\n".encode())
    set_manager(address)
    _await_all(connection, size, timeout.total_seconds())
    descriptor = connection.detach()
    for name in [one for one in os.environ if one.startswith(("PMI_", "PMIX_", "MPI_LOCAL", "OMPI_"))]:
        del os.environ[name]
    os.environ.update(PMI_FD=str(descriptor), PMI_RANK=str(rank), PMI_SIZE=str(size))
    _mpi.load()
    for name in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):  # of this process alone: those that it starts are not in the job
        del os.environ[name]
    set_manager(address, descriptor)
    _remove_names_of_shared_memory()


def _manager_address(store: Store, timeout: timedelta) -> tuple[str, int]:
    """Return where the process manager is, which rank 0 says."""
    try:
        store.wait(["retrograd/pmi"], timeout)
    except DistStoreError as error:
        raise DistStoreError(f"{_too_late(timeout.total_seconds())}\nHint: missing rank 0.") from error
    host, port = store.get("retrograd/pmi").decode().split()
    return "127.0.0.1" if host == socket.gethostname() else host, int(port)


def _await_all(connection: socket.socket, size: int, seconds: float) -> None:
    """Wait until the manager has seen all processes; raise if one has left, or the time is over."""
    until = time.monotonic() + seconds
    while not select.select([connection], [], [], LOOK_SECONDS)[0]:
        missing = sorted(set(range(size)) - {int(number) for number in ask_manager("who")})
        gone = [rank for rank in missing if os.path.exists(left_note(rank))]
        if gone:
            raise DistStoreError(LEFT.format(ranks_in_words(gone)))
        if time.monotonic() > until and missing:
            raise DistStoreError(
                f"{_too_late(seconds)} {size - len(missing)}/{size} clients joined.\nHint: missing {ranks_in_words(missing)}."
            )
    line_of(connection)


def _too_late(seconds: float) -> str:
    return f"Timed out after {seconds:g} seconds waiting for clients."


def left_note(rank: int | str) -> str:
    """Return the name of the file that says that a process of this machine has ended, which `torch.distributed.run` has started."""
    return f"{os.environ.get('RETROGRAD_ERROR_FILE', '')}.left.{rank}"


def _remove_names_of_shared_memory() -> None:
    """Take the names of MPICH's shared memory away once all have opened it, so that none stays behind a process that is killed."""
    maps = "/proc/self/maps"
    if os.path.exists(maps):
        _mpi.load().COMM_WORLD.Barrier()
        with open(maps, encoding="utf-8", errors="replace") as lines:
            names = set(re.findall(r"/dev/shm/mpich_shm_\w+", lines.read()))
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # one of the processes is the first
                os.unlink(name)


def _own_host(store: Store) -> str:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store.host if isinstance(store, TCPStore) else socket.gethostname()


def _start_helper(size: int) -> int:
    command = [sys.executable, "-S", "-E", _pmi.__file__, str(size)]
    helper = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert helper.stdout is not None
    with helper.stdout:
        port = int(helper.stdout.readline())
    helper.returncode = 0  # it ends by itself, after the last process: nobody waits for it
    return port
