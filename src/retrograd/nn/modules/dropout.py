"""Dropout."""

from __future__ import annotations

from typing import Any

from .. import functional as F  # noqa: N812 - torch's name
from ._layers import Shown


class _DropoutNd(Shown):
    """What the kinds of dropout have in common: a probability, and whether they write in place."""

    __constants__ = ["p", "inplace"]
    _shown = ("p", "inplace")
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace


class Dropout(_DropoutNd):
    """Replaces elements by 0 with a probability, in training, and scales the others so that the mean stays.

    Args:
        p: the probability
        inplace: write the result into the input

    Example:
        >>> _ = torch.manual_seed(0)
        >>> layer = nn.Dropout(0.5)
        >>> layer(torch.ones(6)), layer.eval()(torch.ones(2))
        (tensor([0., 0., 2., 0., 0., 0.]), tensor([1., 1.]))
    """

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Drops whole channels of sequences in training."""

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Replaces whole channels of images (N, C, H, W) by 0 with a probability, in training.

    Args:
        p: the probability
        inplace: write the result into the input

    Example:
        >>> _ = torch.manual_seed(0)
        >>> nn.Dropout2d(0.5)(torch.ones(1, 4, 1, 1)).flatten()
        tensor([0., 0., 2., 0.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Drops whole channels of volumes in training."""

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Drops elements in training, keeping mean and variance of what follows SELU."""

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Drops whole channels in training, keeping mean and variance of what follows SELU."""

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
