"""What NumPy's functions make of arrays without elements: their shapes and dtypes. See Note [Meta arrays]."""

from __future__ import annotations

from collections.abc import Callable
from operator import setitem
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .meta_arrays import MetaArray, fresh, like, normalised, one_element, result_order

_rules: dict[Any, Callable[..., Any]] = {}


def call(function: Any, args: Any, options: Any) -> Any:
    """Run a function of NumPy by its rule; or its own text, if that only uses methods and functions with rules."""
    rule = _rules.get(function)
    if rule is not None:
        return rule(*args, **options)
    own = getattr(function, "_implementation", None)
    if own is None:
        raise NotImplementedError(f"numpy.{function.__name__} needs elements")
    try:
        return own(*args, **options)
    except NotImplementedError:
        raise NotImplementedError(f"numpy.{function.__name__} needs elements") from None


def rule_for(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare what some functions make."""

    def declare(rule: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            _rules[function] = rule
        return rule

    return declare


def _sizes(value: Any) -> tuple[int, ...]:
    return value.shape if hasattr(value, "shape") else np.shape(value)


def _dtype(*values: Any) -> Any:
    return np.result_type(*[v.dtype if hasattr(v, "dtype") else v for v in values])


def _axis(axis: int, ndim: int) -> int:
    (found,) = normalised(axis, ndim) or {0}
    return found


def _at(shape: tuple[int, ...], axis: int, *sizes: int) -> tuple[int, ...]:
    return (*shape[:axis], *sizes, *shape[axis + 1 :])


_rules |= {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.result_type: _dtype,
    np.may_share_memory: lambda a, b, max_work=None: bool(type(a) is type(b) and a._start == b._start),
    np.copyto: lambda dst, src, *args, **_: setitem(dst, ..., src),
    np.putmask: lambda *args, **_: None,
    np.full_like: lambda a, fill_value, *args, **options: np.empty_like(a, *args, **options),
    **dict.fromkeys((np.tril, np.triu, np.partition), lambda a, *args, **_: fresh(a.shape, a.dtype)),
    np.argsort: lambda a, axis=-1, **_: fresh(a.shape, np.intp),
    np.searchsorted: lambda a, v, *args, **_: fresh(_sizes(v), np.intp),
}


# ---- joining and copying ----
@rule_for(np.concatenate)
def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
    first = arrays[0]
    axis = _axis(axis, first.ndim)
    for a in arrays[1:]:
        if _at(a.shape, axis) != _at(first.shape, axis):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    shape = _at(first.shape, axis, sum(a.shape[axis] for a in arrays))
    return fresh(shape, _dtype(*arrays) if dtype is None else dtype, result_order(first.shape, arrays))


@rule_for(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, **_: Any) -> Any:
    arrays = list(arrays)
    axis %= arrays[0].ndim + 1
    if any(a.shape != arrays[0].shape for a in arrays):
        raise ValueError("all input arrays must have the same shape")
    shape = arrays[0].shape
    return fresh((*shape[:axis], len(arrays), *shape[axis:]), _dtype(*arrays))


@rule_for(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        raise NotImplementedError("numpy.where: how many elements there are depends on their values")
    shape = np.broadcast_shapes(*map(_sizes, (condition, x, y)))
    return fresh(
        shape, np.where(np.ones(1, bool), one_element(x), one_element(y)).dtype, result_order(shape, (condition, x, y))
    )


@rule_for(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    return MetaArray(np.broadcast_to(array.standin, shape), array)


@rule_for(np.broadcast_arrays)
def _broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    shape = np.broadcast_shapes(*map(_sizes, arrays))
    return tuple(np.broadcast_to(a, shape) for a in arrays)


@rule_for(np.empty_like, np.zeros_like, np.ones_like)
def _empty_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
    dtype = a.dtype if dtype is None else dtype
    if shape is not None or order == "C":
        return fresh(a.shape if shape is None else shape, dtype)
    return like(a, dtype)


def restrided(x: Any, shape: Any = None, strides: Any = None, **_: Any) -> Any:
    """Read the memory that an array would have with another shape and strides."""
    return MetaArray(as_strided(x.standin, shape, strides), x)


# ---- rearranging ----
@rule_for(np.meshgrid)
def _meshgrid(*axes: Any, indexing: str = "xy", **_: Any) -> Any:
    sizes = [_sizes(one)[0] for one in axes]
    shape = [sizes[1], sizes[0], *sizes[2:]] if indexing == "xy" and len(sizes) > 1 else sizes
    return tuple(fresh(shape, one.dtype) for one in axes)


for _view in (np.diagonal, np.moveaxis, np.expand_dims):

    def _viewed(a: Any, *args: Any, view: Any = _view, **options: Any) -> Any:
        return MetaArray(view(a.standin, *args, **options), a)

    _rules[_view] = _viewed


@rule_for(np.tile)
def _tile(a: Any, reps: Any) -> Any:
    reps = (reps,) if hasattr(reps, "__index__") else tuple(reps)
    rank = max(len(reps), a.ndim)
    shape, reps = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - len(reps)) + reps
    return fresh([n * r for n, r in zip(shape, reps, strict=True)], a.dtype)


@rule_for(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, **_: Any) -> Any:
    axis = _axis(axis, a.ndim)
    return fresh(_at(a.shape, axis, max(a.shape[axis] - n, 0)), a.dtype)


@rule_for(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        return fresh(indices.shape, arr.dtype)
    axis = _axis(axis, arr.ndim)
    lead = np.broadcast_shapes(_at(arr.shape, axis, 1), _at(indices.shape, axis, 1))
    return fresh(_at(lead, axis, indices.shape[axis]), arr.dtype)


@rule_for(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return a.astype(np.intp).sum(axis=axis, keepdims=keepdims)


# ---- products ----
@rule_for(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return the shape of `numpy.dot`."""
    if not a.ndim or not b.ndim:
        return np.multiply(a, b)
    at = -2 if b.ndim > 1 else -1
    if a.shape[-1] != b.shape[at]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    return fresh((*a.shape[:-1], *b.shape[:at], *(b.shape[-1:] if b.ndim > 1 else ())), _dtype(a, b))
