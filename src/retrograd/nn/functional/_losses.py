"""Losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import LevelArray, is_meta
from ..._errors import sizes
from ..._modes import using
from ..._ops import cross_entropy as entropies
from ..._ops import losses
from ..._warnings import warn
from ...overrides import overridable
from ...tensor._base import Tensor
from ...tensor._functions.matrix_checks import need_tensor, scalar_name
from ...tensor._recording.record import record
from .._reduction import MEAN, NONE, SUM, chosen, get_enum, in_words
from . import _torch_losses as by_number
from ._linear import linear
from ._public import public_names
from ._torch_losses import in_common_dtype, need_constant, need_fit, need_real, need_same_dtype, reduced, warn_of_sizes


def _of_difference(operation: Any, kernel: str, input: Any, target: Any, params: dict[str, Any]) -> Any:
    """Record a loss of the difference of two tensors."""
    x, y = input._array, target._array
    if x.dtype is not y.dtype:
        input, target = in_common_dtype(input, target)
    if input._array.dtype.kind != "f":
        need_real(kernel, input)
    if x.shape != y.shape:
        need_fit(x.shape, y.shape)
    return record(operation, (input, target), params)


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
    """Return the mean of squared differences.

    Args:
        input: a tensor of any shape
        target: a tensor of the same shape
        reduction: "mean", "sum" or "none"
        weight: a factor for each element

    Example:
        >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
    if input._array.shape != target._array.shape:
        warn_of_sizes(input, target)
    if weight is not None:
        reduction = in_words(size_average, reduce, reduction)
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
    """Return the mean of absolute differences.

    Args:
        input: a tensor of any shape
        target: a tensor of the same shape
        reduction: "mean", "sum" or "none"
        weight: a factor for each element

    Example:
        >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """
    if input._array.shape != target._array.shape:
        warn_of_sizes(input, target)
    if weight is not None:
        reduction = in_words(size_average, reduce, reduction)
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
    """Return the mean of squared differences where they are small, of absolute ones where they are large.

    Args:
        input: a tensor of any shape
        target: a tensor of the same shape
        reduction: "mean", "sum" or "none"
        beta: where the one becomes the other

    Example:
        >>> F.smooth_l1_loss(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 3.0]), reduction="none")
        tensor([0.1250, 2.5000])
    """
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
    """Return the mean of half the squared differences up to `delta`, and of what grows linearly beyond it.

    Args:
        input: a tensor of any shape
        target: a tensor of the same shape
        reduction: "mean", "sum" or "none"
        delta: where the one becomes the other
        weight: a factor for each element

    Example:
        >>> F.huber_loss(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 3.0]), reduction="none")
        tensor([0.1250, 2.5000])
    """
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
    return by_number.poisson_nll_loss(input, target, log_input, full, eps, chosen(size_average, reduce, reduction))


@overridable
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
    return by_number.hinge_embedding_loss(input, target, margin, chosen(size_average, reduce, reduction))


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
    return by_number.margin_ranking_loss(input1, input2, target, margin, number)


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
    return by_number.cosine_embedding_loss(input1, input2, target, margin, chosen(size_average, reduce, reduction))


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
    return by_number.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


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
    by_number.need_same_rank(anchor, positive, negative)
    distance = distance_function or by_number.distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), number)


INT64, UINT8 = np.dtype(np.int64), np.dtype(np.uint8)
NO_INDEX = -100  # torch's default of `ignore_index`


# ---- of two outcomes ----
def _need_probabilities(tensor: Any, name: str) -> None:
    array = tensor._array
    if (
        not isinstance(array, LevelArray)
        and array.size
        and not is_meta(array)
        and not (array.min() >= 0 and array.max() <= 1)
    ):
        hint = (
            "apply sigmoid to it first, or use binary_cross_entropy_with_logits"
            if name == "input"
            else "targets are probabilities; scale them, or check for NaN"
        )
        raise RuntimeError(f"all elements of {name} should be between 0 and 1\nHint: {hint}.")


