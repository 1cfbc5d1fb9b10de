"""torch.distributed with one process: what it sends, it receives. More than one are refused."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._absent import finder
from . import _collectives, _groups
from ._collectives import *  # noqa: F403
from ._collectives import _all_gather_base, _broadcast_coalesced, _reduce_scatter_base
from ._groups import *  # noqa: F403
from ._groups import _get_default_group, _rank_not_in_group


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


class PrefixStore(Store):
    """Notes in another store, with words before their names."""


_LATER = {"DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh"}
_absent = finder("torch.distributed")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    if name in _SUBMODULES:  # torch loads them with the package
        return import_module(f"{__name__}.{name}")
    return _absent(name)


_SUBMODULES = {
    "algorithms",
    "autograd",
    "constants",
    "device_mesh",
    "distributed_c10d",
    "fsdp",
    "nn",
    "optim",
    "rpc",
    "tensor",
}

_private = (_all_gather_base, _broadcast_coalesced, _reduce_scatter_base, _get_default_group, _rank_not_in_group)

__all__ = [
    *_collectives.__all__,
    *_groups.__all__,
    "FileStore",
    "HashStore",
    "PrefixStore",
    "Store",
    "TCPStore",
]
