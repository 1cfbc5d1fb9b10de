"""What NumPy's functions make of arrays without elements: their shapes and dtypes. See Note [Meta arrays]."""

from __future__ import annotations

from collections.abc import Callable
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


# ---- facts ----
@rule_for(np.shape)
def _shape(a: Any) -> Any:
    return a.shape


@rule_for(np.ndim)
def _ndim(a: Any) -> Any:
    return a.ndim


@rule_for(np.size)
def _size(a: Any, axis: Any = None) -> Any:
    return a.size if axis is None else a.shape[axis]


@rule_for(np.result_type)
def _result_type(*values: Any) -> Any:
    return _dtype(*values)


@rule_for(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return bool(x.dtype.kind == "c")


@rule_for(np.may_share_memory, np.shares_memory)
def _may_share(a: Any, b: Any, max_work: Any = None) -> bool:
    return bool(type(a) is type(b) and a._start == b._start)


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


@rule_for(np.copyto)
def _copyto(dst: Any, src: Any, casting: Any = None, where: Any = True) -> None:
    dst[...] = src


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


@rule_for(np.full_like)
def _full_like(a: Any, fill_value: Any, *args: Any, **options: Any) -> Any:
    return _empty_like(a, *args, **options)


@rule_for(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return a.copy(order)


def restrided(x: Any, shape: Any = None, strides: Any = None, **_: Any) -> Any:
    """Read the memory that an array would have with another shape and strides."""
    return MetaArray(as_strided(x.standin, shape, strides), x)


@rule_for(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(x: Any, *args: Any, **options: Any) -> Any:
    return MetaArray(np.lib.stride_tricks.sliding_window_view(x.standin, *args, **options), x)


# ---- rearranging ----
@rule_for(np.meshgrid)
def _meshgrid(*axes: Any, indexing: str = "xy", **_: Any) -> Any:
    sizes = [_sizes(one)[0] for one in axes]
    shape = [sizes[1], sizes[0], *sizes[2:]] if indexing == "xy" and len(sizes) > 1 else sizes
    return tuple(fresh(shape, one.dtype) for one in axes)


for _view in (np.diagonal, np.moveaxis, np.rollaxis, np.expand_dims, np.atleast_1d, np.atleast_2d, np.matrix_transpose):

    def _viewed(a: Any, *args: Any, view: Any = _view, **options: Any) -> Any:
        return MetaArray(view(a.standin, *args, **options), a)

    _rules[_view] = _viewed


@rule_for(np.roll, np.tril, np.triu, np.nan_to_num, np.sort, np.fft.fftshift, np.fft.ifftshift, np.partition)
def _same(a: Any, *args: Any, **options: Any) -> Any:
    return fresh(a.shape, a.dtype)


@rule_for(np.tile)
def _tile(a: Any, reps: Any) -> Any:
    reps = (reps,) if hasattr(reps, "__index__") else tuple(reps)
    rank = max(len(reps), a.ndim)
    shape, reps = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - len(reps)) + reps
    return fresh([n * r for n, r in zip(shape, reps, strict=True)], a.dtype)


@rule_for(np.pad)
def _pad(array: Any, pad_width: Any, *args: Any, **options: Any) -> Any:
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    return fresh([n + int(a) + int(b) for n, (a, b) in zip(array.shape, widths, strict=True)], array.dtype)


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


@rule_for(np.put_along_axis, np.put, np.fill_diagonal, np.putmask)
def _nothing(*args: Any, **options: Any) -> None:
    """Write nothing."""


@rule_for(np.argsort)
def _argsort(a: Any, axis: int = -1, **_: Any) -> Any:
    return fresh(a.shape, np.intp)


@rule_for(np.lexsort)
def _lexsort(keys: Any, axis: int = -1) -> Any:
    first = keys[0]
    return fresh(first.shape, np.intp)


@rule_for(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    return fresh(_sizes(v), np.intp)


@rule_for(np.isclose)
def _isclose(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    return fresh(np.broadcast_shapes(_sizes(a), _sizes(b)), bool)


@rule_for(np.isin)
def _isin(element: Any, *args: Any, **options: Any) -> Any:
    return fresh(_sizes(element), bool)


@rule_for(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return a.astype(np.intp).sum(axis=axis, keepdims=keepdims)


@rule_for(np.median, np.nanmedian)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return a.mean(axis=axis, keepdims=keepdims)


@rule_for(np.select)
def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    shape = np.broadcast_shapes(*map(_sizes, (*conditions, *choices, default)))
    return fresh(shape, _dtype(*choices, default))


@rule_for(np.histogram)
def _histogram(a: Any, bins: Any = 10, *args: Any, **options: Any) -> Any:
    count = bins if hasattr(bins, "__index__") else _sizes(bins)[0] - 1
    return fresh((count,), np.intp), fresh((count + 1,), np.float64)


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


@rule_for(np.inner)
def _inner(a: Any, b: Any) -> Any:
    return fresh((*a.shape[:-1], *b.shape[:-1]), _dtype(a, b))


@rule_for(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    return fresh((a.size, b.size), _dtype(a, b))


@rule_for(np.kron)
def _kron(a: Any, b: Any) -> Any:
    rank = max(a.ndim, b.ndim)
    one, two = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    return fresh([n * m for n, m in zip(one, two, strict=True)], _dtype(a, b))


@rule_for(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if hasattr(axes, "__index__"):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = ([n] if hasattr(n, "__index__") else list(n) for n in axes)
    kept = [n for k, n in enumerate(a.shape) if k not in normalised(left, a.ndim)]
    more = [n for k, n in enumerate(b.shape) if k not in normalised(right, b.ndim)]
    return fresh([*kept, *more], _dtype(a, b))


@rule_for(np.einsum)
def _einsum(formula: Any, *operands: Any, out: Any = None, **options: Any) -> Any:
    # One element for each operand of a zero stride shows every size, but NumPy would add them all up: sizes are read off instead.
    formula = formula.replace(" ", "")
    given, arrow, made = formula.partition("->")
    terms = given.split(",")
    sizes: dict[str, int] = {}
    lead: tuple[int, ...] = ()
    for term, x in zip(terms, operands, strict=True):
        before, dots, after = term.partition("...")
        shape = x.shape
        middle = shape[len(before) : len(shape) - len(after)] if dots else ()
        lead = np.broadcast_shapes(lead, middle)
        for letter, n in zip(before + after, shape[: len(before)] + shape[len(shape) - len(after) :], strict=True):
            if sizes.setdefault(letter, n) != n and 1 not in (n, sizes[letter]):
                raise ValueError(f"operand has a mismatch in its dimension {letter}")
            sizes[letter] = max(n, sizes[letter])
    if not arrow:
        letters = given.replace(",", "").replace(".", "")
        made = "..." * bool(lead) + "".join(sorted({one for one in letters if letters.count(one) == 1}))
    before, dots, after = made.partition("...")
    shape = [sizes[one] for one in before] + (list(lead) if dots else []) + [sizes[one] for one in after]
    return fresh(shape, _dtype(*operands))


# ---- linear algebra ----
def _floats(*values: Any) -> Any:
    dtype = _dtype(*values)
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _real(dtype: Any) -> Any:
    return np.zeros(0, dtype).real.dtype


@rule_for(np.linalg.inv, np.linalg.cholesky)
def _square(a: Any, **_: Any) -> Any:
    return fresh(a.shape, _floats(a))


@rule_for(np.linalg.det)
def _det(a: Any) -> Any:
    return fresh(a.shape[:-2], _floats(a))


@rule_for(np.linalg.slogdet)
def _slogdet(a: Any) -> Any:
    return fresh(a.shape[:-2], _floats(a)), fresh(a.shape[:-2], _real(_floats(a)))


@rule_for(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    if b.ndim == 1:
        return fresh(a.shape[:-1], _floats(a, b))
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return fresh((*lead, a.shape[-1], b.shape[-1]), _floats(a, b))


@rule_for(np.linalg.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    *lead, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    r = fresh((*lead, k, n), _floats(a))
    return r if mode == "r" else (fresh((*lead, m, k), _floats(a)), r)


@rule_for(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    *lead, m, n = a.shape
    k, dtype = min(m, n), _floats(a)
    values = fresh((*lead, k), _real(dtype))
    if not compute_uv:
        return values
    return (
        fresh((*lead, m, m if full_matrices else k), dtype),
        values,
        fresh((*lead, n if full_matrices else k, n), dtype),
    )


@rule_for(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    return fresh(a.shape[:-1], _real(_floats(a))), fresh(a.shape, _floats(a))


@rule_for(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    return fresh(a.shape[:-1], _real(_floats(a)))


@rule_for(np.linalg.eig)
def _eig(a: Any) -> Any:
    dtype = np.result_type(_floats(a), np.complex64)
    return fresh(a.shape[:-1], dtype), fresh(a.shape, dtype)


@rule_for(np.linalg.eigvals)
def _eigvals(a: Any) -> Any:
    return fresh(a.shape[:-1], np.result_type(_floats(a), np.complex64))


@rule_for(np.linalg.pinv)
def _pinv(a: Any, *args: Any, **options: Any) -> Any:
    return fresh((*a.shape[:-2], a.shape[-1], a.shape[-2]), _floats(a))


# ---- Fourier ----
def _transforms() -> None:
    def of_one(real_in: bool, real_out: bool) -> Any:
        def rule(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
            at = _axis(axis, a.ndim)
            dtype = np.result_type(a.dtype, np.complex64)
            if real_out:
                count = 2 * (a.shape[at] - 1) if n is None else n
                return fresh(_at(a.shape, at, count), _real(dtype))
            count = a.shape[at] if n is None else n
            return fresh(_at(a.shape, at, count // 2 + 1 if real_in else count), dtype)

        return rule

    def of_many(real_in: bool, real_out: bool, usual: Any) -> Any:
        def rule(a: Any, s: Any = None, axes: Any = usual, norm: Any = None, out: Any = None) -> Any:
            axes = tuple(range(a.ndim))[-len(s) :] if axes is None and s is not None else axes
            axes = tuple(range(a.ndim)) if axes is None else tuple(k % a.ndim for k in axes)
            shape = list(a.shape)
            for k, n in zip(axes, (None,) * len(axes) if s is None else s, strict=True):
                shape[k] = shape[k] if n is None or n == -1 else n
            dtype, last = np.result_type(a.dtype, np.complex64), axes[-1]
            if real_in:
                shape[last] = shape[last] // 2 + 1
            elif real_out:
                shape[last] = 2 * (a.shape[last] - 1) if s is None else s[-1]
            return fresh(shape, _real(dtype) if real_out else dtype)

        return rule

    kinds = {"fft": (False, False), "ifft": (False, False), "rfft": (True, False), "irfft": (False, True)}
    for name, kind in kinds.items():
        _rules[getattr(np.fft, name)] = of_one(*kind)
        _rules[getattr(np.fft, f"{name}n")] = of_many(*kind, None)
        _rules[getattr(np.fft, f"{name}2")] = of_many(*kind, (-2, -1))
    _rules[np.fft.hfft] = of_one(False, True)
    _rules[np.fft.ihfft] = of_one(True, False)


_transforms()
