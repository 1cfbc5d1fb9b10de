"""Looking up rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays import LevelArray
from ..._warnings import warn
from ...overrides import overridable
from ...tensor import _base
from ...tensor._object.devices import beside
from . import _torch_embedding as rows
from ._public import public_names


def _checked_padding(padding_idx: int | None, weight: Any) -> int:
    """Return the padding as an index that is not negative, or -1 if there is none."""
    if padding_idx is None:
        return -1
    count: int = weight.size(0)
    if not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % count


@overridable
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Look up rows of a table by their indices.

    Args:
        input: a tensor of indices
        weight: the table (rows, D)
        padding_idx: a row that gets no gradient
        max_norm: shorten rows that are used and longer than this, in place
        norm_type: the order of that norm
        scale_grad_by_freq: divide gradients by how often a row is used
        sparse: refused where a gradient is needed: gradients are dense

    Returns:
        A tensor of the shape of `input`, with D as a further dimension.

    Example:
        >>> F.embedding(torch.tensor([[0, 2]]), torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
        tensor([[[1., 1.],
                 [3., 3.]]])
    """
    padding = _checked_padding(padding_idx, weight)
    if max_norm is not None:
        rows.renorm_rows(weight, input, max_norm, norm_type)
    return rows.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def _read_bags(input: Any, offsets: Any, per_sample_weights: Any) -> tuple[Any, Any, Any]:
    """Return indices, offsets and weights in one dimension; a matrix of indices has a bag in every row."""
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
            f"shape as the input ({input.shape})"
        )
    if input.dim() == 2:
        if offsets is not None:
            kind = "<class 'torch.Tensor'>" if isinstance(offsets, _base.Tensor) else str(type(offsets))
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of type {kind}"
            )
        count, length = input.shape
        if not length:
            raise RuntimeError("step must be nonzero\nHint: to pass empty bags, use a 1D input with offsets.")
        starts = np.arange(count, dtype=np.int64) * length
        flat = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        return input.reshape(-1), _base.wrap(beside(starts, input._array)), flat
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if not isinstance(offsets, _base.Tensor):
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


@overridable
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Reduce bags of picked rows to their sum, mean or maximum, without keeping the rows."""
    if weight._array.dtype.kind == "i" and input._array.dtype.kind in "fV":
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        input, weight = weight, input
    input, offsets, per_sample_weights = _read_bags(input, offsets, per_sample_weights)
    if mode not in rows.MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        rows.renorm_rows(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    return rows.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        rows.MODES.index(mode),
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


@overridable
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Make vectors that are 1 at the index of a class, and else 0.

    Args:
        tensor: a tensor of int64
        num_classes: how long they are; one more than the largest index, if it is not given

    Example:
        >>> F.one_hot(torch.tensor([0, 2]), num_classes=3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    array = tensor._array
    if array.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if isinstance(array, LevelArray):
        if num_classes == -1:
            raise RuntimeError(
                "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
            )
        return (tensor.unsqueeze(-1) == _base.wrap(beside(np.arange(num_classes), array))).long()
    if tensor.is_meta and num_classes != -1:  # there are no values to look at
        return tensor.new_empty((*array.shape, num_classes))
    if not array.size and not tensor.is_meta:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return _base.wrap(beside(np.zeros((*array.shape, num_classes), np.int64), array))
    if array.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(array.max()) + 1
    elif array.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return _base.wrap((array[..., None] == beside(np.arange(num_classes), array)).astype(np.int64))


__all__ = public_names(globals())
