"""Layers that make pixels from channels, and back."""

from __future__ import annotations

from typing import Any

from .. import functional as F  # noqa: N812 - torch's name
from ._layers import Shown

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Shown):
    """Makes squares of pixels from channels."""

    __constants__ = ["upscale_factor"]
    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Shown):
    """Makes channels from squares of pixels."""

    __constants__ = ["downscale_factor"]
    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)