@overridable(raised="cpu cuda")
def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Return the cross entropy of two probabilities that something is so.

    Args:
        input: probabilities between 0 and 1
        target: probabilities, mostly 0 and 1
        weight: a factor for each element
        reduction: "mean", "sum" or "none"

    Example:
        >>> F.binary_cross_entropy(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
        tensor(0.1643)
    """
    number = chosen(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    need_constant("binary_cross_entropy", "weight", weight)
    need_real("binary_cross_entropy", input)
    for other in (target, weight):
        if other is not None and other._array.dtype != input._array.dtype:
            name = "target" if other is target else "weight"
            raise RuntimeError(
                f"Found dtype {scalar_name(other)} but expected {scalar_name(input)}\nHint: {name}.to(input.dtype)."
            )
    if weight is not None and weight._array.shape != input._array.shape:
        weight = weight.expand(input.size())
    _need_probabilities(input, "input")
    _need_probabilities(target, "target")
    return record(losses.binary_cross_entropy, (input, target, weight), {"reduction": number})


@overridable(raised="cpu cuda")
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Return the cross entropy of sigmoid(input) and a target, without overflow.

    Args:
        input: logits
        target: probabilities, mostly 0 and 1
        weight: a factor for each element
        reduction: "mean", "sum" or "none"
        pos_weight: a factor for the targets that are 1

    Example:
        >>> F.binary_cross_entropy_with_logits(torch.tensor([2.0, -100.0]), torch.tensor([1.0, 0.0]))
        tensor(0.0635)
    """
    number = chosen(size_average, reduce, reduction)
    if target._array.shape != input._array.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return by_number.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


@overridable(raised="cpu cuda")
def soft_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Return log(1 + exp(-target * input)); targets are 1 and -1."""
    number = chosen(size_average, reduce, reduction)
    need_constant("soft_margin_loss", "target", target)
    if input._array.dtype.kind in "biu":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(input)}")
    need_real("soft_margin_loss", input)
    if input._array.shape != target._array.shape:
        need_fit(input._array.shape, target._array.shape)
    target = target.to(input.dtype)
    return record(losses.soft_margin_loss, (input, target), {"reduction": number})


# ---- distributions ----
@overridable(raised="cpu cuda")
def kl_div(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """Return the divergence of Kullback and Leibler of a target from logarithms of probabilities.

    Args:
        input: logarithms of probabilities
        target: probabilities, or their logarithms
        reduction: "batchmean" (the mathematical one), "mean", "sum" or "none"
        log_target: whether `target` holds logarithms

    Example:
        >>> F.kl_div(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]), reduction="batchmean")
        tensor(0.3681)
    """
    if size_average is not None or reduce is not None:
        number = chosen(size_average, reduce, reduction)
    elif reduction == "batchmean":
        number = SUM
    else:
        if reduction == "mean":
            warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' "
                "divides only by the batch size, and aligns with the KL div math definition.'mean' will be changed to "
                "behave the same as 'batchmean' in the next major release."
            )
        number = get_enum(reduction)
    out = by_number.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        out = out / input.size()[0]
    return out


# ---- one class of several ----
def _need_targets(x: Any, target: Any) -> None:
    """Require targets that fit log-probabilities."""
    rank = len(x.shape)
    if rank < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {rank})")
    batch = target.shape[0] if target.shape else 0
    if rank > 1 and x.shape[0] != batch:
        raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({batch}).")
    if rank < 3:
        if len(target.shape) > 1:
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported\nHint: the target has shape "
                f"{list(target.shape)}, and the input {list(x.shape)}; class indices have shape {list(x.shape[:-1])}, class "
                "probabilities the shape of the input."
            )
        if rank == 1 and len(target.shape) == 1 and batch != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {batch}")
        return
    wanted = (x.shape[0], *x.shape[2:])
    if tuple(target.shape) == wanted:
        return
    if rank != 4:
        raise RuntimeError(f"Expected target size {sizes(wanted)}, got {sizes(target.shape)}")
    if len(target.shape) != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target.shape)}"
        )
    raise RuntimeError(f"size mismatch (got input: {sizes(x.shape)} , target: {sizes(target.shape)}")


def _need_class_weights(weight: Any, x: Any) -> None:
    """Require a weight for each class."""
    classes = x.shape[1 if len(x.shape) > 1 else 0]
    need_constant("nll_loss_forward" if len(x.shape) < 3 else "nll_loss2d_forward", "weight", weight)
    if tuple(weight._array.shape) == (classes,):
        return
    if len(x.shape) < 3:
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {sizes(weight._array.shape)}"
        )
    raise RuntimeError("weight tensor should be defined either for all or no classes")


def _need_indices(target: Any) -> None:
    if target._array.dtype not in (INT64, UINT8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {scalar_name(target)}\nHint: class indices are int64: "
            "target.long(); class probabilities have the shape of the input."
        )
    if target._array.dtype == UINT8 and target._array.ndim > 1:
        raise RuntimeError("expected scalar type Long but found Byte")


@overridable(raised="cpu cuda")
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = NO_INDEX,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Return the negative of each target's log-probability.

    Args:
        input: logarithms of probabilities (N, C) or (N, C, ...)
        target: classes (N) or (N, ...)
        weight: a factor for each class
        ignore_index: a class that does not count
        reduction: "mean", "sum" or "none"

    Example:
        >>> F.nll_loss(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([1]))
        tensor(0.2877)
    """
    number = chosen(size_average, reduce, reduction)
    x = input._array
    _need_targets(x, target._array)
    _need_indices(target)
    if weight is not None:
        _need_class_weights(weight, x)
    need_real("nll_loss_out_frame" if x.ndim < 3 else "nll_loss2d_forward_out_frame", input)
    need_same_dtype(input, weight)
    operation = entropies.nll_loss if x.ndim < 3 else entropies.nll_loss2d
    return record(operation, (input, target, weight), {"reduction": number, "ignore_index": ignore_index})


