"""Batch normalisation over the batches of several processes."""

from __future__ import annotations

from typing import Any

from ..._dtypes import float32
from ..._modes import using
from ...distributed import _groups
from ...distributed._differentiable import AllGatherIntoTensor
from ...tensor._functions.creation import tensor
from ...tensor._functions.joining import cat


def group_of_several(group: Any) -> Any:
    """Return the group over which to normalise, or None where there is one process."""
    if not _groups.is_initialized():
        return None
    found = _groups.need_group(group)
    return found if found.size() > 1 else None


def sync_batch_norm(
    x: Any,
    weight: Any,
    bias: Any,
    running: tuple[Any, Any],
    factor: float,
    eps: float,
    group: Any,
) -> Any:
    """Normalise channels by the mean and variance over all processes' batches, through which gradients flow.

    Each process sends its number of values, means and sums of squared deviations once; backward sends their gradients once. A
    process may have an empty batch.
    """
    wide = x if x.element_size() > 2 else x.to(float32)
    axes = [0, *range(2, x.dim())]
    by_channel = [1, -1] + [1] * (x.dim() - 2)
    count = x.numel() // x.size(1)
    mean = wide.sum(axes) / max(count, 1)
    squares = (wide - mean.view(by_channel)).square().sum(axes)
    own = cat([tensor([float(count)], dtype=wide.dtype, device=x.device), mean, squares])
    every = AllGatherIntoTensor.apply(group, own).view(group.size(), -1)
    counts, means, all_squares = every[:, :1].detach(), every[:, 1 : 1 + x.size(1)], every[:, 1 + x.size(1) :]
    total = float(counts.sum())
    mean = (counts * means).sum(0) / total
    deviations = (all_squares + counts * (means - mean).square()).sum(0)
    variance = deviations / total
    _move(running, mean, deviations / max(total - 1, 1), factor)
    out = (wide - mean.view(by_channel)) * (variance + eps).rsqrt().view(by_channel)
    if weight is not None:
        out = out * weight.view(by_channel)
    if bias is not None:
        out = out + bias.view(by_channel)
    return out.to(x.dtype)


def _move(running: tuple[Any, Any], mean: Any, variance: Any, factor: float) -> None:
    """Move running statistics towards those of a batch."""
    with using(grad=False):
        for held, new in zip(running, (mean, variance), strict=True):
            if held is not None:
                held.lerp_(new.detach().to(held.dtype), factor)
