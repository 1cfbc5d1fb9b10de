"""Convolutions, and the unfolding into patches that they rest on."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ..._ops import convolution as r
from ..._ops.convolution_kernels import places_of
from ...overrides import overridable, overridable_as
from ...tensor import _base
from ...tensor._functions.rearrange import constant_pad_nd
from ...tensor._recording.record import record
from . import _convolution_checks as checks
from ._public import public_names


def _convolve(
    name: str, rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    """Convolve a batch or a single sample along `rank` axes."""
    if len(input._array.shape) == rank + 2 and type(padding) is not str:
        return _batch(rank, input, weight, bias, (stride, padding, dilation), groups)
    if not checks.check_rank(name, input._array.shape, rank):
        checks.need_ints(stride, padding, dilation)
        single = _convolve(name, rank, input.unsqueeze(0), weight, bias, stride, padding, dilation, groups)
        return single.squeeze(0)
    named = isinstance(padding, str)
    input, padding = _padding_by_name(input, weight, stride, padding, dilation, rank)
    return _batch(rank, input, weight, bias, (stride, padding, dilation), groups, not named)


def _batch(
    rank: int, input: Any, weight: Any, bias: Any, numbers: tuple[Any, ...], groups: int, bias_first: bool = True
) -> Any:
    """Convolve a batch by (stride, padding, dilation), or by the transpose where `output_padding` is the fourth number."""
    x, w = input._array, weight._array
    if list in map(type, numbers):
        numbers = tuple([tuple(n) if type(n) is list else n for n in numbers])
    params = _plan(rank, x.shape, w.shape, None if bias is None else bias._array.shape, numbers, groups)
    transposed = len(numbers) == 4
    if x.dtype is not w.dtype or x.dtype.kind == "b" or (bias is not None and bias._array.dtype is not x.dtype):
        checks.check_types(input, weight, bias, groups, transposed, bias_first and not transposed)
    return record(r.transposed_convolution if transposed else r.convolution, (input, weight, bias), params)


@lru_cache(maxsize=8192)
def _plan(
    rank: int,
    input: tuple[int, ...],
    weight: tuple[int, ...],
    bias: tuple[int, ...] | None,
    numbers: tuple[Any, ...],
    groups: int,
) -> dict[str, Any]:
    """Check shapes and numbers, and return what the operation needs to know of them; most calls repeat one before."""
    wanted = _spatial_rank(weight, groups)
    names = ("stride", "padding", "dilation", "output_padding")
    stride, padding, dilation, *more = (
        checks.numbers(name, value, rank, wanted) for name, value in zip(names, numbers, strict=False)
    )
    checks.check_numbers(stride, padding, dilation, *more)
    checks.check_shapes(input, weight, bias, groups, transposed=bool(more))
    if more:
        size = tuple(
            [
                (s - 1) * t - 2 * p + d * (k - 1) + o + 1
                for s, k, t, p, d, o in zip(input[2:], weight[2:], stride, padding, dilation, *more, strict=True)
            ]
        )
        checks.check_output(input, size, stride, dilation, *more)
    else:
        checks.check_reach(input, weight[2:], padding, dilation)
        size = places_of(input[2:], weight[2:], stride, padding, dilation)
    return {"size": size, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _spatial_rank(weight: tuple[int, ...], groups: int) -> int:
    if len(weight) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    return len(weight) - 2


def _padding_by_name(
    input: Any, weight: Any, stride: Any, padding: str, dilation: Any, rank: int
) -> tuple[Any, tuple[int, ...]]:
    """Return the padding that "same" or "valid" means, and the input, padded where one side needs more than the other."""
    kernel, given = tuple(weight._array.shape[2:]), tuple(input._array.shape)
    if len(given) != len(kernel) + 2:
        raise RuntimeError(
            f"Expected {len(kernel) + 2}-dimensional input for {len(kernel) + 2}-dimensional weight"
            f"{checks.sizes(weight._array.shape)}, but got {len(given)}-dimensional input of size {checks.sizes(given)} "
            "instead"
        )
    if padding == "valid":
        return input, (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(step != 1 for step in checks.numbers("stride", stride, rank, len(kernel))):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(checks.numbers("dilation", dilation, rank, len(kernel)), kernel, strict=True)]
    if any(one % 2 for one in total):
        ends = [end for one in reversed(total) for end in (0, one % 2)]
        input = constant_pad_nd(input, ends)
    return input, tuple([one // 2 for one in total])


def _convolve_transposed(
    name: str,
    rank: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Any:
    """Convolve a batch or a single sample by the transpose of a convolution."""
    numbers = (stride, padding, dilation, output_padding)
    if checks.check_rank(name, input._array.shape, rank):
        return _batch(rank, input, weight, bias, numbers, groups)
    checks.need_ints(*numbers)
    return _batch(rank, input.unsqueeze(0), weight, bias, numbers, groups).squeeze(0)


# ---- the public functions ----
_SHAPES = {
    1: ("sequences (N, C, L)", "k"),
    2: ("images (N, C, H, W)", "kh, kw"),
    3: ("volumes (N, C, D, H, W)", "kd, kh, kw"),
}


def _of_rank(rank: int) -> tuple[Any, Any]:
    """Make the convolution along so many axes, and its transpose."""
    name, transpose = f"conv{rank}d", f"conv_transpose{rank}d"
    inputs, kernel = _SHAPES[rank]

    def conv(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        return _convolve(name, rank, input, weight, bias, stride, padding, dilation, groups)

    def conv_transpose(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        return _convolve_transposed(
            transpose, rank, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    return (
        overridable_as(
            name,
            conv,
            f"""Convolve {inputs}, or one of them, with kernels (out, C / groups, {kernel}).

    Args:
        input: {inputs}
        weight: (out, C / groups, {kernel})
        bias: (out)
        stride: how far the kernel moves, a number or one for each axis
        padding: how many zeros stand around the input, "same" or "valid"
        dilation: the distance of the kernel's elements
        groups: into how many groups the channels are divided

    Example:
        >>> F.{name}(torch.ones(1, 2{", 5" * rank}), torch.ones(4, 2{", 3" * rank}), padding=1, stride=2).shape
        torch.Size([1, 4{", 3" * rank}])
    """,
            lowered="cpu cuda",
        ),
        overridable_as(
            transpose,
            conv_transpose,
            f"""Apply the transpose of {name}; the weight is (C, out / groups, {kernel}).

    Args:
        input: {inputs}
        weight: (C, out / groups, {kernel})
        bias: (out)
        stride: how far the kernel moves in the output
        padding: how much is cut off around the output
        output_padding: how much longer the output is at the end of each axis
        groups: into how many groups the channels are divided
        dilation: the distance of the kernel's elements

    Example:
        >>> F.{transpose}(torch.ones(1, 4{", 3" * rank}), torch.ones(4, 2{", 3" * rank}), stride=2).shape
        torch.Size([1, 2{", 7" * rank}])
    """,
            lowered="cpu cuda",
        ),
    )


(conv1d, conv_transpose1d), (conv2d, conv_transpose2d), (conv3d, conv_transpose3d) = map(_of_rank, (1, 2, 3))


@overridable(in_functional=False)
def convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """Convolve a batch along as many axes as the weight has, or by the transpose; every argument is given."""
    rank = weight._array.ndim - 2
    numbers = (stride, padding, dilation, output_padding) if transposed else (stride, padding, dilation)
    return _batch(rank, input, weight, bias, numbers, groups)


@overridable(lowered="cpu cuda")
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Convolve sequences laid out (time, batch, channels) with a weight (k, channels, out)."""
    if input._array.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight._array.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias._array.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input._array.shape[2] != weight._array.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight._array.shape[2] != bias._array.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    out = _batch(1, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, (1, pad, 1), 1)
    return out.permute(2, 0, 1)


