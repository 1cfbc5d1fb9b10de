"""The losses that are functions of the package as well: there their reduction is a number, by default that of none.

torch's signatures say the mean, but its parser reads that default as 0.
"""

from __future__ import annotations

import math
from typing import Any

from ..._errors import sizes
from ..._ops import losses
from ...overrides import overridable
from ...tensor._functions.matrix_checks import scalar_name
from ...tensor._recording.fused import record_fused
from .._reduction import NONE
from ._loss_checks import in_common_dtype, need_constant, need_fit, need_real, reduced


def _need_number(function: str, reduction: Any) -> None:
    if not isinstance(reduction, int):
        raise TypeError(f"{function}(): argument 'reduction' must be int, not {type(reduction).__name__}")


@overridable(raised="cpu cuda")
def kl_div(input: Any, target: Any, reduction: int = NONE, *, log_target: bool = False) -> Any:
    """Return the divergence of log-probabilities from a distribution, element by element."""
    _need_number("kl_div", reduction)
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
    _need_number("binary_cross_entropy_with_logits", reduction)
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
    loss = record_fused(losses.binary_cross_entropy_with_logits, given, {"reduction": reduction})
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
    _need_number("hinge_embedding_loss", reduction)
    apart = (margin - input).clamp_min(0).where(target != 1, 0)
    together = input.where(target != -1, 0)
    return reduced(apart + together, reduction)


@overridable(raised="cpu cuda")
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = NONE) -> Any:
    """Take what the first lacks to exceed the second by a margin."""
    _need_number("margin_ranking_loss", reduction)
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@overridable(raised="cpu cuda")
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = NONE) -> Any:
    """Take what the cosine of two vectors lacks to 1, or exceeds a margin where the target is -1."""
    _need_number("cosine_embedding_loss", reduction)
    rank = target.dim()
    if rank > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if rank == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes {sizes(input1.size())} and "
            f"{sizes(input2.size())}."
        )
    if rank == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes {sizes(input1.size())} and "
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
    _need_number("triplet_margin_loss", reduction)
    if margin <= 0:
        raise RuntimeError(f"margin must be greater than 0, got {margin:g}")
    need_same_rank(anchor, positive, negative)
    near, far = distance(anchor, positive, p, eps), distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction)
