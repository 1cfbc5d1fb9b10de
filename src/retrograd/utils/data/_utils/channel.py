"""What the main process and a worker say to each other, and how arrays travel without being copied more than once.

Note [Batches between processes]
Each worker has a socket of its own, so a worker that dies takes no lock and no half-read message of the others with it: its socket
ends, and the main process sees that at once. A message is a pickle (protocol 5) and, beside it, the memory of its arrays. Where that
is large, it goes into an anonymous file in memory whose descriptor is sent over the socket; the receiver maps it, and the arrays live
there. Such a file has no name: the system frees it when nobody holds or maps it, whoever was killed and whenever.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import select
import struct
from multiprocessing import reduction
from multiprocessing.util import register_after_fork
from typing import Any

import numpy as np

from ....tensor import Parameter, Tensor
from ....tensor._object.layout import strides
from ....tensor._storage.deep_copies import as_array, memory_of, rebuild
from ....tensor._storage.sharing import NOT_ACROSS_PROCESSES
from .exceptions import ExceptionWrapper

INLINE = 1 << 14  # bytes up to which a message goes through the socket itself, whose buffer holds a dozen such
ALIGNED = 64  # bytes: where arrays begin in a file
HAS_FILES_IN_MEMORY = hasattr(os, "memfd_create")
GONE = (EOFError, ConnectionResetError, BrokenPipeError)  # what reading or writing raises when the other side has ended


class _Pickler(reduction.ForkingPickler):
    """Sends of a tensor what it shows, not the whole memory it is a view of."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not Tensor and type(obj) is not Parameter:
            return NotImplemented
        if obj._edge is not None and not obj.is_leaf:
            raise RuntimeError(NOT_ACROSS_PROCESSES)
        array = obj._array
        if not isinstance(array, np.ndarray) or memory_of(obj)[0].nbytes <= array.nbytes:
            return as_array(obj)
        array = array.copy()
        return rebuild, (type(obj), array, 0, array.shape, strides(array), obj._edge is not None, dict(obj.__dict__))


def _after(length: int) -> int:
    """Return how many bytes of padding follow a part of a file."""
    return -length % ALIGNED


HEADER = struct.Struct("<?qI")  # whether it is small, the number, how many parts; their sizes follow


class Packed:
    """A message that is ready to go: a number, its pickle and the memory beside it."""

    def __init__(self, number: int, content: Any) -> None:
        stream = io.BytesIO()
        outside: list[Any] = []
        _Pickler(stream, 5, True, outside.append).dump(content)
        self.parts: list[Any] = [stream.getbuffer(), *[each.raw() for each in outside]]
        sizes = [part.nbytes for part in self.parts]
        self.is_small = sum(sizes) <= INLINE
        self.header = HEADER.pack(self.is_small, number, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)


class Channel:
    """One end of the socket between the main process and a worker."""

    def __init__(self, connection: Any, *, of_main_process: bool = False) -> None:
        self.connection = connection
        self._writable: Any = None
        if of_main_process:
            # Workers that are forked later would hold this end open, and nobody would see that the main process has ended.
            register_after_fork(connection, type(connection).close)
            if hasattr(select, "poll"):
                self._writable = select.poll()
                self._writable.register(connection.fileno(), select.POLLOUT)

    def can_send_now(self) -> bool:
        """Tell whether a small message goes out without waiting for the reader."""
        return self._writable is None or bool(self._writable.poll(0))

    def send(self, packed: Packed) -> None:
        """Send a message; wait until there is room for it."""
        if packed.is_small or not HAS_FILES_IN_MEMORY:
            self.connection.send_bytes(b"".join([packed.header, *packed.parts]))
            return
        file = os.memfd_create("retrograd-batch", os.MFD_CLOEXEC)
        try:
            for part in packed.parts:
                _write(file, part)
                _write(file, memoryview(bytes(_after(part.nbytes))))
            self.connection.send_bytes(packed.header)
            reduction.send_handle(self.connection, file, None)
        finally:
            os.close(file)

    def receive(self) -> tuple[int, Any]:
        """Wait for a message; return its number and its content, or the error that reading the content gave."""
        number, parts = self._receive_parts()
        try:
            return number, pickle.loads(parts[0], buffers=parts[1:])
        except Exception:
            return number, ExceptionWrapper(where="while reading what a DataLoader process had sent")

    def _receive_parts(self) -> tuple[int, list[Any]]:
        message = memoryview(self.connection.recv_bytes())
        is_small, number, count = HEADER.unpack_from(message)
        sizes = struct.unpack_from(f"<{count}Q", message, HEADER.size)
        parts: list[Any] = []
        if is_small or not HAS_FILES_IN_MEMORY:
            place = HEADER.size + 8 * count
            for size in sizes:
                parts.append(bytearray(message[place : place + size]))  # arrays want memory that they may write to
                place += size
            return number, parts
        file = reduction.recv_handle(self.connection)
        try:
            memory = memoryview(_mapped(file, sum(size + _after(size) for size in sizes)))
        finally:
            os.close(file)
        place = 0
        for size in sizes:
            parts.append(memory[place : place + size])
            place += size + _after(size)
        return number, parts

    def close(self) -> None:
        """End the conversation: the other side reads what is on the way, and then the end."""
        self._writable = None
        self.connection.close()


def _write(file: int, part: memoryview) -> None:
    while part.nbytes:  # the system takes at most 2 GB at once
        part = part[os.write(file, part) :]


def _mapped(file: int, size: int) -> mmap.mmap:
    """Map a file whole, with its pages at hand: touching them one by one takes longer."""
    return mmap.mmap(file, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
