"""torch.distributed.constants: how long processes wait for each other."""

from .._absent import finder
from ._groups import default_pg_timeout

__getattr__ = finder("torch.distributed.constants")

__all__ = ["default_pg_timeout"]
