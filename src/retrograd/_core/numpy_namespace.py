"""The closed vocabulary `xp` over a raw array library.

A rule may use these names and Python's operators, nothing else: then it runs on raw arrays, Tensors, duals and batches
alike. NumPy and CuPy share one implementation, because CuPy follows NumPy's signatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property, lru_cache, partial
from typing import Any

import ml_dtypes
import numpy as np

from .. import _thresholds
from .._dtypes import STORED_NUMBERS, complex32
from .._dtypes import dtype as torch_dtype
from .._stored import convert
from .._thresholds import NATIVE
from . import passes

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
SINGLE = np.dtype(np.float32)
DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution, at 0
WIDER = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}  # in which torch's running sums and products go on


def is_half(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype is a storage format that is computed in float32."""
    return dtype.itemsize == 2 and dtype in HALVES


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Convert an array; large ones from and to half precision, and to float64, by a kernel."""
    if dtype == np.float16 and x.dtype == np.float64:
        x = x.astype(SINGLE)  # torch rounds twice, too
    if x.size < _thresholds.NATIVE_SLOW or type(x) is not np.ndarray:
        return x.astype(dtype)
    return native.cast(x, dtype)


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `function` see float32 where it is given half precision, and round its result once."""

    def widened(x: Any, *rest: Any, **params: Any) -> Any:
        dtype = x.dtype if hasattr(x, "dtype") else rest[0].dtype
        if dtype.itemsize == 2 and dtype in HALVES:
            args = [cast(a, SINGLE) if getattr(a, "dtype", None) in HALVES else a for a in (x, *rest)]
            return cast(function(*args, **params), dtype)
        return function(x, *rest, **params)

    return widened


# Installed by `_native/library.py`: kernels for large arrays.
native: Any = None


def install_native(module: Any) -> None:
    """Receive the module that makes kernels of NumPy's functions."""
    global native
    native = module


# Filled by `primitive.py`: the table of primitives by name.
declared: dict[str, Any] = {}


def on(implementation: Any, xp: Any) -> Any:
    """Return an implementation as a function of the arrays of one library."""
    own = getattr(implementation, "on", None)
    return partial(implementation, xp) if own is None else own(xp)


