"""What data pipes of files share."""

from importlib import import_module
from typing import Any

from . import common, decoder

snapshot: Any = import_module(".snapshot", __name__)

__all__ = ["common", "decoder", "snapshot"]
