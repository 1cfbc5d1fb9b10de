"""Reading and writing along one dimension: gather, index_select, index_add and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.arrays import is_meta, raw_leaf
from ..._core.numpy_namespace import ARRAY
from ..._core.passes import LARGE
from ..._core.primitive import vocabulary
from ..._ops import along
from ..._ops import index as ops
from ...overrides import overridable, takes_out
from .. import _base
from .._aliasing.entering import is_of_innermost
from .._object.numbers import element_of
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import laid_out, record
from .index import _scalar, first_outside

INT64, INT32 = np.dtype(np.int64), np.dtype(np.int32)


def refuse_index_dtype(name: str, index: Any) -> None:
    """Raise torch's error for indices that are not integers."""
    dtype = index._array.dtype
    if dtype is not INT64 and dtype != INT32 and dtype != INT64:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def same_dtype_out(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Refuse `out=` of any dtype but the result's, in words of the operation's own; {} are the two dtypes' names."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        def check(name: str, targets: Any, results: Any) -> None:
            if targets[0]._array.dtype != results[0]._array.dtype:
                raise RuntimeError(text.format(name, _scalar(results[0]), _scalar(targets[0])))

        function.check_out = check  # type: ignore[attr-defined]
        return function

    return mark


SAME_SCALAR_TYPE = "{}(): self and result must have the same scalar type"


@takes_out
@needs_dtype_of_result
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Pick elements along a dimension by index: `out[i][j] = input[index[i][j]][j]` for dim 0.

    Args:
        input: a tensor
        dim: the dimension
        index: a tensor of int64, of the shape of the result; its other sizes are at most those of `input`
        sparse_grad: no effect: gradients are dense

    Example:
        >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
        tensor([[1, 1],
                [4, 3]])
    """
    own, at = input._array, index._array
    axis = dim if type(dim) is int and 0 <= dim < own.ndim else _errors.wrap_dim(dim, own.ndim)
    if at.dtype is INT64 and own.ndim and (own.ndim == 1 == at.ndim or at.shape == own.shape):
        check_bounds(at, own.shape[axis], axis)
    elif at.size:
        refuse_index_dtype("gather", index)
        if at.ndim != own.ndim and max(at.ndim, 1) != max(own.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        for k in range(at.ndim if own.ndim else 0):
            if k != axis and at.shape[k] > own.shape[k]:
                raise RuntimeError(
                    f"Size does not match at dimension {k} expected index {_errors.sizes(at.shape)} to be no larger than "
                    f"self {_errors.sizes(own.shape)} apart from dimension {axis}"
                )
        check_bounds(at, own.shape[axis] if own.ndim else 1, axis)
    elif at.dtype.kind not in "iu" or at.ndim != own.ndim:
        return _nothing_gathered(input, index)
    return record(along.take_along, (input, index), {"axis": axis}, "GatherBackward0", {"dim": dim})


def _nothing_gathered(input: Any, index: Any) -> Any:
    """Gather at an empty index of any dtype and rank, which torch allows."""
    flat = vocabulary.reshape(index._array, shape=(-1,))
    empty = record(
        along.take_along,
        (input.reshape(-1), _base.wrap(vocabulary.astype(flat, dtype=np.int64))),
        {"axis": 0},
        "GatherBackward0",
    )
    return empty.reshape(tuple(index._array.shape))


def few_inside(array: Any, low: int, high: int) -> bool:
    """Tell whether few indices are all in [low, high); Python's numbers are quicker than NumPy's reductions."""
    if is_meta(array):
        return True
    if type(array) is not np.ndarray:  # a recorded one, whose numbers can be compared only
        return not array.size or bool(array.min() >= low and array.max() < high)
    numbers = array.ravel().tolist()
    return not numbers or (low <= min(numbers) and max(numbers) < high)


def _are_inside(array: Any, size: int) -> bool:
    """Tell at once of most arrays that all their indices are in [0, size): as numbers without sign, negative ones are the largest."""
    if type(array) is not np.ndarray or array.dtype is not INT64 or not array.flags.c_contiguous:
        return False
    return bool(np.maximum.reduce(array.view(np.uint64), None) < size)


def _is_outside(array: Any, size: int) -> bool:
    """Tell whether any index is not in [0, size)."""
    if not array.size or (few_inside(array, 0, size) if array.size < 16 else _are_inside(array, size)):
        return False
    return bool(array.min() < 0 or array.max() >= size)


def check_bounds(array: Any, size: int, axis: int, error: type[Exception] = RuntimeError, before: str = "") -> None:
    """Raise torch's error for an index outside of a dimension; negative ones are outside."""
    array = raw_leaf(array)  # of every sample: in a flat batch an index outside would reach the next one
    if not is_meta(array) and _is_outside(array, size):
        wrong = first_outside(array, 0, size)
        raise error(f"{before}index {wrong} is out of bounds for dimension {axis} with size {size}")


def refuse_outside(array: Any, size: int) -> None:
    """Raise the error of kernels that do not say which index is outside."""
    if _is_outside(raw_leaf(array), size):
        raise IndexError("index out of range in self")


@takes_out
@same_dtype_out(SAME_SCALAR_TYPE)
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Take slices along a dimension by their indices, as a copy.

    Args:
        input: a tensor
        dim: the dimension
        index: a 1-d tensor of integers

    Example:
        >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([1, 0, 1]))
        tensor([[2, 1, 2],
                [4, 3, 4]])
    """
    at, own = index._array, input._array
    axis = dim if type(dim) is int and 0 <= dim < own.ndim else _errors.wrap_dim(dim, own.ndim)
    if at.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if at.dtype is not INT64 and at.dtype not in (INT64, INT32):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not own.ndim and at.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {at.size} value(s)")
    _check_select_bounds(raw_leaf(at), own, axis)
    if not own.ndim:
        return record(vocabulary.copy, (input,), {}, "IndexSelectBackward0")
    index = _vector(index)
    shown = {"dim": dim, "indices": (index,)}
    result = record(ops.index, (input, index._array), {"layout": layout_at(axis)}, "IndexSelectBackward0", shown)
    if own.ndim > 1:
        result._array = laid_out(result._array)
    return result


_LAYOUTS = tuple((slice(None),) * axis + (ARRAY,) for axis in range(4))


def _check_select_bounds(at: Any, own: Any, axis: int) -> None:
    size = own.shape[axis] if own.ndim else 1
    if is_meta(at):
        return
    if _is_outside(at, size):
        if axis == 1:
            wrong = first_outside(at, 0, size)
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}")
        raise IndexError("index out of range in self")


# ---- slices written along a dimension ----
def _are_vectors(own: Any, at: Any, given: Any) -> bool:
    """Tell quickly that there is nothing to refuse: vectors of one dtype, and as many values as indices."""
    return bool(
        own.ndim == at.ndim == given.ndim == 1
        and at.dtype is INT64
        and given.dtype is own.dtype
        and at.shape == given.shape
    )


def _are_all_slices(own: Any, at: Any, given: Any, axis: int) -> bool:
    """Tell quickly that there is nothing to refuse: as many indices as there are slices, and values in the same shape."""
    return bool(
        at.ndim == 1
        and at.dtype is INT64
        and given.dtype is own.dtype
        and given.shape == own.shape
        and own.ndim
        and at.shape[0] == own.shape[axis]
    )


def layout_at(axis: int) -> tuple[Any, ...]:
    """Return the index expression with an array at one axis."""
    return _LAYOUTS[axis] if axis < len(_LAYOUTS) else (slice(None),) * axis + (ARRAY,)


def _check_slices(name: str, input: Any, axis: int, index: Any, source: Any) -> None:
    """Raise torch's errors for `index_add` and `index_reduce`."""
    shape = tuple(index._array.shape)
    if len(shape) > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {len(shape)} with type: {_scalar(index)} and "
            f"size: {_errors.sizes(shape)}"
        )
    if index._array.dtype is not INT64 and index._array.dtype not in (INT64, INT32):
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {_scalar(index)}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"{name}_(): self ({_scalar(input)}) and source ({_scalar(source)}) must have the same scalar type"
        )
    own, given = tuple(input._array.shape), tuple(source._array.shape)
    if own[:axis] + own[axis + 1 :] != given[:axis] + given[axis + 1 :] or len(own) != len(given):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{_errors.sizes(own)} source.shape = {_errors.sizes(given)}"
        )
    count, size = index._array.size, given[axis] if given else 1
    if count != size:
        raise RuntimeError(
            f"{name}_(): Number of indices ({count}) should be equal to source.size(dim): ({size}), for dim: {axis}"
        )


