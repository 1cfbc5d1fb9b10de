"""The engine of NCCL: the collectives of a group on arrays of CUDA devices, through CuPy.

Everything is put on the current stream, in the order of the program, so nothing has to be waited for: what comes after it on the
stream comes after it. The processes find each other through the group's engine on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _mpi
from ._alone import DONE
from ._reductions import ReduceOp, before, plain

# NCCL's own numbers, which do not change
_TYPES = {
    "int8": 0,
    "uint8": 1,
    "bool": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
_OPS = {ReduceOp.SUM: 0, ReduceOp.PRODUCT: 1, ReduceOp.MAX: 2, ReduceOp.MIN: 3}
_TRUTH_OPS = {ReduceOp.SUM: 2, ReduceOp.MAX: 2, ReduceOp.BOR: 2, ReduceOp.PRODUCT: 3, ReduceOp.MIN: 3, ReduceOp.BAND: 3}
_BYTE = 0


class Nccl:
    """The collectives of processes that have a device each."""

    on_host = False

    def __init__(self, host: Any) -> None:
        import cupy
        from cupy.cuda import nccl

        self._cupy, self._nccl = cupy, nccl
        self.rank, self.size = host.rank, host.size
        identity = nccl.get_unique_id()
        if self.size > 1:  # a tuple of numbers from -128 to 127; the first process's holds for all
            data = np.array(identity, np.int8)
            host.communicator.Bcast([data, _mpi.load().BYTE], 0)
            identity = tuple(int(one) for one in data)
        self._communicator = nccl.NcclCommunicator(self.size, identity, self.rank)

    # ---- how arrays are described ----
    @property
    def _stream(self) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

    @staticmethod
    def _numbers(flat: Any) -> tuple[Any, int, int]:
        """Return an array of numbers that NCCL can add, their count, and their type; complex numbers are pairs."""
        if flat.dtype.kind == "c":
            flat = flat.view(flat.real.dtype)
        if flat.dtype.name not in _TYPES:
            raise RuntimeError(
                f"Input tensor data type is not supported for NCCL process group: {flat.dtype.name}\n"
                "Hint: a group with backend='mpi' reduces every dtype, through host memory."
            )
        return flat, flat.size, _TYPES[flat.dtype.name]

    @staticmethod
    def _op(op: Any, flat: Any) -> int:
        ops = _TRUTH_OPS if flat.dtype.name == "bool" else _OPS
        if plain(op) not in ops:
            raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
        return ops[plain(op)]

    def _finish(self, out: Any, op: Any) -> Any:
        if op is ReduceOp.AVG:
            out.view(out.real.dtype)[...] /= self.size
        return DONE

    # ---- reductions ----
    def all_reduce(self, flat: Any, op: Any) -> Any:
        """Put the reduction over all into every one's array."""
        terms, count, kind = self._numbers(before(flat, op))
        out = self._numbers(flat)[0]
        self._communicator.allReduce(terms.data.ptr, out.data.ptr, count, kind, self._op(op, flat), self._stream)
        return self._finish(flat, op)

    def reduce(self, flat: Any, root: int, op: Any) -> Any:
        """Put the reduction over all into the array of one."""
        terms, count, kind = self._numbers(before(flat, op))
        out = self._numbers(flat)[0]
        self._communicator.reduce(terms.data.ptr, out.data.ptr, count, kind, self._op(op, flat), root, self._stream)
        return self._finish(flat, op) if self.rank == root else DONE

    def reduce_scatter(self, out: Any, given: Any, op: Any) -> Any:
        """Reduce the arrays of all, of which each one gets a part."""
        terms, _, kind = self._numbers(before(given, op))
        received, count, _ = self._numbers(out)
        operation = self._op(op, out)
        self._communicator.reduceScatter(terms.data.ptr, received.data.ptr, count, kind, operation, self._stream)
        return self._finish(out, op)

    # ---- moves ----
    def broadcast(self, flat: Any, root: int) -> Any:
        """Give everybody the array of one."""
        self._communicator.broadcast(flat.data.ptr, flat.data.ptr, flat.nbytes, _BYTE, root, self._stream)
        return DONE

    def all_gather(self, out: Any, given: Any) -> Any:
        """Give everybody the arrays of all."""
        self._communicator.allGather(given.data.ptr, out.data.ptr, given.nbytes, _BYTE, self._stream)
        return DONE

    def gather(self, out: Any, given: Any, root: int) -> Any:
        """Give one the arrays of all."""
        everybody = [given.size] * self.size
        mine = [given.size if rank == root else 0 for rank in range(self.size)]
        return self.all_to_all(out, everybody if self.rank == root else [0] * self.size, given, mine, repeated=True)

    def scatter(self, out: Any, given: Any, root: int) -> Any:
        """Give each one a part of the array of one."""
        everybody = [out.size if self.rank == root else 0] * self.size
        from_root = [out.size if rank == root else 0 for rank in range(self.size)]
        return self.all_to_all(out, from_root, given, everybody)

    def all_to_all(
        self, out: Any, counts: list[int], given: Any, given_counts: list[int], repeated: bool = False
    ) -> Any:
        """Give each one a part of everybody's array; with `repeated`, parts all begin where the array does."""
        start = given_start = 0
        self._nccl.groupStart()
        for rank in range(self.size):
            if given_counts[rank]:
                part = given[given_start : given_start + given_counts[rank]]
                self._communicator.send(part.data.ptr, part.nbytes, _BYTE, rank, self._stream)
                given_start += 0 if repeated else given_counts[rank]
            if counts[rank]:
                part = out[start : start + counts[rank]]
                self._communicator.recv(part.data.ptr, part.nbytes, _BYTE, rank, self._stream)
                start += counts[rank]
        self._nccl.groupEnd()
        return DONE

    def send(self, flat: Any, to: int, tag: int) -> Any:
        """Send an array to another process."""
        self._communicator.send(flat.data.ptr, flat.nbytes, _BYTE, to, self._stream)
        return DONE

    def receive(self, flat: Any, source: int | None, tag: int) -> Any:
        """Receive an array of another process."""
        if source is None:
            raise ValueError("NCCL cannot receive from any process: name one with src=")
        self._communicator.recv(flat.data.ptr, flat.nbytes, _BYTE, source, self._stream)
        return _From(source)

    def close(self) -> None:
        """End the communicator."""
        self._communicator.destroy()


class _From:
    """A message that is under way on the stream."""

    def __init__(self, source: int) -> None:
        self.source = source

    @staticmethod
    def Test() -> bool:  # noqa: N802 - as MPI's requests have it
        """Tell whether it is done, for the stream."""
        return True
