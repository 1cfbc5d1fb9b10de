"""Reductions. `axis` is a tuple of non-negative axes, never None; `keepdims` says whether they stay."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import SINGLE, is_half
from .._core.primitive import behind, general, linear, vocabulary
from .._core.shown import numel
from .._native.program import NATIVE, formula

LONG = 1 << 16  # elements of a row from which it is worth two kernels, each of which threads share


def _restore(xp, g, axis, keepdims):
    """Give a reduced array its axes back, as length one."""
    if keepdims or not axis:
        return g
    for a in sorted(axis):
        g = xp.expand_dims(g, axis=a)
    return g


def _count(shape, axis):
    return math.prod(shape[a] for a in axis)


# ---- sums ----
FEW = 256  # elements up to which a product with ones takes less time than a reduction


@lru_cache(maxsize=256)
def _ones(length, dtype):
    return np.ones(length, dtype)


def is_small(x, axis):
    """Tell whether `sum_of_few` can sum a raw array."""
    return x.size <= FEW and 0 < x.ndim < 3 and len(axis) == 1 and type(x) is np.ndarray and x.dtype.char in "fd"


def sum_of_few(x, axis):
    """Sum a vector or matrix of few floats along one axis."""
    return (x if axis == x.ndim - 1 else x.T).dot(_ones(x.shape[axis], x.dtype))


@linear(shows={None: "self_sym_sizes", "SumBackward1": "dim keepdim self_sym_sizes"}, batch=behind, dense=True)
def sum(xp, x, *, axis, keepdims):
    return xp.sum(x, axis=axis, keepdims=keepdims)


@sum.vjp("x")
def sum_dx(xp, g, x_shape, axis, keepdims):
    return xp.broadcast_to(_restore(xp, g, axis, keepdims), shape=x_shape)


@linear(batch=behind, dense=True)
def mean(xp, x, *, axis, keepdims):
    # an empty mean is 0 / 0 = nan; the count is a Python number, so float32 stays what it is
    count = _count(x.shape, axis)
    if is_half(x.dtype):
        return (xp.sum(x, axis=axis, keepdims=keepdims, dtype=SINGLE) / count).astype(x.dtype)
    return xp.sum(x, axis=axis, keepdims=keepdims) / count


mean.shows("self_sym_sizes", self_sym_numel=numel)
mean.shows("dim keepdim self_sym_sizes", "MeanBackward1", self_sym_numel=numel)


@mean.vjp("x")
def mean_dx(xp, g, x_shape, axis, keepdims):
    count = _count(x_shape, axis)
    share = _restore(xp, g, axis, keepdims)
    return xp.copy(xp.broadcast_to(_shared(xp, share, count) if count else share, shape=x_shape))  # dense, as torch's


def _shared(xp, g, count):
    """Divide by a number of elements, which half precision may not hold."""
    if g.dtype.itemsize > 2:
        return g / count
    return xp.astype(xp.astype(g, dtype=SINGLE) / count, dtype=g.dtype)


@general(shows="dim keepdim self", batch=behind, dense=True)
def nansum(xp, x, *, axis, keepdims):
    """The sum without NaN."""
    total = xp.sum(x, axis=axis, keepdims=keepdims)
    if total == total if not total.ndim else (total == total).all():
        return total
    return xp.sum(xp.where(xp.isnan(x), x.dtype.type(0), x), axis=axis, keepdims=keepdims)


@nansum.vjp("x")
def nansum_dx(xp, g, x, axis, keepdims):
    return xp.where(xp.isnan(x), 0, _restore(xp, g, axis, keepdims))


@nansum.jvp
def nansum_jvp(xp, t, x, axis, keepdims):
    return xp.sum(xp.where(xp.isnan(x), 0, t), axis=axis, keepdims=keepdims)


# ---- extremes; ties share the gradient evenly, as torch's ----
def amax_dx(xp, g, x, out, axis, keepdims):
    """Share a gradient among the elements that equal the result; NaN equals nothing and turns all of them into NaN, as in torch."""
    chosen = xp.equal(x, _restore(xp, out, axis, keepdims))
    count = xp.sum(xp.astype(chosen, dtype=g.dtype), axis=axis, keepdims=True)
    share = _restore(xp, g, axis, keepdims) / count
    return xp.where(chosen, share, share * 0)


def amax_jvp(xp, t, x, out, axis, keepdims):
    """Average the tangents of the elements that equal the result."""
    chosen = xp.equal(x, _restore(xp, out, axis, keepdims))
    count = xp.sum(xp.astype(chosen, dtype=t.dtype), axis=axis, keepdims=keepdims)
    return xp.sum(xp.where(chosen, t, 0), axis=axis, keepdims=keepdims) / count


def shares(run, name, torch, *, nan_wins=True):
    """Declare a reduction to one of the elements, whose gradient goes to NaN if that is the result."""
    primitive = general(run, name=name, torch=torch)
    primitive.shows("result self")

    @primitive.vjp("x")
    def dx(xp, g, x, out, axis, keepdims):
        full = _restore(xp, out, axis, keepdims)
        missing = xp.isnan(x) if nan_wins else xp.logical_and(xp.isnan(x), xp.isnan(full))
        chosen = xp.logical_or(xp.equal(x, full), missing)
        count = xp.sum(xp.astype(chosen, dtype=g.dtype), axis=axis, keepdims=True)
        return xp.where(chosen, _restore(xp, g, axis, keepdims) / count, 0)

    primitive.jvp(amax_jvp)
    primitive.batch(behind)
    return primitive


def extreme_of(xp, name, x, axis, keepdims):
    """Reduce a raw array to its largest or smallest elements; for few of them NumPy's own way from the position is quicker."""
    if x.size >= NATIVE:
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)
    if len(axis) == x.ndim and not keepdims and x.size:
        return x.reshape(-1)[getattr(x, f"arg{name}")()] if x.flags.c_contiguous else getattr(x, name)()
    if xp.module is np:
        return UFUNCS[name].reduce(x, axis, None, None, keepdims)
    return getattr(x, name)(axis, keepdims=keepdims)


