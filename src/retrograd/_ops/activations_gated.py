"""Gated linear units: one half of a dimension times the sigmoid of the other."""

from __future__ import annotations

from .._core.fused import fused


def _halves(x, axis):
    middle = x.shape[axis] // 2
    lead = (slice(None),) * axis
    return x[(*lead, slice(middle))], x[(*lead, slice(middle, None))]


@fused("GluBackward0", reads_result=False, shows="dim=axis self")
def glu(xp, x, *, axis):
    """Compute a sigmoid(b) of the two halves of an axis."""
    first, second = _halves(x, axis)
    gate = xp.sigmoid(second)
    return first * gate, gate


@glu.backward
def glu_backward(xp, g, needed, gate, x, *, axis):
    first, _ = _halves(x, axis)
    out = xp.module.empty(x.shape, x.dtype)
    to_first, to_second = _halves(out, axis)
    xp.module.multiply(g, gate, out=to_first)
    xp.module.subtract(1, gate, out=to_second)
    to_second *= to_first
    to_second *= first
    return (out,)


@glu.decomposition
def glu_parts(xp, x, *, axis):
    middle = x.shape[axis] // 2
    lead = (slice(None),) * axis
    first = xp.getitem(x, index=(*lead, slice(0, middle)))
    second = xp.getitem(x, index=(*lead, slice(middle, 2 * middle)))
    return first * xp.sigmoid(second)
