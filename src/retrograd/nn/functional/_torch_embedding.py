"""torch.embedding and torch.embedding_bag, on which those of nn.functional rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays import LevelArray, is_meta, raw_leaf
from ..._errors import _TYPE_NAMES
from ..._modes import using
from ..._ops import embedding as e
from ...overrides import overridable
from ...tensor import _base
from ...tensor._aliasing.entering import refuse_captured
from ...tensor._object.devices import beside, on_host
from ...tensor._recording.record import record
from ._by_sample import outermost_batch, sample_by_sample

MODES = ("sum", "mean", "max")
NO_SPARSE = (
    "{}: sparse=True asks for a sparse gradient of the weights, which retrograd does not have\nHint: leave sparse=False; "
    "the gradient has the same values, in dense memory."
)


def need_indices(name: str, indices: Any, position: int = 1) -> None:
    """Raise torch's error for indices that are neither int64 nor int32."""
    dtype = indices._array.dtype
    if dtype.kind != "i" or dtype.itemsize < 4:
        found = f"CPU{_base.dtype_of(indices)._scalar_name}Type" if dtype.kind in "bc" else _TYPE_NAMES[dtype.name]
        raise RuntimeError(
            f"Expected tensor for argument #{position} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {found} instead (while checking arguments for {name})"
        )


def _out_of_range(array: Any, rows: int) -> Any:
    """Return a mask of indices outside a table, or None if there are none or they cannot be seen now."""
    array = raw_leaf(array)
    if not array.size or is_meta(array) or (array.min() >= 0 and array.max() < rows):
        return None
    return (array < 0) | (array >= rows)


@overridable
def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """Pick rows of a table."""
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    need_indices("embedding", indices)
    if sparse and weight.requires_grad:
        raise NotImplementedError(NO_SPARSE.format("embedding"))
    rows = weight._array.shape[0]
    if _out_of_range(indices._array, rows) is not None:
        raise IndexError(
            f"index out of range in self\nHint: the table has {rows} rows, so indices go from 0 to {rows - 1}."
        )
    params = {"padding_idx": padding_idx, "by_frequency": bool(scale_grad_by_freq)}
    return record(e.embedding, (weight, indices), params, "EmbeddingBackward0")


def renorm_rows(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are picked down to a norm, in place and unrecorded."""
    need_indices("embedding_renorm_", indices, 2)
    refuse_captured(weight, "embedding_renorm_")
    with using(grad=False):
        if isinstance(weight._array, LevelArray) or isinstance(indices._array, LevelArray):
            numbers = _base.wrap(beside(np.arange(weight.size(0)), weight._array))
            used = (indices.reshape(-1, 1) == numbers).any(0).unsqueeze(1)
            weight.copy_(weight.detach().renorm(norm_type, 0, max_norm).where(used, weight.detach()))
            return
        unique = np.unique(indices._array).astype(np.int64)
        if _out_of_range(unique, rows := weight.size(0)) is not None:
            if (strange := unique[(unique < -rows) | (unique >= rows)]).size:
                raise IndexError(
                    f"select(): index {int(strange[0])} out of range for tensor of size {list(weight.shape)} at dimension "
                    f"0\nHint: the table has {rows} rows, so indices go from 0 to {rows - 1}."
                )
            return  # negative ones are refused where rows are picked
        picked = _base.wrap(unique)
        weight.index_copy_(0, picked, weight.detach()[picked].renorm(norm_type, 0, max_norm))


def embedding_renorm_(weight: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scale the rows that are picked down to a norm, in place."""
    renorm_rows(weight, indices, max_norm, norm_type)
    return weight


# ---- bags ----
def _bags_of(count: int, offsets: Any, include_last_offset: bool) -> tuple[Any, Any]:
    """Return the bag of every index, and the sizes of bags."""
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
            f"{offsets[0]}\n[ {_TYPE_NAMES[offsets.dtype.name]}{{}} ]"
        )
    if offsets.size and offsets[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {offsets[-1]}"
        )
    ends = offsets if include_last_offset else np.append(offsets, count)
    sizes = np.diff(ends)
    if (sizes < 0).any():
        raise RuntimeError(
            "Expected i < index_size to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)\nHint: offsets must not decrease."
        )
    bags = np.repeat(np.arange(len(sizes)), np.maximum(sizes, 0))
    return np.concatenate(
        (bags, np.full(count - len(bags), -1))
    ), sizes  # what lies behind the last offset is in no bag


def _bags_without_values(picked: Any, indices: Any, starts: int, include_last_offset: bool, mode: int) -> Any:
    """Return what `embedding_bag` does for meta tensors, of which only shapes are known."""
    count = starts - include_last_offset
    params = {"rows": count, "groups": 1, "padding_idx": -1, "by_frequency": False}
    out = record(e.add_rows, (picked, indices), params, "EmbeddingBagBackward0")
    shapes = indices.shape, (starts,), (count, picked.shape[1]) if mode == 2 else (0,)
    return out, *[indices.new_empty(shape) for shape in shapes]


