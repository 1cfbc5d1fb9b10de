"""A layer that takes channels from each group in turn."""

from __future__ import annotations

from typing import Any

from .. import functional as F  # noqa: N812 - torch's name
from ._layers import Shown

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Shown):
    """Takes channels from each group in turn."""

    __constants__ = ["groups"]
    _shown = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)
