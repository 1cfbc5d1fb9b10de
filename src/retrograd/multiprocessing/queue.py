"""torch.multiprocessing.queue: Python's queues, which carry tensors as soon as `reductions` has told their pickler how."""

from __future__ import annotations

import io
import pickle
from multiprocessing.queues import Queue, SimpleQueue
from multiprocessing.reduction import ForkingPickler
from typing import Any


class ConnectionWrapper:
    """A connection that sends objects by the pickler that knows tensors."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        written = io.BytesIO()
        ForkingPickler(written, pickle.HIGHEST_PROTOCOL).dump(obj)
        self.conn.send_bytes(written.getvalue())

    def recv(self) -> Any:
        """Receive an object."""
        return pickle.loads(self.conn.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]
