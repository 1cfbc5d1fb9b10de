"""Rearranging: operations that repeat, shift and pad, and those that write into a part of a copy."""

from __future__ import annotations

from .._core.primitive import MOVED, behind, front, general, linear, vocabulary
from .strided import laid_in_row, read_row, row_of_rows


# ---- shifting and turning ----
@linear(shows="dims shifts", dense=True)
def roll(xp, x, *, shifts, axes):
    """Shift along axes, what leaves at one end entering at the other; `axes` None: along the flattened array."""
    out = x.reshape(-1) if axes is None else x
    for shift, axis in zip(shifts, (0,) if axes is None else axes, strict=True):
        n = out.shape[axis] if out.ndim else 0
        at = n - shift % n if n else 0
        lead = (slice(None),) * axis
        if at != n:
            out = xp.module.concatenate((out[(*lead, slice(at, None))], out[(*lead, slice(at))]), axis=axis)
    return x.copy() if out is x or out.base is not None else out.reshape(x.shape)


@roll.vjp("x")
def roll_dx(xp, g, shifts, axes):
    return xp.roll(g, shifts=tuple([-n for n in shifts]), axes=axes)


@roll.batch
def roll_batch(call, args, batched, size, *, shifts, axes):
    (x,) = args
    if axes is not None:
        return call(x, shifts=shifts, axes=tuple([a + 1 for a in axes]))
    count = 1
    for n in x.shape[1:]:
        count *= n
    rolled = call(vocabulary.reshape(x, shape=(size, count)), shifts=shifts, axes=(1,))
    return vocabulary.reshape(rolled, shape=tuple(x.shape))


@linear(shows="dims k=given", batch=behind)
def rot90(xp, x, *, k, axis1, axis2):
    """Turn by k times 90 degrees in the plane of two axes, from the first towards the second; k is 0 to 3."""
    if k == 0:
        return x.copy()
    if k == 2:
        return xp.flip(x, axis=(axis1, axis2))
    return xp.flip(x, axis=(axis2 if k == 1 else axis1,)).swapaxes(axis1, axis2)


@rot90.vjp("x")
def rot90_dx(xp, g, k, axis1, axis2):
    return xp.rot90(g, k=-k % 4, axis1=axis1, axis2=axis2)


# ---- repeating and padding ----
def _between(shape, counts):
    """Return a shape with the counts of repetitions before each size, missing sizes being 1."""
    lead = len(counts) - len(shape)
    sizes = (1,) * lead + tuple(shape)
    return tuple([n for pair in zip(counts, sizes, strict=True) for n in pair])


@linear(torch="repeat", shows="repeats=counts self_sym_sizes")
def tile(xp, x, *, counts):
    """Repeat an array as a whole, `counts` times along each axis; counts may name further axes in front."""
    ones = xp.module.reshape(x, _between(x.shape, (1,) * len(counts)))
    wide = xp.module.broadcast_to(ones, _between(x.shape, counts))
    lead = len(counts) - x.ndim
    sizes = (1,) * lead + x.shape
    out = wide.reshape(tuple([n * c for n, c in zip(sizes, counts, strict=True)]))
    return out if out.flags.c_contiguous and getattr(out.flags, "writeable", True) and out.base is not x else out.copy()


@tile.vjp("x")
def tile_dx(xp, g, x_shape, counts):
    apart = xp.reshape(g, shape=_between(x_shape, counts))
    total = xp.sum(apart, axis=tuple(range(0, 2 * len(counts), 2)), keepdims=False)
    return xp.reshape(total, shape=x_shape)


@tile.batch
def tile_batch(call, args, batched, size, *, counts):
    (x,) = args
    lead = len(counts) - (x.ndim - 1)
    x = vocabulary.reshape(x, shape=(size, *(1,) * lead, *x.shape[1:]))
    return call(x, counts=(1, *counts))


