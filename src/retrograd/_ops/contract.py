"""Contraction: the product of two arrays whose axes have labels, summed over some of the labels both have.

Every pairwise step of einsum, and tensordot, is one contraction; its derivative is another.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .._core.numpy_namespace import SINGLE, cast, is_half
from .._core.primitive import multilinear
from .matrices import conjugate


@lru_cache(maxsize=1024)
def _order(left, right, made):
    """Return the axes of both operands as (batch, rows, inner) and (batch, inner, columns), and how the result is laid."""
    batch = [n for n in made if n in left and n in right]
    rows = [n for n in made if n in left and n not in right]
    columns = [n for n in made if n in right and n not in left]
    inner = [n for n in left if n in right and n not in made]
    return (
        _axes(left, batch + rows + inner),
        _axes(right, batch + inner + columns),
        len(batch),
        len(rows),
        len(inner),
        _axes([*batch, *rows, *columns], made),
    )


def _axes(labels, wanted):
    """Return the permutation that brings labels into an order, or None if they are in it."""
    axes = tuple(labels.index(n) for n in wanted)
    return None if axes == tuple(range(len(axes))) else axes


@lru_cache(maxsize=1024)
def _spread(labels, made):
    """Return how an operand that only takes part in products is turned and given axes, to fit the result."""
    return (
        _axes(labels, [n for n in made if n in labels]),
        tuple(slice(None) if n in labels else None for n in made),
    )


def _turned(x, axes):
    return x if axes is None else x.transpose(axes)


@multilinear(shows={"MulBackward0": "other self", "BmmBackward0": "mat2=y self"})
def contract(xp, x, y, *, left, right, made):
    """Multiply and sum; every label of an operand is in the other operand or in `made`, and none is repeated."""
    dtype = x.dtype
    if is_half(dtype):
        x, y = cast(x, SINGLE), cast(y, SINGLE)
    x_axes, y_axes, batches, rows, inner, made_axes = _order(left, right, made)
    if not inner:
        (x_axes, x_index), (y_axes, y_index) = _spread(left, made), _spread(right, made)
        return (_turned(x, x_axes)[x_index] * _turned(y, y_axes)[y_index]).astype(dtype, copy=False)
    x, y = _turned(x, x_axes), _turned(y, y_axes)
    lead, over, across = x.shape[:batches], x.shape[batches : batches + rows], y.shape[batches + inner :]
    m, k, n = math.prod(over), math.prod(x.shape[batches + rows :]), math.prod(across)
    if batches:
        found = xp.module.matmul(x.reshape(math.prod(lead), m, k), y.reshape(math.prod(lead), k, n))
    else:
        found = x.reshape(m, k).dot(y.reshape(k, n))
    found = found if found.dtype == dtype else cast(found, dtype)
    return _turned(found.reshape((*lead, *over, *across)), made_axes)


@contract.vjp("x")
def contract_dx(xp, g, y, left, right, made):
    return xp.contract(g, conjugate(xp, y), left=made, right=right, made=left)


@contract.vjp("y")
def contract_dy(xp, g, x, left, right, made):
    return xp.contract(conjugate(xp, x), g, left=left, right=made, made=right)


@contract.batch
def contract_batch(call, args, batched, size, *, left, right, made):
    own = (min((0, *made, *left, *right)) - 1,)  # unlike all labels, and unlike those of other vmaps
    return call(
        *args,
        left=own + left if batched[0] else left,
        right=own + right if batched[1] else right,
        made=own + made,
    )