def _largest(table: Any, indices: Any, bags: Any, count: int) -> Any:
    """Return for every bag and column the index of the row that is largest there, the first among equals.

    NaN counts if it comes first, as in torch, whose comparisons it loses.
    """
    best = np.zeros((count, table.shape[1]), np.int64)
    order = np.argsort(bags, kind="stable")
    starts = np.flatnonzero(np.diff(bags[order], prepend=-1))
    values = table[indices[order]]
    values = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    missing = np.isnan(values)
    values[missing] = -np.inf
    values[starts] = np.where(missing[starts], np.inf, values[starts])
    for start, stop in zip(starts, np.append(starts, len(order))[1:], strict=True):
        best[bags[order[start]]] = indices[order][start:stop][values[start:stop].argmax(0)]
    return best


@overridable
def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Reduce bags of picked rows: their sum (mode 0), mean (1) or maximum (2); also what torch notes of the bags."""
    need_indices("embedding_bag", indices)
    need_indices("embedding_bag", offsets)
    if (dtype := weight._array.dtype).kind not in "fV":
        name = _base.dtype_of(weight)._scalar_name
        found = f"CPU{name}Type" if dtype.kind in "bc" else _TYPE_NAMES[dtype.name]
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; "
            f"but got {found} instead (while checking arguments for embedding_bag)"
        )
    if sparse and weight.requires_grad:
        raise NotImplementedError(NO_SPARSE.format("embedding_bag"))
    if per_sample_weights is not None and per_sample_weights._array.dtype != dtype:
        names = [f"torch.{_base.dtype_of(one)._scalar_name}Tensor" for one in (weight, per_sample_weights)]
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; "
            f"but type {names[0]} does not equal {names[1]} (while checking arguments for embedding_bag)"
        )
    decides = (indices, offsets, per_sample_weights, weight if mode == 2 else None)
    if (level := outermost_batch(*decides)) is not None:

        def of_sample(weight: Any, indices: Any, offsets: Any, own: Any) -> Any:
            return embedding_bag(
                weight, indices, offsets, scale_grad_by_freq, mode, sparse, own, include_last_offset, padding_idx
            )

        return sample_by_sample(level, of_sample, (weight, indices, offsets, per_sample_weights))
    if indices.is_meta or weight.is_meta:
        picked = embedding(weight, indices, -1, scale_grad_by_freq)
        picked = picked if per_sample_weights is None else picked * per_sample_weights.unsqueeze(1)
        return _bags_without_values(picked, indices, offsets.shape[0], include_last_offset, mode)
    rows = weight._array.shape[0]
    numbers = on_host(indices._array)  # the sizes of bags are known there only
    bags, sizes = _bags_of(numbers.size, on_host(offsets._array), include_last_offset)
    wrong = _out_of_range(numbers, rows)
    if wrong is not None:
        at = int(np.flatnonzero(wrong)[0])
        if mode == 2 or padding_idx is not None or dtype.itemsize == 8:  # which of torch's kernels looks at the indices
            raise RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {numbers[at]}"
            )
        raise RuntimeError(f"Index {at} of input takes value {numbers[at]} which is not in the valid range [0, {rows})")
    kept = bags >= 0
    if padding_idx is not None:
        kept &= numbers != (padding_idx if padding_idx >= 0 else padding_idx + rows)
    used, owner = numbers[kept], bags[kept]
    filled = np.bincount(owner, minlength=len(sizes)).astype(np.int64)

    def wrap(array: Any) -> Any:
        return _base.wrap(beside(array, weight._array))

    if mode == 2:
        best = _largest(on_host(raw_leaf(weight._array)), used, owner, len(sizes))
        picked = weight.gather(0, wrap(best)).masked_fill(wrap((filled == 0)[:, None]), 0)
        return picked, wrap(bags), wrap(filled), wrap(best)
    picked = embedding(weight, wrap(used), -1, scale_grad_by_freq)
    half = picked.dtype if picked.dtype.itemsize == 2 else None
    if half is not None:  # rounded once, at the end
        picked = picked.float()
    if per_sample_weights is not None:
        own = per_sample_weights if kept.all() else per_sample_weights[wrap(kept)]
        picked = picked * own.unsqueeze(1).to(picked.dtype)
    elif mode == 1:
        picked = picked * wrap((1 / np.maximum(filled, 1))[owner][:, None]).to(picked.dtype)
    params = {"rows": len(sizes), "groups": 1, "padding_idx": -1, "by_frequency": False}
    out = record(e.add_rows, (picked, wrap(owner)), params, "EmbeddingBagBackward0")
    if half is not None:
        out = out.to(half)
    if mode == 0:
        nothing = np.zeros(len(sizes), np.int64)
        return out, wrap(np.zeros(0, np.int64)), wrap(nothing), wrap(nothing.copy())
    return out, wrap(bags), wrap(filled), wrap(filled.copy())
