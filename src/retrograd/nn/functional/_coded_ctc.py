"""The CTC loss as a function of the package: its reduction is a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import LevelArray, is_meta
from ..._ops import ctc
from ...overrides import overridable
from ...tensor._functions.creation import tensor as new_tensor
from ...tensor._functions.matrix_checks import need_tensor
from ...tensor._object.devices import on_host
from ...tensor._recording.fused import record_fused
from .._reduction import MEAN, NONE
from ._by_sample import outermost_batch, sample_by_sample
from ._loss_checks import is_tensor, need_real, reduced

CHECKING = "(while checking arguments for ctc_loss_allocate_outputs)"


def _lengths(value: Any, name: str, device: Any) -> Any:
    """Return lengths as a tensor of int64."""
    if is_tensor(value):
        if value._array.dtype.kind not in "iub":
            raise RuntimeError(f"{name} must be integral")
        return value.to(device=device, dtype=_dtypes.int64, copy=True)  # torch reads them into numbers
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            "ctc_loss() received an invalid combination of arguments: lengths must be a Tensor or a tuple of ints, not "
            f"{type(value).__name__}"
        )
    return new_tensor(list(value), dtype=_dtypes.int64, device=device)


def _need_lengths(lengths: Any, name: str, most: int | None) -> None:
    """Require lengths of at least 0 and at most the number of steps."""
    array = lengths._array
    if isinstance(array, LevelArray) or is_meta(array) or not array.size:
        return
    smallest, largest = int(array.min()), int(array.max())
    if smallest < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {smallest} {CHECKING}")
    if most is not None and largest > most:
        raise RuntimeError(f"Expected {name} to have value at most {most}, but got value {largest} {CHECKING}")


def _in_rows(targets: Any, lengths: Any, batch: int) -> Any:
    """Return targets as a matrix with a row for each sequence; concatenated ones are cut and padded."""
    targets = targets.to(_dtypes.int64)
    shape, counts = targets.size(), lengths._array
    if targets.dim() == 2:
        if shape[0] != batch:
            raise RuntimeError(
                f"Expected tensor to have size {batch} at dimension 0, but got size {shape[0]} for argument #2 'targets' "
                f"{CHECKING}"
            )
        longest = shape[1] if isinstance(counts, LevelArray) or is_meta(counts) else int(counts.max())
        if longest > shape[1]:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {shape[1]} for argument "
                f"#2 'targets' {CHECKING}"
            )
        return targets.narrow(1, 0, longest)
    if targets.dim() != 1:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for argument #2 'targets' {CHECKING}"
        )
    counts = np.array(lengths.tolist(), np.int64)
    total, longest = int(counts.sum()), int(counts.max(initial=0))
    if shape[0] != total:
        raise RuntimeError(
            f"Expected tensor to have size {total} at dimension 0, but got size {shape[0]} for argument #2 'targets' "
            f"{CHECKING}"
        )
    if not total:
        return targets.new_zeros((batch, 0))
    at = np.minimum((counts.cumsum() - counts)[:, None] + np.arange(longest), total - 1)
    return targets[new_tensor(at, device=targets.device)]


def _with_classes(rows: Any, lengths: Any, classes: int) -> Any:
    """Refuse a target that is no class, where torch reads whatever lies in memory; behind a sequence anything may stand."""
    array, counts = rows._array, lengths._array
    if isinstance(array, LevelArray) or isinstance(counts, LevelArray) or not array.size or is_meta(array):
        return rows
    if array.min() >= 0 and array.max() < classes:
        return rows
    array = on_host(array)
    no_class = (array < 0) | (array >= classes)
    strange = no_class & (np.arange(array.shape[1]) < on_host(counts)[:, None])
    if strange.any():
        row, place = np.argwhere(strange)[0].tolist()
        raise IndexError(
            f"Target {int(array[row, place])} is out of bounds.\nHint: it is target {place} of sequence {row}; log_probs has "
            f"{classes} classes, so targets go from 0 to {classes - 1}."
        )
    return new_tensor(np.where(no_class, 0, array), device=rows.device)


@overridable(raised="cpu cuda")
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = NONE,
    zero_infinity: bool = False,
) -> Any:
    """Return the loss of label sequences over all their alignments with longer sequences of log-probabilities."""
    need_tensor(log_probs, "ctc_loss", "log_probs", 1)
    need_tensor(targets, "ctc_loss", "targets", 2)
    device = log_probs.device
    input_lengths = _lengths(input_lengths, "input_lengths", device).reshape(-1)
    target_lengths = _lengths(target_lengths, "target_lengths", device).reshape(-1)
    single = log_probs.dim() == 2 and targets.dim() < 2
    batched = log_probs.unsqueeze(1) if single else log_probs
    if single:
        targets = targets.unsqueeze(0)
    if batched.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {batched.dim()}-dimensional tensor for argument #1 'log_probs' "
            f"{CHECKING}"
        )
    need_real("ctc_loss_cpu", batched, half=False)
    if targets.dim() == 1 and (level := outermost_batch(input_lengths, target_lengths)) is not None:

        def of_sample(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
            return (ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity),)

        return sample_by_sample(level, of_sample, (batched, targets, input_lengths, target_lengths))[0]
    steps, batch, classes = batched.size()
    if not batched.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for lengths, name in ((input_lengths, "input_lengths"), (target_lengths, "target_lengths")):
        if lengths.size(0) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    _need_lengths(input_lengths, "input_lengths", steps)
    _need_lengths(target_lengths, "target_lengths", None)
    rows = _with_classes(_in_rows(targets, target_lengths, batch), target_lengths, classes)
    params = {"blank": blank, "zero_infinity": bool(zero_infinity)}
    losses = record_fused(ctc.ctc_loss, (batched, rows, input_lengths, target_lengths), params)
    if zero_infinity:
        losses = losses.where(losses != float("inf"), 0)
    if reduction == MEAN:
        return (losses / target_lengths.clamp_min(1).to(losses.dtype)).mean()
    return reduced(losses.squeeze(0) if single and reduction == 0 else losses, reduction)
