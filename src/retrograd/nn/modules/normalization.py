"""Normalisation by layer, by group of channels, and by neighbouring channels."""

from __future__ import annotations

from typing import Any

from ...tensor._functions.creation import empty
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..parameter import make_parameter
from . import _functions
from ._layers import NamedInit
from .module import Module


class _Affine(Module):
    """A normalisation with scales and shifts, or with scales alone, or without both."""

    def _add_parameters(self, wanted: dict[str, bool], shape: Any, device: Any, dtype: Any) -> None:
        for name, there in wanted.items():
            parameter = make_parameter(empty(shape, device=device, dtype=dtype)) if there else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scales to 1 and shifts to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalises the last axes; then scales and shifts them.

    Args:
        normalized_shape: the sizes of the last axes
        eps: what is added to the variance
        elementwise_affine: whether there are learned factors and summands
        bias: whether there are summands
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.LayerNorm(3)(torch.tensor([[1.0, 2.0, 3.0]])).detach()
        tensor([[-1.2247,  0.0000,  1.2247]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        wanted = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._add_parameters(wanted, shape, device, dtype)

    def forward(self, input: Any) -> Any:
        """Normalise."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """Normalises groups of channels, sample by sample.

    Args:
        num_groups: how many groups, a divisor of `num_channels`
        num_channels: C
        eps: what is added to the variance
        affine: whether channels are scaled and shifted by learned numbers
        bias: whether they are shifted
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.GroupNorm(2, 4)(torch.ones(1, 4, 3)).shape
        torch.Size([1, 4, 3])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_parameters({"weight": affine, "bias": affine and bias}, num_channels, device, dtype)

    def forward(self, input: Any) -> Any:
        """Normalise."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(_Affine):
    """Divides the last axes by the root of the mean of their squares; then scales them.

    Args:
        normalized_shape: the sizes of the last axes
        eps: what is added to the mean; the smallest step of the dtype if it is not given
        elementwise_affine: whether there are learned factors
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach()
        tensor([[0.8485, 1.1314]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters({"weight": elementwise_affine}, shape, device, dtype)

    def forward(self, x: Any) -> Any:
        """Normalise."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class _OfNeighbours(NamedInit, Module):
    """What the two normalisations by neighbouring channels have in common."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_OfNeighbours):
    """Divide by a power of the mean square of the neighbouring channels."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def forward(self, input: Any) -> Any:
        """Normalise."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_OfNeighbours):
    """Divide by a power of the squares of the neighbouring channels, as Lua's torch did."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        """Normalise images."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        return _functions.CrossMapLRN2d.apply(input, self.size, self.alpha, self.beta, self.k)


__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
