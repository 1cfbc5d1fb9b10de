"""Pooling: over windows of a fixed size, to a given size, over windows whose places are drawn; and unpooling."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import is_meta, raw_leaf
from ..._ops import pooling as p
from ..._ops import resizing
from ...overrides import overridable, overridable_as
from ...tensor._functions.random_tensors import rand
from ...tensor._functions.reduce import mean
from ...tensor._object.devices import beside, on_host
from ...tensor._recording.record import record
from ...tensor._recording.refusals import kernel, refuse, refused
from ._public import public_names

refused("max_pool1d", bic=kernel("max_pool1d_impl"))
refused("max_pool1d_with_indices", "max_pool2d", bc=kernel("max_pool2d"))
refused("max_pool3d", bc=kernel("max_pool3d"))
refused("avg_pool1d", "avg_pool2d", bc=kernel("avg_pool2d"))
refused("avg_pool3d", bch=kernel("avg_pool3d_out_frame"))
refused("max_unpool1d", "max_unpool2d", bic=kernel("max_unpool2d"))
refused("max_unpool3d", bic=kernel("max_unpool3d"))

_NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}
_RANKS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}
_SIZES = {1: ("kH", "kW"), 2: ("kH", "kW"), 3: ("kT", "kH", "kW")}
_STEPS = {1: ("dH", "dW"), 2: ("dH", "dW"), 3: ("dT", "dH", "dW")}
_DILATIONS = {1: ("dilationH", "dilationW"), 2: ("dilationH", "dilationW"), 3: ("dilationT", "dilationH", "dilationW")}
LAST = {1: "last axis", 2: "last two axes", 3: "last three axes"}  # in docstrings
MANY = 64  # elements of a window from which all windows are laid out, instead of going through them place by place


def ints_of(name: str, argument: str, position: int, value: Any) -> tuple[int, ...]:
    """Read an int or a sequence of ints."""
    if isinstance(value, int) or (hasattr(value, "__index__") and not isinstance(value, (list, tuple))):
        return (int(value),)
    if not isinstance(value, (list, tuple)):
        kind = type(value).__name__
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be tuple of ints, not {kind}")
    for at, one in enumerate(value):
        if not isinstance(one, int) and not hasattr(one, "__index__"):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be tuple of ints, but found element of type "
                f"{type(one).__name__} at pos {at}"
            )
    return tuple([int(one) for one in value])


def _ints(name: str, ndim: int, argument: str, position: int, value: Any) -> tuple[int, ...]:
    """Read one number for each axis, or one for all."""
    values = ints_of(name, argument, position, value)
    if len(values) == 1:
        return values * ndim
    if len(values) == ndim:
        return values
    if name == "avg_pool1d":
        raise RuntimeError(f"{name}() argument '{argument}' should contain one int (got {len(values)})")
    if name == "max_pool1d":
        raise RuntimeError(
            f"max_pool1d() {argument} must be an int, list of ints or tuple of ints of size 1 but got size {len(values)}"
        )
    omitted = "omitted, " if argument == "stride" else ""
    words = "must be either" if argument == "dilation" else "must either be"
    if name == "avg_pool3d":
        words = "must be"
    raise RuntimeError(f"{name}: {argument} {words} {omitted}a single int, or a tuple of {_NUMBERS[ndim]}")


def window_count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return how many windows an axis has."""
    count = (size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1  # the last would lie in the padding alone
    return count


def _check_positive(what: str, names: tuple[str, ...], values: tuple[int, ...]) -> None:
    if min(values) <= 0:
        values = (1,) * (len(names) - len(values)) + values
        shown = " ".join([f"{name}: {value}" for name, value in zip(names, values, strict=True)])
        raise RuntimeError(f"{what} should be greater than zero, but got {shown}")


def _too_large(kernel: tuple[int, ...], sizes: tuple[int, ...]) -> str:
    return f"Hint: a window of {list(kernel)} does not fit into an input of {list(sizes)}."


@lru_cache(maxsize=1024, typed=True)
def _windows(
    name: str, shape: Any, ndim: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, ...]:
    """Read the arguments of a pooling function, refuse what torch refuses, and return the windows."""
    kernel = _ints(name, ndim, "kernel_size", 2, kernel)
    stride = kernel if stride is None or stride == () else _ints(name, ndim, "stride", 3, stride)
    padding = _ints(name, ndim, "padding", 4, padding)
    dilation = _ints(name, ndim, "dilation", 5, dilation)
    _check_rank(name, ndim, shape)
    sizes = tuple(shape)[len(shape) - ndim :]
    if name == "max_pool1d":
        _check_max_pool1d(kernel[0], stride[0], padding[0], dilation[0])
    for k, s, pad, d in zip(kernel, stride, padding, dilation, strict=True):
        if s == 0:
            raise RuntimeError("stride should not be zero")
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad}, kernel_size={k} and dilation={d}"
            )
    _check_positive("kernel size", _SIZES[ndim], kernel)
    _check_positive("stride", _STEPS[ndim], stride)
    _check_positive("dilation", _DILATIONS[ndim], dilation)
    _check_not_empty(name, ndim, shape)
    counts = [window_count(*row, ceil_mode) for row in zip(sizes, kernel, stride, padding, dilation, strict=True)]
    if name == "avg_pool3d" and any(n + 2 * pad < k for n, pad, k in zip(sizes, padding, kernel, strict=True)):
        shown = [" ".join([f"{a}: {n}" for a, n in zip(names, of, strict=True)]) for names, of in
                 (("THW", sizes), (_SIZES[3], kernel))]  # fmt: skip
        raise RuntimeError(
            f"input image ({shown[0]}) smaller than kernel size ({shown[1]})\n{_too_large(kernel, sizes)}"
        )
    if min(counts) < 1:
        if name == "max_pool1d":
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {counts[0]}\n{_too_large(kernel, sizes)}")
        planes, lead = shape[len(shape) - ndim - 1], "1x" if ndim == 1 else ""
        given = f"{planes}x{lead}" + "x".join([str(n) for n in sizes])
        made = f"{planes}x{lead}" + "x".join([str(n) for n in counts])
        raise RuntimeError(
            f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small\n{_too_large(kernel, sizes)}"
        )
    return tuple([p.Window(*row) for row in zip(sizes, kernel, stride, padding, dilation, counts, strict=True)])


