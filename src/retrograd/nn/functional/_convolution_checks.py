"""What convolutions refuse, in torch's words."""

from __future__ import annotations

from math import prod
from typing import Any

from ... import _dtypes
from ..._dtypes import CPP_NAMES
from ...tensor import _base
from ._linear import dtype_hint


def sizes(shape: Any) -> str:
    """Write a shape as torch does inside sentences."""
    return str(list(shape))


def _is_int(value: Any) -> bool:
    return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, bool))


def need_ints(*numbers: Any) -> None:
    """Refuse sequences of other numbers than ints: a plan that is kept would be found for equal ones."""
    for value in numbers:
        if isinstance(value, (tuple, list)) and not all(map(_is_int, value)):
            raise TypeError("must be ints")


def numbers(name: str, value: Any, rank: int, wanted: int) -> tuple[int, ...]:
    """Read a number for all axes or one for each; `rank` is the function's, `wanted` what the weight has."""
    if type(value) is int and rank == wanted:
        return (value,) * rank
    given = (value,) * rank if _is_int(value) else tuple(value)
    if not all(map(_is_int, given)):
        raise TypeError(f"{name} must be integers")
    if len(given) == 1:
        given *= wanted
    if len(given) != wanted:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {wanted} values to match the convolution "
            f"dimensions, but got {name}={sizes(given)}"
        )
    return given


def check_rank(name: str, shape: tuple[int, ...], rank: int) -> bool:
    """Tell whether an input is a batch; refuse one that is neither a batch nor a single sample."""
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{sizes(shape)}"
        )
    return len(shape) == rank + 2


def check_numbers(
    stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], output_padding: tuple[int, ...] = ()
) -> None:
    """Refuse numbers out of range."""
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if output_padding and min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {sizes(dilation)}")


def check_shapes(
    input: tuple[int, ...],
    weight: tuple[int, ...],
    bias: tuple[int, ...] | None,
    groups: int,
    transposed: bool = False,
) -> None:
    """Refuse an input, a weight and a bias that do not fit together."""
    if len(input) != len(weight):
        raise RuntimeError(
            f"Expected {len(weight)}-dimensional input for {len(weight)}-dimensional weight {sizes(weight)}, but got "
            f"{len(input)}-dimensional input of size {sizes(input)} instead"
        )
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{sizes(weight)} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"[{sizes(weight)}] instead"
        )
    channels, made = (weight[0], weight[1] * groups) if transposed else (weight[1] * groups, weight[0])
    if input[1] != channels:
        given = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {sizes(weight)}, expected input{sizes(input)} to have {channels} channels, "
            f"but got {input[1]} channels instead" + _channels_hint(input, channels)
        )
    if bias is not None and bias != (made,):
        given = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {given}weight of size {sizes(weight)}, expected bias to be 1-dimensional with {made} elements, but "
            f"got bias of size {sizes(bias)} instead"
        )
    if 0 in weight[2:]:
        height, width = (1, *weight[2:])[-2:]
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel_height: {height} kernel_width: {width}"
        )


def _channels_hint(input: tuple[int, ...], channels: int) -> str:
    if input[-1] != channels or input[-1] == input[-2]:  # a square image has its channels where they belong
        return ""
    order = (0, len(input) - 1, *range(1, len(input) - 1))
    return f"\nHint: channels come second here, and this input has {channels} last: input.permute{order}."