@overridable(raised="cpu cuda")
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = NO_INDEX,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return the cross entropy of logits and classes, or of logits and the probabilities of classes.

    Args:
        input: logits (C), (N, C) or (N, C, ...)
        target: classes (), (N) or (N, ...), or probabilities of the shape of `input`
        weight: a factor for each class
        ignore_index: a class that does not count
        reduction: "mean", "sum" or "none"
        label_smoothing: how much probability is spread over all classes

    Example:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> F.cross_entropy(logits, torch.tensor([0, 1]))
        tensor(0.2201)
        >>> F.cross_entropy(logits, torch.tensor([0, 1]), reduction="none")
        tensor([0.1269, 0.3133])
    """
    if not isinstance(target, Tensor) or not isinstance(input, Tensor):
        need_tensor(input, "cross_entropy_loss", "input", 1)
        need_tensor(target, "cross_entropy_loss", "target", 2)
    plain = reduction == "mean" and size_average is None and reduce is None
    number = MEAN if plain else chosen(size_average, reduce, reduction)
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    x, t = input._array, target._array
    if x.shape == t.shape:
        return _of_probabilities(input, target, weight, ignore_index, number, label_smoothing)
    if x.dtype.kind != "f":
        need_real(f"log_softmax{'_lastdim' * (x.ndim < 3)}_kernel_impl", input)
    if x.ndim != 2 or t.shape != x.shape[:1]:
        _need_targets(x, t)
    if t.dtype is not INT64:
        _need_indices(target)
    if weight is not None:
        _need_class_weights(weight, x)
        need_same_dtype(input, weight)
    if label_smoothing > 0:
        operation = entropies.smoothed_cross_entropy
    else:
        label_smoothing = 0.0
        operation = entropies.cross_entropy if x.ndim < 3 else entropies.cross_entropy2d
    params = {"reduction": number, "ignore_index": ignore_index, "smoothing": label_smoothing}
    return record(operation, (input, target, weight), params)


def _of_probabilities(
    input: Any, target: Any, weight: Any, ignore_index: int, reduction: int, label_smoothing: float
) -> Any:
    """Return the cross entropy of logits and the probabilities of classes."""
    if target._array.dtype.kind not in "fV":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {scalar_name(target)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    rank = input.dim()
    if rank == 0:
        raise IndexError("Dimension specified as 1 but tensor has no dimensions")
    axis = 1 if rank > 1 else 0
    classes = input.size(axis)
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {sizes(weight.shape)}"
        )
    scores = input.log_softmax(axis)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    products = scores * target
    if weight is not None:
        products = products * weight.view(classes, *(1,) * (rank - axis - 1))
    if reduction == NONE:
        return -products.sum(axis)
    if reduction == SUM:
        return -products.sum()
    rows = input.numel() // classes if classes else 0
    return -products.sum() / (rows if rows or not classes else float(rows))


# ---- margins ----
def _need_rows(x: Any) -> None:
    if len(x.shape) > 2 or (len(x.shape) and not x.shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes(x.shape)}"
        )


def _need_long(target: Any) -> None:
    if target._array.dtype != INT64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target)}")


@overridable(raised="cpu cuda")
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Take what the scores of the right classes lack to exceed every other by a margin."""
    number = chosen(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if not isinstance(margin, (int, float)):
        raise TypeError(
            f"multi_margin_loss(): argument 'margin' (position 4) must be Number, not {type(margin).__name__}"
        )
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    x, t = input._array, target._array
    need_constant("multi_margin_loss", "weight", weight)
    _need_rows(x)
    rows = x.shape[0] if len(x.shape) == 2 else 1
    classes = x.shape[-1] if x.shape else 1
    if len(t.shape) > 1 or (t.shape[0] if t.shape else 1) != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{rows}], but got {sizes(t.shape)}. Input has shape {sizes(x.shape)}."
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {sizes(weight.shape)}")
    need_real("multi_margin_loss_cpu_kernel", input, half=False)
    _need_long(target)
    need_same_dtype(input, weight)
    if not isinstance(t, LevelArray) and t.size and not is_meta(t) and not (t.min() >= 0 and t.max() < classes):
        raise RuntimeError("target out of range")
    params = {"p": p, "margin": margin, "reduction": number}
    return record(losses.multi_margin_loss, (input, target, weight), params)


