"""Pooling over windows of a fixed size: the largest element, the mean, the p-norm."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ... import _errors
from ..._ops import pooling as p
from ..._ops import pooling_places
from ...overrides import overridable, overridable_as
from ...tensor._object.devices import beside
from ...tensor._recording.record import record
from ...tensor._recording.refusals import REFUSED, kernel, refuse

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]

REFUSED.update(
    {
        "max_pool1d": {"bic": kernel("max_pool1d_impl")},
        "max_pool1d_with_indices": {"bc": kernel("max_pool2d")},
        "max_pool2d": {"bc": kernel("max_pool2d")},
        "max_pool3d": {"bc": kernel("max_pool3d")},
        "avg_pool1d": {"bc": kernel("avg_pool2d")},
        "avg_pool2d": {"bc": kernel("avg_pool2d")},
        "avg_pool3d": {"bch": kernel("avg_pool3d_out_frame")},
    }
)

_NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}
_RANKS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}
_AXES = {1: "HW", 2: "HW", 3: "THW"}
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
        places, shape = pooling_places.of_windows(windows)
        args, params = (input, beside(places, input._array)), {"ndim": ndim, "shape": shape}
        values, indices = record(p.max_of_places, args, params, _MAX_NODES[ndim], {"given": arguments})
        return (values, indices) if return_indices else values
    values, at = record(p.max_pool, (input,), {"windows": windows}, _MAX_NODES[ndim], {"given": arguments})
    return (values, record(p.max_pool_indices, (at,), {"windows": windows})) if return_indices else values


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
    public = overridable_as(name, pool, f"{doc}; with `return_indices`, also where it is.", raised=raised)
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
    """Take the mean of each window of the last axis."""
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
    return overridable_as(name, pool, f"Take the mean of each window of the {LAST[ndim]}.", out=True, raised=raised)


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
