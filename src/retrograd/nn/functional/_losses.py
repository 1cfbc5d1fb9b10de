"""Losses of regression and ranking."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._modes import using
from ..._ops import losses
from ...overrides import overridable
from ...tensor._functions.matrix_checks import scalar_name
from ...tensor._recording.fused import record_fused
from .._reduction import MEAN, NONE, chosen, get_enum
from . import _coded_losses as coded
from ._loss_checks import in_common_dtype, need_fit, need_real, reduced, warn_of_sizes

__all__ = [
    "cosine_embedding_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _of_difference(operation: Any, kernel: str, input: Any, target: Any, params: dict[str, Any]) -> Any:
    """Record a loss of the difference of two tensors."""
    x, y = input._array, target._array
    if x.dtype is not y.dtype:
        input, target = in_common_dtype(input, target)
    if input._array.dtype.kind != "f":
        need_real(kernel, input)
    if x.shape != y.shape:
        need_fit(x.shape, y.shape)
    return record_fused(operation, (input, target), params)


def _weighed(values: Any, weight: Any, reduction: str) -> Any:
    """Weigh each loss, and average by the sum of the weights."""
    if reduction == "none":
        return values * weight
    if reduction == "sum":
        return (values * weight).sum()
    if reduction == "mean":
        return (values * weight).sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _need_same_size(weight: Any, input: Any) -> None:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")


@overridable(raised="cpu cuda")
def mse_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Square the differences."""
    if input._array.shape != target._array.shape:
        warn_of_sizes(input, target)
    if weight is not None:
        if size_average is not None or reduce is not None:
            reduction = ("none", "mean", "sum")[chosen(size_average, reduce, reduction)]
        _need_same_size(weight, input)
        return _weighed((input - target) ** 2, weight, reduction)
    plain = reduction == "mean" and size_average is None and reduce is None
    number = MEAN if plain else chosen(size_average, reduce, reduction)
    return _of_difference(losses.mse_loss, "mse_cpu", input, target, {"reduction": number})


@overridable(raised="cpu cuda")
def l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Take the absolute differences."""
    if input._array.shape != target._array.shape:
        warn_of_sizes(input, target)
    if weight is not None:
        if size_average is not None or reduce is not None:
            reduction = ("none", "mean", "sum")[chosen(size_average, reduce, reduction)]
        _need_same_size(weight, input)
        return _weighed((input - target).abs(), weight, reduction)
    return reduced((input - target).abs(), chosen(size_average, reduce, reduction))


@overridable(raised="cpu cuda")
def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """Square differences up to `beta`, go on straight beyond."""
    if input._array.shape != target._array.shape:
        warn_of_sizes(input, target)
    number = chosen(size_average, reduce, reduction)
    if beta == 0:
        return reduced((input - target).abs(), number)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    params = {"reduction": number, "bound": float(beta)}
    return _of_difference(losses.smooth_l1_loss, "smooth_l1_cpu", input, target, params)


@overridable(raised="cpu cuda")
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """Square differences up to `delta`, go on straight beyond, times `delta`."""
    if input._array.shape != target._array.shape:
        warn_of_sizes(input, target)
    number = get_enum(reduction) if weight is None else NONE
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    params = {"reduction": number, "bound": float(delta)}
    if input._array.dtype is not target._array.dtype:
        if input._array.dtype.kind in "biu" and target._array.dtype.kind not in "biu":
            raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(input)}")
        target = target.to(input.dtype)  # the result has the input's dtype, unlike that of all the others
    values = _of_difference(losses.huber_loss, "huber_cpu", input, target, params)
    if weight is None:
        return values
    _need_same_size(weight, input)
    return reduced(values * weight, get_enum(reduction))


@overridable(raised="cpu cuda")
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Return the negative log-likelihood of counts; `full` adds Stirling's approximation of log(target!)."""
    if size_average is not None or reduce is not None:
        reduction = ("none", "mean", "sum")[chosen(size_average, reduce, reduction)]
    return coded.poisson_nll_loss(input, target, log_input, full, eps, get_enum(reduction))


@overridable(raised="cpu cuda")
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Return the negative log-likelihood of normally distributed numbers."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input.new_full(input.shape, float(var))
    elif not var.is_meta and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or [m for n, m in zip(input.size(), var.size(), strict=True) if m != n] != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with using(grad=False):
        var.clamp_(min=eps)  # the gradient is that of var as it was given
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, get_enum(reduction))


@overridable(raised="cpu cuda")
def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Take distances of what is alike, and what distances of what is not lack to a margin."""
    return coded.hinge_embedding_loss(input, target, margin, chosen(size_average, reduce, reduction))


@overridable(raised="cpu cuda")
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Take what the first lacks to exceed the second by a margin, or the other way round where the target is -1."""
    number = chosen(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return coded.margin_ranking_loss(input1, input2, target, margin, number)


@overridable(raised="cpu cuda")
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Take what the cosine of two vectors lacks to 1, or exceeds a margin where the target is -1."""
    return coded.cosine_embedding_loss(input1, input2, target, margin, chosen(size_average, reduce, reduction))


@overridable(raised="cpu cuda")
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Take what the distance to the negative lacks to exceed that to the positive by a margin."""
    number = chosen(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return coded.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@overridable
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """Do the same with a distance of the caller's own."""
    number = get_enum(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    coded.need_same_rank(anchor, positive, negative)
    distance = distance_function or coded.distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), number)
