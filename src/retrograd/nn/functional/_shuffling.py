"""Shuffling: channels into pixels and back, and channels of groups among each other."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._ops import shuffling as sh
from ...overrides import overridable
from ...tensor._recording.record import record
from ._public import public_names


def _check(name: str, word: str, input: Any, factor: Any) -> tuple[int, ...]:
    shape = tuple(input._array.shape)
    if len(shape) < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")
    return shape


@overridable
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Turn channels into pixels: (*, C * r * r, H, W) becomes (*, C, H * r, W * r).

    Args:
        input: (*, C * r * r, H, W)
        upscale_factor: r

    Example:
        >>> F.pixel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2)
        tensor([[[[0, 1],
                  [2, 3]]]])
    """
    shape = _check("pixel_shuffle", "upscale_factor", input, upscale_factor)
    square = upscale_factor * upscale_factor
    if shape[-3] % square:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={shape[-3]} is not divisible by {square}"
        )
    return record(sh.pixel_shuffle, (input,), {"factor": upscale_factor}, "PixelShuffleBackward0")


@overridable
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Make channels from squares of pixels: (..., C, H r, W r) becomes (..., C r^2, H, W)."""
    shape = _check("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    for axis, word in ((-2, "height"), (-1, "width")):
        if shape[axis] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but input.size({axis})="
                f"{shape[axis]} is not divisible by {downscale_factor}"
            )
    return record(sh.pixel_unshuffle, (input,), {"factor": downscale_factor}, "PixelUnshuffleBackward0")


def _shuffled_channels(input: Any, groups: int, node: str) -> Any:
    shape = tuple(input._array.shape)
    if len(shape) <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {_errors.sizes(shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return record(sh.channel_shuffle, (input,), {"groups": groups, "axis": 1}, node)


@overridable
def channel_shuffle(input: Any, groups: int) -> Any:
    """Take channels from each group in turn."""
    return _shuffled_channels(input, groups, "ChannelShuffleBackward0")


@overridable
def native_channel_shuffle(input: Any, groups: int) -> Any:
    """Take channels from each group in turn."""
    return _shuffled_channels(input, groups, "NativeChannelShuffleBackward0")


__all__ = public_names(globals())
