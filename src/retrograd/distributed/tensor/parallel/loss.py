"""torch.distributed.tensor.parallel.loss: the cross entropy of scores whose classes are divided among processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ....tensor import Tensor
from .. import _propagation, _rules
from .._dtensor import DTensor, placed
from .._utils import compute_local_shape_and_global_offset
from ..placement_types import Partial, Replicate

INDICES = "loss_parallel needs the numbers of classes as targets, without label_smoothing or a weight"


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Let `cross_entropy` of scores that are cut along their classes be computed without gathering them, in a block.

    The scores lie on a mesh of one dimension. The loss is the same in all processes; targets may be plain tensors.
    """
    before = _rules.RULES["cross_entropy"]
    _rules.RULES["cross_entropy"] = _of_divided_classes
    plain, _propagation.replicates_others[0] = _propagation.replicates_others[0], True
    try:
        yield
    finally:
        _rules.RULES["cross_entropy"], _propagation.replicates_others[0] = before, plain


def _of_divided_classes(this: Any) -> Any:
    """Return the cross entropy: maxima and sums are reduced, and each process gives the scores of the classes that it has."""
    scores, target, *others = this.tensors
    dim = 1 if scores.ndim > 1 else 0
    if not any(one.is_shard(dim) for one in scores.placements):
        return _propagation.cross_entropy(this)
    if others or this.kwargs.get("label_smoothing") or target.is_floating_point():
        raise NotImplementedError(INDICES)
    if scores.device_mesh.ndim != 1:
        raise NotImplementedError(
            "loss_parallel on a mesh of several dimensions: give scores on a part of it, mesh['tp']"
        )
    largest = scores.detach().amax(dim, keepdim=True).redistribute(placements=[Replicate()])
    total = (scores - largest).exp().sum(dim, keepdim=True)
    normaliser = (total.redistribute(placements=[Replicate()]).log() + largest).squeeze(dim)
    wanted = target.redistribute(placements=[Replicate()]).to_local()
    ignored = this.argument(4, "ignore_index", -100)
    each = normaliser - _scores_of(scores, wanted, dim).redistribute(placements=[Replicate()])
    counted = wanted != ignored
    losses = each.to_local().where(counted, 0.0)
    reduction = this.argument(6, "reduction", "mean")
    if reduction != "none":
        losses = losses.sum() / counted.sum() if reduction == "mean" else losses.sum()
    return DTensor.from_local(losses, scores.device_mesh, [Replicate()])


def _scores_of(scores: DTensor, wanted: Tensor, dim: int) -> DTensor:
    """Return the scores of the wanted classes as summands: zero where another process has the class."""
    part: Any = scores.to_local()
    lengths, begins = compute_local_shape_and_global_offset(scores.shape, scores.device_mesh, scores.placements)
    begin, length = begins[dim], lengths[dim]
    here = (wanted >= begin) & (wanted < begin + length)
    if length == 0:
        found = part.sum(dim)
    else:
        places = (wanted - begin).where(here, 0)
        found = part.gather(dim, places.unsqueeze(dim)).squeeze(dim).where(here, 0.0)
    return placed(found, scores.device_mesh, (Partial(),), wanted.shape)


__all__ = ["loss_parallel"]
