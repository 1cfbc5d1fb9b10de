"""torch.utils.serialization: settings of `save` and `load`."""

from . import config

__all__ = ["config"]