def _check_rank(name: str, ndim: int, shape: Any) -> None:
    rank = len(shape)
    if ndim + 1 <= rank <= ndim + 2:
        return
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d: {_expected(shape, 1)}")
    if ndim == 1:
        name = name.removesuffix("_with_indices")
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {rank}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )
    if name == "avg_pool2d":
        if rank < 3:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}], but got -3)")
        raise RuntimeError(_expected(shape, 2))
    raise RuntimeError(f"non-empty {_RANKS[ndim]} (batch mode) tensor expected for input")


def _expected(shape: Any, ndim: int) -> str:
    return (
        f"Expected {_RANKS[ndim]} (batch mode) tensor with optional 0 dim batch size for input, but got:"
        f"{_errors.sizes(shape)}"
    )


def _check_not_empty(name: str, ndim: int, shape: Any) -> None:
    batch = len(shape) - ndim - 1
    if all(shape[batch:]):
        return
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d: {_expected(shape, 1)}")
    if ndim == 1:  # torch pools over two axes
        raise RuntimeError(_expected((*shape[:-1], 1, shape[-1]), 2))
    if ndim == 2:
        raise RuntimeError(_expected(shape, 2))
    who = "max_pool3d_with_indices_out_cpu_template" if name.startswith("max") else name
    raise RuntimeError(
        f"{who}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
        f"{_errors.sizes(shape)} and non-batch dimension 0 has length zero!"
    )


