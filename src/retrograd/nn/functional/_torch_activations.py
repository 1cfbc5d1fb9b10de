"""Activations that the package has under a name of nn.functional, as torch's: without `inplace`."""

from __future__ import annotations

from typing import Any

from ...overrides import overridable, takes_out
from . import _activations as functional


@overridable
def selu(input: Any) -> Any:
    """Compute elu with the scales that keep mean and variance."""
    return functional.selu(input)


@overridable
def celu(input: Any, alpha: float = 1.0) -> Any:
    """Compute alpha (exp(x / alpha) - 1) where x is negative."""
    return functional.celu(input, alpha)


@overridable
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Any = None
) -> Any:
    """Multiply by a slope where x is not positive: drawn for each element in training, else the middle of the two."""
    if generator is not None and training:
        raise NotImplementedError("torch.rrelu: retrograd draws the slopes from the default generator")
    return functional.rrelu(input, lower, upper, training)


@takes_out
def threshold(input: Any, threshold: float, value: float) -> Any:
    """Replace what does not exceed a threshold by a value."""
    return functional.threshold(input, threshold, value)
