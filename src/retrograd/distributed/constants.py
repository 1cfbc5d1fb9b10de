"""torch.distributed.constants: how long processes wait for each other."""

from ._groups import default_pg_timeout

__all__ = ["default_pg_timeout"]