def _check_max_pool1d(kernel: int, stride: int, padding: int, dilation: int) -> None:
    for what, value in (("kernel_size", kernel), ("stride", stride)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")


def _read_windows(name: str, ndim: int, input: Any, *arguments: Any) -> tuple[Any, ...]:
    shape = tuple(input._array.shape)
    try:
        return _windows(name, shape, ndim, *arguments)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _windows(name, shape, ndim, *[tuple(one) if isinstance(one, list) else one for one in arguments])


# ---- the largest element ----
_MAX_NODES = {ndim: f"MaxPool{ndim}DWithIndicesBackward0" for ndim in (1, 2, 3)}


def _max_pool(name: str, ndim: int, input: Any, arguments: tuple[Any, ...], return_indices: bool) -> Any:
    windows = _read_windows(name, ndim, input, *arguments)
    if (kind := input._array.dtype.kind) != "f" and kind != "V":
        refuse(name, input._array.dtype)
    if math.prod([window.kernel for window in windows]) > MANY:
        places, shape = p.places_of_windows(windows)
        args, params = (input, beside(places, input._array)), {"ndim": ndim, "shape": shape}
        values, indices = record(p.max_of_places, args, params, _MAX_NODES[ndim], {"given": arguments})
        return (values, indices) if return_indices else values
    values, at = record(p.max_pool, (input,), {"windows": windows}, _MAX_NODES[ndim], {"given": arguments})
    return (values, record(p.max_pool_indices, (at,), {"windows": windows})) if return_indices else values


# what pooling the first numbers by 2 leaves of 4, 4 x 4 and 4 x 4 x 4 of them
_LARGEST = {
    1: "tensor([1., 3.])",
    2: "tensor([ 5.,  7., 13., 15.])",
    3: "tensor([21., 23., 29., 31., 53., 55., 61., 63.])",
}


def _max_pools(ndim: int) -> tuple[Any, Any]:
    """Make the pooling of so many axes, and the one that always returns indices."""
    name = f"max_pool{ndim}d"
    name_with_indices = f"{name}_with_indices" if ndim == 1 else name  # as what torch refuses dtypes

    def pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        arguments = (kernel_size, stride, padding, dilation, ceil_mode)
        return _max_pool(name_with_indices if return_indices else name, ndim, input, arguments, return_indices)

    def with_indices(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return public(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    doc = f"Take the largest element of each window of the {LAST[ndim]}"
    raised = "cpu" if ndim == 3 else ""
    described = f"""{doc}; with `return_indices`, also where it is.

    Args:
        input: (N, C, ...) or (C, ...)
        kernel_size: the size of a window, a number or one for each axis
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many places of minus infinity stand around the input
        dilation: the distance of a window's elements
        ceil_mode: whether a window may reach over the end
        return_indices: also return where the largest elements are

    Example:
        >>> x = torch.arange({4**ndim}.0).reshape(1, 1{", 4" * ndim})
        >>> F.{name}(x, 2).flatten()
        {_LARGEST[ndim]}
    """
    public = overridable_as(name, pool, described, raised=raised)
    return public, overridable_as(f"{name}_with_indices", with_indices, f"{doc}, and where it is.")


max_pool1d, max_pool1d_with_indices = _max_pools(1)
max_pool2d, max_pool2d_with_indices = _max_pools(2)
max_pool3d, max_pool3d_with_indices = _max_pools(3)


# ---- the mean ----
_AVG_NODES = {1: "AvgPool1DBackward0", 2: "AvgPool2DBackward0", 3: "AvgPool3DBackward0"}


def _avg_pool(
    name: str, ndim: int, input: Any, arguments: tuple[Any, ...], count_include_pad: bool, divisor: int | None
) -> Any:
    kernel_size, stride, padding, ceil_mode = arguments
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    windows = _read_windows(name, ndim, input, kernel_size, stride, padding, 1, ceil_mode)
    dtype = input._array.dtype
    if dtype.kind == "i" and dtype.itemsize < 8:
        cls, text = kernel("avg_pool3d_out_frame" if ndim == 3 else "avg_pool2d")
        raise cls(text.replace("{}", input.dtype._scalar_name))
    if dtype.kind not in "f" or dtype.itemsize == 2:
        refuse(name, dtype)
    counts: Any = divisor if divisor is not None else "all" if count_include_pad else "inside"
    shown = {
        "given": (kernel_size, stride, padding, 1, ceil_mode),
        "count_include_pad": count_include_pad,
        "divisor_override": divisor,
    }
    return record(p.avg_pool, (input,), {"windows": windows, "counts": counts}, _AVG_NODES[ndim], shown)


@overridable
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Take the mean of each window of the last axis.

    Args:
        input: (N, C, L) or (C, L)
        kernel_size: the size of a window
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many zeros stand around the input
        ceil_mode: whether a window may reach over the end
        count_include_pad: whether these zeros count

    Example:
        >>> F.avg_pool1d(torch.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
        tensor([[2., 6.]])
    """
    return _avg_pool("avg_pool1d", 1, input, (kernel_size, stride, padding, ceil_mode), count_include_pad, None)


def _avg_pool_with_divisor(ndim: int) -> Any:
    name = f"avg_pool{ndim}d"

    def pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        arguments = (kernel_size, stride, padding, ceil_mode)
        return _avg_pool(name, ndim, input, arguments, count_include_pad, divisor_override)

    raised = "cpu" if ndim == 3 else ""
    doc = f"""Take the mean of each window of the {LAST[ndim]}.

    Args:
        input: (N, C, ...) or (C, ...)
        kernel_size: the size of a window, a number or one for each axis
        stride: how far it moves; `kernel_size` if it is not given
        padding: how many zeros stand around the input
        ceil_mode: whether a window may reach over the end
        count_include_pad: whether these zeros count
        divisor_override: divide by this, not by the size of a window

    Example:
        >>> F.{name}(torch.ones(1, 1{", 4" * ndim}), 2).shape
        torch.Size([1, 1{", 2" * ndim}])
    """
    return overridable_as(name, pool, doc, out=True, raised=raised)


avg_pool2d, avg_pool3d = _avg_pool_with_divisor(2), _avg_pool_with_divisor(3)


# ---- the p-norm ----
def _root(mean: Any, size: int, norm_type: float) -> Any:
    """Turn the mean of the p-th powers of `size` elements into their norm; a negative mean has none, and gives zero."""
    return (mean.sign() * mean.abs().relu()).mul(size).pow(1.0 / norm_type)


@overridable
def lp_pool1d(input: Any, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Any:
    """Take the p-norm of each window of the last axis."""
    mean = avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, kernel_size, norm_type)


@overridable
def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """Take the p-norm of each window of the last two axes."""
    height, width = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    mean = avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, height * width, norm_type)


@overridable
def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """Take the p-norm of each window of the last three axes."""
    depth, height, width = (kernel_size,) * 3 if isinstance(kernel_size, int) else kernel_size
    mean = avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, depth * height * width, norm_type)


# ---- to a given size ----
for _kind in ("avg", "max"):
    refused(f"adaptive_{_kind}_pool1d", f"adaptive_{_kind}_pool2d", bic=kernel(f"adaptive_{_kind}_pool2d"))
    refused(f"adaptive_{_kind}_pool3d", bic=kernel("{name}_cpu"))
_FRACTIONAL = ("fractional_max_pool2d", "fractional_max_pool3d")
refused(*_FRACTIONAL, bi=kernel("check_uniform_bounds"), c=kernel("{name}_out_frame"))


def _with_defaults(output_size: Any, shape: Any) -> Any:
    """Put the input's size where the wanted one is None."""
    if isinstance(output_size, int):
        return output_size
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = shape[len(shape) - len(output_size) :]
    return tuple([n if wanted is None else wanted for wanted, n in zip(output_size, sizes, strict=True)])


def _counts(name: str, ndim: int, input: Any, output_size: Any) -> tuple[int, ...]:
    """Read the wanted sizes and refuse what torch refuses."""
    shape = tuple(input._array.shape)
    average = "avg" in name
    counts = ints_of(name, "output_size", 2, output_size)
    if isinstance(output_size, int):
        counts *= ndim
    rank = len(shape)
    if ndim == 1:
        if len(counts) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(counts)})")
        if not 2 <= rank <= 3:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {rank}-dimensional tensor for argument #1 'self' (while checking "
                f"arguments for {name})"
            )
    elif average and len(counts) != ndim:
        raise RuntimeError(f"{name}: output_size must be {ndim}")
    if not average or not _to_one(ndim, input._array, counts):  # torch looks no further at what becomes a mean
        _check_shape(name, ndim, shape, counts)
    return counts


def _to_one(ndim: int, array: Any, counts: tuple[int, ...]) -> bool:
    return all(n == 1 for n in counts) and (ndim > 1 or not array.size or array.dtype.kind not in "fV")


def _check_shape(name: str, ndim: int, shape: tuple[int, ...], counts: tuple[int, ...]) -> None:
    average, rank = "avg" in name, len(shape)
    if ndim == 1 and average:  # torch pools over two axes
        name, ndim, shape, counts, rank = "adaptive_avg_pool2d", 2, (*shape[:-1], 1, shape[-1]), (1, *counts), rank + 1
    if average and min(counts) < 0:
        shown = f"{{{counts[0]}, " + ",".join([str(n) for n in counts[1:]]) + "}"
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {shown}")
    if not ndim + 1 <= rank <= ndim + 2:
        colon = "" if average else ":"
        raise RuntimeError(f"{name}(): Expected {_RANKS[ndim]} tensor, but got{colon} {_errors.sizes(shape)}")
    first = rank - ndim if (average and ndim < 3) or rank == ndim + 1 else rank - ndim - 1
    for axis in range(first, rank):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{_errors.sizes(shape)} with dimension {axis} being empty"
            )
    if not average and len(counts) != ndim:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {ndim}")
    if min(counts) < 0:
        lead = shape[: rank - ndim]
        made = (*lead, 1, *counts) if ndim == 1 else (*lead, *counts)
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {_errors.sizes(made)}")


