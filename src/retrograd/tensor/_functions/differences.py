"""Differences and integrals of samples: diff, gradient, trapezoid, cumulative_trapezoid."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._ops.index import getitem
from ...overrides import overridable, takes_out
from .. import _base
from .._aliasing.views import view_op
from .._recording.scalars import over, times
from .creation import zeros, zeros_like
from .cumulative import cumsum
from .elementwise import logical_xor
from .joining import cat
from .reduce import sum as total
from .shape import reshape, select

NUMBERS = (bool, int, float, complex)


def part(tensor: Any, dim: int, start: int, end: int | None) -> Any:
    """View a stretch of one dimension; negative numbers count from its end, as in Python."""
    first, last, _ = slice(start, end).indices(tensor._array.shape[dim])
    if last < first:
        last = first
    index = (*(slice(None),) * dim, slice(first, last)) if dim else (slice(first, last),)
    shown = {"dim": dim, "start": first, "end": last, "step": 1}
    return view_op(tensor, getitem, {"index": index}, "SliceBackward0", shown)


# ---- diff ----
@takes_out
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Subtract each element along a dimension from the next.

    Args:
        input: a tensor
        n: how often
        dim: the dimension; the last by default
        prepend: what to put before the input
        append: what to put behind it

    Example:
        >>> torch.diff(torch.tensor([1, 3, 6]))
        tensor([2, 3])
    """
    ndim = input._array.ndim
    if not ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = dim if 0 <= dim < ndim else _errors.wrap_dim(dim, ndim)
    tensor = input
    if prepend is not None or append is not None:
        tensor = _with_ends(input, prepend, append, d)
    if not n:
        return zeros_like(input).copy_(input)
    for _ in range(min(n, tensor._array.shape[d])):
        later, earlier = part(tensor, d, 1, None), part(tensor, d, 0, -1)
        tensor = logical_xor(later, earlier) if tensor._array.dtype.kind == "b" else later - earlier
    return tensor


def _with_ends(input: Any, prepend: Any, append: Any, dim: int) -> Any:
    """Join what is given before and after a tensor to it."""
    for given in (prepend, append):
        if given is not None:
            _check_joined(input, given, dim)
    return cat([one for one in (prepend, input, append) if one is not None], dim)


def _check_joined(input: Any, given: Any, dim: int) -> None:
    shape, other = input._array.shape, given._array.shape
    if len(shape) != len(other):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for k, (a, b) in enumerate(zip(shape, other, strict=True)):
        if k != dim and a != b:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({k}) = {a}, but got tensor.size({k}) = {b}"
            )


# ---- gradient ----
@overridable
def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """Estimate derivatives along dimensions; `spacing` is a number or one for each, or the coordinates themselves."""
    ndim = input._array.ndim
    if input._array.dtype == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = list(range(ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacings = _spacings(spacing, dims, ndim, dim is None)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    axes = [_errors.wrap_dim(d, ndim) for d in dims]
    for axis in axes:
        if axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
        if input._array.shape[axis] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    for one in spacings:
        if isinstance(one, _base.Tensor) and one._array.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{one._array.ndim} dimensions!"
            )
    return tuple(
        (_uneven if isinstance(step, _base.Tensor) else _even)(input, axis, step, edge_order)
        for axis, step in zip(axes, spacings, strict=True)
    )


def _spacings(spacing: Any, dims: list[int], ndim: int, every: bool) -> list[Any]:
    """Return one spacing for each dimension."""
    if spacing is None:
        spacing = 1
    if isinstance(spacing, _base.Tensor) and not spacing._array.ndim:
        spacing = spacing.item()
    if isinstance(spacing, NUMBERS):
        return [spacing] * len(dims)
    spacings = list(spacing)
    if len(spacings) != len(dims):
        if every:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {ndim}', since dim argument was not given, but got a list of length {len(spacings)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacings)} and a dim argument of length "
            f"{len(dims)}."
        )
    return spacings


def _even(x: Any, d: int, step: Any, edge_order: int) -> Any:
    inside = over(over(part(x, d, 2, None) - part(x, d, 0, -2), step), 2)
    if edge_order == 1:
        first = over(part(x, d, 1, 2) - part(x, d, 0, 1), step)
        last = over(part(x, d, -1, None) - part(x, d, -2, -1), step)
        return cat((first, inside, last), d)
    first = times(part(x, d, 0, 1), -1.5) + times(part(x, d, 1, 2), 2) - times(part(x, d, 2, 3), 0.5)
    last = times(part(x, d, -3, -2), 0.5) - times(part(x, d, -2, -1), 2) + times(part(x, d, -1, None), 1.5)
    return cat((over(first, step), inside, over(last, step)), d)


