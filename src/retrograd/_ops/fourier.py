"""Discrete Fourier transforms: linear maps, each with its adjoint.

`norm` is how often a result is divided by the root of the transform's length: 0, 1 or 2 times. `axes` are non-negative.
The adjoint of a transform is the transform in the other direction with the same `norm`.
"""

from __future__ import annotations

import functools

from .._core.primitive import behind, linear

# What NumPy, SciPy and CuPy call "divide by n ** (norm / 2)", in each direction.
_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")


class _Transforms:
    """The three transforms over a module of NumPy's names."""

    def __init__(self, fft):
        self.fft = fft

    def c2c(self, x, axes, forward, norm):
        run, words = (self.fft.fftn, _FORWARD) if forward else (self.fft.ifftn, _BACKWARD)
        return run(x, axes=axes, norm=words[norm])

    def r2c(self, x, axes, forward, norm):
        return self.fft.rfftn(x, axes=axes, norm=_FORWARD[norm])

    def c2r(self, x, axes, size, forward, norm):
        sizes = [x.shape[a] for a in axes[:-1]]
        return self.fft.irfftn(x, (*sizes, size), axes, _BACKWARD[norm])


@functools.cache
def _transforms(module):
    """Return the transforms: SciPy's, several times quicker than NumPy's on long arrays, or CuPy's."""
    if module.__name__ != "numpy":
        return _Transforms(module.fft)
    try:  # what lies beneath scipy.fft: a third of the time of a short transform
        from scipy.fft._pocketfft import pypocketfft

        return pypocketfft
    except ImportError:
        import scipy.fft

        return _Transforms(scipy.fft)


def _laid_out(run, x, axes, free):
    """Run over the last axes of a transposed array, so that memory lies as torch's: transformed dimensions innermost.

    The first `free` of the axes may change places: torch puts those with large strides first.
    """
    if x.ndim == 1:
        return run(x, axes)
    strides = x.strides
    inner = sorted(axes[:free], key=lambda a: -strides[a]) + list(axes[free:])
    outer = sorted((a for a in range(x.ndim) if a not in axes), key=lambda a: -strides[a])
    order = outer + inner
    last = tuple(range(len(outer), x.ndim))
    if order == list(range(x.ndim)):
        return run(x, last)
    back = [0] * x.ndim
    for i, a in enumerate(order):
        back[a] = i
    return run(x.transpose(order), last).transpose(back)


def _scaled_inside(x, axis, size, factor):
    """Copy, multiplying the frequencies that stand for two: all but the first and, of an even size, the last."""
    out = x.copy()
    out[(slice(None),) * axis + (slice(1, (size + 1) // 2),)] *= factor
    return out


def _c2c(xp, x, axes, norm, forward, free):
    c2c = _transforms(xp.module).c2c
    return _laid_out(lambda a, last: c2c(a, last, forward, norm), x, axes, free)


def _c2r(xp, x, axes, norm, size):
    if len(axes) > 1:
        x = _c2c(xp, x, axes[:-1], norm, False, len(axes) - 1)
    c2r = _transforms(xp.module).c2r
    return _laid_out(lambda a, last: c2r(a, last, size, False, norm), x, axes[-1:], 0)


def _r2c(xp, x, axes, norm):
    r2c = _transforms(xp.module).r2c
    return _laid_out(lambda a, last: r2c(a, last, True, norm), x, axes, len(axes) - 1)


@linear(torch="_fft_c2c", batch=behind)
def fft_c2c(xp, x, *, axes, norm, forward):
    """Transform complex numbers over axes."""
    if not axes:
        return x.copy("K") if x.ndim else x.copy()
    return _c2c(xp, x, axes, norm, forward, len(axes))


@fft_c2c.vjp("x")
def fft_c2c_dx(xp, g, axes, norm, forward):
    return xp.fft_c2c(g, axes=axes, norm=norm, forward=not forward)


@linear(torch="_fft_r2c", batch=behind)
def fft_r2c(xp, x, *, axes, norm, onesided):
    """Transform real numbers over axes; `onesided` keeps half of the last, whose other half is the conjugate.

    Both halves are made over one axis only.
    """
    if onesided:
        return _r2c(xp, x, axes, norm)
    return _laid_out(lambda a, last: _both_halves(xp, a, last, norm), x, axes, 0)


def _both_halves(xp, x, axes, norm):
    """Transform real numbers over the last axis, and mirror the half: SciPy's own way turns 0j into -0j."""
    half = _transforms(xp.module).r2c(x, axes, True, norm)
    size, kept = x.shape[-1], half.shape[-1]
    out = xp.module.empty(x.shape, half.dtype)
    out[..., :kept] = half
    xp.module.conj(half[..., size - kept : 0 : -1], out=out[..., kept:])
    return out


@fft_r2c.vjp("x")
def fft_r2c_dx(xp, g, x_shape, axes, norm, onesided):
    if onesided:
        return xp.fft_r2c_adjoint(g, axes=axes, norm=norm, size=x_shape[axes[-1]])
    return xp.real(xp.fft_c2c(g, axes=axes, norm=norm, forward=False))


@linear(batch=behind)
def fft_r2c_adjoint(xp, g, *, axes, norm, size):
    """The adjoint of a one-sided `fft_r2c` whose last axis has `size` elements."""
    return _c2r(xp, _scaled_inside(g, axes[-1], size, 0.5), axes, norm, size)


@fft_r2c_adjoint.vjp("g")
def fft_r2c_adjoint_dg(xp, g, axes, norm):
    return xp.fft_r2c(g, axes=axes, norm=norm, onesided=True)


@linear(torch="_fft_c2r", batch=behind)
def fft_c2r(xp, x, *, axes, norm, size):
    """Transform back to real numbers from half of the frequencies of the last axis, which gets `size` elements."""
    return _c2r(xp, x, axes, norm, size)


@fft_c2r.vjp("x")
def fft_c2r_dx(xp, g, axes, norm, size):
    return xp.fft_c2r_adjoint(g, axes=axes, norm=norm, size=size)


@linear(batch=behind)
def fft_c2r_adjoint(xp, g, *, axes, norm, size):
    """The adjoint of `fft_c2r`."""
    return _scaled_inside(_r2c(xp, g, axes, norm), axes[-1], size, 2)


@fft_c2r_adjoint.vjp("g")
def fft_c2r_adjoint_dg(xp, g, axes, norm, size):
    return xp.fft_c2r(g, axes=axes, norm=norm, size=size)
