"""Reductions of large arrays by kernels: sums, products, extremes and truth over any axes.

Long rows are summed in blocks, whose sums NumPy adds: the error grows with the length of a block, not with that of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .program import NATIVE, Formula, formula

NDARRAY = np.ndarray


def _reduction(name: str, wide: bool = False) -> Formula:
    def run(xp: Any, x: Any, *, axis: tuple[int, ...], dtype: Any = None) -> Any:
        if dtype is not None:
            x = xp.astype(x, dtype=dtype)
        return getattr(xp, name)(x, axis=axis, keepdims=True)

    run.__name__ = name
    return formula(run, wide=(0,) if wide else ())  # type: ignore[no-any-return]


FORMULAS: Final = {name: _reduction(name) for name in ("sum", "prod", "max", "min", "any", "all")}
WIDE: Final = {name: _reduction(name, wide=True) for name in ("sum", "prod")}  # float32 of half precision
# sizes up to which NumPy reduces all of an array as quickly: it has all lanes of the processor for these
QUICK: Final = {"sum": NATIVE * 4, "max": NATIVE * 16, "min": NATIVE * 16}
ARITHMETIC: Final = frozenset({"sum", "prod", "max", "min"})


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Return axes as numbers from 0, in order."""
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted([a % rank for a in ((axis,) if isinstance(axis, int) else axis)]))


def without(out: np.ndarray, axes: Sequence[int], keepdims: bool) -> Any:
    """Drop reduced axes, which have length one; all of them leave a number, as in NumPy."""
    if keepdims:
        return out
    if len(axes) == out.ndim:
        return out.reshape(-1)[0]
    return out.reshape([n for k, n in enumerate(out.shape) if k not in axes])


_known: dict[
    Any, Any
] = {}  # what reduces arrays of a shape: a plan, its parameters and the shape of the result; None: no kernel


def reduced(name: str, x: Any, axis: Any, keepdims: bool, dtype: Any = None) -> Any:
    """Reduce a large array; None if no kernel can."""
    if type(x) is not NDARRAY:
        return None
    if x.dtype.kind == "c":
        return _columns_of_complex(x, axis, keepdims) if name == "sum" and dtype is None else None
    key = name, axis, keepdims, dtype, x.dtype.num, x.shape, x.strides
    known = _known.get(key, key)
    if known is key:
        if len(_known) > 512:
            _known.clear()
        known = _known[key] = _prepared(name, x, axis, keepdims, dtype)
    if known is None:
        return None
    plan, params, shape = known
    found = plan.run((x,), params).reshape(shape)
    return found if found.ndim else found[()]  # a number, as in NumPy


def _columns_of_complex(x: np.ndarray, axis: Any, keepdims: bool) -> Any:
    """Sum columns of complex numbers, which NumPy adds one after the other, as twice as many columns of floats; None for other axes."""
    axes = axes_of(axis, x.ndim)
    if not x.ndim or x.ndim - 1 in axes or x.strides[-1] != x.itemsize:
        return None
    found = reduced("sum", x.view(x.real.dtype), axes, keepdims)
    return None if found is None else np.ascontiguousarray(found).view(x.dtype).copy()


def _prepared(name: str, x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
    if not x.ndim or (dtype is None and x.dtype.char == "?" and name in ARITHMETIC):
        return None
    axes = axes_of(axis, x.ndim)
    if len(axes) == x.ndim and x.size < QUICK.get(name, 0) and x.dtype.itemsize > 2 and x.flags.c_contiguous:
        return None
    params: dict[str, Any] = {"axis": axes}
    if dtype is not None and dtype != x.dtype:
        params["dtype"] = np.dtype(dtype)
    plan = (WIDE[name] if dtype == np.float32 else FORMULAS[name]).plan((x,), params)
    shape = tuple([1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes])
    return None if plan is None else (plan, params, shape)
