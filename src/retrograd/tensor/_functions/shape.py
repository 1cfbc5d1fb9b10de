"""Views: the same memory with another shape, or with another order of its dimensions."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import Batched, Dual, LevelArray, raw_leaf
from ..._device import contiguous_format, preserve_format
from ..._dtypes import dtype as dtype_type
from ..._ops import index as i
from ..._ops import shape as s
from ..._stored import as_storage_only
from ..._tracebacks import hide
from ..._warnings import warn
from ...overrides import answered, declared, overridable, refuses_itself
from .. import _base
from .._aliasing.entering import without_tangents
from .._aliasing.inplace import reshaping
from .._aliasing.views import view_op
from .._object.formats import is_laid_out_in, laid_out_in, need_format, order_in
from .._object.layout import in_order, is_contiguous, output_order, packed, repeats, strides
from .._recording.record import record

NDARRAY = np.ndarray


def sizes_from(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Read sizes given as numbers or as one sequence."""
    if len(args) == 1 and type(args[0]) is not int and isinstance(args[0], (list, tuple)):
        args = args[0]  # type: ignore[assignment]
    for n in args:
        if type(n) is not int:
            if type(args[0]) is bool:  # torch looks at the first only
                raise TypeError("type must be tuple of ints, not bool")
            return tuple([index(n) for n in args])
    return args if type(args) is tuple else tuple(args)


def fitted(args: Any, count: int) -> tuple[int, ...]:
    """Read the sizes of `count` elements, given as numbers or as one sequence, in which one may be -1."""
    if len(args) == 1 and type(args[0]) is not int:
        args = args[0] if isinstance(args[0], (list, tuple)) else args
    known = 1
    for n in args:
        if type(n) is not int or n < 0:
            return infer_size(sizes_from(args), count)
        known *= n
    if known != count:
        raise RuntimeError(f"shape '{_errors.sizes(args)}' is invalid for input of size {count}")
    return tuple(args)


