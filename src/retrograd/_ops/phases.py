"""Eigenvectors and singular vectors of complex matrices are known up to a phase: a loss must not depend on it."""

from __future__ import annotations

from contextvars import ContextVar

from .._core.primitive import general, unmoved

TOLERANCE = 1e-2  # torch's
# Whether a rule is given a part of a gradient: then only the sum of all parts does not depend on the phase.
of_a_part: ContextVar[bool] = ContextVar("of_a_part", default=False)


@general(differentiable=False, batch=unmoved)
def refuse_phase(xp, x, *, message):
    """Raise if a diagonal of `x`, the products of vectors with their gradients, is not real."""
    if x.dtype.kind == "c" and x.size and not xp.is_meta and not of_a_part.get():
        along_phase = xp.module.diagonal(x, 0, -2, -1).imag
        if not xp.module.all(xp.module.abs(along_phase) <= TOLERANCE):
            raise RuntimeError(message)
    return x
