"""torch.distributed.tensor._api: where torch writes what `distributed.tensor` hands on."""

from . import *  # noqa: F403
