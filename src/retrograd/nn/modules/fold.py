"""Layers that cut images into patches, and add patches up to images."""

from __future__ import annotations

from typing import Any

from .. import functional as F  # noqa: N812 - torch's name
from ._layers import Shown


class Unfold(Shown):
    """Lays out the patches of images as columns."""

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]
    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Shown):
    """Adds columns of patches up to images of a given size."""

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]
    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


__all__ = ["Fold", "Unfold"]
