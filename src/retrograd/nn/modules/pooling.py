"""Pooling layers."""

from __future__ import annotations

from typing import Any

from ..._public import set_all
from .. import functional as F  # noqa: N812 - torch's name
from ._layers import NamedInit, Shown
from .module import Module


def _each(value: Any, ndim: int) -> tuple[Any, ...]:
    """Give every axis its number."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * ndim


# ---- the largest element ----
class _MaxPoolNd(Shown):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    _function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        arguments = (input, self.kernel_size, self.stride, self.padding, self.dilation)
        return self._function(*arguments, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class MaxPool1d(_MaxPoolNd):
    """Takes the largest element of each window of the last axis.

    Args:
        kernel_size: the size of a window
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many places stand around the input
        dilation: the distance of a window's elements
        return_indices: also return where the largest elements are
        ceil_mode: whether a window may reach over the end

    Example:
        >>> nn.MaxPool1d(2)(torch.tensor([[1.0, 4.0, 2.0, 3.0]]))
        tensor([[4., 3.]])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Takes the largest element of each window of the last two axes.

    Args:
        kernel_size: the size of a window, a number or one for each axis
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many places stand around the input
        dilation: the distance of a window's elements
        return_indices: also return where the largest elements are
        ceil_mode: whether a window may reach over the end

    Example:
        >>> nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Takes the largest element of each window of the last three axes."""

    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(NamedInit, Shown):
    _shown = ("kernel_size", "stride", "padding")
    _ndim: int
    _function: Any

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, self._ndim)
        self.stride = _each(kernel_size if stride is None else stride, self._ndim)
        self.padding = _each(padding, self._ndim)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts what `MaxPool1d` took back where it was."""

    _ndim = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts what `MaxPool2d` took back where it was."""

    _ndim = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts what `MaxPool3d` took back where it was."""

    _ndim = 3
    _function = staticmethod(F.max_unpool3d)


# ---- the mean ----
class _AvgPoolNd(Shown):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]
    _shown = ("kernel_size", "stride", "padding")
    kernel_size: Any
    stride: Any
    padding: Any


class AvgPool1d(_AvgPoolNd):
    """Takes the mean of each window of the last axis.

    Args:
        kernel_size: the size of a window
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many zeros stand around the input
        ceil_mode: whether a window may reach over the end
        count_include_pad: whether these zeros count

    Example:
        >>> nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 5.0, 7.0]]))
        tensor([[2., 6.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, 1)
        self.stride = _each(kernel_size if stride is None else stride, 1)
        self.padding = _each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(NamedInit, _AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]
    _function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        counted = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return self._function(input, self.kernel_size, self.stride, self.padding, *counted)


class AvgPool2d(_AvgPoolWithDivisor):
    """Takes the mean of each window of the last two axes.

    Args:
        kernel_size: the size of a window, a number or one for each axis
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many zeros stand around the input
        ceil_mode: whether a window may reach over the end
        count_include_pad: whether these zeros count
        divisor_override: divide by this, not by the size of a window

    Example:
        >>> nn.AvgPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolWithDivisor):
    """Takes the mean of each window of the last three axes."""

    _function = staticmethod(F.avg_pool3d)


# ---- drawn windows ----
class _FractionalMaxPoolNd(NamedInit, Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _ndim: int
    _function: Any

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        ndim, name = self._ndim, type(self).__name__
        self.kernel_size = _each(kernel_size, ndim)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _each(output_size, ndim)
        self.output_ratio = None if output_ratio is None else _each(output_ratio, ndim)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        arguments = (input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return self._function(*arguments, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Takes the largest element of windows of the last two axes whose places are drawn."""

    _ndim = 2
    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Takes the largest element of windows of the last three axes whose places are drawn."""

    _ndim = 3
    _function = staticmethod(F.fractional_max_pool3d)


# ---- the p-norm ----
class _LPPoolNd(Shown):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _function: Any

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """Takes the p-norm of each window of the last axis."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """Takes the p-norm of each window of the last two axes."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """Takes the p-norm of each window of the last three axes."""

    _function = staticmethod(F.lp_pool3d)


# ---- to a given size ----
class _AdaptiveAvgPoolNd(Shown):
    __constants__ = ["output_size"]
    _shown = ("output_size",)
    _function: Any

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return self._function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Takes means of the last axis so that as many remain as wanted."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Takes means of the last two axes so that as many remain as wanted.

    Args:
        output_size: how many, a number or one for each axis; None keeps an axis

    Example:
        >>> nn.AdaptiveAvgPool2d(1)(torch.arange(16.0).reshape(1, 4, 4))
        tensor([[[7.5000]]])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Takes means of the last three axes so that as many remain as wanted."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(Shown):
    __constants__ = ["output_size", "return_indices"]
    _shown = ("output_size",)
    _function: Any

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return self._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Takes the largest elements of parts of the last axis, as many as wanted."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Takes the largest elements of parts of the last two axes, as many as wanted."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Takes the largest elements of parts of the last three axes, as many as wanted."""

    _function = staticmethod(F.adaptive_max_pool3d)


set_all(globals())
