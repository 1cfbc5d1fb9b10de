"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..._absent import finder
from ..._public import set_all
from ...tensor._functions.creation import empty
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..parameter import later_parameter, make_parameter
from ._layers import NamedInit
from .lazy import LazyModuleMixin
from .module import Module

MODES = ("zeros", "reflect", "replicate", "circular")


def _numbers(value: Any, rank: int) -> Any:
    """Return one number for each axis."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * rank


class _ConvNd(NamedInit, Module):
    """What all convolution layers have in common; `rank` is the number of axes they go along."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    rank = 0
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Any
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            names = {"same", "valid"}
            if padding not in names:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {names}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in MODES:
            raise ValueError(
                f"padding_mode must be one of {{{str(list(MODES))[1:-1]}}}, but got padding_mode={padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._ends()
        self.weight = make_parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        bias_or_none = make_parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", bias_or_none)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def _ends(self) -> list[int]:
        """Return the padding as `F.pad` takes it: before and after, from the last axis on."""
        if not isinstance(self.padding, str):
            return [one for one in reversed(self.padding) for _ in range(2)]
        if self.padding == "valid":
            return [0] * 2 * len(self.kernel_size)
        total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=False)]
        return [end for one in reversed(total) for end in (one // 2, one - one // 2)]

    def reset_parameters(self) -> None:
        """Draw weights and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _own(self) -> tuple[Any, Any]:
        """Return weight and bias from where they are as a rule: `self.weight` asks several places first."""
        own = self._parameters
        try:
            return own["weight"], own["bias"]
        except KeyError:
            return self.weight, self.bias

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"


class _Conv(_ConvNd):
    """A convolution along `rank` axes, computed by the function of that name."""

    function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rank = self.rank
        if not isinstance(padding, str):
            padding = _numbers(padding, rank)
        sizes = (_numbers(kernel_size, rank), _numbers(stride, rank), padding, _numbers(dilation, rank))
        super().__init__(
            in_channels, out_channels, *sizes, False, (0,) * rank, groups, bias, padding_mode, device, dtype
        )

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self.rank
        return type(self).function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, *self._own())


class Conv1d(_Conv):
    """Convolves (N, C, L).

    Args:
        in_channels: C of the input
        out_channels: C of the output
        kernel_size: the size of the kernel
        stride: how far it moves
        padding: how much stands around the input; "same" or "valid"
        dilation: the distance of the kernel's elements
        groups: into how many groups the channels are divided
        bias: whether there is a bias
        padding_mode: "zeros", "reflect", "replicate" or "circular"
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.Conv1d(3, 8, kernel_size=3, padding=1)(torch.ones(2, 3, 10)).shape
        torch.Size([2, 8, 10])
    """

    rank = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolves images (N, C, H, W).

    Args:
        in_channels: C of the input
        out_channels: C of the output
        kernel_size: the size of the kernel, a number or one for each axis
        stride: how far it moves
        padding: how much stands around the input; "same" or "valid"
        dilation: the distance of the kernel's elements
        groups: into how many groups the channels are divided
        bias: whether there is a bias
        padding_mode: "zeros", "reflect", "replicate" or "circular"
        device: where the parameters are
        dtype: their dtype

    Shape:
        (N, in_channels, H, W) to (N, out_channels, H', W'), H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1.

    Example:
        >>> layer = nn.Conv2d(3, 8, kernel_size=3, stride=2)
        >>> layer(torch.ones(1, 3, 9, 9)).shape
        torch.Size([1, 8, 4, 4])
        >>> layer.weight.shape
        torch.Size([8, 3, 3, 3])
    """

    rank = 2
    function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolves (N, C, D, H, W).

    Args:
        in_channels: C of the input
        out_channels: C of the output
        kernel_size: the size of the kernel, a number or one for each axis
        stride: how far it moves
        padding: how much stands around the input; "same" or "valid"
        dilation: the distance of the kernel's elements
        groups: into how many groups the channels are divided
        bias: whether there is a bias
        padding_mode: "zeros", "reflect", "replicate" or "circular"
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.Conv3d(1, 2, kernel_size=3)(torch.ones(1, 1, 5, 5, 5)).shape
        torch.Size([1, 2, 3, 3, 3])
    """

    rank = 3
    function = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """The transpose of a convolution along `rank` axes."""

    function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        kernel_size, stride, padding, dilation, output_padding = (
            _numbers(one, self.rank) for one in (kernel_size, stride, padding, dilation, output_padding)
        )
        sizes = (kernel_size, stride, padding, dilation)
        super().__init__(
            in_channels, out_channels, *sizes, True, output_padding, groups, bias, padding_mode, device, dtype
        )

    def _output_padding(
        self,
        input: Any,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """Return the output padding by which the output gets a given size: one stride has several inputs of one size."""
        if output_size is None:
            return self.output_padding
        wanted = list(output_size)
        lead = input.dim() - num_spatial_dims  # of batch and channels
        if len(wanted) == num_spatial_dims + lead:
            wanted = wanted[lead:]
        if len(wanted) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have {num_spatial_dims} "
                f"or {num_spatial_dims + lead} elements (got {len(wanted)})"
            )
        spread = (1,) * num_spatial_dims if dilation is None else dilation
        least = [
            (length - 1) * step - 2 * p + d * (k - 1) + 1
            for length, step, p, d, k in zip(input.shape[lead:], stride, padding, spread, kernel_size, strict=True)
        ]
        most = [low + step - 1 for low, step in zip(least, stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an input "
                f"of {input.size()[2:]})"
            )
        return tuple([size - low for size, low in zip(wanted, least, strict=True)])

    def forward(self, input: Any, output_size: Any = None) -> Any:
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.rank, self.dilation
        )
        weight, bias = self._own()
        return type(self).function(
            input, weight, bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of Conv1d."""

    rank = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """Applies the transpose of a convolution to images (N, C, H, W).

    Args:
        in_channels: C of the input
        out_channels: C of the output
        kernel_size: the size of the kernel, a number or one for each axis
        stride: how far it moves in the output
        padding: how much is cut off around the output
        output_padding: how much longer the output is at the end of each axis
        groups: into how many groups the channels are divided
        bias: whether there is a bias
        dilation: the distance of the kernel's elements
        padding_mode: "zeros"
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2)(torch.ones(1, 8, 4, 4)).shape
        torch.Size([1, 3, 8, 8])
    """

    rank = 2
    function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of Conv3d."""

    rank = 3
    function = staticmethod(F.conv_transpose3d)


# ---- channels known at the first call ----
class _LazyConv(LazyModuleMixin):
    """Takes the number of input channels from the first input."""

    def reset_parameters(self: Any) -> None:
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def _wait(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Put parameters without a shape into the place of empty ones."""
        self.out_channels = out_channels
        self.weight = later_parameter(device=device, dtype=dtype)
        if bias:
            self.bias = later_parameter(device=device, dtype=dtype)

    def initialize_parameters(self: Any, input: Any, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        rank = self.rank
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        self.in_channels = input.shape[-rank - 1]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConvNd(_LazyConv):
    """A lazy convolution."""

    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype
        )
        self._wait(out_channels, bias, device, dtype)


class _LazyConvTransposeNd(_LazyConv):
    """A lazy transposed convolution."""

    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device=device,
            dtype=dtype,
        )  # fmt: skip
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvNd, Conv1d):
    """A Conv1d whose input channels are those of its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvNd, Conv2d):
    """A Conv2d whose input channels are those of its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvNd, Conv3d):
    """A Conv3d whose input channels are those of its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTransposeNd, ConvTranspose1d):
    """A ConvTranspose1d whose input channels are those of its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTransposeNd, ConvTranspose2d):
    """A ConvTranspose2d whose input channels are those of its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTransposeNd, ConvTranspose3d):
    """A ConvTranspose3d whose input channels are those of its first input."""

    cls_to_become = ConvTranspose3d


__getattr__ = finder("torch.nn.modules.conv")


set_all(globals())
