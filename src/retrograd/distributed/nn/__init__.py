"""torch.distributed.nn: collectives through which gradients flow, for a group of one process."""

from ..._absent import finder
from ..._public import all_of, set_all
from . import functional
from .functional import *  # noqa: F403

__getattr__ = finder("torch.distributed.nn")

set_all(globals(), *all_of(functional))
