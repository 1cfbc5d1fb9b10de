"""`out=`: writing a result into a tensor that the caller gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.arrays import DUAL, levels_of
from ..._modes import current_mode
from ..._warnings import warn
from .. import _base
from .out_dtypes import refuse_dtype


def call_into(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], out: Any) -> Any:
    """Call a function and write what it returns into `out`, a tensor or a tuple of them, which autograd cannot follow."""
    name = function.__name__
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, _base.Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    mode = current_mode()
    tensors = (*_tensors((*args, *kwargs.values())), *targets)
    if mode.tracks and any(t._edge is not None for t in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if mode.transforms and any(one.kind == DUAL for t in tensors for one in levels_of(t._array)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    if hasattr(function, "check_arguments"):  # see _out_dtypes.py
        function.check_arguments(name, args, kwargs)
    if hasattr(function, "dtype_from_out"):
        kwargs = function.dtype_from_out(kwargs, out)
    results = function(*args, **kwargs)
    if hasattr(function, "check_out"):
        function.check_out(name, targets, results if isinstance(out, (tuple, list)) else (results,))
    if isinstance(out, (tuple, list)):
        if len(out) != len(results):
            raise TypeError(f"{name}(): argument 'out' must be tuple of {len(results)} Tensors, not {len(out)}")
        written = [write(target, result) for target, result in zip(out, results, strict=True)]
        return type(results)(*written) if hasattr(results, "_fields") else type(results)(written)
    if not args or not isinstance(args[0], _base.Tensor) or _base.dtype_of(args[0]) is not _base.dtype_of(out):
        refuse_dtype(function, out, results)
    return write(out, results)


def _tensors(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, _base.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _tensors(value)
    return found


def write(out: Any, result: Any) -> Any:
    """Copy a result into a tensor, resizing it as torch does."""
    from .._aliasing.inplace import copy_into

    own, given = _base.dtype_of(out), _base.dtype_of(result)
    if not _dtypes.can_cast(given, own):
        raise RuntimeError(
            f"result type {given._scalar_name} can't be cast to the desired output type {own._scalar_name}"
        )
    shape, wanted = tuple(out._array.shape), tuple(result._array.shape)
    if shape != wanted:
        if out._array.size:
            warn(
                f"An output with one or more elements was resized since it had shape {_errors.sizes(shape)}, which does "
                f"not match the required output shape {_errors.sizes(wanted)}. This behavior is deprecated, and in a "
                "future PyTorch release outputs will not be resized unless they have zero elements. You can explicitly "
                "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        out._array = np.empty(wanted, own.numpy)
    copy_into(out, result)
    return out