def _vector(index: Any) -> Any:
    return index if index._array.ndim else _shaped(index, (1,))


def _shaped(index: Any, shape: tuple[int, ...]) -> Any:
    """Return an index tensor in another shape: the same memory, so that a write into it is noticed."""
    if tuple(index._array.shape) == shape:
        return index
    return _base.wrap(vocabulary.reshape(index._array, shape=shape), None, _base.storage_of(index))


@takes_out
@needs_dtype_of_result
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Add slices to those at given indices; an index may occur several times.

    Args:
        input: a tensor
        dim: the dimension
        index: a 1-d tensor of integers
        source: what is added, as many slices as indices
        alpha: a factor of `source`

    Example:
        >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 3.0]))
        tensor([4., 0., 2.])
    """
    own, at = input._array, index._array
    axis = dim if type(dim) is int and 0 <= dim < own.ndim else _errors.wrap_dim(dim, own.ndim)
    if not _are_all_slices(own, at, source._array, axis) and not _are_vectors(own, at, source._array):
        if own.ndim + source._array.ndim == 1 and (is_of_innermost(own) or is_of_innermost(source._array)):
            source = source.reshape((1,) * own.ndim)  # torch gives a sample without dimensions one here
        _check_slices("index_add", input, axis, index, source)
    if own.ndim > 1:
        check_bounds(at, own.shape[axis], axis)
    else:
        refuse_outside(at, own.size)
    if own.ndim <= 1 and alpha == 1:  # the same as a scatter, and quicker
        index = _shaped(index, tuple(source._array.shape))
        return record(along.scatter_add, (input, index, source), {"axis": 0}, "IndexAddBackward0")
    if not own.ndim:
        return index_add(input, 0, index, source * alpha)
    if own.dtype.kind in "biu":
        alpha = element_of(alpha, own.dtype)
    elif isinstance(alpha, complex) and own.dtype.kind != "c":
        element_of(alpha, own.dtype)
    params = {"layout": layout_at(axis), "alpha": alpha}
    return record(ops.index_add, (input, source, _vector(index)), params, "IndexAddBackward0")


REDUCTIONS = ("prod", "mean", "amax", "amin")
_INDEX_KERNELS = {"mean": "div_floor_cpu", "amax": "maximum_cpu", "amin": "minimum_cpu"}


def refuse_kernel(name: str, tensor: Any) -> None:
    """Raise torch's error for a dtype that a kernel is not made for."""
    raise NotImplementedError(f"\"{name}\" not implemented for '{_scalar(tensor)}'")