@general(torch="constant_pad_nd", shows="pad", batch=behind)
def constant_pad(xp, x, *, before, after, value):
    """Add `before` and `after` places to each axis, holding `value`; negative numbers take places away."""
    shape = tuple([n + a + b for n, a, b in zip(x.shape, before, after, strict=True)])
    out = xp.module.full(shape, value, x.dtype)
    into = tuple([slice(max(a, 0), n + a + min(b, 0)) for n, a, b in zip(x.shape, before, after, strict=True)])
    taken = tuple([slice(max(-a, 0), n + min(b, 0)) for n, a, b in zip(x.shape, before, after, strict=True)])
    out[into] = x[taken]
    return out


@constant_pad.vjp("x")
def constant_pad_dx(xp, g, before, after):
    return xp.constant_pad(g, before=tuple([-n for n in before]), after=tuple([-n for n in after]), value=0)


@constant_pad.jvp
def constant_pad_jvp(xp, t, before, after):
    return xp.constant_pad(t, before=before, after=after, value=0)


@linear(shows="", batch=behind)
def block_diag(xp, *arrays, lead):
    """Put matrices along the diagonal of zeros; the first `lead` axes are a batch's."""
    arrays = [a.reshape(*a.shape[:lead], *(1,) * (2 + lead - a.ndim), *a.shape[lead:]) for a in arrays]
    rows, columns = (sum([a.shape[lead + k] for a in arrays]) for k in (0, 1))
    out = xp.module.zeros((*arrays[0].shape[:lead], rows, columns), arrays[0].dtype)
    row = column = 0
    for a in arrays:
        n, m = a.shape[lead:]
        out[..., row : row + n, column : column + m] = a
        row, column = row + n, column + m
    return out


@block_diag.vjp("arrays")
def block_diag_dx(xp, g, arrays_shape, lead):
    grads, row, column = [], 0, 0
    every = (slice(None),) * lead
    for shape in arrays_shape:
        n, m = (1, 1, *shape[lead:])[-2:]
        block = xp.getitem(g, index=(*every, slice(row, row + n), slice(column, column + m)))
        grads.append(xp.reshape(block, shape=tuple(shape)))
        row, column = row + n, column + m
    return tuple(grads)


# ---- writing into a part: `view` names the operation that shows the part, `params` are its parameters ----
@general(
    shows={
        "SelectScatterBackward0": "dim index",
        "SliceScatterBackward0": "dim end start step",
        "DiagonalScatterBackward0": "dim1 dim2 offset",
        "AsStridedScatterBackward0": "size storage_offset stride",
    }
)
def write_part(xp, x, src, *, view, params):
    out = xp.module.array(x, order="C")
    if view != "restride":
        getattr(xp, view)(out, **params)[...] = src
        return out
    row = laid_in_row(xp, x, params["in_stride"], params["start"], params["length"])
    read_row(xp, row, params["size"], params["stride"], params["offset"])[...] = src
    out[...] = read_row(xp, row, x.shape, params["in_stride"], params["start"])
    return out


@write_part.vjp("x")
def write_part_dx(xp, g, view, params):
    return xp.write_part(g, xp.zeros_like(getattr(xp, view)(g, **params)), view=view, params=params)


@write_part.vjp("src")
def write_part_dsrc(xp, g, view, params):
    return xp.copy(getattr(xp, view)(g, **params))


@write_part.jvp
def write_part_jvp(xp, t, x, src, view, params):
    tx, ts = t
    tx = xp.zeros_like(x) if tx is None else tx
    ts = xp.zeros_like(src) if ts is None else ts
    return xp.write_part(tx, ts, view=view, params=params)


def _shifted(view, params, size):
    """Return the parameters of a view for arrays with a batch axis in front."""
    if view in ("getitem", "diagonal"):
        return {name: MOVED[name](value, size) if name in MOVED else value for name, value in params.items()}
    return row_of_rows(params, size)


@write_part.batch
def write_part_batch(call, args, batched, size, *, view, params):
    x, src = (front(a, b, size) for a, b in zip(args, batched, strict=True))
    return call(x, src, view=view, params=_shifted(view, params, size))
