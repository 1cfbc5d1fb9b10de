"""A linear layer and the cross entropy of what it makes, in one module."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from ... import _dtypes
from .. import functional as F  # noqa: N812 - torch's name
from ._loss_base import _WeightedLoss
from .linear import Linear

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