UFUNCS = {"max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and}


def _extremes(name):
    """Declare amax, and max of all elements, or the smallest."""

    def run(xp, x, *, axis, keepdims):
        return extreme_of(xp, name, x, axis, keepdims)

    primitive = general(run, name=name, torch=f"a{name}", dense=True)
    primitive.shows("dim keepdim result self")
    primitive.vjp("x")(amax_dx)
    primitive.jvp(amax_jvp)
    primitive.batch(behind)
    return primitive, shares(run, f"{name}_of_all", name)


max_, max_of_all = _extremes("max")
min_, min_of_all = _extremes("min")
max_of_all.dense = min_of_all.dense = True


@general(outputs=2, batch=behind, dense=True)
def aminmax(xp, x, *, axis, keepdims):
    return extreme_of(xp, "min", x, axis, keepdims), extreme_of(xp, "max", x, axis, keepdims)


@aminmax.vjp("x")
def aminmax_dx(xp, g, x, out, axis, keepdims):
    total = None
    for part, extreme in zip(g, out, strict=True):
        if part is not None:
            share = amax_dx(xp, part, x, extreme, axis, keepdims)
            total = share if total is None else total + share
    return total


@aminmax.jvp
def aminmax_jvp(xp, t, x, out, axis, keepdims):
    return tuple(amax_jvp(xp, t, x, extreme, axis, keepdims) for extreme in out)


# ---- products ----
@general(shows={None: "self", "ProdBackward1": "dim keepdim self"}, batch=behind, dense=True, widens=True)
def prod(xp, x, *, axis, keepdims):
    if xp.module is np and x.size < NATIVE and not is_half(x.dtype):
        return np.multiply.reduce(x, axis, x.dtype, None, keepdims)
    return xp.prod(x, axis=axis, keepdims=keepdims)


@prod.vjp("x")
def prod_dx(xp, g, x, axis, keepdims):
    return xp.prod_back(g, x, axis=axis, keepdims=keepdims)


@prod.jvp
def prod_jvp(xp, t, x, axis, keepdims):
    return xp.sum(t * _others(xp, x, axis)[0], axis=axis, keepdims=keepdims)


@general(batch=behind)
def prod_back(xp, g, x, *, axis, keepdims):
    """The gradient of a product: for each factor the product of the others."""
    if x.size and x.dtype.kind in "fc" and not is_half(x.dtype) and xp.module.all(x):
        total = g * xp.conj(xp.prod(x, axis=axis, keepdims=keepdims))
        return _restore(xp, total, axis, keepdims) / xp.conj(x)
    return _restore(xp, g, axis, keepdims) * xp.conj(_others(xp, x, axis)[0])


@prod_back.vjp("g")
def prod_back_dg(xp, g, x, axis, keepdims):
    return xp.sum(g * _others(xp, x, axis)[0], axis=axis, keepdims=keepdims)


@prod_back.vjp("x")
def prod_back_dx(xp, gradient, g, x, axis, keepdims):
    # the matrix of second derivatives of a product is symmetric: its transpose along a vector is its tangent along it
    weight = gradient * xp.conj(_restore(xp, g, axis, keepdims))
    return xp.conj(_others(xp, x, axis, weight)[1])


@prod_back.jvp
def prod_back_jvp(xp, t, g, x, axis, keepdims):
    tg, tx = t
    others, moved = _others(xp, x, axis, tx)
    total = None if tg is None else _restore(xp, tg, axis, keepdims) * xp.conj(others)
    if tx is not None:
        part = _restore(xp, g, axis, keepdims) * xp.conj(moved)
        total = part if total is None else total + part
    return total


def _others(xp, x, axis, t=None):
    """Return, for each factor, the product of the others along axes, and its tangent if x moves along t."""
    shape = tuple(x.shape)
    rest = tuple(a for a in range(len(shape)) if a not in axis)
    order = (*rest, *axis)
    count = _count(shape, axis)
    back = [0] * len(order)
    for i, a in enumerate(order):
        back[a] = i

    def flat(v):
        return xp.reshape(xp.permute_dims(v, axes=order), shape=(*[shape[a] for a in rest], count))

    def unflat(v):
        if v is None:
            return None
        return xp.permute_dims(xp.reshape(v, shape=tuple(shape[a] for a in order)), axes=tuple(back))

    found, moved = _products_of_the_others(xp, flat(x), None if t is None else flat(t))
    return unflat(found), unflat(moved)


def _products_of_the_others(xp, x, t):
    """Return, for each element of the last axis, the product of the others, by a tree of pairs; and its tangent.

    No division: right for any number of zeros, and differentiable there.
    """
    *lead, n = x.shape
    if n < 2:
        return xp.ones_like(x), None if t is None else xp.zeros_like(t)
    every = (slice(None),) * len(lead)
    if n % 2:
        edge = xp.getitem(x, index=(*every, slice(0, 1)))
        x = xp.concat(x, xp.ones_like(edge), axis=len(lead))
        t = None if t is None else xp.concat(t, xp.zeros_like(edge), axis=len(lead))

    def halves(v):
        return tuple(xp.getitem(v, index=(*every, slice(k, None, 2))) for k in (0, 1))

    def joined(left, right):
        paired = xp.reshape(xp.stack(left, right, axis=len(lead) + 1), shape=(*lead, n + n % 2))
        return xp.getitem(paired, index=(*every, slice(0, n))) if n % 2 else paired

    left, right = halves(x)
    if t is None:
        others, _ = _products_of_the_others(xp, left * right, None)
        return joined(others * right, others * left), None
    t_left, t_right = halves(t)
    others, moved = _products_of_the_others(xp, left * right, t_left * right + left * t_right)
    tangent = joined(moved * right + others * t_right, moved * left + others * t_left)
    return joined(others * right, others * left), tangent


# ---- exponentials ----
@general(shows="dim keepdim result self", batch=behind, dense=True, widens=True)
def logsumexp(xp, x, *, axis, keepdims):
    """log(sum(exp(x))) along axis, shifted by the maximum so that exp cannot overflow."""
    if not x.size:
        return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
    if x.dtype.kind == "c":
        total = _log_of_powers(xp, x, xp.max(x.real, axis=axis, keepdims=True), axis)
    elif _count(x.shape, axis) > LONG:  # all of them by several threads
        total = _log_of_powers(xp, x, xp.max(x, axis=axis, keepdims=True), axis)
    else:
        top, powers = powers_of(xp, x, axis=axis)
        total = xp.log(powers) + top
    return total if keepdims else xp.squeeze(total, axis=axis)


def _finite(xp, top):
    return xp.where(xp.isfinite(top), top, top.dtype.type(0))  # all -inf: shift by 0, the log gives -inf


def _log_of_powers(xp, x, top, axis):
    top = _finite(xp, top)
    return xp.log(shifted_powers(xp, x, top, axis=axis)) + top


@formula(wide=(0,))
def shifted_powers(xp, x, top, *, axis):
    """Sum exp(x - top) along axes."""
    return xp.sum(xp.exp(x - top), axis=axis, keepdims=True)


@formula(wide=(0, 1))
def powers_of(xp, x, *, axis):
    """Return the largest elements along axes, 0 where that is infinite, and the sums of exp(x - it)."""
    top = _finite(xp, xp.max(x, axis=axis, keepdims=True))
    return top, xp.sum(xp.exp(x - top), axis=axis, keepdims=True)


@logsumexp.vjp("x")
def logsumexp_dx(xp, g, x, out, axis, keepdims):
    return _restore(xp, g, axis, keepdims) * xp.conj(xp.exp(x - _restore(xp, out, axis, keepdims)))


@logsumexp.jvp
def logsumexp_jvp(xp, t, x, out, axis, keepdims):
    return xp.sum(t * xp.exp(x - _restore(xp, out, axis, keepdims)), axis=axis, keepdims=keepdims)


# ---- no derivative: positions and truth ----
def _without_derivative(run, name, **options):
    primitive = general(run, name=name, differentiable=False, **options)

    @primitive.batch
    def batch(call, args, batched, size, *, axis, keepdims):
        (x,) = args
        if axis is None:
            flat = vocabulary.reshape(x, shape=(size, math.prod(x.shape[1:])))
            return call(flat, axis=1, keepdims=False)
        return behind(call, args, batched, size, axis=axis, keepdims=keepdims)

    return primitive


def _position(name):
    def run(xp, x, *, axis, keepdims):
        return getattr(x, name)(axis) if not keepdims else getattr(x, name)(axis, keepdims=True)

    return _without_derivative(run, name, dense=True)


argmax, argmin = _position("argmax"), _position("argmin")


def _truth(name):
    def run(xp, x, *, axis, keepdims):
        if x.dtype.kind == "b" and len(axis) == x.ndim and x.size and not keepdims:
            at = x.argmax() if name == "any" else x.argmin()  # stops at the first
            return x.reshape(-1)[at] if x.flags.c_contiguous else getattr(x, name)()
        if xp.module is np and x.size < NATIVE:
            return UFUNCS[name].reduce(x, axis, bool, None, keepdims)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return _without_derivative(run, name, dense=True)


any_, all_ = _truth("any"), _truth("all")


def _count_nonzero(xp, x, *, axis, keepdims):
    if x.size >= NATIVE and x.dtype.char != "?":
        return _nonzeros(xp, x, axis=axis).reshape([n for k, n in enumerate(x.shape) if k not in axis])
    if len(axis) == x.ndim:
        return xp.module.asarray(xp.module.count_nonzero(x), "int64")
    return xp.module.count_nonzero(x, axis=axis)


@formula
def _nonzeros(xp, x, *, axis):
    return xp.sum(xp.astype(x != 0, dtype=np.int64), axis=axis, keepdims=True)


count_nonzero = _without_derivative(_count_nonzero, "count_nonzero")


def _xor_sum(xp, x, *, axis, keepdims):
    """Join the bits of all elements by exclusive or: floats as float64, integers as int64."""
    bits = x.astype(np.float64 if x.dtype.kind in "fV" else np.int64).view(np.uint64)
    return xp.module.bitwise_xor.reduce(bits, axis=axis, keepdims=keepdims)


xor_sum = _without_derivative(_xor_sum, "xor_sum")