def _uneven(x: Any, d: int, coordinates: Any, edge_order: int) -> Any:
    """Differentiate the parabola through three neighbours."""
    shape = [1] * x._array.ndim
    shape[d] = -1
    steps = part(coordinates, 0, 1, None) - part(coordinates, 0, 0, -1)

    def wide(weights: Any) -> Any:
        return reshape(weights, shape)

    before, after = part(steps, 0, 0, -1), part(steps, 0, 1, None)
    a = wide(-after / (before * (before + after)))
    b = wide((after - before) / (before * after))
    c = wide(before / (after * (before + after)))
    inside = a * part(x, d, 0, -2) + b * part(x, d, 1, -1) + c * part(x, d, 2, None)
    if edge_order == 1:
        first = (part(x, d, 1, 2) - part(x, d, 0, 1)) / select(steps, 0, 0)
        last = (part(x, d, -1, None) - part(x, d, -2, -1)) / select(steps, 0, -1)
        return cat((first, inside, last), d)
    before, after = select(steps, 0, 0), select(steps, 0, 1)
    a = -(2 * before + after) / (before * (before + after))
    b = (before + after) / (before * after)
    c = -before / (after * (before + after))
    first = a * part(x, d, 0, 1) + b * part(x, d, 1, 2) + c * part(x, d, 2, 3)
    before, after = select(steps, 0, -2), select(steps, 0, -1)
    a = after / (before * (before + after))
    b = -(before + after) / (before * after)
    c = (2 * after + before) / (after * (before + after))
    last = a * part(x, d, -3, -2) + b * part(x, d, -2, -1) + c * part(x, d, -1, None)
    return cat((first, inside, last), d)


# ---- integrals by the trapezoid rule ----
def _checked(name: str, y: Any, x: Any, dx: Any) -> Any:
    """Check the arguments; returns the step where the samples are evenly spaced."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}(): x and dx are given")
    if x is None and y._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is not None and "b" in (y._array.dtype.kind, x._array.dtype.kind):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return 1 if dx is None else dx.item() if isinstance(dx, _base.Tensor) else dx


def _neighbours(y: Any, d: int) -> Any:
    return part(y, d, 0, -1) + part(y, d, 1, None)


def _widths(name: str, y: Any, x: Any, d: int) -> Any:
    """Return the distances between sample points, in a shape that broadcasts with the samples."""
    ndim, other = y._array.ndim, x._array.ndim
    if other == 1:
        if x._array.shape[0] != y._array.shape[d]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * ndim
        shape[d] = x._array.shape[0]
        x = reshape(x, shape)
    elif other < ndim:
        x = reshape(x, (1,) * (ndim - other) + tuple(x._array.shape))
    return part(x, d, 1, None) - part(x, d, 0, -1)


@overridable
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integrate along a dimension by the trapezoidal rule.

    Args:
        y: values
        x: the points at which they were taken
        dx: the distance of the points, if it is constant
        dim: the dimension; the last by default

    Example:
        >>> torch.trapezoid(torch.tensor([0.0, 1.0, 4.0]))
        tensor(3.)
    """
    step = _checked("trapezoid", y, x, dx)
    shape = y._array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = _errors.wrap_dim(dim, len(shape))
    if not shape[d]:
        return zeros((*shape[:d], *shape[d + 1 :]), dtype=_base.dtype_of(y))
    if x is None:
        return times(total(y, d) - times(select(y, d, 0) + select(y, d, -1), 0.5), step)
    widths = _widths("trapezoid", y, x, d)
    return over(total(_neighbours(y, d) * widths, d), 2.0)


trapz = trapezoid


@overridable
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integrate up to each sample along a dimension by the trapezoid rule."""
    step = _checked("cumulative_trapezoid", y, x, dx)
    if not y._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    d = _errors.wrap_dim(dim, y._array.ndim)
    if x is None:
        return cumsum(times(_neighbours(y, d), step / 2.0), d)
    widths = _widths("cumulative_trapezoid", y, x, d)
    return over(cumsum(_neighbours(y, d) * widths, d), 2.0)
