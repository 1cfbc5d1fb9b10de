"""Padding: with a value, or with what is in the tensor."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._modes import current_mode
from ..._ops import resizing
from ...overrides import overridable
from ...tensor._functions.rearrange import constant_pad_nd
from ...tensor._recording.autocast import cast_arguments
from ...tensor._recording.record import record
from ...tensor._recording.refusals import kernel, refuse, refused
from ._pooling import ints_of
from ._public import public_names

_WORDS = {"reflect": "reflection", "replicate": "replication"}
refused(*[f"{word}_pad{ndim}d" for word in _WORDS.values() for ndim in (1, 2, 3)], b=kernel("{name}"))
_RANKS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}


@overridable
def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Put values around a tensor.

    Args:
        input: a tensor of any shape
        pad: how many before and behind the last dimension, then the one before it, and so on; negative numbers cut off
        mode: "constant", "reflect", "replicate" or "circular"
        value: the constant; 0 if it is not given

    Example:
        >>> F.pad(torch.tensor([[1, 2]]), (1, 0, 0, 1))
        tensor([[0, 1, 2],
                [0, 0, 0]])
        >>> F.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
        tensor([[3., 2., 1., 2., 3., 2.]])
    """
    rank = input._array.ndim
    by = ints_of("pad", "pad", 2, pad)
    if not isinstance(mode, str):
        raise TypeError(f"pad(): argument 'mode' (position 3) must be str, not {type(mode).__name__}")
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(by) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(by) > 2 * rank:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(by)} and input of dimension {rank}"
        )
    if mode == "constant":
        return constant_pad_nd(input, by, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    ndim = len(by) // 2
    if not 1 <= ndim <= 3 or not ndim + 1 <= rank <= ndim + 2:
        raise NotImplementedError(
            f"Padding size {len(by)} is not supported for {rank}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    on = current_mode().autocast
    if on is not None and mode != "circular" and (mode, ndim) != ("reflect", 3):
        ((input,), _) = cast_arguments(_pad_by_itself, on, (input,), {})
    return _pad_by_itself(input, ndim, by, mode)


def _pad_by_itself(input: Any, ndim: int, by: tuple[int, ...], mode: str) -> Any:
    shape = tuple(input._array.shape)
    rank = len(shape)
    node = None
    if mode == "circular":
        _check_circular(shape, by)
    else:
        word = _WORDS[mode]
        _check_sizes(shape, ndim, by, mode)
        refuse(f"{word}_pad{ndim}d", input._array.dtype)
        node = f"{word.capitalize()}Pad{ndim}DBackward0"
    taps = [
        resizing.padding_taps(shape[rank - 1 - k], by[2 * k], by[2 * k + 1], mode)
        if by[2 * k] or by[2 * k + 1]
        else None
        for k in range(ndim)
    ]
    return record(resizing.resample, (input,), {"taps": tuple(taps[::-1])}, node, {"padding": by})


_pad_by_itself.raised = "cpu"  # type: ignore[attr-defined]  # by autocast


def _check_circular(shape: tuple[int, ...], by: tuple[int, ...]) -> None:
    for k in range(len(by) // 2):
        size, before, after = shape[len(shape) - 1 - k], by[2 * k], by[2 * k + 1]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")


def _check_sizes(shape: tuple[int, ...], ndim: int, by: tuple[int, ...], mode: str) -> None:
    rank = len(shape)
    if 0 in shape[rank - ndim - 1 :]:
        raise RuntimeError(
            f"Expected {_RANKS[ndim]} (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {_errors.sizes(shape)}"
        )
    made = list(shape)
    for k in range(ndim):
        axis, before, after = rank - 1 - k, by[2 * k], by[2 * k + 1]
        if mode == "reflect" and (before >= shape[axis] or after >= shape[axis]):
            raise RuntimeError(
                f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {axis} of input {_errors.sizes(shape)}"
            )
        made[axis] += before + after
    if max(made[rank - ndim :]) < 1:  # torch asks whether any axis is left
        names = ("D", "H", "W")[3 - ndim :]
        given = " ".join([f"{n}: {shape[rank - ndim + k]}" for k, n in enumerate(names)])
        got = " ".join([f"{n}: {made[rank - ndim + k]}" for k, n in enumerate(names)])
        raise RuntimeError(f"input ({given}) is too small. Calculated output {got}")
    if min(made) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(made)}: {_errors.sizes(made)}")


__all__ = public_names(globals())