@takes_out
@needs_dtype_of_result
def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """Return a copy with slices of `source` reduced into it along a dimension."""
    from .scattering import reduced_along

    if reduce not in REDUCTIONS:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _check_slices("index_reduce", input, axis, index, source)
    at, size = index._array, input._array.shape[axis] if input._array.ndim else 1
    refuse_outside(at, size)
    shape = tuple(source._array.shape)
    at = vocabulary.reshape(at, shape=tuple(-1 if k == axis else 1 for k in range(len(shape))))
    wide = _base.wrap(vocabulary.broadcast_to(at, shape=shape), None, _base.storage_of(index))
    kernel = _INDEX_KERNELS.get(reduce)
    if input._array.dtype.kind in "bc":
        if not include_self:
            refuse_kernel("index_reduce_func_exclude_input_init", input)
        if input._array.ndim <= 1:
            refuse_kernel("index_func_", input)
    return reduced_along(input, axis, wide, source, reduce, include_self, "IndexReduceBackward0", kernel)


@takes_out
@needs_dtype_of_result
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """Replace the slices at given indices.

    Args:
        input: a tensor
        dim: the dimension
        index: a 1-d tensor of int64
        source: what they are replaced by, as many slices as indices

    Example:
        >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    own, at = input._array, index._array
    axis = dim if type(dim) is int and 0 <= dim < own.ndim else _errors.wrap_dim(dim, own.ndim)
    if _are_all_slices(own, at, source._array, axis):
        check_bounds(at, own.shape[axis], axis, IndexError, "index_copy_(): ")
    else:
        _check_copy(input, axis, index, source)
    if not own.ndim:
        at = _shaped(index, tuple(source._array.shape))
        return record(along.scatter_assign, (input, at, source), {"axis": 0}, "IndexCopyBackward0")
    params = {"layout": layout_at(axis), "accumulate": False}
    return record(ops.index_put, (input, source, _vector(index)), params, "IndexCopyBackward0")


def _check_copy(input: Any, axis: int, index: Any, source: Any) -> None:
    own, given, count = input._array, source._array, index._array.size
    if index._array.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index._array.ndim})")
    if not given.ndim and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if given.ndim and own.ndim and given.ndim != own.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({given.ndim}), destination dimensionality ({own.ndim})"
        )
    if index._array.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {_scalar(index)}")
    if given.dtype != own.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {_scalar(input)} and "
            f"(source) {_scalar(source)}"
        )
    rest, other = (tuple(n for k, n in enumerate(a.shape) if k != axis) for a in (own, given))
    if rest != other:
        shown = [" ".join(map(str, shape)) for shape in (rest, other)]
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{shown[0]} at dimension {axis} and source slice shape: {shown[1]} at dimension 0."
        )
    if given.ndim and count != given.shape[axis]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({given.shape[axis]})"
        )
    size = own.shape[axis] if own.ndim else 1
    check_bounds(index._array, size, axis, IndexError, "index_copy_(): ")


@overridable
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Fill the slices at given indices with one value.

    Args:
        input: a tensor
        dim: the dimension
        index: a 1-d tensor of int64
        value: a number, or a tensor with one element

    Example:
        >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 7.0)
        tensor([7., 0., 7.])
    """
    axis = _errors.wrap_dim(dim, input._array.ndim)
    if index._array.dtype is not INT64 and index._array.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    dtype = input._array.dtype
    if isinstance(value, _base.Tensor):
        name = "IndexFillBackward1"
        if value._array.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        if _dtypes.holds_complex(value._array.dtype) and not _dtypes.holds_complex(dtype):
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        filled = value.to(_base.dtype_of(input))
    else:
        name = "IndexFillBackward0"
        if isinstance(value, complex) and not _dtypes.holds_complex(dtype):
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        filled = element_of(value, dtype)
    at, size = _vector(index)._array, input._array.shape[axis] if input._array.ndim else 1
    if type(at) is type(input._array) is np.ndarray and at.size < 16 and few_inside(at, -size, size):
        if input._array.ndim and input._array.size < LARGE and input._array.flags.c_contiguous:
            chosen = np.zeros(input._array.shape, bool)
            slices = chosen.swapaxes(0, axis) if axis else chosen
            for place in at.tolist():
                slices[place] = True
            return record(ops.masked_fill, (input, chosen, filled), {}, name)
    elif not is_meta(every := raw_leaf(at)) and every.size and (every.min() < -size or every.max() >= size):
        wrong = first_outside(every, -size, size)
        raise IndexError(f"index {wrong} is out of bounds for dimension {axis} with size {size}")
    at = vocabulary.where(vocabulary.less(at, 0), at + size, at)
    mask = vocabulary.scatter_mask_zeros(at, axis=0, shape=(size,))
    mask = vocabulary.reshape(mask, shape=(size, *(1,) * (input._array.ndim - axis - 1)) if input._array.ndim else ())
    return record(ops.masked_fill, (input, mask, filled), {}, name)
