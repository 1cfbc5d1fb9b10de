"""The first call of a record: its program and eager must agree, or the record is thrown away.

A function without effects can be run twice. So a record is used only after one call in which its results, their layout and their
gradients were those of eager. What differs by more than rounding is a fault of the compiler, or of the analysis, and the function
stays in eager.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import autograd
from .._core.numpy_namespace import is_half
from .._modes import using
from ..tensor._base import wrap
from ..tensor._recording.flat import EXACT


def difference(made: Any, expected: Any, inputs: list[Any]) -> str | None:
    """Say in which way results differ from those of eager; None if they do not."""
    pairs: list[tuple[Any, Any]] = []
    found = _structures(made, expected, pairs)
    if found is not None:
        return found
    for one, other in pairs:
        if one is other:
            continue
        if one.shape != other.shape or one.dtype != other.dtype or one.stride() != other.stride():
            return "the shape, the dtype or the strides of a result"
        if one.requires_grad != other.requires_grad:
            return "whether a result requires gradients"
        if not _are_close(one._array, other._array):
            return "the numbers of a result"
    return _gradients(pairs, inputs)


def _structures(made: Any, expected: Any, pairs: list[tuple[Any, Any]]) -> str | None:
    if type(made) is not type(expected):
        return "the structure of the result"
    if type(made) in EXACT:
        pairs.append((made, expected))
    elif isinstance(made, (tuple, list)):
        if len(made) != len(expected):
            return "the structure of the result"
        for one, other in zip(made, expected, strict=True):
            if (found := _structures(one, other, pairs)) is not None:
                return found
    elif type(made) is dict:
        if list(made) != list(expected):
            return "the structure of the result"
        return _structures(list(made.values()), list(expected.values()), pairs)
    elif made is not expected and repr(made) != repr(expected):
        return "a result that is no tensor"
    return None


def _gradients(pairs: list[tuple[Any, Any]], inputs: list[Any]) -> str | None:
    pairs = [(one, other) for one, other in pairs if one.requires_grad and one is not other]
    if not pairs or not inputs:
        return None
    with using(grad=True):
        sides = []
        for outs in zip(*pairs, strict=True):
            seeds = [wrap(np.ones(tuple(one.shape), one._array.dtype)) for one in outs]
            sides.append(autograd.grad(outs, inputs, seeds, retain_graph=True, allow_unused=True))
    for one, other in zip(*sides, strict=True):
        if (one is None) is not (other is None):
            return "which gradients there are"
        if one is not None and (one.shape != other.shape or not _are_close(one._array, other._array)):
            return "the numbers of a gradient"
    return None


def _are_close(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fcV" or not one.size:
        return bool((one == other).all())
    if one.dtype.kind != "c":
        relative = 2e-2 if is_half(one.dtype) else 1e-3 if one.dtype.itemsize == 4 else 1e-7
        one, other = one.astype(np.float64), other.astype(np.float64)
    else:
        relative = 1e-3 if one.dtype.itemsize == 8 else 1e-7
    finite = np.isfinite(other)
    scale = np.abs(other[finite]).max(initial=0.0)
    return bool(np.allclose(one, other, rtol=relative, atol=relative * (0.1 * scale + 1e-3), equal_nan=True))