def _even_windows(sizes: tuple[int, ...], counts: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return windows of one size, if such windows cover every axis."""
    if any(count == 0 or size % count for size, count in zip(sizes, counts, strict=True)):
        return None
    return tuple([p.Window(n, n // m, n // m, 0, 1, m) for n, m in zip(sizes, counts, strict=True)])


# ---- to a given size: means ----
def _adaptive_avg(name: str, ndim: int, input: Any, output_size: Any) -> Any:
    counts = _counts(name, ndim, input, output_size)
    array = input._array
    if _to_one(ndim, array, counts):
        return mean(input, tuple(range(-ndim, 0)), keepdim=True)
    if 0 not in counts:  # torch looks at the dtype where there is something to compute
        refuse(name, array.dtype)
    sizes = tuple(array.shape)[array.ndim - ndim :]
    node = f"AdaptiveAvgPool{ndim}DBackward0"
    windows = _even_windows(sizes, counts)
    if windows is not None:
        return record(p.avg_pool, (input,), {"windows": windows, "counts": "all"}, node)
    taps = tuple([resizing.mean_taps(n, m) for n, m in zip(sizes, counts, strict=True)])
    return record(resizing.resample, (input,), {"taps": taps}, node)


def _adaptive_avg_pool(ndim: int) -> Any:
    name = f"adaptive_avg_pool{ndim}d"

    def pool(input: Any, output_size: Any) -> Any:
        if ndim > 1:
            output_size = _with_defaults(output_size, input._array.shape)
        return _adaptive_avg(name, ndim, input, output_size)

    none = "; None keeps an axis" if ndim > 1 else ""
    doc = f"""Take means of the {LAST[ndim]} so that as many remain as wanted{none}.

    Args:
        input: (N, C, ...) or (C, ...)
        output_size: how many, a number or one for each axis

    Example:
        >>> F.{name}(torch.arange({4**ndim}.0).reshape(1, 1{", 4" * ndim}), 1).flatten()
        tensor([{(4**ndim - 1) / 2:.4f}])
    """
    return overridable_as(name, pool, doc, raised="cpu" if ndim == 3 else "")


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_pool, (1, 2, 3))


# ---- to a given size: largest elements ----
def _adaptive_max(name: str, ndim: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    counts = _counts(name, ndim, input, output_size)
    array = input._array
    refuse(name, array.dtype)
    sizes = tuple(array.shape)[array.ndim - ndim :]
    node = f"AdaptiveMaxPool{ndim}DBackward0"
    windows = _even_windows(sizes, counts)
    if windows is not None and math.prod([w.kernel for w in windows]) <= MANY:
        values, at = record(p.max_pool, (input,), {"windows": windows}, node)
        return (values, record(p.max_pool_indices, (at,), {"windows": windows})) if return_indices else values
    places = beside(p.places_of_adaptive(sizes, counts), array)
    values, indices = record(p.max_of_places, (input, places), {"ndim": ndim, "shape": counts}, node)
    return (values, indices) if return_indices else values


def _adaptive_max_pools(ndim: int) -> tuple[Any, Any]:
    """Make the pooling of so many axes, and the one that always returns indices."""
    name = f"adaptive_max_pool{ndim}d"

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        if ndim > 1:
            output_size = _with_defaults(output_size, input._array.shape)
        return _adaptive_max(name, ndim, input, output_size, return_indices)

    def with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        return public(input, output_size, True)

    none = "; None keeps an axis" if ndim > 1 else ""
    doc = f"""Take the largest elements of parts of the {LAST[ndim]}, as many as wanted{none}.

    Args:
        input: (N, C, ...) or (C, ...)
        output_size: how many, a number or one for each axis
        return_indices: also return where they are

    Example:
        >>> F.{name}(torch.arange({4**ndim}.0).reshape(1, 1{", 4" * ndim}), 1).flatten()
        tensor([{4**ndim - 1}.])
    """
    public = overridable_as(name, pool, doc, raised="cpu" if ndim == 3 else "")
    doc = f"Pool like `{name}`, and return the indices, too."
    return public, overridable_as(f"{name}_with_indices", with_indices, doc)


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pools(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pools(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pools(3)


# ---- drawn windows ----
_AXES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _fractional(
    ndim: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any, return_indices: bool
) -> Any:
    name = f"fractional_max_pool{ndim}d"
    shape = tuple(input._array.shape)
    rank = len(shape)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(output_ratio) > ndim:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        sizes = shape[rank - ndim :]
        output_size = tuple([int(sizes[k] * output_ratio[k]) for k in range(ndim)])
    if samples is None:
        if rank <= ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}], but got -{ndim + 1})"
            )
        if input._array.dtype.kind not in "fV":
            refuse(name, input._array.dtype)
        samples = rand(1 if rank == ndim + 1 else shape[0], shape[rank - ndim - 1], ndim, dtype=input.dtype)
    kernels, counts = _fractional_sizes(name, ndim, kernel_size, output_size)
    _check_fractional(name, ndim, input, kernels, counts, samples)
    numbers = on_host(raw_leaf(samples._array))
    numbers = numbers[: shape[0]] if rank == ndim + 2 else numbers[0]
    if ndim == 2:
        numbers = numbers[..., ::-1]  # torch draws for the width first
    places = p.places_of_fractions(numbers, shape[rank - ndim :], kernels, counts)
    params = {"ndim": ndim, "shape": counts}
    places = beside(places, input._array)
    node, shown = f"FractionalMaxPool{ndim}DBackward0", {"kernel_size": kernels, "output_size": counts}
    values, indices = record(p.max_of_places, (input, places), params, node, shown)
    return (values, indices) if return_indices else values


def _fractional_sizes(name: str, ndim: int, kernel_size: Any, output_size: Any) -> tuple[Any, Any]:
    found = []
    for argument, position, value in (("kernel_size", 2, kernel_size), ("output_size", 3, output_size)):
        values = ints_of(name, argument, position, value)
        values = values * ndim if len(values) == 1 else values
        if len(values) != ndim:
            words = "tuple of Ints" if ndim == 2 else "tuple of three Ints"
            raise RuntimeError(f"{name}: {argument} must either be a single Int or {words}")
        found.append(values)
    return found[0], found[1]


def _check_fractional(name: str, ndim: int, input: Any, kernels: Any, counts: Any, samples: Any) -> None:
    shape = tuple(input._array.shape)
    rank = len(shape)
    who = f"{name}()" if ndim == 2 else f"{name}_out()"
    if not ndim + 1 <= rank <= ndim + 2:
        raise RuntimeError(f"{who}: Expected {_RANKS[ndim]} tensor, but got: {_errors.sizes(shape)}")
    for axis in range(rank - ndim - 1, rank):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{who}: Expected input to have non-zero size for non-batch dimensions, but got"
                f"{_errors.sizes(shape)} with dimension {axis} being empty."
            )
    sizes = shape[rank - ndim :]
    for word, width, size, count in zip(_AXES[ndim], kernels, sizes, counts, strict=True):
        if count + width - 1 > size:
            raise RuntimeError(f"{who}: pool {word} {width} too large relative to input {word} {size}")
    given = tuple(samples._array.shape)
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(given) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(given)}")
    if given[0] < (shape[0] if rank == ndim + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if given[1] != shape[rank - ndim - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if given[2] != ndim:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {ndim}; got {given[2]}.")
    refuse(name, input._array.dtype)


def _fractional_pool(name: str, ndim: int, always: bool, doc: str, raised: str = "") -> Any:
    """Make the pooling of so many axes, or the one that always returns indices."""

    def pool(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        indices = always or return_indices
        return _fractional(ndim, input, kernel_size, output_size, output_ratio, _random_samples, indices)

    return overridable_as(name, pool, doc, raised=raised)


def _fractional_pools(ndim: int) -> tuple[Any, Any]:
    name = f"fractional_max_pool{ndim}d"
    drawn = f"Take the largest elements of windows whose places are drawn, as many along the {LAST[ndim]} as wanted."
    also = f"Pool like `{name}`, and return the indices, too."
    return _fractional_pool(name, ndim, False, drawn, "cpu"), _fractional_pool(f"{name}_with_indices", ndim, True, also)


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_pools(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_pools(3)


# ---- unpooling: what max pooling took, put back where it was, among zeros ----
def _each(value: Any, ndim: int) -> tuple[int, ...]:
    return (value,) * ndim if isinstance(value, int) else tuple(value)


def _unpooled_size(sizes: tuple[int, ...], kernels: Any, strides: Any, paddings: Any, wanted: Any) -> tuple[int, ...]:
    """Return the sizes to unpool to: those that pooling made these sizes of, or near them."""
    ndim = len(kernels)
    usual = tuple([(sizes[k] - 1) * strides[k] + kernels[k] - 2 * paddings[k] for k in range(ndim)])
    if wanted is None:
        return usual
    if len(wanted) == ndim + 2:
        wanted = wanted[2:]
    if len(wanted) != ndim:
        raise ValueError(
            f"output_size should be a sequence containing {ndim} or {ndim + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for k in range(ndim):
        low, high = usual[k] - strides[k], usual[k] + strides[k]
        if not low < wanted[k] < high:
            raise ValueError(f'invalid output_size "{wanted}" (dim {k} must be between {low} and {high})')
    return tuple(wanted)


def _unpool(ndim: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    kernels = _each(kernel_size, ndim)
    strides = kernels if stride is None else _each(stride, ndim)
    paddings = _each(padding, ndim)
    shape = tuple(input._array.shape)
    rank = len(shape)
    sizes = shape[max(rank - ndim, 0) :]
    counts = _unpooled_size(sizes, kernels, strides, paddings, output_size)
    _check_unpooled(ndim, input, indices, counts, strides)
    refuse(f"max_unpool{ndim}d", input._array.dtype)
    _check_indices(ndim, indices, counts)
    node = f"MaxUnpool{ndim}DBackward0"
    return record(p.put_in_planes, (input, indices), {"sizes": counts, "repeats": False}, node)


def _check_unpooled(ndim: int, input: Any, indices: Any, counts: tuple[int, ...], strides: tuple[int, ...]) -> None:
    shape, given = tuple(input._array.shape), tuple(indices._array.shape)
    if ndim == 1:  # torch unpools over two axes
        shape, given = (*shape, 1), (*given, 1)
    dims, rank = max(ndim, 2), len(shape)
    if indices._array.dtype != np.int64:
        kind = f" but got: {indices.dtype._scalar_name}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{kind}")
    if not dims + 1 <= rank <= dims + 2:
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {rank} "
            "dimensions."
        )
    if shape != given:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({_errors.sizes(shape)}) but got indices tensor with shape: {_errors.sizes(given)}"
        )
    if ndim == 3 and min(strides) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {_errors.sizes(strides)}")
    for axis in range(1, rank):
        if shape[axis] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, "
                f"but got {_errors.sizes(shape)} with dimension {axis} being empty."
            )


def _check_indices(ndim: int, indices: Any, counts: tuple[int, ...]) -> None:
    numbers = raw_leaf(indices._array).reshape(-1)
    if is_meta(numbers):
        return
    plane = math.prod(counts)
    outside = (numbers < 0) | (numbers >= plane)
    if bool(outside.any()):
        wrong = numbers[outside]
        volumes = "x".join([str(n) for n in (*counts, *(1,) * (ndim == 1))])
        raise RuntimeError(f"Found an invalid max index: {int(wrong[-1])} (output volumes are of size {volumes})")


def _unpool_of_rank(ndim: int) -> Any:
    def unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        return _unpool(ndim, input, indices, kernel_size, stride, padding, output_size)

    doc = f"Put what `max_pool{ndim}d` took back where it was."
    return overridable_as(f"max_unpool{ndim}d", unpool, doc, raised="cpu" if ndim > 1 else "")


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool_of_rank, (1, 2, 3))


__all__ = public_names(globals())
