"""torch.distributed.nn: collectives through which gradients flow, for a group of one process."""

from ..._absent import finder
from .functional import *  # noqa: F403
from .functional import __all__ as __all__

__getattr__ = finder("torch.distributed.nn")
