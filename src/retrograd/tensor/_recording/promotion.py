"""Dtypes and shapes of elementwise calls: how operands come together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core import primitive as core
from ..._core.arrays import LevelArray
from ..._core.numpy_namespace import cast as cast_array
from ..._graph.node import PYTHON_SCALARS


def promoted(
    args: Sequence[Any], integers_to_float: bool = False, expanded: bool = False
) -> tuple[list[Any], np.dtype[Any]]:
    """Bring arrays and Python scalars to torch's common dtype.

    `expanded`: torch gives all of them the same number of dimensions first, so that those without any count fully.
    """
    dims, zero_dims, scalars = [], [], []
    for arg in args:
        if type(arg) in PYTHON_SCALARS:
            scalars.append(arg.__class__)
        elif arg.ndim or expanded:
            dims.append(arg.dtype)
        else:
            zero_dims.append(arg.dtype)
    dtype = _dtypes.result_numpy(tuple(dims), tuple(zero_dims), tuple(scalars))
    if integers_to_float and dtype.kind in "biu":
        dtype = _dtypes.get_default_dtype().numpy
    return [cast(arg, dtype) for arg in args], dtype


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Bring one operand to a dtype; a Python scalar becomes a weak scalar of that kind."""
    if type(value) in PYTHON_SCALARS:
        if hasattr(value, "beside"):  # it stands for a number while `torch.compile` records
            return value.beside(dtype)
        if dtype.kind in "fcV":
            return value if dtype.kind != "c" or isinstance(value, complex) else complex(value)
        return np.asarray(value).astype(dtype)[()]  # wraps, as torch does
    if value.dtype == dtype:
        return value
    if dtype.num in _dtypes.STORED_NUMBERS:
        return core.vocabulary.astype(value, dtype=dtype)
    return core.vocabulary.astype(value, dtype=dtype) if isinstance(value, LevelArray) else cast_array(value, dtype)


def misfit(shapes: list[tuple[int, ...]]) -> Exception:
    """Name the first shape that does not broadcast with those before it."""
    common = shapes[0]
    for shape in shapes[1:]:
        try:
            common = np.broadcast_shapes(common, shape)
        except ValueError:
            return _errors.broadcast_error(common, shape)
    return _errors.broadcast_error(*shapes[:2])