# ---- patches ----
@overridable
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Take all windows of images (N, C, H, W) as columns.

    Args:
        input: (N, C, H, W), or one image
        kernel_size: the size of a window
        dilation: the distance of its elements
        padding: how many zeros stand around the image
        stride: how far the window moves

    Returns:
        A tensor (N, C * kh * kw, L), with a column for each of the L windows.

    Example:
        >>> F.unfold(torch.ones(1, 3, 4, 4), kernel_size=2).shape
        torch.Size([1, 12, 9])
    """
    shape = tuple(input._array.shape)
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    kernel, dilation, padding, stride = (checks.pair(name, value) for name, value in given.items())
    checks.check_blocks(kernel, dilation, padding, stride)
    if len(shape) < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{len(shape)}, {len(shape) - 1}], but got 2)"
        )
    if len(shape) > 4 or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {checks.sizes(shape)}"
        )
    places = places_of(shape[-2:], kernel, stride, padding, dilation)
    if min(places) < 1:
        raise RuntimeError(
            f"Given input with spatial size ({shape[-2]}, {shape[-1]}), kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {places}, but its components must "
            "be at least one."
        )
    _refuse_integers("im2col_out_cpu", input)
    params = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return record(r.im2col, (input,), params, "Im2ColBackward0")


@overridable
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Add up windows (N, C * kh * kw, L) to images: the transpose of `unfold`.

    Args:
        input: (N, C * kh * kw, L)
        output_size: the height and width of the image
        kernel_size: the size of a window
        dilation: the distance of its elements
        padding: how many zeros stood around the image
        stride: how far the window moved

    Example:
        >>> F.fold(torch.ones(1, 4, 9), (4, 4), kernel_size=2).shape
        torch.Size([1, 1, 4, 4])
    """
    shape = tuple(input._array.shape)
    given = {"output_size": output_size, "kernel_size": kernel_size}
    given |= {"dilation": dilation, "padding": padding, "stride": stride}
    size, kernel, dilation, padding, stride = (checks.pair(name, value) for name, value in given.items())
    checks.check_blocks(kernel, dilation, padding, stride)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {checks.sizes(shape)}"
        )
    if shape[-2] % prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    high, wide = places_of(size, kernel, stride, padding, dilation)
    if high * wide != shape[-1] or min(high, wide) < 1:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
            f"expected size of input's dimension 2 to match the calculated number of sliding blocks {high} * {wide} = "
            f"{high * wide}, but got input.size(2)={shape[-1]}."
        )
    _refuse_integers("col2im_out_cpu", input)
    params = {"size": size, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return record(r.col2im, (input,), params, "Col2ImBackward0")


def _refuse_integers(kernel: str, input: Any) -> None:
    if input._array.dtype.kind in "iu":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{_base.dtype_of(input)._scalar_name}'")


__all__ = public_names(globals())
