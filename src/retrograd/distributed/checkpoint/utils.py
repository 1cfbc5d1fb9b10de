"""torch.distributed.checkpoint.utils: another home of the error."""

from .api import CheckpointException

__all__ = ["CheckpointException"]