def _sized(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that is a kernel for large arrays, and computes half precision in float32."""
    wide = in_float32(function)
    if (kernels_of := native.library(name, wide)) is None:
        return wide
    of_any_size, few = kernels_of.of_any_size, _thresholds.NATIVE_SLOW

    def call(x: Any, *rest: Any) -> Any:
        if not rest and type(x) is np.ndarray and x.size < few and x.dtype.itemsize > 2:  # most of the time
            return function(x)
        return of_any_size(x, *rest)

    return call


def _quick_where(condition: Any, x: Any, y: Any) -> Any:
    """Choose; NumPy branches on every element, which a kernel does not."""
    if type(condition) is not np.ndarray or condition.size < _thresholds.NATIVE_SLOW:  # it may be a Python bool
        return np.where(condition, x, y)
    return _large_where()(condition, x, y)


@cache
def _large_where() -> Any:
    return native.library("where", np.where).of_any_size


class ArrayNamespace:
    """The vocabulary for one raw array library (`numpy` or `cupy`)."""

    is_meta = False
    runs_operations = False  # whether primitives and fused operations are left to it as a whole

    def __init__(self, module: Any) -> None:
        self.module = module
        self.broadcast_to = module.broadcast_to
        self.reshape = lambda x, shape: x.reshape(shape)  # methods: NumPy's functions take 500 ns longer
        self.squeeze = lambda x, axis=None: x.squeeze(axis)
        self.expand_dims = lambda x, axis: x[(slice(None),) * (axis if axis >= 0 else axis + x.ndim + 1) + (None,)]
        if module is np:
            self.where = _quick_where
        self.power = in_float32(module.power)
        self.erf, self._matmul_wide = in_float32(self._erf), in_float32(self._matmul)

    def __getattr__(self, name: str) -> Any:
        """Find a primitive's own implementation, so that `xp` has the same names over raw arrays as over any other."""
        primitive = declared.get(name)
        if primitive is None or (primitive.implementation is None and primitive.kind != "elementwise"):
            raise AttributeError(f"xp has no {name!r}: a rule may use the closed vocabulary only")
        function = self.of_library(primitive) or on(primitive.implementation, self)
        setattr(self, name, function)  # the next read finds it without this call
        return function

    def has_own(self, name: str) -> bool:
        """Tell whether a name is written out here, not found by `__getattr__`."""
        return name in vars(self) or hasattr(type(self), name)

    def of_library(self, primitive: Any) -> Any:
        """Return the function of the array library that an elementwise primitive is, by its name; None for others."""
        if primitive.implementation is not None:
            return None
        function = getattr(self.module, primitive.name)
        if primitive.exact:
            return function
        return in_float32(function) if self.module is not np else _sized(primitive.name, function)

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
        return self.astype(out, dtype=complex32) if re.dtype == np.float16 else out

    def sgn(self, x: Any) -> Any:
        if x.dtype.kind == "b":
            return x.copy()
        if x.dtype.kind != "c":
            # NaN has sign 0, as torch; NumPy gives NaN
            above, below = self.module.greater(x, 0), self.module.less(x, 0)
            return (above.view(np.int8) - below.view(np.int8)).astype(x.dtype)
        size = self.module.abs(x)
        return self.module.where(size == 0, x, x / self.module.where(size == 0, 1, size)).astype(x.dtype, copy=False)

    def bounded(self, x: Any, low: Any, high: Any) -> Any:
        """Bound an array by numbers or arrays, either of which may be None."""
        if self.module is np and not hasattr(low, "dtype") and not hasattr(high, "dtype"):
            return passes.clip(x, low, high)
        out = x if low is None else self.module.maximum(x, low)
        return out if high is None else self.module.minimum(out, high)

    def power_by(self, x: Any, exponent: Any) -> Any:
        """Raise to a power that is a number; small integers by multiplication, which is a hundred times quicker."""
        if x.dtype.kind in "fc" and x.dtype.itemsize > 2 and type(exponent) is not complex:
            if exponent in (1, 0.5):
                return x.copy() if exponent == 1 else self.module.sqrt(x)
            if 2 <= exponent <= 64 and exponent == int(exponent):
                return passes.integer_power(x, int(exponent))
        return self.power(x, exponent)

    def remainder_of(self, x: Any, y: Any) -> Any:
        rest = native.divided(x, y, "floor", rest=True) if getattr(x, "size", 0) >= passes.LARGE else None
        return self.module.remainder(x, y) if rest is None else rest

    def remainder_towards_zero(self, x: Any, y: Any) -> Any:
        rest = native.divided(x, y, "trunc", rest=True) if getattr(x, "size", 0) >= passes.LARGE else None
        return self.module.fmod(x, y) if rest is None else rest

    def floor_divide(self, x: Any, y: Any) -> Any:
        whole = native.divided(x, y, "floor", rest=False) if getattr(x, "size", 0) >= passes.LARGE else None
        return self.module.floor_divide(x, y) if whole is None else whole

    def round(self, x: Any, *, decimals: int = 0) -> Any:
        if x.dtype.kind in "iub":
            return x.copy("K")
        if is_half(x.dtype):
            return self.module.round(x.astype(np.float32), decimals).astype(x.dtype)
        return self.module.round(x, decimals) if decimals else self.module.rint(x)

    def _erf(self, x: Any) -> Any:
        if type(x) is np.ndarray and x.size >= _thresholds.NATIVE_SLOW:
            return self._large_erf(x)
        if self.module is np:
            from scipy.special import erf  # scipy takes 60 ms to import: only when asked for

            return np.asarray(erf(x))
        from cupyx.scipy.special import erf as cuda_erf

        return cuda_erf(x)

    def exact_gelu(self, x: Any) -> Any:
        """x times the normal distribution function."""
        return x * self.ndtr(x)

    def exact_gelu_slope(self, x: Any) -> Any:
        return self.ndtr(x) + self.exp(x * x * -0.5) * x * DENSITY

    def reinterpret(self, x: Any, dtype: Any) -> Any:
        """Read the bits of numbers as another dtype of the same width."""
        return x.view(dtype)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """x * y + z of float32, rounded once but for ties: float64 holds the product exactly."""
        return (x.astype(np.float64) * y + z).astype(np.float32)

    @cached_property
    def _large_erf(self) -> Any:
        from scipy.special import erf

        return native.library("erf", lambda x: np.asarray(erf(x))).of_any_size

    # ---- reductions; half precision accumulates in float32 ----
    def _reduced(self, name: str, x: Any, axis: Any, keepdims: bool, dtype: Any = None) -> Any:
        """Reduce a large array by a kernel; None where there is none."""
        if x.size < NATIVE or self.module is not np:
            return None
        return native.reduced(name, x, axis, keepdims, dtype)

    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return self._total("sum", x, axis, keepdims, dtype)

    def prod(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return self._total("prod", x, axis, keepdims, dtype)

    def _total(self, name: str, x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
        if x.size >= NATIVE and (found := self._reduced(name, x, axis, keepdims, dtype)) is not None:
            return found
        dtype = x.dtype if dtype is None else np.dtype(dtype)
        if dtype.itemsize == 2 and dtype in HALVES:
            return getattr(self.module, name)(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(dtype)
        ufunc = self.module.add if name == "sum" else self.module.multiply
        return ufunc.reduce(x, axis=axis, keepdims=keepdims, dtype=dtype)

    def max(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        found = self._reduced("max", x, axis, keepdims)
        # methods: NumPy's functions of the same name take 1 us longer
        return x.max(axis=axis, keepdims=keepdims) if found is None else found

    def min(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        found = self._reduced("min", x, axis, keepdims)
        return x.min(axis=axis, keepdims=keepdims) if found is None else found

    def any(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        found = self._reduced("any", x, axis, keepdims)
        return x.any(axis=axis, keepdims=keepdims) if found is None else found

    def all(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        found = self._reduced("all", x, axis, keepdims)
        return x.all(axis=axis, keepdims=keepdims) if found is None else found

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return x.argmax(axis=axis, keepdims=keepdims)

    def argmin(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return x.argmin(axis=axis, keepdims=keepdims)

    def cumsum(self, x: Any, *, axis: int, dtype: Any = None) -> Any:
        if is_half(x.dtype) and dtype is None:
            return self.module.cumsum(x, axis=axis, dtype=np.float32).astype(x.dtype)
        if dtype is None and x.dtype.char in WIDER and x.shape[axis] > 64:  # few numbers lose nothing
            return x.cumsum(axis=axis, dtype=WIDER[x.dtype.char]).astype(x.dtype)
        return x.cumsum(axis=axis, dtype=x.dtype if dtype is None else dtype)

    # ---- shape ----
    def restrided(self, x: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Any:
        """Read an array's memory with another shape and strides, in bytes; behind `offset` bytes if it is contiguous."""
        if self.module is np and x.dtype.kind != "V" and x.flags.c_contiguous and 0 not in shape:
            return np.ndarray(shape, x.dtype, x, offset, strides)  # ten times quicker, for memory that is a buffer
        first = x.reshape(-1)[offset // x.itemsize :] if offset else x
        if x.dtype.num > 255 and self.module is np:  # a dtype of ml_dtypes, which NumPy's function may not know
            return np.lib.stride_tricks.as_strided(first.view(f"u{x.itemsize}"), shape, strides).view(x.dtype)
        return self.module.lib.stride_tricks.as_strided(first, shape, strides)

    def astype(self, x: Any, *, dtype: Any) -> Any:
        dtype = dtype.numpy if type(dtype) is torch_dtype else np.dtype(dtype)  # a rule may pass the dtype of a Tensor
        if dtype.num in STORED_NUMBERS:
            return convert(x, dtype)
        if x.dtype.kind == "c" and dtype.kind not in "cb":
            return x.real.astype(dtype)
        return cast(x, dtype)

    def triangle(self, x: Any, *, upper: bool, k: int) -> Any:
        rows, columns = x.shape[-2:]
        if self.module is np and x.size <= 4096:
            lower = _triangle_mask(rows, columns, k - 1 if upper else k)
            return np.where(lower, *((0, x) if upper else (x, 0))).astype(x.dtype, copy=False)
        if self.module is not np:
            return (self.module.triu if upper else self.module.tril)(x, k)
        return passes.triangle(x, upper, k)

    # ---- linear algebra ----
    def matmul(self, x: Any, y: Any) -> Any:
        if x.dtype.itemsize == 2 and (found := product_of_halves(x, y)) is not None:
            return found
        return self._matmul_wide(x, y)

    def _matmul(self, x: Any, y: Any) -> Any:
        if x.shape[-1:] == (1,) and x.ndim > 1 < y.ndim and x.shape[-2] * y.shape[-1] >= passes.LARGE:
            return x * y  # an outer product, at which BLAS takes ten times as long
        if self.module is np:
            x, y = _turned_back(x), _turned_back(y)
        return self.module.matmul(x, y)

    # ---- creation from metadata ----
    def zeros_like(self, x: Any) -> Any:
        # NumPy's function takes 1 us longer, and writes the zeros one by one; but it keeps the order of strides
        return self.module.zeros(x.shape, x.dtype) if x.flags.c_contiguous else self.module.zeros_like(x)

    def ones_like(self, x: Any) -> Any:
        return self.module.ones_like(x)

    def zeros(self, *, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.module.zeros(shape, dtype)

    def ones(self, *, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.module.ones(shape, dtype)


def product_of_halves(x: Any, y: Any, bias: Any = None) -> Any:
    """Multiply matrices of bfloat16 by a kernel, and add a bias to rows; None where there is none for them."""
    if x.size < _thresholds.SMALL_MATRIX:
        return None
    return native.product_of_halves(x, y, bias)


def _turned_back(x: Any) -> Any:
    """Copy many small transposed matrices: BLAS takes twice as long with each of them as it lies."""
    if x.ndim < 3 or x.strides[-1] == x.itemsize:
        return x
    if not x.shape[-1] * x.shape[-2] <= _thresholds.SMALL_MATRIX <= x.size:
        return x
    turned = native.turned(x)
    return x.copy("C") if turned is None else turned


@lru_cache(256)
def _triangle_mask(rows: int, columns: int, k: int) -> Any:
    """Mark the lower triangle of a small matrix; kept, because making it costs more than using it."""
    return np.tri(rows, columns, k, bool)


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
    return getattr(value, "vocabulary", None) or cupy_namespace()  # a meta array brings its own