def check_reach(input: tuple[int, ...], kernel: tuple[int, ...], padding: Any, dilation: Any) -> None:
    """Refuse a kernel that does not fit into the input, or an input without places."""
    padded = [s + 2 * p for s, p in zip(input[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(s < r for s, r in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )
    check_places(input)


def check_places(input: tuple[int, ...]) -> None:
    """Refuse an input that is empty other than by its batch or its channels."""
    if 0 in input[2:]:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {sizes(input)}")


def check_output(
    input: tuple[int, ...], size: tuple[int, ...], stride: Any, dilation: Any, output_padding: Any
) -> None:
    """Refuse a transposed convolution whose output would not be one."""
    check_places(input)
    if any(p >= s and p >= d for p, s, d in zip(output_padding, stride, dilation, strict=True)):
        axes = ("depth", "height", "width")[-max(2, len(stride)) :]

        def shown(name: str, values: Any, fill: int) -> str:
            full = (fill,) * (len(axes) - len(values)) + tuple(values)
            return " ".join(f"{name}_{axis}: {value}" for axis, value in zip(axes, full, strict=True))

        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"{shown('output_padding', output_padding, 0)} {shown('stride', stride, 1)} {shown('dilation', dilation, 1)}"
        )
    if min(size) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({' x '.join(map(str, input[2:]))}). Calculated output size per channel: "
            f"({' x '.join(map(str, size))}). Output size is too small"
        )


def check_types(
    input: Any, weight: Any, bias: Any, groups: int, transposed: bool = False, bias_first: bool = False
) -> None:
    """Refuse a mixture of dtypes, and truth values; `bias_first`: torch looks at the bias before the weight."""
    one, two = _base.dtype_of(input), _base.dtype_of(weight)
    if bias is not None and _base.dtype_of(bias) is not one and (two is one or bias_first):
        raise RuntimeError(
            f"Input type ({CPP_NAMES[one.name]}) and bias type ({CPP_NAMES[_base.dtype_of(bias).name]}) should be the same\n"
            f"{dtype_hint(input, bias)}"
        )
    if one is not two and one.kind != _dtypes.BOOL_KIND:
        large = _goes_to_mkldnn(tuple(input.shape), tuple(weight.shape), groups)
        if one is _dtypes.bfloat16 or (one is _dtypes.float32 and large):
            raise RuntimeError(
                f"Input type ({_class_name(one)}) and weight type ({_class_name(two)}) should be the same or input "
                f"should be a MKLDNN tensor and weight is a dense tensor\n{dtype_hint(input, weight)}"
            )
        if one.is_complex:
            raise RuntimeError(
                f"Input type ({_class_name(one)}) and weight type ({_class_name(two)}) should be the same\n"
                f"{dtype_hint(input, weight)}"
            )
        raise RuntimeError(
            f"expected scalar type {one._scalar_name} but found {two._scalar_name}\n{dtype_hint(input, weight)}"
        )
    if one.kind == _dtypes.BOOL_KIND:
        deep = weight.ndim == 5
        kernel = "compute_columns3d" if deep else "slow_conv2d_cpu"
        if transposed:
            kernel = f"slow_conv_transpose{3 if deep else 2}d_out_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def _goes_to_mkldnn(input: tuple[int, ...], weight: tuple[int, ...], groups: int) -> bool:
    """Tell whether torch gives float32 arrays of these shapes to its library, which names types in its own way."""
    return groups > 1 or min((1, *weight[2:])[-2:]) > 3 or input[0] > 1 or prod(input[:4]) > 20480


def _class_name(dtype: Any) -> str:
    if dtype is _dtypes.bfloat16 or dtype.is_complex:
        return f"CPU{dtype._scalar_name}Type"
    return f"torch.{dtype._scalar_name}Tensor"


# ---- unfold and fold ----
def check_blocks(kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
    """Refuse the numbers of sliding blocks that are out of range."""
    for name, values, low, words in (
        ("kernel size", kernel, 1, "kernel"),
        ("dilation", dilation, 1, "dilation"),
        ("padding", padding, 0, "pad"),
        ("stride", stride, 1, "stride"),
    ):
        if min(values) < low:
            bound = "be greater than zero" if low else "be non-negative"
            raise RuntimeError(f"{name} should {bound}, but got {words}_height: {values[0]} {words}_width: {values[1]}")


def pair(name: str, value: Any) -> tuple[int, int]:
    """Read a number for both axes, or two."""
    given = (value, value) if _is_int(value) else tuple(value)
    if len(given) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(given)}")
    return given
