"""torch.distributed.distributed_c10d: where torch has its functions for processes."""

from ._collectives import *  # noqa: F403
from ._groups import *  # noqa: F403
