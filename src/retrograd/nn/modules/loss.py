"""Losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from ... import _dtypes
from ..._public import set_all
from ..._warnings import warn
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .._reduction import in_words
from ._layers import NamedInit
from .linear import Linear
from .module import Module


class _Loss(Module):
    """A loss with a reduction, in new words or old ones."""

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if isinstance(size_average, Tensor) and size_average.numel() > 1:
            raise RuntimeError(
                f"Boolean value of Tensor with more than one value is ambiguous\nHint: {type(self).__name__} is a module. Make it "
                f"first, criterion = nn.{type(self).__name__}(), then call it: criterion(input, target)."
            )
        self.reduction = in_words(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with weights, which are a buffer."""

    weight: Any

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# ---- regression ----
class L1Loss(_Loss):
    """Takes absolute differences.

    Args:
        reduction: "mean", "sum" or "none"

    Example:
        >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squares the differences.

    Args:
        reduction: "mean", "sum" or "none"

    Example:
        >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squares differences up to `beta`, and is linear beyond."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squares differences up to `delta`, and is linear beyond, times `delta`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class PoissonNLLLoss(_Loss):
    """Takes the negative log-likelihood of counts."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Takes the negative log-likelihood of normally distributed numbers."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


# ---- classification ----
class NLLLoss(_WeightedLoss):
    """Returns the negative of each target's log-probability.

    Args:
        weight: a factor for each class
        ignore_index: a class that does not count
        reduction: "mean", "sum" or "none"

    Example:
        >>> nn.NLLLoss()(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([1]))
        tensor(0.2877)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """An old name of NLLLoss."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(_WeightedLoss):
    """Returns the cross entropy of logits and classes, or of logits and the probabilities of classes.

    Args:
        weight: a factor for each class
        ignore_index: a class that does not count
        reduction: "mean", "sum" or "none"
        label_smoothing: how much probability is spread over all classes

    Shape:
        logits (N, C) or (N, C, ...); classes (N) or (N, ...), or probabilities of the shape of the logits.

    Example:
        >>> nn.CrossEntropyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.1269)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class KLDivLoss(_Loss):
    """Returns the divergence of Kullback and Leibler of a target from logarithms of probabilities.

    Args:
        reduction: "batchmean" (the mathematical one), "mean", "sum" or "none"
        log_target: whether the target holds logarithms

    Example:
        >>> nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]))
        tensor(0.3681)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Returns the cross entropy of two probabilities that something is so.

    Args:
        weight: a factor for each element
        reduction: "mean", "sum" or "none"

    Example:
        >>> nn.BCELoss()(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
        tensor(0.1643)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Returns the cross entropy of sigmoid(input) and a target.

    Args:
        weight: a factor for each element
        reduction: "mean", "sum" or "none"
        pos_weight: a factor for the targets that are 1

    Example:
        >>> nn.BCEWithLogitsLoss()(torch.tensor([2.0]), torch.tensor([1.0]))
        tensor(0.1269)
    """

    weight: Any
    pos_weight: Any

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class SoftMarginLoss(_Loss):
    """Computes log(1 + exp(-target * input))."""

    def forward(self, input: Any, target: Any) -> Any:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Takes what the scores of the right classes lack to exceed every other by a margin."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """Takes what the scores of all right classes lack to exceed every other by one."""

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Averages binary cross entropies of logits over the classes."""

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CTCLoss(_Loss):
    """Takes the loss of label sequences over all their alignments with longer ones."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


# ---- distances and ranking ----
class HingeEmbeddingLoss(_Loss):
    """Takes distances of what is alike, and what distances of what is not lack to a margin."""

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class _MarginLoss(NamedInit, _Loss):
    """What two losses of pairs have in common: a margin, which is none as a rule."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_MarginLoss):
    """Takes what the cosine of two vectors lacks to 1, or exceeds a margin."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """Takes what the first lacks to exceed the second by a margin."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Takes what the distance to the negative lacks to exceed that to the positive by a margin."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """Does the same with a distance of the caller's own."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Any, Any], Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        from .distance import PairwiseDistance

        self.distance_function: Any = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


RATIO = "aspect_ratio"
METHODS = (None, "auto", RATIO)
POLICIES = ("accurate", "balanced", "compact", "auto")
SUM_DTYPES = (None, _dtypes.float16, _dtypes.bfloat16, _dtypes.float32, _dtypes.float64)


def _is_ratio(method: str | None) -> bool:
    """Tell whether a method names a ratio: a whole number above zero."""
    name, _, number = str(method).partition(":")
    return name == RATIO and number.isdecimal() and int(number) > 0


@dataclass
class LinearCrossEntropyOptions:
    """How torch cuts the batch into chunks to save memory; here they change no value."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.chunking_method not in METHODS and not _is_ratio(self.chunking_method):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.acc_policy not in POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if self.acc_dtype not in SUM_DTYPES:
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype}. Pass acc_dtype=None to let the op pick automatically."
            )


class LinearCrossEntropyLoss(_WeightedLoss):
    """Computes logits by a linear layer of its own, and their cross entropy."""

    linear: Linear

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be ({num_classes},), got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * prod(self.out_features), bias=bias, device=device, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
        shape = (self.num_classes, *self.out_features)
        weight, bias = self.linear.weight, self.linear.bias
        if self.out_features:
            weight = weight.view(*shape, weight.shape[-1])
            bias = None if bias is None else bias.view(shape)
        return F.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


set_all(globals())
