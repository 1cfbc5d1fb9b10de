"""torch.dropout and its variants, on which those of nn.functional are built: what is kept is drawn from torch's stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _dtypes
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._ops import dropout as d
from ...overrides import overridable, overridable_as, takes_out
from ...tensor import _base
from ...tensor._functions.creation import empty_like, ones_like, zeros
from ...tensor._functions.generators import default_generator
from ...tensor._functions.random_tensors import with_chance
from ...tensor._recording.record import Elementwise

NDARRAY = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
# SELU's limit for negative numbers, times -1: what alpha dropout puts in the place of what it drops
ALPHA = 1.7580993408473766
FEW, BLOCK = 16, 1 << 16
_NATIVE = Elementwise(d.keep_scaled, "native_dropout", "NativeDropoutBackward0", False)
_BACK = Elementwise(d.keep_scaled, "native_dropout", "NativeDropoutBackwardBackward0", True)


def _refuse_integers(input: Any) -> None:
    if input._array.dtype.kind in "biu":
        name = _base.dtype_of(input)._scalar_name
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name}")


def _kept(input: Any, p: float, feature: bool) -> Any:
    """Draw ones for what is kept and zeros for what is dropped: for every element, or for every channel."""
    if not feature:
        return with_chance(input, 1 - p)
    shape = input.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    channels = input.detach()[(slice(None), slice(None), *(slice(0, 1),) * (len(shape) - 2))]
    return with_chance(channels, 1 - p)


def _noise(count: int, chance: float, dtype: Any) -> Any:
    """Draw 1 / chance with that chance, else 0."""
    scale = dtype.type(1) / dtype.type(chance)
    if count <= FEW:
        return np.array([scale if u < chance else 0 for u in default_generator.few_doubles(count)], dtype)
    out = np.empty(count, dtype)
    for start in range(0, count, BLOCK):
        part = out[start : start + BLOCK]
        np.multiply(default_generator.with_chance(part.size, chance), scale, out=part)
    return out


def _scaled_noise(input: Any, p: float, feature: bool) -> Any:
    """Draw 1 / (1 - p) for what is kept and 0 for what is dropped."""
    mode = read_mode()
    array = input._array
    recording = None if mode is None else mode.recording
    if (
        not feature
        and (mode is PLAIN or mode is NO_GRAD or (recording is not None and not current_mode().transforms))
        and (type(array) is NDARRAY or recording is not None)
        and array.ndim
        and ((dtype := array.dtype) is F32 or dtype is F64)
        and array.flags.c_contiguous
    ):
        size, shape = array.size, array.shape
        if recording is not None:
            return _base.wrap(recording.draw(lambda: _noise(size, 1 - p, dtype).reshape(shape)))
        return _base.wrap(_noise(size, 1 - p, dtype).reshape(shape))
    return _kept(input, p, feature).div_(1 - p)


def _drop(input: Any, p: float, train: bool, feature: bool, alpha: bool, inplace: bool) -> Any:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or not input._array.size:
        return input
    if p == 1:
        nothing = zeros((), dtype=_base.dtype_of(input))
        return input.mul_(nothing) if inplace else input * nothing
    _refuse_integers(input)
    if not alpha:
        noise = _scaled_noise(input, p, feature)
        return input.mul_(noise) if inplace else input * noise
    noise = _kept(input, p, feature)
    scale = 1.0 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(ALPHA * scale).add_(ALPHA * scale * p)
    noise.mul_(scale)
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


def _variant(name: str, feature: bool, alpha: bool, inplace: bool) -> Any:
    def function(input: Any, p: float, train: bool) -> Any:
        return _drop(input, p, train, feature, alpha, inplace)

    what = ("channels" if feature else "elements") + (" in place" if inplace else "")
    doc = f"Drop {what} with probability p" + (", keeping mean and variance." if alpha else ".")
    return overridable_as(name, function, doc)


dropout, dropout_ = _variant("dropout", False, False, False), _variant("dropout_", False, False, True)
alpha_dropout = _variant("alpha_dropout", False, True, False)
alpha_dropout_ = _variant("alpha_dropout_", False, True, True)
feature_dropout = _variant("feature_dropout", True, False, False)
feature_dropout_ = _variant("feature_dropout_", True, False, True)
feature_alpha_dropout = _variant("feature_alpha_dropout", True, True, False)
feature_alpha_dropout_ = _variant("feature_alpha_dropout_", True, True, True)


@overridable
def native_dropout(input: Any, p: float, train: bool | None) -> Any:
    """Drop elements with probability p; return the result and the mask of what was kept."""
    if not input._array.size:
        return _NATIVE.slow((input, ones_like(input)), {"scale": 1.0}), empty_like(input)
    if train is False:
        mask = ones_like(input, dtype=_dtypes.bool_)
        return _NATIVE.slow((input, mask), {"scale": 1.0}), mask
    _refuse_integers(input)
    mask = with_chance(input, 1 - p, as_it_lies=True).to(_dtypes.bool_)
    return _NATIVE.slow((input, mask), {"scale": 0.0 if p == 1 else 1 / (1 - p)}), mask


@takes_out(forms="function")
def native_dropout_backward(grad_output: Any, mask: Any, scale: float) -> Any:
    """Keep the gradients of what was kept, scaled."""
    return _BACK.slow((grad_output, mask), {"scale": scale})
