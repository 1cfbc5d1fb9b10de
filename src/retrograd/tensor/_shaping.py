"""Shape functions: views, joining and splitting."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from .. import _errors
from .._core.arrays import LevelArray, raw_leaf
from .._ops import elementwise as e
from .._ops import index as i
from .._ops import shape as s
from ..overrides import overridable, takes_out
from . import _base
from ._record import record
from ._views import view_op


def sizes_from(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Read sizes given as numbers or as one sequence."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
    return tuple(index(n) for n in args)


def infer_size(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Fill in -1, with torch's errors."""
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for k, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {k} of shape {_errors.sizes(shape)}")
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    if -1 in shape:
        if known == 0 and count == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {_errors.sizes(shape)} because the unspecified "
                "dimension size -1 can be any value and is ambiguous"
            )
        if known == 0 or count % known:
            raise RuntimeError(f"shape '{_errors.sizes(shape)}' is invalid for input of size {count}")
        return tuple(count // known if n == -1 else n for n in shape)
    if known != count:
        raise RuntimeError(f"shape '{_errors.sizes(shape)}' is invalid for input of size {count}")
    return shape


def _can_view(array: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether memory can be read with another shape without a copy."""
    if isinstance(array, LevelArray):
        from .._core.arrays import Dual

        if isinstance(array, Dual):
            return _can_view(array.primal, shape) and (array.tangent is None or _can_view(array.tangent, shape))
        return _can_view(array.array, (array.level.size, *shape))  # type: ignore[attr-defined]
    if not isinstance(array, np.ndarray):
        return True
    try:
        return bool(np.reshape(array, shape, copy=False) is not None)
    except ValueError:
        return False


def view(input: Any, *shape: Any) -> Any:
    """Read the same memory with another shape (or dtype)."""
    from .._dtypes import dtype

    if len(shape) == 1 and isinstance(shape[0], dtype):
        return view_dtype(input, shape[0])
    wanted = sizes_from(shape)
    wanted = infer_size(wanted, input._array.size)
    if not _can_view(input._array, wanted):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return view_op(input, s.reshape, {"shape": wanted}, "ViewBackward0")


def view_dtype(input: Any, dtype: Any) -> Any:
    """Read the same memory as another dtype."""
    if input._edge is not None:
        raise NotImplementedError("view(dtype): the derivative of a view with another dtype is not implemented")
    array = _base.materialise(input)
    result = _base.wrap(array.view(dtype.numpy), None, _base.storage_of(input))
    return result


@overridable
def reshape(input: Any, *shape: Any) -> Any:
    """Give another shape, as a view where that is possible, else as a copy."""
    wanted = infer_size(sizes_from(shape), input._array.size)
    if _can_view(input._array, wanted):
        name = "ViewBackward0" if input.is_contiguous() else "ReshapeAliasBackward0"
        return view_op(input, s.reshape, {"shape": wanted}, name)
    copied = record(s.copy, (input,), {}, "CloneBackward0")
    copied._array = _contiguous(copied._array)
    result = record(s.reshape, (copied,), {"shape": wanted}, "UnsafeViewBackward0")
    return result


def _contiguous(array: Any) -> Any:
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) and array.ndim else array


@overridable
def permute(input: Any, *dims: Any) -> Any:
    """Reorder the dimensions."""
    order = sizes_from(dims)
    ndim = input._array.ndim
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    axes = tuple(_errors.wrap_dim(d, ndim) for d in order)
    if len(set(axes)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_op(input, s.permute_dims, {"axes": axes}, "PermuteBackward0", {"dims": order})


@overridable
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Swap two dimensions."""
    return swap(input, dim0, dim1, "TransposeBackward0")


swapaxes = swapdims = transpose


def swap(input: Any, dim0: int, dim1: int, name: str) -> Any:
    """Swap two dimensions under a node name; a 0-d tensor is left as it is."""
    ndim = input._array.ndim
    a, b = _errors.wrap_dim(dim0, ndim), _errors.wrap_dim(dim1, ndim)
    order = list(range(ndim))
    if ndim:
        order[a], order[b] = order[b], order[a]
    return view_op(input, s.permute_dims, {"axes": tuple(order)}, name, {"dim0": dim0, "dim1": dim1})


@overridable
def t(input: Any) -> Any:
    """Transpose a matrix."""
    ndim = input._array.ndim
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return swap(input, 0, 1 if ndim == 2 else 0, "TBackward0")


@overridable
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move dimensions to new places."""
    ndim = input._array.ndim
    given = [[one] if isinstance(one, int) else list(one) for one in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({given[0]} dims) should contain the same number of "
            f"dims as destination ({given[1]} dims)"
        )
    sources, targets = [[_errors.wrap_dim(d, ndim) for d in dims] for dims in given]
    for which, dims in (("source", sources), ("destination", targets)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{which}` ({dims})")
    order: list[Any] = [None] * ndim
    for a, b in zip(sources, targets, strict=True):
        order[b] = a
    rest = iter(d for d in range(ndim) if d not in sources)
    axes = tuple(next(rest) if d is None else d for d in order)
    return view_op(input, s.permute_dims, {"axes": axes}, "PermuteBackward0", {"dims": axes})


moveaxis = movedim


@overridable
def unsqueeze(input: Any, dim: int) -> Any:
    """Insert a dimension of size one."""
    at = _errors.wrap_dim(dim, input._array.ndim + 1)
    return view_op(input, s.expand_dims, {"axis": at}, "UnsqueezeBackward0", {"dim": dim})


@overridable
def squeeze(input: Any, dim: Any = None) -> Any:
    """Drop dimensions of size one."""
    shape = input._array.shape
    if dim is None:
        axes = tuple(k for k, n in enumerate(shape) if n == 1)
        return view_op(input, s.squeeze, {"axis": axes}, "SqueezeBackward0")
    single = not isinstance(dim, (tuple, list))
    dims = (dim,) if single else tuple(dim)
    axes = tuple(d for d in (_errors.wrap_dim(d, len(shape)) for d in dims) if len(shape) and shape[d] == 1)
    name = "SqueezeBackward1" if single else "SqueezeBackward2"
    return view_op(input, s.squeeze, {"axis": axes}, name, {"dim": dim})


def expand(input: Any, *shape: Any) -> Any:
    """Repeat along dimensions of size one without copying."""
    wanted = list(sizes_from(shape))
    own = input._array.shape
    lead = len(wanted) - len(own)
    if lead < 0:
        raise RuntimeError(
            f"expand({_type_text(input)}{{{_errors.sizes(own)}}}, size={_errors.sizes(wanted)}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the tensor ({len(own)})"
        )
    for k in range(len(wanted)):
        size = own[k - lead] if k >= lead else None
        if wanted[k] == -1:
            if size is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {k}"
                )
            wanted[k] = size
        elif size is not None and size not in (1, wanted[k]):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[k]}) must match the existing size ({size}) at non-singleton "
                f"dimension {k}.  Target sizes: {_errors.sizes(wanted)}.  Tensor sizes: {_errors.sizes(own)}"
            )
    return view_op(input, s.broadcast_to, {"shape": tuple(wanted)}, "ExpandBackward0")


def _type_text(tensor: Any) -> str:
    return _errors._TYPE_NAMES[tensor._array.dtype.name]


def expand_as(input: Any, other: Any) -> Any:
    """Expand to another tensor's shape."""
    return expand(input, *other._array.shape)


def view_as(input: Any, other: Any) -> Any:
    """View with another tensor's shape."""
    return view(input, *other._array.shape)


@overridable
def broadcast_to(input: Any, size: Any) -> Any:
    """Expand to a shape."""
    return expand(input, *size)


@overridable
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge dimensions into one."""
    shape = input._array.shape
    if not shape:
        return reshape(input, 1)
    a, b = _errors.wrap_dim(start_dim, len(shape)), _errors.wrap_dim(end_dim, len(shape))
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if a == b:
        return input
    count = 1
    for n in shape[a : b + 1]:
        count *= n
    return reshape(input, *shape[:a], count, *shape[b + 1 :])


@overridable
def ravel(input: Any) -> Any:
    """Flatten to one dimension; always a new view."""
    return view(contiguous(input), -1) if not isinstance(input._array, LevelArray) else reshape(input, -1)


def basic_view(input: Any, index: tuple[Any, ...], name: str, shown: dict[str, Any]) -> Any:
    """View at a basic index under a node name."""
    return view_op(input, i.getitem, {"index": index}, name, shown)


@overridable
def select(input: Any, dim: int, index: int) -> Any:
    """View one position of a dimension."""
    ndim = input._array.ndim
    if not ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = _errors.wrap_dim(dim, ndim)
    size = input._array.shape[d]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {_errors.sizes(input._array.shape)} at "
            f"dimension {d}"
        )
    at = int(index) + size if index < 0 else int(index)
    return basic_view(input, (slice(None),) * d + (at,), "SelectBackward0", {"dim": dim, "index": int(index)})


@overridable
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """View `length` positions of a dimension from `start` on."""
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
    """View the diagonal of two dimensions."""
    ndim = input._array.ndim
    a, b = _errors.wrap_dim(dim1, ndim), _errors.wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    params = {"offset": offset, "axis1": a, "axis2": b}
    shown = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return view_op(input, s.diagonal, params, "DiagonalBackward0", shown)


@overridable
def flip(input: Any, *dims: Any) -> Any:
    """Reverse the order along dimensions; a copy."""
    axes = tuple(_errors.wrap_dim(d, input._array.ndim) for d in sizes_from(dims))
    if len(set(axes)) != len(axes):
        raise RuntimeError("dim " + str(axes[-1]) + " appears multiple times in the list of dims")
    return record(s.flip, (input,), {"axis": axes}, "FlipBackward0", {"dims": sizes_from(dims)})


def _matrices(name: str, tensor: Any) -> None:
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@overridable
def tril(input: Any, diagonal: int = 0) -> Any:
    """Keep the lower triangle."""
    _matrices("tril", input)
    return record(s.triangle, (input,), {"upper": False, "k": diagonal}, "TrilBackward0")


@overridable
def triu(input: Any, diagonal: int = 0) -> Any:
    """Keep the upper triangle."""
    _matrices("triu", input)
    return record(s.triangle, (input,), {"upper": True, "k": diagonal}, "TriuBackward0")


def _common_dtype(tensors: Sequence[Any]) -> list[Any] | None:
    """Cast the arrays of tensors to their common dtype; None where they have one."""
    from ._record import promoted

    if len({t._array.dtype for t in tensors}) == 1:
        return None
    return promoted([t._array for t in tensors])[0]


@takes_out
def cat(tensors: Any, dim: int = 0) -> Any:
    """Join tensors along a dimension."""

    if isinstance(tensors, _base.Tensor):
        raise TypeError("cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for k, tensor in enumerate(tensors):
        if not tensor._array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    shaped = [x for x in tensors if tuple(x._array.shape) != (0,)] or tensors
    if all(x._array.ndim == 1 for x in shaped):
        shaped = tensors
    ndim = shaped[0]._array.ndim
    empty = all(tuple(x._array.shape) == (0,) for x in tensors)
    d = 0 if empty else _errors.wrap_dim(dim, ndim)
    first = shaped[0]._array.shape
    for k, tensor in enumerate(shaped[1:], 1):
        shape = tensor._array.shape
        if len(shape) != ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {ndim} and {len(shape)}")
        for axis in range(ndim):
            if axis != d and shape[axis] != first[axis]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {first[axis]} but got size "
                    f"{shape[axis]} for tensor number {k} in the list."
                )
    run_on = _common_dtype(tensors)
    if len(shaped) != len(tensors):  # empty vectors stand among tensors of any rank
        nothing = (*first[:d], 0, *first[d + 1 :])
        arrays = run_on or [x._array for x in tensors]
        run_on = [s.reshape(a, shape=nothing) if tuple(a.shape) == (0,) else a for a in arrays]
    result = record(s.concat, tensors, {"axis": d}, "CatBackward0", {"dim": dim}, run_on)
    return result


concat = concatenate = cat


@takes_out
def stack(tensors: Any, dim: int = 0) -> Any:
    """Join tensors along a new dimension."""

    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array.shape
    d = _errors.wrap_dim(dim, len(first) + 1)
    for k, tensor in enumerate(tensors[1:], 1):
        if tuple(tensor._array.shape) != tuple(first):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {_errors.sizes(first)} at entry 0 and "
                f"{_errors.sizes(tensor._array.shape)} at entry {k}"
            )
    result = record(s.stack, tensors, {"axis": d}, "StackBackward0", {"dim": dim}, _common_dtype(tensors))
    return result


@overridable
def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """View the tensor's storage with any sizes and strides."""
    array = raw_leaf(_base.materialise(input))
    if input._edge is not None or isinstance(input._array, LevelArray):
        raise NotImplementedError("as_strided: the derivative is not implemented; use view, select or slices")
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    item = array.itemsize
    start = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    offset = start if storage_offset is None else storage_offset * item
    flat = np.ndarray(tuple(size), array.dtype, whole, offset, tuple(n * item for n in stride))
    return _base.wrap(flat, None, _base.storage_of(input))


@overridable
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Copy into new memory."""
    return record(s.copy, (input,), {}, "CloneBackward0")


def contiguous(input: Any, memory_format: Any = None) -> Any:
    """Return the tensor itself if its memory is contiguous, else a copy."""
    array = input._array
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return input
    result = record(s.copy, (input,), {}, "CloneBackward0")
    result._array = np.ascontiguousarray(result._array)
    return result


def alias(input: Any) -> Any:
    """View the whole tensor."""
    return view_op(input, s.alias, {}, "AliasBackward0")


def transposed_property(input: Any, kind: str, depth: int) -> Any:
    """Return `.T`, `.mT`, `.H` or `.mH`."""
    ndim = input._array.ndim
    if kind in ("T", "H"):
        if kind == "H" and ndim not in (0, 2):
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
                + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
            )
        if kind == "T" and ndim not in (0, 2):
            warnings.warn(
                "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
                "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
                "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
                stacklevel=depth + 1,
            )
        axes = tuple(reversed(range(ndim)))
        if kind == "H" and ndim == 2:
            result = swap(input, 0, 1, "TransposeBackward0")
        else:
            result = view_op(input, s.permute_dims, {"axes": axes}, "PermuteBackward0", {"dims": axes})
    else:
        if ndim < 2:
            raise RuntimeError(
                f"tensor.{kind} is only supported on matrices or batches of matrices. Got {ndim}-D tensor."
            )
        result = swap(input, -2, -1, "TransposeBackward0")
    return e.conj(result) if kind in ("H", "mH") and input._array.dtype.kind == "c" else result
