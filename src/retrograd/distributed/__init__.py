"""torch.distributed with one process: what it sends, it receives. More than one are refused."""

from __future__ import annotations

from typing import Any

from . import _collectives, _groups
from ._collectives import *  # noqa: F403
from ._groups import *  # noqa: F403


class Store:
    """Where processes leave each other notes; one process needs none, and these are only named."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class HashStore(Store):
    """Notes in memory."""


class FileStore(Store):
    """Notes in a file."""


class TCPStore(Store):
    """Notes on a server."""


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch.distributed' has no attribute '{name}' (retrograd computes in one process)")


__all__ = [*_collectives.__all__, *_groups.__all__, "FileStore", "HashStore", "Store", "TCPStore"]
