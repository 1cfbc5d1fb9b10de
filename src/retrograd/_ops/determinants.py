"""Determinants.

Note [The derivative of a determinant]
The derivative of det at A is the matrix C of cofactors: d det = sum(C * dA). For an invertible A it is det(A) times the
transposed inverse. For a singular one it is found from the singular values: with A = U S V^H,
C = det(U) det(V^H) conj(U P V^H), where P has on its diagonal, for each singular value, the product of the others. The
second derivative goes the same way, with products of all but two. Nothing is divided by a singular value.
"""

from __future__ import annotations

from .._core.arrays import is_meta, raw_leaf
from .._core.numpy_namespace import raw_namespace
from .._core.primitive import behind, general
from . import matrix_products, solving  # noqa: F401 - the rules use their names
from .matrices import adjoint, as_column, conjugate, diagonal_of, is_complex, transposed


def _over_matrices(xp, x):
    """Give numbers two further axes."""
    return as_column(xp, as_column(xp, x))


def _total(xp, x):
    n = len(x.shape)
    return xp.sum(x, axis=(n - 2, n - 1), keepdims=False)


@general(torch="linalg_det", batch=behind)
def det(xp, x):
    return xp.module.linalg.det(x)


@det.vjp("x")
def det_dx(xp, g, x):
    if 0 in x.shape:
        return xp.zeros_like(x)
    return _over_matrices(xp, g) * conjugate(xp, xp.cofactors(x))


@det.jvp
def det_jvp(xp, t, x):
    return _total(xp, t * xp.cofactors(x))


# ---- cofactors ----
def _invertible(x):
    """Tell whether no matrix is singular, so that formulas with inverses hold."""
    raw = raw_leaf(getattr(x, "_array", x))
    return is_meta(raw) or bool(raw_namespace(raw).det(raw).all())


def _without_two(xp, s):
    """Return, for each pair of numbers of the last axis, the product of all but these; on the diagonal 0."""
    module = xp.module
    n = s.shape[-1]
    eye = module.eye(n, dtype=bool)
    left_out = eye[:, None, :] | eye[None, :, :]
    products = module.where(left_out, 1, s[..., None, None, :]).prod(axis=-1)
    return module.where(eye, 0, products).astype(s.dtype, copy=False)


def _without_one(xp, s):
    return xp.module.where(xp.module.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(axis=-1)


def _sign(xp, u, vh):
    return (xp.module.linalg.det(u) * xp.module.linalg.det(vh))[..., None, None]


@general(batch=behind)
def cofactors(xp, x):
    """The derivative of the determinant. See Note [The derivative of a determinant]."""
    if x.shape[-1] == 1:
        return xp.ones_like(x)
    if x.size and _invertible(x):
        return xp.module.linalg.det(x)[..., None, None] * xp.inv(x).swapaxes(-1, -2)
    u, s, vh = xp.module.linalg.svd(x)
    found = _sign(xp, u, vh) * ((u * _without_one(xp, s)[..., None, :]) @ vh).conj()
    return found.astype(x.dtype, copy=False)


def _cofactors_tangent(xp, t, x):
    if x.shape[-1] == 1:
        return xp.zeros_like(x)  # they are 1
    if not _invertible(x):
        return xp.cofactors_slope(x, t)
    inverse = xp.inv(x)
    turned = transposed(xp, inverse)
    inner = xp.matmul(inverse, t)
    trace = xp.sum(diagonal_of(xp, inner), axis=(len(t.shape) - 2,), keepdims=False)
    spread = _over_matrices(xp, trace) * turned - transposed(xp, xp.matmul(inner, inverse))
    return _over_matrices(xp, xp.det(x)) * spread


cofactors.jvp(lambda xp, t, x: _cofactors_tangent(xp, t, x))


@cofactors.vjp("x")
def cofactors_dx(xp, g, x):
    # the second derivative is symmetric
    return conjugate(xp, _cofactors_tangent(xp, conjugate(xp, g), x))


@general(batch=behind)
def cofactors_slope(xp, x, t):
    """The derivative of the cofactors of singular matrices along t; it has no derivative in x itself here."""
    u, s, vh = xp.module.linalg.svd(x)
    inner = u.conj().swapaxes(-1, -2) @ t @ vh.conj().swapaxes(-1, -2)
    pairs = _without_two(xp, s)
    eye = xp.module.eye(s.shape[-1], dtype=bool)
    diagonal = (pairs * inner.diagonal(0, -2, -1)[..., None, :]).sum(axis=-1)
    core = xp.module.where(eye, diagonal[..., None, :], -(pairs * inner).swapaxes(-1, -2))
    return (_sign(xp, u, vh) * (u.conj() @ core @ vh.conj())).astype(x.dtype, copy=False)


@cofactors_slope.vjp("t")
def cofactors_slope_dt(xp, g, x):
    return conjugate(xp, xp.cofactors_slope(x, conjugate(xp, g)))


@cofactors_slope.jvp
def cofactors_slope_jvp(xp, t, x):
    if t[0] is not None:
        raise NotImplementedError("the third derivative of the determinant of singular matrices is not implemented")
    return xp.cofactors_slope(x, t[1])


# ---- sign and logarithm ----
@general(torch="linalg_slogdet", outputs=2, batch=behind)
def slogdet(xp, x):
    sign, size = xp.module.linalg.slogdet(x)
    return sign, size


@slogdet.vjp("x")
def slogdet_dx(xp, g, x, out, x_dtype):
    """d log|det| is the real part of trace(inverse @ dA); only its imaginary part turns a complex sign."""
    sign_g, size_g = g
    factor = size_g
    if sign_g is not None and is_complex(x_dtype):
        turn = xp.imag(xp.conj(sign_g) * out[0]) * -1j
        factor = turn if size_g is None else turn + size_g
    if factor is None:
        return xp.zeros_like(x)
    return _over_matrices(xp, factor) * adjoint(xp, xp.inv(x))


@slogdet.jvp
def slogdet_jvp(xp, t, x, out, x_dtype):
    moved = xp.sum(diagonal_of(xp, xp.solve(x, t, left=True, vector=False)), axis=(len(x.shape) - 2,), keepdims=False)
    if not is_complex(x_dtype):
        return xp.zeros_like(moved), moved
    return out[0] * (xp.imag(moved) * 1j), xp.real(moved)
