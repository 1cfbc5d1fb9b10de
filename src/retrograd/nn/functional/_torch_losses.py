"""The losses that are functions of the package as well: there their reduction is a number, by default that of none.

torch's signatures say the mean, but its parser reads that default as 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import LevelArray, is_meta
from ..._errors import broadcast_error, sizes
from ..._modes import current_mode
from ..._ops import ctc, losses
from ..._warnings import warn
from ...overrides import overridable
from ...tensor._base import Tensor
from ...tensor._functions.creation import tensor as new_tensor
from ...tensor._functions.matrix_checks import scalar_name
from ...tensor._object.devices import on_host
from ...tensor._recording.record import record
from .._reduction import MEAN, NONE
from ._by_sample import outermost_batch, sample_by_sample


# ---- what losses require of their arguments, in torch's words ----
def need_real(kernel: str, tensor: Any, *, half: bool = True) -> None:
    """Require floating-point numbers; `half` says whether half precision will do."""
    dtype = tensor._array.dtype
    if dtype.kind not in "fV" or (not half and dtype.itemsize < 4):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(tensor)}'")


def need_same_dtype(tensor: Any, other: Any) -> None:
    """Require weights in the dtype of the input."""
    if other is not None and other._array.dtype != tensor._array.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(tensor)} but found {scalar_name(other)}")


def need_constant(function: str, argument: str, tensor: Any) -> None:
    """Refuse a tensor that requires grad where torch has no derivative."""
    if tensor is not None and tensor._edge is not None and current_mode().tracks:
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
            "have requires_grad True."
        )


def warn_of_sizes(input: Any, target: Any) -> None:
    """Warn of a target that will be broadcast."""
    warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )


def need_fit(x: Any, y: Any) -> None:
    """Require shapes that broadcast."""
    for a, b in zip(reversed(x), reversed(y), strict=False):
        if a != b and a != 1 and b != 1:
            raise broadcast_error(tuple(x), tuple(y))


def in_common_dtype(*tensors: Any) -> tuple[Any, ...]:
    """Bring tensors (or None) to torch's common dtype."""
    given = [t for t in tensors if t is not None]
    first = given[0]._array.dtype
    if all(t._array.dtype == first for t in given):
        return tensors
    dims = tuple(t._array.dtype for t in given if t._array.ndim)
    zero_dims = tuple(t._array.dtype for t in given if not t._array.ndim)
    dtype = _dtypes.from_numpy(_dtypes.result_numpy(dims, zero_dims, ()))
    return tuple(t if t is None else t.to(dtype) for t in tensors)


def reduced(values: Any, reduction: int) -> Any:
    """Reduce losses by torch's number; any other number leaves them as they are."""
    if reduction == MEAN:
        return values.mean()
    return values if reduction == NONE or reduction > 2 else values.sum()


# ---- the losses ----
@overridable(raised="cpu cuda")
def kl_div(input: Any, target: Any, reduction: int = NONE, *, log_target: bool = False) -> Any:
    """Return the divergence of log-probabilities from a distribution, element by element."""
    for tensor in (input, target):
        if tensor._array.dtype.kind == "c":
            raise RuntimeError("kl_div: Complex inputs not supported.")
        if tensor._array.dtype.kind not in "fV":
            raise RuntimeError("kl_div: Integral inputs not supported.")
    values = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    return reduced(values, reduction)


@overridable(raised="cpu cuda")
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = NONE
) -> Any:
    """Return the cross entropy of sigmoid(input) and a target."""
    if input._array.dtype.kind != "f":
        need_real("log_sigmoid_cpu", input)
    kind = target._array.dtype.kind
    if kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if kind in "iu":
        raise RuntimeError(
            f"result type {scalar_name(input)} can't be cast to the desired output type {scalar_name(target)}"
        )
    if weight is not None or pos_weight is not None:
        need_constant("binary_cross_entropy_with_logits", "weight", weight)
        need_constant("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
        if weight is not None:
            need_fit(target._array.shape, weight._array.shape)
        if pos_weight is not None:
            need_fit(pos_weight._array.shape, target._array.shape)
    given = in_common_dtype(input, target, weight, pos_weight)
    loss = record(losses.binary_cross_entropy_with_logits, given, {"reduction": reduction})
    return loss if loss._array.dtype is target._array.dtype else loss.to(target.dtype)  # into whose memory torch writes


@overridable(raised="cpu cuda")
def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """Return the negative log-likelihood of counts."""
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@overridable(raised="cpu cuda")
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = NONE) -> Any:
    """Take distances of what is alike, and what distances of what is not lack to a margin."""
    apart = (margin - input).clamp_min(0).where(target != 1, 0)
    together = input.where(target != -1, 0)
    return reduced(apart + together, reduction)


@overridable(raised="cpu cuda")
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = NONE) -> Any:
    """Take what the first lacks to exceed the second by a margin."""
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@overridable(raised="cpu cuda")
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = NONE) -> Any:
    """Take what the cosine of two vectors lacks to 1, or exceeds a margin where the target is -1."""
    rank = target.dim()
    if rank > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.dim() == input2.dim() == rank + 1:
        raise RuntimeError(
            f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with sizes {sizes(input1.size())} and "
            f"{sizes(input2.size())}."
        )
    product = (input1 * input2).sum(rank)
    lengths = ((input1 * input1).sum(rank) + 1e-12) * ((input2 * input2).sum(rank) + 1e-12)
    cosine = product / lengths.sqrt()
    alike = (1 - cosine).where(target == 1, 0)
    unlike = (cosine - margin).clamp_min(0).where(target == -1, 0)
    return reduced(alike + unlike, reduction)


def need_same_rank(anchor: Any, positive: Any, negative: Any) -> None:
    """Require three tensors with the same number of dimensions."""
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )


def distance(x: Any, y: Any, p: float = 2, eps: float = 1e-6) -> Any:
    """Return the distance of vectors, kept from zero by `eps`."""
    return (x - y + eps).norm(p, -1)


@overridable(raised="cpu cuda")
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = NONE,
) -> Any:
    """Take what the distance to the negative lacks to exceed that to the positive by a margin."""
    if margin <= 0:
        raise RuntimeError(f"margin must be greater than 0, got {margin:g}")
    need_same_rank(anchor, positive, negative)
    near, far = distance(anchor, positive, p, eps), distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction)


CHECKING = "(while checking arguments for ctc_loss_allocate_outputs)"


def _lengths(value: Any, name: str, device: Any) -> Any:
    """Return lengths as a tensor of int64."""
    if isinstance(value, Tensor):
        if value._array.dtype.kind not in "iub":
            raise RuntimeError(f"{name} must be integral")
        return value.to(device=device, dtype=_dtypes.int64, copy=True)  # torch reads them into numbers
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
    losses = record(ctc.ctc_loss, (batched, rows, input_lengths, target_lengths), params)
    if zero_infinity:
        losses = losses.where(losses != float("inf"), 0)
    if reduction == MEAN:
        return (losses / target_lengths.clamp_min(1).to(losses.dtype)).mean()
    return reduced(losses.squeeze(0) if single and reduction == 0 else losses, reduction)
