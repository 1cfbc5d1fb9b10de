"""Reductions. `axis` is a tuple of non-negative axes, never None; `keepdims` says whether they stay."""

from __future__ import annotations

from .._core.primitive import general, linear, vocabulary


def _restore(xp, g, axis, keepdims):
    """Give a reduced array its axes back, as length one."""
    if keepdims or not axis:
        return g
    for a in sorted(axis):
        g = xp.expand_dims(g, axis=a)
    return g


def _shifted(axis):
    return tuple(a + 1 for a in axis)


@linear
def sum(xp, x, *, axis, keepdims):
    return xp.sum(x, axis=axis, keepdims=keepdims)


@sum.vjp("x")
def sum_dx(xp, g, x_shape, axis, keepdims):
    return xp.broadcast_to(_restore(xp, g, axis, keepdims), shape=x_shape)


@sum.batch
def sum_batch(call, args, batched, size, *, axis, keepdims):
    return call(args[0], axis=_shifted(axis), keepdims=keepdims)


@linear
def mean(xp, x, *, axis, keepdims):
    count = 1
    for a in axis:
        count *= x.shape[a]
    total = xp.sum(x, axis=axis, keepdims=keepdims)
    # an empty mean is 0 / 0 = nan
    return (total / xp.module.asarray(count, dtype=total.real.dtype)).astype(x.dtype, copy=False)


@mean.vjp("x")
def mean_dx(xp, g, x_shape, axis, keepdims):
    count = 1
    for a in axis:
        count *= x_shape[a]
    spread = xp.broadcast_to(_restore(xp, g, axis, keepdims), shape=x_shape)
    return spread / count if count else spread


mean.batch(lambda call, args, batched, size, *, axis, keepdims: call(args[0], axis=_shifted(axis), keepdims=keepdims))


def _extreme(name, torch):
    """Declare amax or amin: ties share the gradient evenly, as torch's."""

    def run(xp, x, *, axis, keepdims):
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    run.__name__ = name
    primitive = general(run, torch=torch)

    def chosen_by(xp, x, out, axis, keepdims):
        out = _restore(xp, out, axis, keepdims)
        # a NaN wins, but equals nothing
        return xp.logical_or(xp.equal(x, out), xp.logical_and(xp.isnan(x), xp.isnan(out)))

    @primitive.vjp("x")
    def dx(xp, g, x, out, axis, keepdims):
        chosen = chosen_by(xp, x, out, axis, keepdims)
        count = xp.sum(xp.astype(chosen, dtype=g.dtype), axis=axis, keepdims=True)
        return xp.where(chosen, _restore(xp, g, axis, keepdims) / count, 0)

    @primitive.jvp
    def jvp(xp, t, x, out, axis, keepdims):
        chosen = chosen_by(xp, x, out, axis, keepdims)
        count = xp.sum(xp.astype(chosen, dtype=t.dtype), axis=axis, keepdims=keepdims)
        return xp.sum(xp.where(chosen, t, 0), axis=axis, keepdims=keepdims) / count

    primitive.batch(
        lambda call, args, batched, size, *, axis, keepdims: call(args[0], axis=_shifted(axis), keepdims=keepdims)
    )
    return primitive


max_ = _extreme("max", "amax")
min_ = _extreme("min", "amin")


@general
def prod(xp, x, *, axis, keepdims):
    return xp.prod(x, axis=axis, keepdims=keepdims)


def _products_of_the_others(xp, x):
    """Return, for each element of the last axis, the product of the others, by a tree of pairs.

    No division: right for any number of zeros, and differentiable there.
    """
    *lead, n = x.shape
    if n < 2:
        return xp.ones_like(x)
    every = (slice(None),) * len(lead)
    if n % 2:
        x = xp.concat(x, xp.ones_like(xp.getitem(x, index=(*every, slice(0, 1)))), axis=len(lead))
    left, right = (xp.getitem(x, index=(*every, slice(k, None, 2))) for k in (0, 1))
    others = _products_of_the_others(xp, left * right)
    paired = xp.stack(others * right, others * left, axis=len(lead) + 1)
    flat = xp.reshape(paired, shape=(*lead, n + n % 2))
    return xp.getitem(flat, index=(*every, slice(0, n))) if n % 2 else flat


@prod.vjp("x")
def prod_dx(xp, g, x, axis, keepdims):
    return _restore(xp, g, axis, keepdims) * xp.conj(_prod_factors(xp, x, axis))