def infer_size(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Fill in -1, with torch's errors."""
    if shape == (-1,):
        return (count,)
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = 1
    for k, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {k} of shape {_errors.sizes(shape)}")
        known *= n if n != -1 else 1
    if -1 not in shape and known == count:
        return shape
    if -1 not in shape or (count % known if known else count):
        raise RuntimeError(f"shape '{_errors.sizes(shape)}' is invalid for input of size {count}")
    if not known:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {_errors.sizes(shape)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    at = shape.index(-1)
    return (*shape[:at], count // known, *shape[at + 1 :])


def _can_view(array: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether memory can be read with another shape without a copy."""
    if type(array) is NDARRAY and array.flags.c_contiguous:
        return True
    if isinstance(array, LevelArray):
        if isinstance(array, Dual):
            return _can_view(array.primal, shape) and (array.tangent is None or _can_view(array.tangent, shape))
        return _can_view(array.array, (array.level.size, *shape))  # type: ignore[attr-defined]
    if not isinstance(array, np.ndarray):
        return True
    if len(shape) == 1:
        return _is_one_run(array)
    try:
        return bool(np.reshape(array, shape, copy=False) is not None)
    except ValueError:
        return False


def _is_viewable(input: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether a tensor can be viewed with another shape; tangents that could not are laid out as what they belong to."""
    array = input._array
    if _can_view(array, shape):
        return True
    if not isinstance(array, LevelArray) or not _can_view(without_tangents(array), shape):
        return False
    from .._aliasing.raising_levels import align_tangents

    align_tangents(input)
    return _can_view(input._array, shape)


def _is_one_run(array: Any) -> bool:
    """Tell whether elements lie in memory in their order, equally far apart: an exception of NumPy's takes 2 us."""
    before = None
    for n, step in zip(array.shape, array.strides, strict=True):
        if n != 1:
            if before is not None and before != n * step:
                return False
            before = step
    return True


@refuses_itself
def view(input: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """Read the same memory with another shape (or dtype).

    Args:
        *shape: sizes, one by one or in a sequence; -1 stands for what is left. Or a dtype: the same bytes are read as that
        size: the sizes, by name
        dtype: the dtype, by name

    Returns:
        A view. If the memory cannot be read like this, an error; `reshape` then makes a copy.

    Example:
        >>> x = torch.arange(6)
        >>> y = x.view(2, -1)
        >>> y[0, 0] = 9
        >>> x
        tensor([9, 1, 2, 3, 4, 5])
    """
    try:
        if not shape:
            if size is dtype is None:
                raise TypeError('view() missing 1 required positional arguments: "size"')
            shape = (dtype if size is None else (*size,),)
        if len(shape) == 1 and isinstance(shape[0], dtype_type):
            return view_dtype(input, shape[0])
        array = input._array
        wanted = fitted(shape, array.size)
        if (type(array) is not NDARRAY or not array.flags.c_contiguous) and not _is_viewable(input, wanted):
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                "contiguous subspaces). Use .reshape(...) instead."
            )
        return view_op(input, s.reshape, {"shape": wanted}, "ViewBackward0")
    except Exception as error:
        named = {name: value for name, value in (("size", size), ("dtype", dtype)) if value is not None}
        try:
            return answered(view, (input,) if named else (input, *shape), named, error)
        except Exception as refusal:
            hide(refusal)
            raise


def view_dtype(input: Any, wanted: Any) -> Any:
    """Read the same memory as another dtype; autograd does not follow."""
    if type(input) in _base.signed_types and wanted is not _base.dtype_of(input):
        kind = "conjugate view tensors" if input.is_conj() else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    array = _base.materialise(input)
    if array.dtype.itemsize != wanted.numpy.itemsize:
        _check_view_dtype(input, wanted, array.dtype.itemsize)
    return _base.wrap(_seen_as(without_tangents(array), wanted.numpy), None, _base.storage_of(input))


def _seen_as(array: Any, dtype: Any) -> Any:
    return (
        Batched(array.level, _seen_as(array.array, dtype))
        if isinstance(array, Batched)
        else as_storage_only(array.view(dtype))
    )


def _check_view_dtype(input: Any, wanted: Any, size: int) -> None:
    words = f"to view {_base.dtype_of(input)._scalar_name} as {wanted._scalar_name} (different element sizes)"
    shape, steps = input._array.shape, input.stride()
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {words}")
    if steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {words}, but got {steps[-1]}")
    if wanted.numpy.itemsize < size:
        return
    ratio = wanted.numpy.itemsize // size
    if shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {words}, but got {shape[-1]}")
    if input.storage_offset() % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {words}, but got {input.storage_offset()}"
        )
    for k, step in enumerate(steps[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({k}) must be divisible by {ratio} {words}, but got {step}")


@overridable(forms="function method spread")
def reshape(input: Any, shape: Any) -> Any:
    """Give another shape, as a view where that is possible, else as a copy.

    Args:
        input: a tensor
        shape: sizes with the same product; one may be -1, which stands for what is left. The method takes them one by one, too

    Example:
        >>> torch.reshape(torch.arange(6), (2, 3))
        tensor([[0, 1, 2],
                [3, 4, 5]])
        >>> torch.ones(2, 3).reshape(-1).shape
        torch.Size([6])
    """
    if type(shape) is int and shape == -1:
        return reshaped(input, (input._array.size,))
    return reshaped(input, fitted((shape,), input._array.size))


def reshaped(input: Any, wanted: tuple[int, ...]) -> Any:
    """Give a shape that fits."""
    array = input._array
    if type(array) is NDARRAY and array.flags.c_contiguous:
        return view_op(input, s.reshape, {"shape": wanted}, "ViewBackward0")
    if _is_viewable(input, wanted):
        name = "ViewBackward0" if input.is_contiguous() else "ReshapeAliasBackward0"
        return view_op(input, s.reshape, {"shape": wanted}, name)
    copied = record(s.copy, (input,), {}, "CloneBackward0")
    copied._array = packed(copied._array)
    return record(s.reshape, (copied,), {"shape": wanted}, "UnsafeViewBackward0")


@overridable(forms="function method spread")
def permute(input: Any, dims: Any) -> Any:
    """Put the dimensions into another order, as a view.

    Args:
        input: a tensor
        dims: all dimensions, in the new order. The method takes them one by one, too

    Example:
        >>> torch.ones(2, 3, 4).permute(2, 0, 1).shape
        torch.Size([4, 2, 3])
    """
    order = sizes_from((dims,))
    ndim = input._array.ndim
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    axes = order
    for d in order:
        if d < 0 or d >= ndim:
            axes = tuple([_errors.wrap_dim(d, ndim) for d in order])
            break
    if len(set(axes)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_op(input, s.permute_dims, {"axes": axes}, "PermuteBackward0", {"dims": order})


@overridable(in_place=reshaping)
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Exchange two dimensions, as a view.

    Args:
        input: a tensor
        dim0: a dimension
        dim1: the other one

    Example:
        >>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([[1, 3],
                [2, 4]])
    """
    return swap(input, dim0, dim1, "TransposeBackward0")


swapdims = transpose


@overridable(in_place=reshaping)
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Swap two dimensions."""
    return swap(input, axis0, axis1, "TransposeBackward0")


_orders: dict[tuple[int, int, int], tuple[int, ...]] = {}  # of dimensions, two of them being swapped


def swap(input: Any, dim0: int, dim1: int, name: str) -> Any:
    """Swap two dimensions under a node name; a 0-d tensor is left as it is."""
    which = (input._array.ndim, dim0, dim1)
    axes = _orders.get(which)
    if axes is None:
        ndim = which[0]
        a, b = _errors.wrap_dim(dim0, ndim), _errors.wrap_dim(dim1, ndim)
        order = list(range(ndim))
        if ndim:
            order[a], order[b] = order[b], order[a]
        axes = _orders[which] = tuple(order)
    return view_op(input, s.permute_dims, {"axes": axes}, name, {"dim0": dim0, "dim1": dim1})


@overridable(in_place=reshaping)
def t(input: Any) -> Any:
    """Transpose a matrix, as a view; a vector or a number stays as it is.

    Args:
        input: a tensor with at most two dimensions

    Example:
        >>> torch.ones(2, 3).t().shape
        torch.Size([3, 2])
    """
    ndim = input._array.ndim
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    if ndim == 2:  # the common case
        return view_op(input, s.permute_dims, {"axes": (1, 0)}, "TBackward0", {"dim0": 0, "dim1": 1})
    return swap(input, 0, 1 if ndim == 2 else 0, "TBackward0")


_moves: dict[tuple[int, int, int], tuple[int, ...]] = {}  # orders of dimensions, one of them having moved


@overridable
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move dimensions to other places, as a view; the others keep their order.

    Args:
        input: a tensor
        source: a dimension or several
        destination: where they go

    Example:
        >>> torch.movedim(torch.ones(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
    """
    ndim = input._array.ndim
    if type(source) is int and type(destination) is int:
        axes = _moves.get((ndim, source, destination))
        if axes is None:
            axes = _moves[(ndim, source, destination)] = _moved(ndim, [source], [destination])
    else:
        axes = _moved(ndim, *[[one] if isinstance(one, int) else list(one) for one in (source, destination)])
    if not ndim:
        return alias(input)
    return view_op(input, s.permute_dims, {"axes": axes}, "PermuteBackward0", {"dims": axes})


def _moved(ndim: int, source: list[int], destination: list[int]) -> tuple[int, ...]:
    """Return the order of dimensions after some of them have moved."""
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({source} dims) should contain the same number of "
            f"dims as destination ({destination} dims)"
        )
    sources, targets = [[_errors.wrap_dim(d, ndim) for d in dims] for dims in (source, destination)]
    for which, dims, shown in (("source", sources, source), ("destination", targets, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{which}` ({shown})")
    order: list[Any] = [None] * ndim
    for a, b in zip(sources, targets, strict=True):
        if ndim:
            order[b] = a
    rest = iter([d for d in range(ndim) if d not in sources])
    return tuple([next(rest) if d is None else d for d in order])


moveaxis = movedim


@overridable(in_place=reshaping)
def unsqueeze(input: Any, dim: int) -> Any:
    """Insert a dimension of size 1, as a view.

    Args:
        input: a tensor
        dim: where it is in the result

    Example:
        >>> torch.ones(3).unsqueeze(0).shape, torch.ones(3).unsqueeze(-1).shape
        (torch.Size([1, 3]), torch.Size([3, 1]))
    """
    ndim = input._array.ndim
    at = dim if 0 <= dim <= ndim else _errors.wrap_dim(dim, ndim + 1)
    return view_op(input, s.expand_dims, {"axis": at}, "UnsqueezeBackward0", {"dim": dim})


@overridable(forms="function method in_place spread", in_place=reshaping)
def squeeze(input: Any, dim: Any = None) -> Any:
    """Remove dimensions of size 1, as a view.

    Args:
        input: a tensor
        dim: a dimension or several, which stay if their size is not 1; without it, all of size 1

    Example:
        >>> torch.ones(1, 3, 1).squeeze().shape, torch.ones(1, 3, 1).squeeze(0).shape
        (torch.Size([3]), torch.Size([3, 1]))
    """
    shape = input._array.shape
    if dim is None:
        axes = tuple([k for k, n in enumerate(shape) if n == 1])
        return view_op(input, s.squeeze, {"axis": axes}, "SqueezeBackward0")
    if type(dim) is int:
        at = dim if 0 <= dim < len(shape) else _errors.wrap_dim(dim, len(shape))
        axes = (at,) if shape and shape[at] == 1 else ()
        return view_op(input, s.squeeze, {"axis": axes}, "SqueezeBackward1", {"dim": dim})
    dims = tuple(dim)
    wrapped = [_errors.wrap_dim(d, len(shape)) for d in dims]
    for k, d in enumerate(wrapped):
        if d in wrapped[:k]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    axes = tuple([d for d in wrapped if shape and shape[d] == 1])
    return view_op(input, s.squeeze, {"axis": axes}, "SqueezeBackward2", {"dim": dim})


@declared(forms="method spread")
def expand(input: Any, size: Any, implicit: bool = False) -> Any:
    """Repeat dimensions of size 1 without copying them, as a view.

    Args:
        size: the new sizes, one by one or in a sequence; -1 keeps one, and new dimensions may stand in front
        implicit: for torch's tracer; it has no effect

    Example:
        >>> torch.tensor([[1], [2]]).expand(-1, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    own = input._array.shape
    rows = size[0] if type(size) is tuple and len(size) - len(own) == 1 else None
    if type(rows) is int and rows >= 0 and (size[1:] == own or (size[1:] == (-1,) and len(own) == 1)):
        return view_op(input, s.broadcast_to, {"shape": (rows, *own)}, "ExpandBackward0")
    given = sizes_from((size,))
    if given == own:
        return view_op(input, s.broadcast_to, {"shape": given}, "ExpandBackward0")
    lead = len(given) - len(own)
    wanted = list(given)
    if lead < 0:
        raise RuntimeError(
            f"expand({_type_text(input)}{{{_errors.sizes(own)}}}, size={_errors.sizes(wanted)}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the tensor ({len(own)})"
        )
    for k in reversed(range(len(wanted))):
        one = own[k - lead] if k >= lead else None
        if wanted[k] == -1:
            if one is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {k}"
                )
            wanted[k] = one
        elif one is not None and one not in (1, wanted[k]):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[k]}) must match the existing size ({one}) at non-singleton "
                f"dimension {k}.  Target sizes: {_errors.sizes(wanted)}.  Tensor sizes: {_errors.sizes(own)}"
            )
    return view_op(input, s.broadcast_to, {"shape": tuple(wanted)}, "ExpandBackward0")


def _type_text(tensor: Any) -> str:
    return _errors._TYPE_NAMES[tensor._array.dtype.name]


def expand_as(input: Any, other: Any) -> Any:
    """Expand to the shape of another tensor.

    Args:
        other: that tensor

    Example:
        >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, tuple(other._array.shape))


def view_as(input: Any, other: Any) -> Any:
    """View with the shape of another tensor.

    Args:
        other: that tensor

    Example:
        >>> torch.arange(4).view_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return view(input, other._array.shape)


@overridable(forms="function method spread")
def broadcast_to(input: Any, size: Any) -> Any:
    """Repeat a tensor to a shape without copying it, as a view.

    Args:
        input: a tensor
        size: the shape

    Example:
        >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, size)


@overridable
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Make one dimension of several.

    Args:
        input: a tensor
        start_dim: the first of them
        end_dim: the last of them

    Example:
        >>> torch.flatten(torch.ones(2, 3, 4), start_dim=1).shape
        torch.Size([2, 12])
    """
    shape = input._array.shape
    ndim = len(shape)
    if not ndim:
        _errors.wrap_dim(start_dim, 0), _errors.wrap_dim(end_dim, 0)
        return reshaped(input, (1,))
    a = start_dim if 0 <= start_dim < ndim else _errors.wrap_dim(start_dim, ndim)
    b = end_dim if 0 <= end_dim < ndim else _errors.wrap_dim(end_dim, ndim)
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if a == b:
        return input
    if b - a == ndim - 1:
        return reshaped(input, (input._array.size,))
    count = 1
    for n in shape[a : b + 1]:
        count *= n
    return reshaped(input, (*shape[:a], count, *shape[b + 1 :]))


@overridable
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """Make several dimensions of one, as a view.

    Args:
        input: a tensor
        dim: the dimension
        sizes: sizes whose product is its size; one may be -1

    Example:
        >>> torch.unflatten(torch.ones(2, 12), 1, (3, -1)).shape
        torch.Size([2, 3, 4])
    """
    shape = input._array.shape
    d = dim if 0 <= dim < len(shape) else _errors.wrap_dim(dim, len(shape))
    if not shape:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflatten(): argument 'sizes' must be tuple of ints, not {type(sizes).__name__}")
    wanted = sizes_from((sizes,))
    if not wanted:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        inner = infer_size(wanted, shape[d])
    except RuntimeError as error:
        if "is invalid for input of size" not in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {_errors.sizes(wanted)} don't multiply up to the size of dim {d} ({shape[d]}) in "
            "the input tensor"
        ) from None
    whole = (*shape[:d], *inner, *shape[d + 1 :])
    if type(array := input._array) is NDARRAY and array.flags.c_contiguous:
        return view_op(input, s.reshape, {"shape": whole}, "ViewBackward0")
    return view(input, whole)


@overridable
def ravel(input: Any) -> Any:
    """Return a tensor with one dimension, always a new view, of a copy where it must be.

    Args:
        input: a tensor

    Example:
        >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    array = input._array
    return reshaped(input if isinstance(array, LevelArray) else contiguous(input), (array.size,))


def basic_view(input: Any, index: tuple[Any, ...], name: str, shown: dict[str, Any]) -> Any:
    """View at a basic index under a node name."""
    return view_op(input, i.getitem, {"index": index}, name, shown)


@overridable
def select(input: Any, dim: int, index: int) -> Any:
    """Take one slice along a dimension, as a view; the dimension disappears.

    Args:
        input: a tensor
        dim: the dimension
        index: which slice

    Example:
        >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
        tensor([1, 3])
    """
    ndim = input._array.ndim
    if not ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = dim if 0 <= dim < ndim else _errors.wrap_dim(dim, ndim)
    size = input._array.shape[d]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {_errors.sizes(input._array.shape)} at "
            f"dimension {d}"
        )
    at = int(index) + size if index < 0 else int(index)
    return basic_view(input, (slice(None),) * d + (at,), "SelectBackward0", {"dim": dim, "index": int(index)})


@overridable
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """Take a range along a dimension, as a view.

    Args:
        input: a tensor
        dim: the dimension
        start: where it begins
        length: how long it is

    Example:
        >>> torch.narrow(torch.arange(10), 0, 3, 4)
        tensor([3, 4, 5, 6])
    """
    if isinstance(start, _base.Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start.item())
    if not input._array.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = _errors.wrap_dim(dim, input._array.ndim)
    size = input._array.shape[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else int(start)
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    shown = {"dim": dim, "start": start, "end": start + length, "step": 1}
    return basic_view(input, (slice(None),) * d + (slice(start, start + length),), "SliceBackward0", shown)


@overridable
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a diagonal of two dimensions, as a view; it becomes the last dimension.

    Args:
        input: a tensor with two dimensions or more
        offset: which one: above 0 the main diagonal, below 0 under it
        dim1: the dimension of the rows
        dim2: the dimension of the columns

    Example:
        >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    ndim = input._array.ndim
    a = dim1 if 0 <= dim1 < ndim else _errors.wrap_dim(dim1, ndim)
    b = dim2 if 0 <= dim2 < ndim else _errors.wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    params = {"offset": offset, "axis1": a, "axis2": b}
    shown = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return view_op(input, s.diagonal, params, "DiagonalBackward0", shown)


@overridable
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Copy a tensor; gradients flow through the copy.

    Args:
        input: a tensor
        memory_format: how the copy lies in memory

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> y = torch.clone(x)
        >>> y[0] = 5
        >>> x
        tensor([1., 2.])
    """
    array = input._array
    if memory_format is not None and memory_format is not preserve_format:
        if isinstance(array, Batched) and memory_format is not contiguous_format:
            raise RuntimeError(
                "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
                f"torch.contiguous_format (got {'ChannelsLast3d' if '3d' in str(memory_format) else 'ChannelsLast'})"
            )
        result = record(s.copy, (input,), {}, "CloneBackward0")
        result._array = laid_out_in(result._array, memory_format)
        return result
    if type(array) is NDARRAY and array.flags.c_contiguous:
        return record(s.copy, (input,), {}, "CloneBackward0")
    if not repeats(raw_leaf(array)):
        return record(s.copy_in_order, (input,), {}, "CloneBackward0")
    result = record(s.copy, (input,), {}, "CloneBackward0")
    result._array = in_order(result._array, output_order(array.shape, [strides(array)]))
    return result


def contiguous(input: Any, memory_format: Any = contiguous_format) -> Any:
    """Return a tensor whose elements lie in memory in their order: itself, if they do, else a copy.

    Args:
        memory_format: another order, such as `torch.channels_last`

    Example:
        >>> x = torch.ones(2, 3).t()
        >>> x.is_contiguous(), x.contiguous().is_contiguous()
        (False, True)
    """
    try:
        array = input._array
        if memory_format is not contiguous_format:
            need_format("contiguous", memory_format)
            if memory_format is preserve_format:
                raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
            alike = isinstance(array, Batched) and is_laid_out_in(array, memory_format)  # which refuses to tell
            order_in(array.ndim, memory_format)
            return input if alike or is_laid_out_in(array, memory_format) else clone(input, memory_format=memory_format)
        if array.flags.c_contiguous if type(array) is NDARRAY else is_contiguous(array):
            return input
        result = record(s.copy, (input,), {}, "CloneBackward0")
        result._array = packed(result._array)
        return result
    except Exception as error:
        hide(error)
        raise


def alias(input: Any) -> Any:
    """View the whole tensor."""
    return view_op(input, s.alias, {}, "AliasBackward0")


def transposed_property(input: Any, kind: str) -> Any:
    """Return `.T`, `.mT`, `.H` or `.mH`."""
    ndim = input._array.ndim
    if kind == "T" and ndim == 2:
        return view_op(input, s.permute_dims, {"axes": (1, 0)}, "PermuteBackward0", {"dims": (1, 0)})
    if ndim == 2 and kind == "mT":
        return view_op(input, s.permute_dims, {"axes": (1, 0)}, "TransposeBackward0", {"dim0": -2, "dim1": -1})
    if not ndim and kind != "T":
        result = input
    elif kind in ("T", "H"):
        if kind == "H" and ndim != 2:
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
                + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
            )
        if kind == "T" and ndim not in (0, 2):
            warn(
                "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
                "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
                "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
            )
        axes = tuple(reversed(range(ndim)))
        if kind == "H":
            result = swap(input, 0, 1, "TransposeBackward0")
        else:
            result = view_op(input, s.permute_dims, {"axes": axes}, "PermuteBackward0", {"dims": axes})
    else:
        if ndim == 1:
            raise RuntimeError(
                f"tensor.{kind} is only supported on matrices or batches of matrices. Got {ndim}-D tensor."
            )
        result = swap(input, -2, -1, "TransposeBackward0")
    return result.conj() if kind in ("H", "mH") else result


@overridable
def adjoint(input: Any) -> Any:
    """Transpose the last two dimensions and conjugate."""
    return transposed_property(input, "mH")
