"""torch.distributed.algorithms: what processes do besides the collectives."""

from ..._absent import finder

__getattr__ = finder("torch.distributed.algorithms")
