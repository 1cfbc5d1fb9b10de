"""Padding layers."""

from __future__ import annotations

from typing import Any

from ..._public import set_all
from .. import functional as F  # noqa: N812 - torch's name
from ._layers import NamedInit
from .module import Module


class _PadNd(NamedInit, Module):
    """Pads the last axes; `padding` is given before and after, from the last axis on, or one number for all."""

    __constants__ = ["padding"]
    _ndim: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * (2 * self._ndim)

    def extra_repr(self) -> str:
        return f"{self.padding}"

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self._mode)


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Any) -> Any:
        ndim = self._ndim
        if input.dim() not in (ndim + 1, ndim + 2):
            raise ValueError(f"expected {ndim + 1}D or {ndim + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """Pads the last axis with what is at the other end."""

    _ndim = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two axes with what is at the other end."""

    _ndim = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three axes with what is at the other end."""

    _ndim = 3


class ConstantPad1d(_ConstantPadNd):
    """Pads the last axis with a value."""

    _ndim = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two axes with a value."""

    _ndim = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three axes with a value."""

    _ndim = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last axis with its mirror image."""

    _ndim = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two axes with their mirror image."""

    _ndim = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three axes with their mirror image."""

    _ndim = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last axis with its outermost elements."""

    _ndim = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two axes with their outermost elements."""

    _ndim = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three axes with their outermost elements."""

    _ndim = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last axis with zeros."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads the last two axes with zeros."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last three axes with zeros."""


set_all(globals())
