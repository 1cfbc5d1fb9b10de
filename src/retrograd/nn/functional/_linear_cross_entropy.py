"""The cross entropy of a linear layer's output, and how it may be cut into chunks."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ..._warnings import warn
from ...overrides import overridable
from ._classification import NO_INDEX, cross_entropy
from ._linear import linear

__all__ = ["linear_cross_entropy"]


def _need_layer(input: Any, linear_weight: Any, linear_bias: Any) -> None:
    """Require the input and the parameters of one linear layer."""
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features, wanted = input.shape[-1], linear_weight.shape[-1]
    if features != wanted:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {wanted}, respectively"
        )
    made = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != made:
        raise RuntimeError(f"expected linear_bias shape {made}, got {tuple(linear_bias.shape)}")
    if len(made) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )


def _warn_of_options(linear_weight: Any, target: Any, linear_bias: Any, reduction: str, label_smoothing: float) -> None:
    """Warn where torch would not cut the batch into chunks."""
    out_features = tuple(linear_weight.shape[1:-1])
    if (
        out_features
        or reduction not in ("mean", "sum", "none")
        or label_smoothing != 0.0
        or target.dtype != _dtypes.int64
    ):
        shape = None if linear_bias is None else tuple(linear_bias.shape)
        warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). Got "
            f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={out_features}, tracing=False, linear_bias.shape={shape}.",
        )


@overridable
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """Return the cross entropy of a linear layer's output; `options` may ask for less memory and change no value."""
    _need_layer(input, linear_weight, linear_bias)
    made = tuple(linear_weight.shape[:-1])
    if ignore_index is not None and tuple(target.shape) == (*input.shape[:-1], *made):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None:
        _warn_of_options(linear_weight, target, linear_bias, reduction, label_smoothing)
    flat = linear_weight if len(made) == 1 else linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    if len(made) > 1:
        logits = logits.unflatten(-1, made)
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=NO_INDEX if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
