"""The closed vocabulary `xp` over a raw array library.

A rule may use these names and Python's operators, nothing else: then it runs on raw arrays, Tensors, duals and batches
alike. NumPy and CuPy share one implementation, because CuPy follows NumPy's signatures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

# Names that NumPy has under the same name and signature.
DIRECT = """
add subtract multiply divide power negative exp log sqrt sin cos tan tanh sinh cosh square maximum minimum floor
ceil trunc expm1 log1p log2 log10 arctan arcsin arccos arctan2 conj where equal not_equal less less_equal
greater greater_equal logical_not logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor invert
isnan isinf isfinite floor_divide remainder fmod reshape broadcast_to expand_dims squeeze
""".split()  # noqa: SIM905 - names read better as text

# Functions whose intermediate results need more than half precision: computed in float32, rounded once.
WIDENED = ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "expm1", "log1p", "log2", "log10",
           "arctan", "arcsin", "arccos", "power", "divide")  # fmt: skip


def is_half(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype is a storage format that is computed in float32."""
    return dtype.itemsize == 2 and dtype in HALVES


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `function` see float32 where it is given half precision, and round its result once."""

    def widened(x: Any, *rest: Any, **params: Any) -> Any:
        dtype = x.dtype if hasattr(x, "dtype") else rest[0].dtype
        if dtype.itemsize == 2 and dtype in HALVES:
            single = np.float32
            args = [a.astype(single) if getattr(a, "dtype", None) in HALVES else a for a in (x, *rest)]
            return function(*args, **params).astype(dtype)
        return function(x, *rest, **params)

    return widened


# Filled by `primitive.py`: the table of primitives by name.
declared: dict[str, Any] = {}


class ArrayNamespace:
    """The vocabulary for one raw array library (`numpy` or `cupy`)."""

    def __init__(self, module: Any) -> None:
        self.module = module
        for name in DIRECT:
            setattr(self, name, getattr(module, name))
        if module is not np:
            self.reshape = lambda x, shape: module.reshape(x, shape)  # CuPy calls the parameter otherwise
        for name in WIDENED:
            setattr(self, name, in_float32(getattr(module, name)))
        for name in ("sigmoid", "log_sigmoid", "softplus", "reciprocal", "rsqrt", "erf", "matmul"):
            setattr(self, name, in_float32(getattr(self, f"_{name}")))

    def __getattr__(self, name: str) -> Any:
        """Find a primitive's own implementation, so that `xp` has the same names over raw arrays as over any other."""
        primitive = declared.get(name)
        if primitive is None or primitive.implementation is None:
            raise AttributeError(f"xp has no {name!r}: a rule may use the closed vocabulary only")
        function = partial(primitive.implementation, self)
        setattr(self, name, function)  # the next read finds it without this call
        return function

    # ---- elementwise functions NumPy lacks ----
    def abs(self, x: Any) -> Any:
        return self.module.abs(x)

    def real(self, x: Any) -> Any:
        return x.real if x.dtype.kind == "c" else x

    def imag(self, x: Any) -> Any:
        return x.imag if x.dtype.kind == "c" else self.module.zeros_like(x)

    def complex(self, re: Any, im: Any) -> Any:
        out = self.module.empty(self.module.broadcast(re, im).shape, np.result_type(re.dtype, np.complex64))
        out.real, out.imag = re, im
        return out

    def sgn(self, x: Any) -> Any:
        if x.dtype.kind == "b":
            return x.copy()
        if x.dtype.kind != "c":
            # NaN has sign 0, as torch; NumPy gives NaN
            return self.module.greater(x, 0).astype(x.dtype) - self.module.less(x, 0).astype(x.dtype)
        size = self.module.abs(x)
        return self.module.where(size == 0, x, x / self.module.where(size == 0, 1, size)).astype(x.dtype, copy=False)

    def relu(self, x: Any) -> Any:
        # maximum(x, 0) keeps NaN, as torch; fmax would not
        return self.module.maximum(x, 0)

    def round(self, x: Any, *, decimals: int = 0) -> Any:
        if x.dtype.kind in "iub":
            return x
        if is_half(x.dtype):
            return self.module.round(x.astype(np.float32), decimals).astype(x.dtype)
        return self.module.round(x, decimals)

    def _sigmoid(self, x: Any) -> Any:
        # exp of a non-positive number only: no overflow on either side
        small = self.module.exp(-self.module.abs(x)) if x.dtype.kind != "c" else None
        if small is None:
            return 1 / (1 + self.module.exp(-x))
        return self.module.where(x >= 0, 1, small) / (1 + small)

    def _log_sigmoid(self, x: Any) -> Any:
        return self.module.minimum(x, 0) - self.module.log1p(self.module.exp(-self.module.abs(x)))

    def _softplus(self, x: Any) -> Any:
        return self.module.maximum(x, 0) + self.module.log1p(self.module.exp(-self.module.abs(x)))

    def _reciprocal(self, x: Any) -> Any:
        return 1 / x

    def _rsqrt(self, x: Any) -> Any:
        return 1 / self.module.sqrt(x)

    def _erf(self, x: Any) -> Any:
        from scipy.special import erf  # scipy takes 60 ms to import: only when asked for

        if self.module is np:
            return np.asarray(erf(x))
        from cupyx.scipy.special import erf as cuda_erf

        return cuda_erf(x)

    # ---- reductions; half precision accumulates in float32 ----
    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        if dtype is None and x.dtype.itemsize == 2 and x.dtype in HALVES:
            return self.module.sum(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(x.dtype)
        if dtype is not None and is_half(np.dtype(dtype)):
            return self.module.sum(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(dtype)
        return self.module.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype if dtype is None else dtype)

    def prod(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        if is_half(x.dtype) and dtype is None:
            return self.module.prod(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(x.dtype)
        return self.module.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype if dtype is None else dtype)

    def max(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.module.max(x, axis=axis, keepdims=keepdims)

    def min(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.module.min(x, axis=axis, keepdims=keepdims)

    def any(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.module.any(x, axis=axis, keepdims=keepdims)

    def all(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.module.all(x, axis=axis, keepdims=keepdims)

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.module.argmax(x, axis=axis, keepdims=keepdims)

    def argmin(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.module.argmin(x, axis=axis, keepdims=keepdims)

    def sum_to(self, x: Any, *, shape: tuple[int, ...]) -> Any:
        """Sum away what broadcasting added, so that the result has `shape`."""
        lead = x.ndim - len(shape)
        axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and x.shape[i + lead] != 1)
        if not axes:
            return x
        total = self.sum(x, axis=axes, keepdims=True)
        return total.reshape(shape)

    def cumsum(self, x: Any, *, axis: int, dtype: Any = None) -> Any:
        if is_half(x.dtype) and dtype is None:
            return self.module.cumsum(x, axis=axis, dtype=np.float32).astype(x.dtype)
        return self.module.cumsum(x, axis=axis, dtype=x.dtype if dtype is None else dtype)

    # ---- shape ----
    def permute_dims(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return self.module.transpose(x, axes)

    def flip(self, x: Any, axis: tuple[int, ...]) -> Any:
        return self.module.flip(x, axis).copy()  # a view in NumPy; torch knows no negative strides

    def concat(self, *arrays: Any, axis: int) -> Any:
        return self.module.concatenate(arrays, axis=axis)

    def astype(self, x: Any, *, dtype: Any) -> Any:
        dtype = getattr(dtype, "numpy", dtype)  # a rule may pass the dtype of a Tensor
        return x.real.astype(dtype) if x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb" else x.astype(dtype)

    def copy(self, x: Any) -> Any:
        return x.copy()

    def triangle(self, x: Any, *, upper: bool, k: int) -> Any:
        return (self.module.triu if upper else self.module.tril)(x, k)

    def diagonal(self, x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
        return self.module.diagonal(x, offset, axis1, axis2)

    def put_diagonal(self, g: Any, *, shape: tuple[int, ...], offset: int, axis1: int, axis2: int) -> Any:
        """Write `g` on a diagonal of zeros of `shape`: the transpose of `diagonal`."""
        out = self.module.zeros(shape, g.dtype)
        target = self.module.moveaxis(out, (axis1, axis2), (-2, -1))
        rows = self.module.arange(g.shape[-1]) + max(-offset, 0)
        target[..., rows, rows + offset] = g
        return out

    # ---- indexing ----
    def getitem(self, x: Any, *, index: tuple[Any, ...]) -> Any:
        return x[(*index, ...)]  # the Ellipsis keeps a 0-d result a view: NumPy would copy it into a scalar

    def put_zeros(self, g: Any, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
        """Write `g` at a basic index of zeros of `shape`: the transpose of `getitem`."""
        out = self.module.zeros(shape, g.dtype)
        out[index] = g
        return out

    def index(self, x: Any, *indices: Any, layout: tuple[Any, ...]) -> Any:
        return x[fill_layout(layout, indices)]

    def index_add_zeros(self, g: Any, *indices: Any, shape: tuple[int, ...], layout: tuple[Any, ...]) -> Any:
        """Add `g` at integer-array indices of zeros of `shape`: the transpose of `index`."""
        wide = self.module.float32 if is_half(g.dtype) else g.dtype
        out = self.module.zeros(shape, wide)
        self.module.add.at(out, fill_layout(layout, indices), g.astype(wide, copy=False))
        return out.astype(g.dtype, copy=False)

    def take_along(self, x: Any, indices: Any, *, axis: int) -> Any:
        return self.module.atleast_1d(x)[self._along(indices, axis)]

    def scatter_add_zeros(self, g: Any, indices: Any, *, axis: int, shape: tuple[int, ...]) -> Any:
        """Add `g` at `indices` along `axis` of zeros of `shape`: the transpose of `take_along`."""
        out = self.module.zeros(shape, g.dtype)
        here = tuple(slice(0, n) for n in indices.shape)
        self.module.add.at(self.module.atleast_1d(out), self._along(indices, axis), g[here])
        return out

    def scatter_mask_zeros(self, indices: Any, *, axis: int, shape: tuple[int, ...]) -> Any:
        """Mark the places of zeros of `shape` that `indices` along `axis` name."""
        out = self.module.zeros(shape, bool)
        self.module.atleast_1d(out)[self._along(indices, axis)] = True
        return out

    def scatter_assign(self, x: Any, indices: Any, src: Any, *, axis: int) -> Any:
        out = self.module.array(x)
        here = tuple(slice(0, n) for n in indices.shape)
        self.module.atleast_1d(out)[self._along(indices, axis)] = src[here]
        return out

    def _along(self, indices: Any, axis: int) -> tuple[Any, ...]:
        if indices.ndim == 0:
            return (indices,)
        grid = list(self.module.ogrid[tuple(slice(0, n) for n in indices.shape)])
        grid[axis] = indices
        return tuple(grid)

    # ---- linear algebra ----
    def _matmul(self, x: Any, y: Any) -> Any:
        return self.module.matmul(x, y)

    # ---- sorting ----
    def argsort(self, x: Any, *, axis: int, descending: bool, stable: bool) -> Any:
        if x.ndim == 0:
            return self.module.zeros((), np.int64)
        if not descending:
            return self.module.argsort(x, axis=axis, kind="stable")
        # a stable descending order is the reversed stable ascending order of the reversed array
        flipped = self.module.flip(x, axis)
        order = self.module.flip(self.module.argsort(flipped, axis=axis, kind="stable"), axis)
        return x.shape[axis] - 1 - order

    # ---- creation from metadata ----
    def zeros_like(self, x: Any) -> Any:
        return self.module.zeros_like(x)

    def ones_like(self, x: Any) -> Any:
        return self.module.ones_like(x)

    def zeros(self, *, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.module.zeros(shape, dtype)

    def ones(self, *, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.module.ones(shape, dtype)


def fill_layout(layout: tuple[Any, ...], indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put index arrays into their places of an index expression; `ARRAY` marks a place."""
    arrays = iter(indices)
    return tuple(next(arrays) if part is ARRAY else part for part in layout)


def batch_positions(size: int, rank: int) -> Any:
    """Number the samples of a batch, as an index array that broadcasts over `rank` further axes."""
    return np.arange(size).reshape(size, *(1,) * rank)


class _ArrayPlace:
    def __repr__(self) -> str:
        return "ARRAY"


ARRAY = _ArrayPlace()

numpy_namespace = ArrayNamespace(np)
_cupy_namespace: ArrayNamespace | None = None


def cupy_namespace() -> ArrayNamespace:
    """Return the vocabulary over CuPy, importing it on first use."""
    global _cupy_namespace
    if _cupy_namespace is None:
        import cupy

        _cupy_namespace = ArrayNamespace(cupy)
    return _cupy_namespace


# Exactly these types are raw NumPy values; everything else is looked at more closely.
_NUMPY_TYPES = frozenset({np.ndarray, *(np.dtype(c).type for c in "?bBhHiIlLqQefdFD"), ml_dtypes.bfloat16})


def raw_namespace(value: Any) -> ArrayNamespace:
    """Return the vocabulary for a raw array or scalar."""
    if type(value) in _NUMPY_TYPES or not hasattr(value, "get"):
        return numpy_namespace
    return cupy_namespace()
