"""What data pipes of files share."""

from . import common, decoder, snapshot

__all__ = ["common", "decoder", "snapshot"]
