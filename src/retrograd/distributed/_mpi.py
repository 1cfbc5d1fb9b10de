"""The engine of MPI: every collective of a group of processes, through mpi4py.

Nothing here blocks: each function starts something and returns MPI's request, or the steps of an algorithm, each of which is a
request. Arrays are NumPy's, of one dimension. Numbers are moved as bytes, so every dtype can be; those that MPI cannot add
(float16, bfloat16, float8) are added in float32 by NumPy, which also finds the largest and the smallest of floats.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ._reductions import ReduceOp, before, combined, plain
from ._work import Steps

WATCH_SECONDS = 1.0  # how often processes look for others while MPI starts
INSTALL = "pip install mpi4py mpich"
MISSING = (
    "torch.distributed with several processes needs MPI, through mpi4py, which cannot be imported: {reason}\n"
    f"Hint: {INSTALL}"
)


class MissingMpiError(RuntimeError, ImportError):
    """MPI is not installed."""


@cache
def _imported() -> Any:
    """Import mpi4py without starting MPI."""
    try:
        import mpi4py

        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there, but no MPI library
        raise MissingMpiError(MISSING.format(reason=str(error).splitlines()[0])) from error
    return MPI


def load(watch: Callable[[], None] | None = None) -> Any:
    """Import mpi4py and start MPI, for several threads. It ends with the process, unless the process fails.

    MPI's start returns when all processes have come. Meanwhile `watch` is called every second, and may raise.
    """
    MPI = _imported()  # noqa: N806 - mpi4py's name
    if not MPI.Is_initialized():
        _start(MPI, watch)
        for communicator in (MPI.COMM_WORLD, MPI.COMM_SELF):
            communicator.Set_errhandler(MPI.ERRORS_RETURN)  # as mpi4py does where it starts MPI
        atexit.register(_finalize)
        _watch_for_errors()
    return MPI


def _start(MPI: Any, watch: Callable[[], None] | None) -> None:  # noqa: N803 - mpi4py's name
    """Start MPI in a thread: mpi4py would hold Python's lock until all processes have come."""
    library = ctypes.CDLL(MPI.__file__)  # in which the MPI library is found with which mpi4py was built
    ended = threading.Event()

    def begin() -> None:
        library.MPI_Init_thread(None, None, ctypes.c_int(MPI.THREAD_MULTIPLE), ctypes.byref(ctypes.c_int()))
        ended.set()

    threading.Thread(target=begin, name="MPI's start", daemon=True).start()
    while not ended.wait(WATCH_SECONDS):
        if watch is not None:
            watch()


def need() -> None:
    """Raise where mpi4py is not installed, before anything waits for other processes."""
    if not is_available():
        raise MissingMpiError(MISSING.format(reason="No module named 'mpi4py'"))


def is_available() -> bool:
    """Tell whether mpi4py is there; MPI is not started."""
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def speaks_pmix() -> bool:
    """Tell whether the MPI library can be joined by PMIx; MPICH says so among the options with which it was built."""
    version = _imported().Get_library_version().lower()
    return "mpich" not in version or "pmix" in version


# ---- the end ----
class _Ending:
    failed = False  # this process, or what it did with others, has come to a bad end
    farewell: Callable[[], None] | None = None  # what to do in place of MPI's own end, which waits for everybody


def note_failure() -> None:
    """Let the process end without waiting for the others, who may never come."""
    _Ending.failed = True


def set_farewell(farewell: Callable[[], None]) -> None:
    """Say what the process does at its end, where MPI's own end would wait for those who have died."""
    _Ending.farewell = farewell


def _finalize() -> None:
    MPI = load()  # noqa: N806 - mpi4py's name
    if _Ending.failed or MPI.Is_finalized():
        return
    if _Ending.farewell is not None:
        _Ending.farewell()
    else:
        MPI.Finalize()


def _watch_for_errors() -> None:
    shown = sys.excepthook

    def excepthook(kind: Any, error: Any, traceback: Any) -> None:
        note_failure()
        shown(kind, error, traceback)

    sys.excepthook = excepthook


# ---- the engine ----
class Receive:
    """A request for a message, which knows afterwards who sent it."""

    def __init__(self, request: Any, status: Any) -> None:
        self._request, self._status = request, status
        self.source = -1

    def Test(self) -> bool:  # noqa: N802 - MPI's name
        """Tell whether the message is here."""
        if not self._request.Test(self._status):
            return False
        self.source = self._status.Get_source()
        return True