def _prod_factors(xp, x, axis):
    shape = tuple(x.shape)
    rest = tuple(a for a in range(len(shape)) if a not in axis)
    order = (*rest, *axis)
    count = 1
    for a in axis:
        count *= shape[a]
    flat = xp.reshape(xp.permute_dims(x, axes=order), shape=(*[shape[a] for a in rest], count))
    factors = xp.reshape(_products_of_the_others(xp, flat), shape=tuple(shape[a] for a in order))
    back = [0] * len(order)
    for i, a in enumerate(order):
        back[a] = i
    return xp.permute_dims(factors, axes=tuple(back))


@prod.jvp
def prod_jvp(xp, t, x, axis, keepdims):
    return xp.sum(t * _prod_factors(xp, x, axis), axis=axis, keepdims=keepdims)


prod.batch(lambda call, args, batched, size, *, axis, keepdims: call(args[0], axis=_shifted(axis), keepdims=keepdims))


@general
def logsumexp(xp, x, *, axis, keepdims):
    """log(sum(exp(x))) along axis, shifted by the maximum so that exp cannot overflow."""
    if not x.size:
        return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
    top = xp.max(xp.real(x), axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)  # all -inf: shift by 0, the log gives -inf
    total = (xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top).astype(x.dtype, copy=False)
    return total if keepdims else xp.squeeze(total, axis=axis)


@logsumexp.vjp("x")
def logsumexp_dx(xp, g, x, out, axis, keepdims):
    return _restore(xp, g, axis, keepdims) * xp.conj(xp.exp(x - _restore(xp, out, axis, keepdims)))


@logsumexp.jvp
def logsumexp_jvp(xp, t, x, out, axis, keepdims):
    return xp.sum(t * xp.exp(x - _restore(xp, out, axis, keepdims)), axis=axis, keepdims=keepdims)


logsumexp.batch(
    lambda call, args, batched, size, *, axis, keepdims: call(args[0], axis=_shifted(axis), keepdims=keepdims)
)


def _along(call, args, batched, size, *, axis):
    """Batch an operation along one axis; numbers have none, so each becomes a row of one."""
    (x,) = args
    if x.ndim > 1:
        return call(x, axis=axis + 1)
    return vocabulary.reshape(call(vocabulary.reshape(x, shape=(size, 1)), axis=1), shape=(size,))


def _summed(xp, x, axis):
    """Sum along an axis, which a number has not."""
    return xp.sum(x, axis=(axis,) if x.ndim else (), keepdims=True)


@general
def softmax(xp, x, *, axis):
    """exp(x) / sum(exp(x)) along one axis, shifted by the maximum."""
    if not x.size:
        return x.copy()
    shifted = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return shifted / xp.sum(shifted, axis=axis, keepdims=True)


@softmax.vjp("x")
def softmax_dx(xp, g, out, axis):
    weighted = g * out
    return weighted - out * _summed(xp, weighted, axis)


softmax.jvp(lambda xp, t, out, axis: softmax_dx(xp, t, out, axis))  # the Jacobian is symmetric
softmax.batch(_along)


@general
def log_softmax(xp, x, *, axis):
    """x - logsumexp(x) along one axis."""
    if not x.size:
        return x.copy()
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


@log_softmax.vjp("x")
def log_softmax_dx(xp, g, out, axis):
    return g - xp.exp(out) * _summed(xp, g, axis)


@log_softmax.jvp
def log_softmax_jvp(xp, t, out, axis):
    return t - _summed(xp, xp.exp(out) * t, axis)


log_softmax.batch(_along)


@linear
def cumsum(xp, x, *, axis):
    return xp.cumsum(x, axis=axis) if x.ndim else x.copy()


@cumsum.vjp("x")
def cumsum_dx(xp, g, x_shape, axis):
    if not x_shape:
        return g
    return xp.flip(xp.cumsum(xp.flip(g, axis=(axis,)), axis=axis), axis=(axis,))


@cumsum.batch
def cumsum_batch(call, args, batched, size, *, axis):
    return call(args[0], axis=axis + 1) if args[0].ndim > 1 else args[0]


# ---- no derivative: positions and truth ----
def _positions(name):
    def run(xp, x, *, axis, keepdims):
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    run.__name__ = name
    primitive = general(run, differentiable=False)

    @primitive.batch
    def batch(call, args, batched, size, *, axis, keepdims):
        x = args[0]
        if axis is None:
            flat = x.reshape(size, -1) if hasattr(x, "reshape") else xp_reshape(x, size)
            out = call(flat, axis=1, keepdims=False)
            return out
        shifted = tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1
        return call(x, axis=shifted, keepdims=keepdims)

    return primitive


def xp_reshape(x, size):
    count = 1
    for n in x.shape[1:]:
        count *= n
    return vocabulary.reshape(x, shape=(size, count))


argmax = _positions("argmax")
argmin = _positions("argmin")
any_ = _positions("any")
all_ = _positions("all")
