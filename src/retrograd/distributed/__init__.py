"""torch.distributed with one process: what it sends, it receives. More than one are refused."""

from __future__ import annotations

from typing import Any

from .._absent import finder
from .._public import all_of, set_all
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


__getattr__ = finder(  # torch loads these modules with the package
    "torch.distributed", modules="algorithms autograd distributed_c10d device_mesh fsdp nn optim rpc tensor"
)

_private = (_all_gather_base, _broadcast_coalesced, _reduce_scatter_base, _get_default_group, _rank_not_in_group)

set_all(globals(), *all_of(_collectives, _groups))
