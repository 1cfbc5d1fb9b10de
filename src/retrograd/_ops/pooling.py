"""Pooling: the largest element or the mean of windows over the last axes, whatever axes stand before those.

Note [Windows]
`windows` describes the windows along each of the last axes, one `Window` for each. Where a window is larger than what it sees of the
array, as at padded edges, it has what it sees alone: nothing is padded. Windows are gone through place by place: the elements at one
place of all windows are a slice of the array, so every step works on whole arrays.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from .._core.numpy_namespace import is_half
from .._core.primitive import front, general, linear, unmoved, vocabulary
from .._core.shown import second_output
from .._native import nests, pieces
from .._native import windows as native
from .._native.program import NATIVE
from .._thresholds import LARGE_POOL as FEW
from .order import has_nan
from .resizing import adaptive_windows

KEPT = 1 << 16  # windows up to which it is kept where they start: half a megabyte for each of a few shapes


class Window(NamedTuple):
    """The windows along one axis of `size` elements; there are `count` of them."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    count: int  # type: ignore[assignment]  # hides the method of tuples


# ---- where windows lie ----
@lru_cache(maxsize=1024)
def _slices_along(window):
    """Return, for each place in a window, which windows have it and which elements those are."""
    size, kernel, stride, padding, dilation, count = window
    found = []
    for k in range(kernel):
        at = k * dilation - padding
        first = max(0, -(at // stride))
        end = min(count, (size - 1 - at) // stride + 1)
        if first < end:
            found.append((slice(first, end), slice(first * stride + at, (end - 1) * stride + at + 1, stride)))
        else:
            found.append((slice(0, 0), slice(0, 0)))
    return found


@lru_cache(maxsize=256)
def _slices(windows):
    """Return the same for windows over several axes, and whether every window has every place."""
    rows = list(product(*[_slices_along(window) for window in windows]))
    found = [((..., *[out for out, _ in row]), (..., *[into for _, into in row])) for row in rows]
    counts = [window.count for window in windows]
    whole = all([out.stop - out.start for out, _ in row] == counts for row in rows)
    return found, whole


@lru_cache(maxsize=256)
def _corners(module, windows):
    """Number, in an array of the windows' axes, the first place of each window and how much each further place adds."""
    start, further, step = 0, 0, 1
    for k, (size, kernel, stride, padding, dilation, count) in enumerate(reversed(windows)):
        start = start + (module.arange(count) * (stride * step) - padding * step).reshape((count,) + (1,) * k)
        further = further + (module.arange(kernel) * (dilation * step)).reshape((kernel,) + (1,) * k)
        step *= size
    return start, further.reshape(-1)


@lru_cache(maxsize=256)
def _first_places(module, windows):
    """Return the first place of each window that lies in the array."""
    places, step = 0, 1
    for k, (_, kernel, stride, padding, dilation, count) in enumerate(reversed(windows)):
        outside = module.maximum(padding - module.arange(count) * stride, 0)
        places = places + (-(-outside // dilation) * step).reshape((count,) + (1,) * k)
        step *= kernel
    return places.astype(np.uint8)


@lru_cache(maxsize=256)
def are_apart(windows):
    """Tell whether no two windows share an element."""
    return all(w.stride > (w.kernel - 1) * w.dilation or w.count == 1 for w in windows)


# ---- kernels ----
def _is_native(x, windows):
    """Tell whether a kernel goes through windows. See Note [Phases] in `_native.windows`."""
    return (
        x.size >= NATIVE
        and nests.takes(x)
        and math.prod([w.kernel for w in windows]) <= native.PLACES
        and 0 not in [w.count for w in windows]
    )


@lru_cache(maxsize=256)
def _layout(windows):
    return native.layout_of(
        *zip(*[(w.size, w.count, w.kernel, w.stride, w.padding, w.dilation) for w in windows], strict=True)
    )


# ---- the largest element of each window ----
def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _largest(module, x, windows, nan):
    """Return the largest element of each window and its place there, of equals the first, but of NaNs the last."""
    slices, whole = _slices(windows)
    shape = (*x.shape[: x.ndim - len(windows)], *[window.count for window in windows])
    if whole:
        best, at = x[slices[0][1]].copy(order="C"), module.zeros(shape, np.uint8)
    else:
        best = module.full(shape, _lowest(x.dtype), x.dtype)
        at = module.array(module.broadcast_to(_first_places(module, windows), shape))
    strided = windows[-1].stride > 1
    for k, (out, into) in enumerate(slices):
        if whole and not k:
            continue
        value = x[into].copy() if strided else x[into]  # dense memory is compared three times as quickly
        held, place = (best, at) if whole else (best[out], at[out])
        more = module.greater(value, held)
        if nan:
            more |= module.isnan(value)
        module.maximum(held, value, out=held)
        more = more.view(np.uint8)
        more *= k  # places come in order: the last that was more is the largest number
        module.maximum(place, more, out=place)
    return best, at


@lru_cache(maxsize=256)
def _is_cut(windows):
    """Tell whether windows cut the array into pieces, leaving nothing."""
    return all(w == (w.size, w.kernel, w.kernel, 0, 1, w.count) and w.size == w.count * w.kernel for w in windows)


@lru_cache(maxsize=256)
def _pieces(shape, windows):
    """Return how an array is cut: its shape with axes parted, the order of these, and where in memory the pieces then begin."""
    lead, rank = len(shape) - len(windows), len(windows)
    parted = (*shape[:lead], *[n for window in windows for n in (window.count, window.kernel)])
    order = (*range(lead), *range(lead, lead + 2 * rank, 2), *range(lead + 1, lead + 2 * rank, 2))
    length = math.prod([window.kernel for window in windows])
    return parted, order, np.arange(0, math.prod(shape), length)


def _largest_of_few(x, windows):
    """Return the same for windows that cut a small array into pieces, in few calls."""
    parted, order, starts = _pieces(x.shape, windows)
    rows = x.reshape(parted).transpose(order).reshape(starts.size, -1)
    at = rows.argmax(1)
    shape = (*x.shape[: x.ndim - len(windows)], *[window.count for window in windows])
    return rows.take(starts + at).reshape(shape), at.astype(np.uint8).reshape(shape)


@general(outputs=2, batch=unmoved)
def max_pool(xp, x, *, windows):
    """Return the largest element of each window of at most 256, and its place there. See Note [Windows]."""
    if _is_native(x, windows):
        return native.largest(np.ascontiguousarray(x), _layout(windows), _first_places(np, windows))
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    if 0 < x.size <= FEW and xp.module is np and _is_cut(windows):
        best, at = _largest_of_few(wide, windows)
    else:
        best, at = _largest(xp.module, wide, windows, False)
    if wide.dtype.kind == "f" and has_nan(best):
        best, at = _largest(xp.module, wide, windows, True)
    return best.astype(x.dtype, copy=False), at


def _as_given(at):
    """Read one of (kernel_size, stride, padding, dilation, ceil_mode) as the caller gave it, for each axis."""

    def read(node):
        values = getattr(node, "shown", None)
        if values is None:
            return None
        value = values["given"][at]
        if isinstance(value, bool):
            return value
        ndim = node.ndim if hasattr(node, "ndim") else len(node.windows)
        value = () if value is None else tuple(value) if isinstance(value, (tuple, list)) else (value,)
        return value * ndim if len(value) == 1 else value

    return read


def _places(node):
    """Return where the largest elements are in their planes."""
    at = second_output(node)
    return vocabulary.max_pool_indices(at, windows=node.windows) if hasattr(node, "windows") else at


_WINDOWS = {name: _as_given(at) for at, name in ((0, "kernel_size"), (1, "stride"), (2, "padding"), (4, "ceil_mode"))}
_LARGEST = {**_WINDOWS, "dilation": _as_given(3), "result1": _places}
_LARGEST_NODES = [f"MaxPool{n}DWithIndicesBackward0" for n in (1, 2, 3)]
max_pool.shows("", result1=_places)
max_pool.shows("", *_LARGEST_NODES, **_LARGEST)


@max_pool.vjp("x")
def max_pool_dx(xp, g, out, windows):
    if g[0] is None:
        return None
    return xp.max_pool_back(g[0], out[1], windows=windows)


@max_pool.jvp
def max_pool_jvp(xp, t, out, windows):
    indices = xp.max_pool_indices(out[1], windows=windows)
    return xp.take_in_planes(t, indices, ndim=len(windows), repeats=not are_apart(windows)), None


@general(differentiable=False, batch=unmoved)
def max_pool_indices(xp, at, *, windows):
    """Return where in its plane each place of a window is."""
    start, further = _corners(xp.module, windows)
    indices = further.take(at)
    indices += start
    return indices


# ---- reading and writing at places of planes, a plane being all of the last axes ----
def in_memory(module, indices, ndim, plane):
    """Number elements of dense memory that are given by their places in planes of `plane` elements."""
    lead = math.prod(indices.shape[: indices.ndim - ndim])
    if lead > 1 and indices.size:
        indices = indices.reshape(lead, -1) + module.arange(0, lead * plane, plane).reshape(lead, 1)
    return indices.reshape(-1)


@linear(batch=unmoved)
def take_in_planes(xp, x, indices, *, ndim, repeats):
    """Read at indices of planes; `repeats` says whether an element may be read twice."""
    places = in_memory(xp.module, indices, ndim, math.prod(x.shape[x.ndim - ndim :]))
    return x.reshape(-1).take(places).reshape(indices.shape)


@take_in_planes.vjp("x")
def take_in_planes_dx(xp, g, x_shape, indices, ndim, repeats):
    return xp.put_in_planes(g, indices, sizes=tuple(x_shape)[len(x_shape) - ndim :], repeats=repeats)


@linear(shows={"MaxUnpool2DBackward0": "indices", "MaxUnpool3DBackward0": "indices"}, batch=unmoved)
def put_in_planes(xp, g, indices, *, sizes, repeats):
    """Write at indices of planes of zeros; where they may repeat, add."""
    return _put(xp.module, g, in_memory(xp.module, indices, len(sizes), math.prod(sizes)), sizes, repeats)


def _put(module, g, places, sizes, repeats):
    half = repeats and is_half(g.dtype)
    out = module.zeros((*g.shape[: g.ndim - len(sizes)], *sizes), np.float32 if half else g.dtype)
    if repeats:
        module.add.at(out.reshape(-1), places, g.reshape(-1).astype(out.dtype, copy=False))
        return out.astype(g.dtype, copy=False)
    out.reshape(-1)[places] = g.reshape(-1)
    return out


@put_in_planes.vjp("g")
def put_in_planes_dg(xp, g, indices, sizes):
    return xp.take_in_planes(g, indices, ndim=len(sizes), repeats=True)


def _starts(module, windows, lead):
    """Number the first place of each window in the dense memory of `lead` planes."""
    plane = math.prod([w.size for w in windows])
    return (module.arange(0, lead * plane, plane).reshape(lead, 1) + _corners(module, windows)[0].reshape(-1)).reshape(
        -1
    )


_known_starts = lru_cache(maxsize=16)(_starts)


@lru_cache(maxsize=256)
def _in_planes(windows):
    """Return how far places of windows are from the first, where the first window begins, how far apart they are, and planes' shape.

    Also whether all places lie in the plane, and whether windows share some.
    """
    further = np.zeros(256, np.int64)
    reached = _corners(np, windows)[1]
    further[: reached.size] = reached
    steps = [math.prod([w.size for w in windows[a + 1 :]]) for a in range(len(windows))]
    start = -sum([w.padding * step for w, step in zip(windows, steps, strict=True)])
    apart = tuple([w.stride * step for w, step in zip(windows, steps, strict=True)])
    return further, start, apart, tuple([w.size for w in windows]), _slices(windows)[1], not are_apart(windows)


@linear(batch=unmoved)
def max_pool_back(xp, g, at, *, windows):
    """Give each window's gradient to the place of its largest element."""
    if nests.takes(g):
        return native.to_places(
            np.ascontiguousarray(g),
            np.ascontiguousarray(at, np.uint8),
            *_in_planes(windows),
        )
    lead = math.prod(at.shape[: at.ndim - len(windows)])
    places = _corners(xp.module, windows)[1].take(at).reshape(-1)
    places += (_known_starts if at.size <= KEPT else _starts)(xp.module, windows, lead)
    return _put(xp.module, g, places, tuple([w.size for w in windows]), not are_apart(windows))


@max_pool_back.vjp("g")
def max_pool_back_dg(xp, g, at, windows):
    indices = xp.max_pool_indices(at, windows=windows)
    return xp.take_in_planes(g, indices, ndim=len(windows), repeats=not are_apart(windows))


# ---- the largest element of windows that lie anywhere ----
def _picked(module, rows, at):
    """Read one element of each row."""
    return module.take_along_axis(rows, at[..., None], -1)[..., 0]


@general(outputs=2)
def max_of_places(xp, x, places, *, ndim, shape):
    """Return the largest elements of planes at places (..., windows, elements), and where they are; `shape` is the windows'."""
    module = xp.module
    lead = x.shape[: x.ndim - ndim]
    wide = (x.astype(np.float32) if is_half(x.dtype) else x).reshape(*lead, math.prod(x.shape[len(lead) :]))
    if places.ndim == 2:
        seen = wide.take(places, axis=-1)
    else:
        flat = places.reshape(*lead, math.prod(places.shape[-2:]))
        seen = module.take_along_axis(wide, flat, -1).reshape(*lead, *places.shape[-2:])
    at = seen.argmax(-1)
    if has_nan(seen):
        missing = module.isnan(seen)  # of several the last
        at = module.where(missing.any(-1), seen.shape[-1] - 1 - missing[..., ::-1].argmax(-1), at)
    shared = places.ndim == 2
    indices = places[module.arange(len(places)), at] if shared else _picked(module, places, at)
    values = _picked(module, seen, at).astype(x.dtype, copy=False)
    return values.reshape(*lead, *shape), indices.reshape(*lead, *shape)


max_of_places.shows("", result1=_places)
max_of_places.shows("", *_LARGEST_NODES, **_LARGEST)
max_of_places.shows(
    "kernel_size output_size", "FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0", result1=_places
)


@max_of_places.vjp("x")
def max_of_places_dx(xp, g, x_shape, out, ndim):
    if g[0] is None:
        return None
    return xp.put_in_planes(g[0], out[1], sizes=tuple(x_shape)[len(x_shape) - ndim :], repeats=True)


@max_of_places.jvp
def max_of_places_jvp(xp, t, out, ndim):
    return xp.take_in_planes(t[0], out[1], ndim=ndim, repeats=True), None


@max_of_places.batch
def max_of_places_batch(call, args, batched, size, *, ndim, shape):
    x, places = args
    if batched[1] or places.ndim > 2:
        if places.ndim == 2 + batched[1]:  # one for all planes of a row
            raise NotImplementedError("places of windows that differ between rows are given for every plane")
        places = front(places, batched[1], size)
    return call(front(x, batched[0], size), places, ndim=ndim, shape=shape)


# ---- the mean of each window ----
@lru_cache(maxsize=256)
def _divisors(module, windows, counts):
    """Return by what the sums of windows are divided: a number, or an array of them."""
    if type(counts) is int:
        return counts
    total = 1
    for k, (size, kernel, stride, padding, _, count) in enumerate(reversed(windows)):
        start = module.arange(count) * stride - padding
        end = module.minimum(start + kernel, size + padding)
        if counts == "inside":
            start, end = module.maximum(start, 0), module.minimum(end, size)
        total = total * (end - start).reshape((count,) + (1,) * k)
    first = int(total.reshape(-1)[0]) if total.size else 1
    return first if bool((total == first).all()) else total


@lru_cache(maxsize=256)
def _is_in_pieces(windows):
    """Tell whether windows cut the array along one or two axes."""
    return len(windows) <= 2 and _is_cut(windows)


@lru_cache(maxsize=256)
def _kernel(windows, counts):
    """Return the sizes of windows that cut the array, and by what their sums are divided."""
    return tuple([w.kernel for w in windows]), _divisors(np, windows, counts)


@lru_cache(maxsize=256)
def _divisors_of_plane(windows, counts, dtype):
    """Return the same, one for each window of a plane, as kernels compute with `dtype`."""
    return np.full([w.count for w in windows], _divisors(np, windows, counts), native.computed(dtype))


def _divided(module, total, divisors):
    if total.dtype.kind == "i":
        return module.trunc(total / divisors).astype(total.dtype)
    if type(divisors) is not int:
        divisors = divisors.astype(total.dtype)
    return module.divide(total, divisors, out=total)


def _lead(axis):
    return (slice(None),) * axis


@linear(batch=unmoved, widens=True)
def avg_pool(xp, x, *, windows, counts):
    """Return the mean of each window; `counts`: what it is divided by, a number, or the elements "inside" or "all"."""
    module = xp.module
    if _is_native(x, windows):
        if _is_in_pieces(windows):
            return pieces.means(np.ascontiguousarray(x), *_kernel(windows, counts))
        divisors = _divisors_of_plane(windows, counts, x.dtype)
        return native.sums(np.ascontiguousarray(x), None, _layout(windows), divisors=divisors)
    total = x
    for axis in range(x.ndim - 1, x.ndim - 1 - len(windows), -1):
        window = windows[axis - x.ndim]
        slices = _slices_along(window)
        if window.count == 1 and window.kernel > 2 and slices[0][1].start == 0:  # one window from the start on
            seen = total[(*_lead(axis), slice(0, sum([out.stop for out, _ in slices])))]
            total = module.add.reduce(seen, axis=axis, keepdims=True, dtype=x.dtype)
            continue
        shape = list(total.shape)
        shape[axis] = window.count
        sums = None
        for out, into in slices:
            value = total[(*_lead(axis), into)]
            if sums is None and out.stop - out.start == window.count:
                sums = value.copy()
                continue
            if sums is None:
                sums = module.zeros(shape, x.dtype)
            held = sums[(*_lead(axis), out)]
            module.add(held, value, out=held)
        total = sums
    return _divided(module, total, _divisors(module, windows, counts))


avg_pool.shows("")
avg_pool.shows("count_include_pad divisor_override", *[f"AvgPool{n}DBackward0" for n in (1, 2, 3)], **_WINDOWS)


@avg_pool.vjp("x")
def avg_pool_dx(xp, g, windows, counts):
    return xp.avg_pool_back(g, windows=windows, counts=counts)


@linear(batch=unmoved, widens=True)
def avg_pool_back(xp, g, *, windows, counts):
    """Share what windows get among their elements: the transpose of `avg_pool`."""
    module = xp.module
    if _is_native(g, windows):
        if _is_in_pieces(windows):
            return pieces.shares(np.ascontiguousarray(g), *_kernel(windows, counts))
        divisors = _divisors_of_plane(windows, counts, g.dtype)
        return native.spread(np.ascontiguousarray(g), None, _layout(windows), divisors=divisors)
    total = _divided(module, g.copy(), _divisors(module, windows, counts))
    for axis in range(g.ndim - len(windows), g.ndim):
        window = windows[axis - g.ndim]
        shape = list(total.shape)
        shape[axis] = window.size
        out = module.zeros(shape, g.dtype)
        apart = are_apart((window,))
        for seen, into in _slices_along(window):
            value, place = total[(*_lead(axis), seen)], (*_lead(axis), into)
            if apart:
                out[place] = value
            else:
                held = out[place]
                module.add(held, value, out=held)
        total = out
    return total


@avg_pool_back.vjp("g")
def avg_pool_back_dg(xp, g, windows, counts):
    return xp.avg_pool(g, windows=windows, counts=counts)


# ---- places: where the elements of windows lie in a plane, if these are too large or too irregular to go through place by place ----
# All arrays are of indices into the flattened plane: one row for each window, one column for each element. A window that has fewer
# elements than others repeats one of its own.
def _combined(rows, sizes):
    """Combine the elements (windows, elements) along each axis into places of planes."""
    places = np.zeros((1, 1), np.int64)
    for row, size in zip(rows, sizes, strict=True):
        places = places[:, None, :, None] * size + row[None, :, None, :]
        places = places.reshape(places.shape[0] * places.shape[1], places.shape[2] * places.shape[3])
    return places


@lru_cache(maxsize=32)
def places_of_windows(windows):
    """Return places for windows of a fixed size, and how many there are along each axis."""
    rows = []
    for size, kernel, stride, padding, dilation, count in windows:
        start = np.arange(count)[:, None] * stride - padding
        first = -(-np.maximum(-start, 0) // dilation)
        last = (size - 1 - start) // dilation
        rows.append(start + np.clip(np.arange(kernel), first, last) * dilation)
    return _combined(rows, [w.size for w in windows]), tuple([w.count for w in windows])


@lru_cache(maxsize=32)
def places_of_adaptive(sizes, counts):
    """Return places for windows that cover each axis evenly."""
    rows = []
    for size, count in zip(sizes, counts, strict=True):
        start, end = adaptive_windows(size, count)
        longest = int((end - start).max()) if count else 1
        rows.append(np.minimum(start[:, None] + np.arange(longest), end[:, None] - 1))
    return _combined(rows, sizes)


def places_of_fractions(samples, sizes, kernel, counts):
    """Return places for windows whose starts each plane draws: `samples` holds a number below one per plane and axis."""
    lead = samples.shape[:-1]
    places = np.zeros((*lead, 1, 1), np.int64)
    for axis, (size, width, count) in enumerate(zip(sizes, kernel, counts, strict=True)):
        row = _drawn_starts(samples[..., axis], size, width, count)[..., None] + np.arange(width)
        places = places[..., :, None, :, None] * size + row[..., None, :, None, :]
        places = places.reshape(*lead, places.shape[-4] * places.shape[-3], places.shape[-2] * places.shape[-1])
    return places


def _drawn_starts(samples, size, width, count):
    """Return increasing starts of windows, the last of which ends with the axis."""
    starts = np.full((*samples.shape, count), size - width, np.int64)
    if count > 1:
        kind = samples.dtype.type
        alpha = kind(size - width) / kind(count - 1)
        at = np.arange(count - 1).astype(samples.dtype)
        shifted = ((at + samples[..., None]) * alpha).astype(np.int64)
        starts[..., :-1] = shifted - (samples[..., None] * alpha).astype(np.int64)
    return starts
