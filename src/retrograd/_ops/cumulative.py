"""Running sums, products, extremes and log-sums along one axis.

Note [Linear recurrences]
The derivatives of running products and of running log-sums are recurrences s[i] = b[i] + a[i] * s[i-1]. `recurrence` is
that, and its own derivative is another one. So no rule divides by an element, which may be zero, or takes the
exponential of a large number.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import WIDER, is_half
from .._core.primitive import behind, general, linear, vocabulary
from .._native.program import NATIVE
from .order import chooses, dense, has_nan, number

CHUNKED_FROM = 64  # steps from which a recurrence is cut into chunks that run side by side
ENOUGH = 256  # rows that already run side by side


def along_one_axis(call, args, batched, size, *, axis):
    """Batch an operation along one axis; numbers have none, so each becomes a row of one."""
    if args[0].ndim > 1:
        return call(*args, axis=axis + 1)
    rows = call(*[vocabulary.reshape(x, shape=(size, 1)) for x in args], axis=1)
    return vocabulary.reshape(rows, shape=(size,))


def _accumulated(xp, name, x, axis):
    """Run a function of two numbers along an axis."""
    module = xp.module
    if module is np:
        return getattr(np, name).accumulate(x, axis=axis)
    out = x.copy()  # CuPy cannot: each step joins stretches twice as long
    along, reach = module.moveaxis(out, axis, 0), 1
    while reach < len(along):
        along[reach:] = getattr(module, name)(along[reach:], along[:-reach])
        reach *= 2
    return out


def _by_kernel(kind, arrays, axis, reverse=False):
    """Run along an axis of large arrays by a kernel; None where there is none."""
    if arrays[0].size < NATIVE:
        return None
    from .._native.scans import scanned

    return scanned(kind, arrays, axis, reverse)


# ---- sums ----
def _sums(xp, x, axis, reverse):
    """Sum up along an axis of a raw array, from the end if `reverse`."""
    if not x.ndim:
        return x.copy()
    if x.size >= NATIVE and (found := _by_kernel("sum", [x], axis, reverse)) is not None:
        return found[0]
    if not reverse:
        return xp.cumsum(x, axis=axis)
    backwards = (*(slice(None),) * axis, slice(None, None, -1))
    return xp.module.ascontiguousarray(xp.cumsum(x[backwards], axis=axis)[backwards])


@linear(shows="dim", dense=True)
def cumsum(xp, x, *, axis):
    return _sums(xp, x, axis, reverse=False)


@cumsum.vjp("x")
def cumsum_dx(xp, g, x_shape, axis):
    return xp.reverse_cumsum(g, axis=axis) if x_shape else g


cumsum.batch(along_one_axis)


@linear(torch="cumsum", shows="dim")
def reverse_cumsum(xp, x, *, axis):
    """The sum of each element and those after it."""
    return _sums(xp, x, axis, reverse=True)


reverse_cumsum.vjp("x")(lambda xp, g, axis: xp.cumsum(g, axis=axis))
reverse_cumsum.batch(along_one_axis)


# ---- linear recurrences ----
def _steps(xp, a, b, products=None):
    """Run s[i] = b[i] + a[i] * s[i-1] along the first axis, step by step; leave the running products of a in `products`."""
    module = xp.module
    s = module.array(b, order="C")
    added = module.empty_like(s[:1])[0]
    for i in range(1, len(s)):
        row = s[i]
        module.multiply(a[i], s[i - 1], out=added)
        row += added
        if products is not None:
            products[i] *= products[i - 1]
    return s


def _chunks(xp, a, b):
    """Run a recurrence along the first axis as chunks side by side, then join them."""
    count = len(b)
    module = xp.module
    if count < CHUNKED_FROM or b.size > count * ENOUGH:
        return _steps(xp, module.ascontiguousarray(a), b)
    length = int(count**0.5)
    chunks = -(-count // length)
    rest = b.shape[1]
    padded = [module.zeros((chunks * length, rest), b.dtype) for _ in range(2)]
    for whole, part in zip(padded, (a, b), strict=True):
        whole[:count] = part
    # the steps of all chunks first
    a, b = (module.ascontiguousarray(module.moveaxis(p.reshape(chunks, length, rest), 1, 0)) for p in padded)
    carried = a.copy()
    alone = _steps(xp, a, b, carried)
    ends = _chunks(xp, carried[-1], alone[-1])  # rows of chunks: what each chunk hands to the next
    alone[:, 1:] += carried[:, 1:] * ends[:-1]
    return module.moveaxis(alone, 0, 1).reshape(chunks * length, rest)[:count]


@general(batch=behind)
def recurrence(xp, a, b, *, axis, reverse):
    """s[i] = b[i] + a[i] * s[i-1] along an axis, or + a[i] * s[i+1] in reverse. See Note [Linear recurrences]."""
    module = xp.module
    dtype = np.result_type(a.dtype, b.dtype)
    found = _by_kernel("recurrence", [a, b], axis, reverse) if a.shape == b.shape and b.dtype == dtype else None
    if found is not None:
        return found[0]
    wide = np.dtype(np.float32) if is_half(dtype) else dtype
    a, b = (module.moveaxis(v.astype(wide, copy=False), axis, 0) for v in (a, b))
    shape = b.shape
    a, b = (v.reshape(len(v), -1) for v in (a, b))
    if reverse:
        a, b = a[::-1], b[::-1]
    s = _chunks(xp, a, b)
    s = module.moveaxis((s[::-1] if reverse else s).reshape(shape), 0, axis)
    return module.ascontiguousarray(s).astype(dtype, copy=False)


def shifted(xp, x, axis, fill, reverse):
    """Move elements one place on along an axis, back in reverse; `fill` comes in, or the edge again if that is None."""
    size = x.shape[axis]
    before = (slice(None),) * axis
    new = xp.getitem(x, index=(*before, slice(size - 1, size) if reverse else slice(0, 1)))
    if fill is not None:
        new = xp.ones_like(new) if fill else xp.zeros_like(new)
    if reverse:
        return xp.concat(xp.getitem(x, index=(*before, slice(1, size))), new, axis=axis)
    return xp.concat(new, xp.getitem(x, index=(*before, slice(0, size - 1))), axis=axis)


@recurrence.vjp("a", "b")
def recurrence_back(xp, g, a, out, axis, reverse):
    # s[i] reaches s[i+1] by the factor a[i+1]
    through = xp.recurrence(shifted(xp, xp.conj(a), axis, 0, not reverse), g, axis=axis, reverse=not reverse)
    return through * xp.conj(shifted(xp, out, axis, 0, reverse)), through


@recurrence.jvp
def recurrence_jvp(xp, t, a, out, axis, reverse):
    ta, tb = t
    if ta is not None:
        added = ta * shifted(xp, out, axis, 0, reverse)
        tb = added if tb is None else tb + added
    return xp.recurrence(a, tb, axis=axis, reverse=reverse)


# ---- products ----
@general(shows="dim result self", dense=True, widens=True)
def cumprod(xp, x, *, axis):
    found = _by_kernel("prod", [x], axis)
    if found is not None:
        return found[0]
    return x.cumprod(axis, WIDER.get(x.dtype.char, x.dtype)).astype(x.dtype, copy=False) if x.ndim else x.copy()


@cumprod.vjp("x")
def cumprod_dx(xp, g, x, out, axis):
    if not x.shape or not x.shape[axis]:
        return g
    # x[k] is a factor of out[i] for i >= k: the product before it, times what the later factors make of the gradients
    later = xp.recurrence(shifted(xp, xp.conj(x), axis, 0, True), g, axis=axis, reverse=True)
    slope = xp.conj(shifted(xp, out, axis, 1, False)) * later
    return xp.where(xp.isnan(x), x, slope)  # what is NaN stays so, as if it were divided by


@cumprod.jvp
def cumprod_jvp(xp, t, x, out, axis):
    if not x.shape or not x.shape[axis]:
        return t
    return xp.recurrence(x, t * shifted(xp, out, axis, 1, False), axis=axis, reverse=False)


cumprod.batch(along_one_axis)


# ---- log-sums of exponentials ----
def _add_logs(xp, x, y):
    """log(exp(x) + exp(y)) of complex numbers."""
    module = xp.module
    smaller = x.real < y.real
    low, high = module.where(smaller, x, y), module.where(smaller, y, x)
    # next to an infinity the other does not count, nor does its angle
    return module.where(module.isinf(high.real), high, high + module.log1p(module.exp(low - high)))


@general(shows="dim result self", dense=True, widens=True)
def logcumsumexp(xp, x, *, axis):
    if not x.ndim or not x.size:
        return x.copy()
    out = x.astype(WIDER.get(x.dtype.char, x.dtype))
    if x.dtype.kind != "c":
        return _accumulated(xp, "logaddexp", out, axis).astype(x.dtype, copy=False)
    steps = xp.module.moveaxis(out, axis, 0)
    for i in range(1, len(steps)):
        steps[i] = _add_logs(xp, steps[i - 1], steps[i])
    return out.astype(x.dtype, copy=False)


def _fading(xp, out, axis, reverse):
    """exp of what the log-sum grows by from each place to the next (from the one before, unless in reverse): at most 1."""
    other = shifted(xp, out, axis, None, reverse)  # no growth at the edge
    grown = out - other if reverse else other - out
    # from infinity to infinity it does not grow
    return xp.exp(xp.where(xp.logical_and(xp.isinf(out), xp.equal(out, other)), 0, grown))


@logcumsumexp.vjp("x")
def logcumsumexp_dx(xp, g, x, out, axis):
    if not x.shape or not x.shape[axis]:
        return g
    later = xp.recurrence(xp.conj(_fading(xp, out, axis, True)), g, axis=axis, reverse=True)
    return later * xp.conj(xp.exp(x - out))


@logcumsumexp.jvp
def logcumsumexp_jvp(xp, t, x, out, axis):
    if not x.shape or not x.shape[axis]:
        return t
    return xp.recurrence(_fading(xp, out, axis, False), t * xp.exp(x - out), axis=axis, reverse=False)


logcumsumexp.batch(along_one_axis)


# ---- extremes ----
def _running(name):
    def run(xp, x, *, axis):
        if not x.ndim:
            return number(xp, x)
        found = _by_kernel(name, [x], axis)
        if found is not None:
            return tuple(found)
        module = xp.module
        best = _accumulated(xp, f"{name}imum", x, axis)
        new = x == best  # of equals the last
        if x.dtype.kind in "fV" and has_nan(x):
            new |= module.isnan(x)  # a NaN is taken at once, and only another NaN takes its place
        return dense(best, _accumulated(xp, "maximum", new * _places(module, x.shape[axis], x.ndim - axis - 1), axis))

    return run


@lru_cache(maxsize=64)
def _places(module, length, behind):
    """Number the elements of an axis that has others behind it."""
    return module.arange(length).reshape((length,) + (1,) * behind)


cummax = chooses(_running("max"), "cummax", "cummax", reduces=False, repeats=True)
cummin = chooses(_running("min"), "cummin", "cummin", reduces=False, repeats=True)