@overridable(raised="cpu cuda")
def multilabel_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Take what the scores of all right classes (before the first -1) lack to exceed every other by one."""
    number = chosen(size_average, reduce, reduction)
    x, t = input._array, target._array
    _need_rows(x)
    if t.shape != x.shape and (t.shape or (1,)) != (x.shape or (1,)):
        raise RuntimeError(f"inconsistent target size: {sizes(t.shape)} for input of size: {sizes(x.shape)}")
    need_real("multilabel_margin_loss_forward_out_frame", input, half=False)
    _need_long(target)
    classes = x.shape[-1] if x.shape else 1
    if not isinstance(t, LevelArray) and t.size and not is_meta(t) and not (t.min() >= -1 and t.max() < classes):
        raise RuntimeError("argument #2 'target' is out of range")
    return record(losses.multilabel_margin_loss, (input, target), {"reduction": number})


@overridable
def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Average binary cross entropies of logits over the classes."""
    reduction = in_words(size_average, reduce, reduction)
    from ._activations import logsigmoid

    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return loss.mean() if reduction == "mean" else loss.sum()


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


@overridable(raised="cpu cuda")
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Return the loss of label sequences over all their alignments with longer sequences of log-probabilities."""
    return by_number.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity
    )


__all__ = public_names(globals())
