"""Dropout and its variants."""

from __future__ import annotations

from typing import Any

from ..._warnings import warn
from ...overrides import overridable
from ...tensor import _base
from ...tensor._recording.operands import not_a_tensor
from . import _torch_dropout as d
from ._public import public_names

_AXES = {1: "1 spatial dimension", 2: "2 spatial dimensions", 3: "3 spatial dimensions"}


def _check(name: str, input: Any, p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not isinstance(input, _base.Tensor):
        raise TypeError(not_a_tensor(name, 1, input, "input"))


@overridable
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Replace elements by 0 with a probability, in training, and scale the others so that the mean stays.

    Args:
        input: a tensor of any shape
        p: the probability
        training: False returns the input as it is
        inplace: write the result into `input`

    Example:
        >>> _ = torch.manual_seed(0)
        >>> F.dropout(torch.ones(6), p=0.5)
        tensor([0., 0., 2., 0., 0., 0.])
    """
    _check("dropout", input, p)
    return d._drop(input, p, training, False, False, inplace)


@overridable
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Drop elements in training, keeping mean and variance of what follows SELU."""
    _check("alpha_dropout", input, p)
    return d._drop(input, p, training, False, True, inplace)


@overridable
def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Drop whole channels in training, keeping mean and variance of what follows SELU."""
    _check("feature_alpha_dropout", input, p)
    return d._drop(input, p, training, True, True, inplace)


def _use(name: str, spatial: int) -> str:
    return (
        f"Note that {name} exists to provide channel-wise dropout on inputs with {_AXES[spatial]}, a channel dimension, and "
        f"an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
    )


def _of_channels(input: Any, p: float, training: bool, inplace: bool, batched: bool) -> Any:
    if batched:
        return d._drop(input, p, training, True, False, inplace)
    if inplace:
        return d._drop(input.unsqueeze_(0), p, training, True, False, True).squeeze_(0)
    return d._drop(input.unsqueeze(0), p, training, True, False, False).squeeze(0)


def _warn_of_rank(name: str, rank: int, spatial: int) -> None:
    warn(
        f"{name}: Received a {rank}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. To retain the behavior and silence this warning, please use dropout instead. {_use(name, spatial)}"
    )


@overridable
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Drop whole channels of sequences in training."""
    _check("feature_dropout", input, p)
    rank = input.dim()
    if rank not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. {_use('dropout1d', 1)}")
    return _of_channels(input, p, training, inplace, rank == 3)


@overridable
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Drop whole channels of images in training."""
    _check("feature_dropout", input, p)
    rank = input.dim()
    if rank not in (3, 4):
        _warn_of_rank("dropout2d", rank, 2)
    if rank == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _of_channels(input, p, training, inplace, True)


@overridable
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Drop whole channels of volumes in training."""
    _check("feature_dropout", input, p)
    rank = input.dim()
    if rank not in (4, 5):
        _warn_of_rank("dropout3d", rank, 3)
    return _of_channels(input, p, training, inplace, rank == 5)


__all__ = public_names(globals())
