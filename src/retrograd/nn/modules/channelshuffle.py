"""A layer that takes channels from each group in turn."""

from __future__ import annotations

from typing import Any

from .. import functional as F  # noqa: N812 - torch's name
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Takes channels from each group in turn."""

    __constants__ = ["groups"]  # noqa: RUF012 - torch's

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