class Mpi:
    """The collectives of the processes of a communicator."""

    on_host = True  # arrays of a device travel through host memory

    def __init__(self, communicator: Any) -> None:
        self.communicator = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        MPI = self._mpi = load()  # noqa: N806 - mpi4py's name
        self._types = {
            np.dtype(name): kind
            for name, kind in {
                "float32": MPI.FLOAT,
                "float64": MPI.DOUBLE,
                "int8": MPI.INT8_T,
                "int16": MPI.INT16_T,
                "int32": MPI.INT32_T,
                "int64": MPI.INT64_T,
                "uint8": MPI.UINT8_T,
                "uint16": MPI.UINT16_T,
                "uint32": MPI.UINT32_T,
                "uint64": MPI.UINT64_T,
                "complex64": MPI.C_FLOAT_COMPLEX,
                "complex128": MPI.C_DOUBLE_COMPLEX,
                "bool": MPI.C_BOOL,
            }.items()
        }
        self._added = {dtype: kind for dtype, kind in self._types.items() if dtype != np.bool_}  # what MPI.SUM adds
        self._ops = {
            ReduceOp.SUM: MPI.SUM,
            ReduceOp.PRODUCT: MPI.PROD,
            ReduceOp.MIN: MPI.MIN,
            ReduceOp.MAX: MPI.MAX,
            ReduceOp.BAND: MPI.BAND,
            ReduceOp.BOR: MPI.BOR,
            ReduceOp.BXOR: MPI.BXOR,
        }
        self._truth_ops = {  # of truth values, for which MPI has operations of their own
            **dict.fromkeys((ReduceOp.SUM, ReduceOp.MAX, ReduceOp.BOR), MPI.LOR),
            **dict.fromkeys((ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.BAND), MPI.LAND),
            ReduceOp.BXOR: MPI.LXOR,
        }

    def _is_for_numpy(self, flat: Any, op: Any) -> bool:
        """Tell whether MPI cannot reduce these: narrow numbers, and the extremes of floats, in which it loses NaN on some ranks."""
        return flat.dtype not in self._types or (op in (ReduceOp.MIN, ReduceOp.MAX) and flat.dtype.kind == "f")

    def _typed(self, flat: Any) -> list[Any]:
        return [flat, self._types[flat.dtype]]

    def _bytes(self, flat: Any) -> list[Any]:
        return [flat.view(np.uint8), self._mpi.BYTE]

    def _parts(self, flat: Any, counts: Sequence[int]) -> list[Any]:
        sizes = [count * flat.itemsize for count in counts]
        return [flat.view(np.uint8), (sizes, _starts(sizes)), self._mpi.BYTE]

    def _op(self, op: Any, flat: Any) -> Any:
        return (self._truth_ops if flat.dtype == np.bool_ else self._ops)[plain(op)]

    # ---- reductions ----
    def all_reduce(self, flat: Any, op: Any) -> Any:
        """Put the reduction over all into every one's array."""
        kind = self._added.get(flat.dtype) if op is ReduceOp.SUM else None
        if kind is not None:  # the most frequent one, without further questions
            return self.communicator.Iallreduce(self._mpi.IN_PLACE, [flat, kind], self._mpi.SUM)
        if self._is_for_numpy(flat, op):
            return self._numpy_all_reduce(flat, op)
        self._scale(flat, op)
        request = self.communicator.Iallreduce(self._mpi.IN_PLACE, self._typed(flat), self._op(op, flat))
        return self._averaged(request, flat) if op is ReduceOp.AVG else request

    def reduce(self, flat: Any, root: int, op: Any) -> Any:
        """Put the reduction over all into the array of one; the others' are left as they are."""
        if self._is_for_numpy(flat, op):
            return self._numpy_reduce(flat, root, op)
        here = self.rank == root
        if here:
            self._scale(flat, op)
        given = [self._mpi.IN_PLACE, self._typed(flat)] if here else [self._typed(before(flat, op)), None]
        request = self.communicator.Ireduce(*given, self._op(op, flat), root)
        return self._averaged(request, flat) if op is ReduceOp.AVG and here else request

    def reduce_scatter(self, out: Any, given: Any, op: Any) -> Any:
        """Reduce the arrays of all, of which each one gets a part."""
        if self._is_for_numpy(given, op):
            return self._numpy_reduce_scatter(out, given, op)
        terms = self._apart(before(given, op), out)
        request = self.communicator.Ireduce_scatter_block(self._typed(terms), self._typed(out), self._op(op, out))
        return self._averaged(request, out) if op is ReduceOp.AVG else request

    @staticmethod
    def _scale(flat: Any, op: Any) -> None:
        terms = before(flat, op)
        if terms is not flat:
            flat[...] = terms

    def _averaged(self, request: Any, flat: Any) -> Any:
        numbers = flat.view(flat.real.dtype)  # a complex number is two, which are divided one by one, as in torch
        return Then(request, lambda: np.divide(numbers, self.size, out=numbers))

    # What MPI cannot reduce: each process gets one part of everybody's array, reduces these, rounds once, and hands the result on. As many
    # bytes move as in a reduction by MPI, and of narrow numbers half as many as if they were made float32 first.
    def _numpy_all_reduce(self, flat: Any, op: Any) -> Steps:
        counts = _even(flat.size, self.size)
        own = yield from self._numpy_part(flat, counts, op)
        yield self.communicator.Iallgatherv(self._bytes(own), self._parts(flat, counts))

    def _numpy_reduce(self, flat: Any, root: int, op: Any) -> Steps:
        counts = _even(flat.size, self.size)
        own = yield from self._numpy_part(flat, counts, op)
        here = self._parts(flat, counts) if self.rank == root else None
        yield self.communicator.Igatherv(self._bytes(own), here, root)

    def _numpy_reduce_scatter(self, out: Any, given: Any, op: Any) -> Steps:
        out[...] = yield from self._numpy_part(given, [out.size] * self.size, op)

    def _numpy_part(self, flat: Any, counts: list[int], op: Any) -> Any:
        mine = counts[self.rank]
        parts = np.empty(mine * self.size, flat.dtype)
        terms = np.ascontiguousarray(before(flat, op))
        yield self.communicator.Ialltoallv(self._parts(terms, counts), self._parts(parts, [mine] * self.size))
        return combined(parts.reshape(self.size, mine), op)

    # ---- moves ----
    def broadcast(self, flat: Any, root: int) -> Any:
        """Give everybody the array of one."""
        return self.communicator.Ibcast(self._bytes(flat), root)

    def all_gather(self, out: Any, given: Any) -> Any:
        """Give everybody the arrays of all."""
        return self.communicator.Iallgather(self._bytes(self._apart(given, out)), self._bytes(out))

    def gather(self, out: Any, given: Any, root: int) -> Any:
        """Give one the arrays of all."""
        here = self._bytes(out) if self.rank == root else None
        return self.communicator.Igather(self._bytes(given), here, root)

    def scatter(self, out: Any, given: Any, root: int) -> Any:
        """Give each one a part of the array of one."""
        here = self._bytes(given) if self.rank == root else None
        return self.communicator.Iscatter(here, self._bytes(out), root)

    def all_to_all(self, out: Any, counts: list[int], given: Any, given_counts: list[int]) -> Any:
        """Give each one a part of everybody's array."""
        terms = self._apart(given, out)
        return self.communicator.Ialltoallv(self._parts(terms, given_counts), self._parts(out, counts))

    @staticmethod
    def _apart(given: Any, out: Any) -> Any:
        """Return an array that shares no memory with the one that is written, which MPI forbids."""
        return given.copy() if np.may_share_memory(given, out) else given

    def send(self, flat: Any, to: int, tag: int) -> Any:
        """Send an array to another process."""
        return self.communicator.Isend(self._bytes(flat), to, tag)

    def receive(self, flat: Any, source: int | None, tag: int) -> Receive:
        """Receive an array of another process, or of any."""
        MPI = self._mpi  # noqa: N806 - mpi4py's name
        request = self.communicator.Irecv(self._bytes(flat), MPI.ANY_SOURCE if source is None else source, tag)
        return Receive(request, MPI.Status())

    def barrier(self) -> Any:
        """Wait until everybody is here."""
        return self.communicator.Ibarrier()

    def close(self) -> None:
        """Give the communicator back."""
        if not _Ending.failed:
            self.communicator.Free()


class Then:
    """A request, and what is to be done once it has ended."""

    def __init__(self, request: Any, after: Callable[[], Any]) -> None:
        self._request, self._after = request, after

    def Test(self) -> bool:  # noqa: N802 - MPI's name
        """Tell whether all is done."""
        if not self._request.Test():
            return False
        self._after()
        return True


def _even(count: int, size: int) -> list[int]:
    """Divide a number into parts that differ by one at most."""
    least, more = divmod(count, size)
    return [least + (at < more) for at in range(size)]


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return starts
