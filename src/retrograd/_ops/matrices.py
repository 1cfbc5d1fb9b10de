"""Words that the rules of matrix operations share. A matrix is the last two axes; everything before is a batch."""

from __future__ import annotations

import math

from .._core.lapack import one_by_one as one_by_one  # for the rules of systems, too


class LinAlgError(RuntimeError):
    """torch's error for a matrix that an algorithm cannot deal with."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # torch's name
LinAlgError.__module__ = "retrograd._C"


def batch_element(at, lead):
    """Say which matrix of a batch an error is about."""
    return f"(Batch element {at}): " if lead else ""


def is_complex(dtype):
    """Tell whether a dtype, of a Tensor or of an array, is complex."""
    return getattr(dtype, "numpy", dtype).kind == "c"


def conjugate(xp, x):
    """Conjugate, without a copy where the numbers are real."""
    return xp.conj(x) if is_complex(x.dtype) else x


def transposed(xp, x):
    """Swap rows and columns."""
    n = len(x.shape)
    return xp.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def adjoint(xp, x):
    """Swap rows and columns and conjugate."""
    return transposed(xp, conjugate(xp, x))


def diagonal_of(xp, x):
    """Return the diagonals of matrices."""
    n = len(x.shape)
    return xp.diagonal(x, offset=0, axis1=n - 2, axis2=n - 1)


def diagonal_matrix(xp, d):
    """Write vectors on the diagonals of zero matrices."""
    n = len(d.shape)
    return xp.put_diagonal(d, shape=(*d.shape, d.shape[-1]), offset=0, axis1=n - 1, axis2=n)


def identity_like(xp, x):
    """Return identity matrices in the shape of `x`, which may have more rows than columns or fewer."""
    n = len(x.shape)
    ones = xp.ones_like(diagonal_of(xp, x))
    return xp.put_diagonal(ones, shape=tuple(x.shape), offset=0, axis1=n - 2, axis2=n - 1)


def lower_with_half_diagonal(xp, x):
    """Return the lower triangle, its diagonal halved: what a Hermitian matrix is the sum of, with its adjoint."""
    return xp.triangle(x, upper=False, k=0) - diagonal_matrix(xp, diagonal_of(xp, x) * 0.5)


def as_row(xp, d):
    """Make rows of vectors: what multiplies columns."""
    return xp.expand_dims(d, axis=len(d.shape) - 1)


def as_column(xp, d):
    """Make columns of vectors: what multiplies rows."""
    return xp.expand_dims(d, axis=len(d.shape))


def columns(xp, x, start, stop):
    """Return some columns."""
    return xp.getitem(x, index=(slice(None),) * (len(x.shape) - 1) + (slice(start, stop),))


def rows(xp, x, start, stop):
    """Return some rows."""
    return xp.getitem(x, index=(slice(None),) * (len(x.shape) - 2) + (slice(start, stop),))


def differences(xp, x):
    """Return the matrix of x_j - x_i, with ones on the diagonal, which is divided by."""
    gaps = as_row(xp, x) - as_column(xp, x)
    return gaps + diagonal_matrix(xp, xp.ones_like(x))


def without_diagonal(xp, x):
    """Put zeros on the diagonal, also where it is NaN."""
    ones = diagonal_matrix(xp, xp.ones_like(diagonal_of(xp, x)))
    return xp.where(xp.not_equal(ones, 0), 0, x)


# ---- what torch shows of a product's operands, see Note [What torch shows] ----
def _operand(node, name):
    """Find the array of an operand: saved, or a leaf's. That of another operand that was not saved is not known: None."""
    if getattr(node, name) is not None:
        return node.saved_tensor(name)._array
    return getattr(node._edges[node.input_of[name]], "_array", None)


def sizes_of(name, turned=False):
    """Read the sizes of an operand, or of its transpose."""

    def read(node):
        array = _operand(node, name)
        return None if array is None else tuple(array.shape)[:: -1 if turned else 1]

    return read


def strides_of(name, turned=False):
    """Read the strides of an operand that needs a gradient, or of its transpose."""

    def read(node):
        if node._edges[node.input_of[name]] is None:
            return ()
        array = _operand(node, name)
        return None if array is None else tuple(s // array.itemsize for s in array.strides)[:: -1 if turned else 1]

    return read


def rows_and_features(node):
    """Return the shape of the product of a linear layer, before it is given the shape of the result."""
    x, y = _operand(node, "x"), _operand(node, "y")
    return None if x is None or y is None else (math.prod(x.shape[:-1]), y.shape[0])
