"""Convolution on raw arrays: patches of the input, multiplied with the weight by BLAS.

Note [Patches]
The patches of an input (n, c, *s) are the array (n, c, *kernel, *size): for each place in the kernel, what it meets at each place of
the result. As matrices (c * kernel, size) they stand right for BLAS, and the product is the result in its own order: nothing is
transposed afterwards. They are copied axis by axis, the last first: each copy then moves long runs, where one copy of all axes
would move rows of the result's width. `put_patches_together` is the transpose, with the same saving.
Batches are cut so that the patches of one part stay in the cache, and the parts are shared out among threads.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from .._core.fused import single
from .._core.numpy_namespace import cast, is_half
from .._core.parallel import over_ranges
from .._native import direct, nests, windows
from .._native import patches as native
from .._thresholds import PATCHES as PART
from .._thresholds import PATCHES_KEPT as KEPT
from .._thresholds import WIDE_CONVOLUTION as WORTH_THREADS
from .scratch import RUN, scratch

SMALL = 10**6  # multiplications up to which OpenBLAS takes matrices as they lie: twice as fast if none is transposed
SHORT, MANY_IMAGES = 12, 16  # elements of a result's row, and images, for which a gradient is put together images last
FEW_PLACES = 32  # places of a result below which a product for each image is too small


def places_of(size, kernel, stride, padding, dilation):
    """Return how many places a kernel has along each axis."""
    return tuple(
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, k, t, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


# ---- patches ----
def _padded(xp, x, padding):
    """Return an array with zeros around it."""
    if not any(padding):
        return x
    shape = (*x.shape[:2], *[s + 2 * p for s, p in zip(x.shape[2:], padding, strict=True)])
    out = scratch(xp, "padded", shape, x.dtype)
    out[...] = 0
    out[(..., *[slice(p, p + s) for s, p in zip(x.shape[2:], padding, strict=True)])] = x
    return out


@lru_cache(maxsize=4096)
def _cuts(shape, itemsize, size, kernel, stride, dilation):
    """Return the shapes and strides that are copied one after the other, each from the one before.

    With each comes how many of its axes to go through, and the dtype of what lies there: with a stride of one the other axes are a
    run of memory, which is copied as one element.
    """
    rank = len(kernel)
    axis = rank + 1  # of whatever axis is next: kernel axes come in front as axes behind it are done
    cuts = []
    for a in range(rank - 1, -1, -1):
        steps = [prod(shape[i + 1 :]) * itemsize for i in range(len(shape))]
        cut = (*shape[:2], kernel[a], *shape[2:axis], size[a], *shape[axis + 1 :])
        if not kernel[a] == stride[a] == 1 or size[a] != shape[axis]:
            strides = (
                *steps[:2],
                dilation[a] * steps[axis],
                *steps[2:axis],
                stride[a] * steps[axis],
                *steps[axis + 1 :],
            )
            run = None
            if stride[a] == 1 and size[a] * steps[axis] <= RUN:
                run = np.dtype((np.void, size[a] * steps[axis]))
            cuts.append((cut, strides, axis + 1 if run is not None else None, run))
        shape = cut
    return cuts


def cut_into_patches(xp, x, *, size, kernel, stride, padding, dilation, out=None):
    """Return the patches (n, c, *kernel, *size) of an array; itself, with further axes, where there is nothing to copy.

    `out` is where they are written, if there is anything to copy.
    """
    shape = (*x.shape[:2], *kernel, *size)
    if not x.size or 0 in size:
        return xp.module.zeros(shape, x.dtype)
    x = _padded(xp, x, padding)
    if not x.flags.c_contiguous:
        x = xp.module.ascontiguousarray(x)
    cuts = _cuts(x.shape, x.itemsize, size, kernel, stride, dilation)
    buffers = xp.module is np and x.dtype.kind != "V"  # which can be read as other elements
    for stage, (cut, strides, axes, run) in enumerate(cuts, 1 - len(cuts)):
        made = scratch(xp, stage, cut, x.dtype) if stage else out
        made = xp.module.empty(cut, x.dtype) if made is None else made.reshape(cut)
        if run is not None and buffers:
            np.ndarray(cut[:axes], run, made)[...] = np.ndarray(cut[:axes], run, x, 0, strides[:axes])
        else:
            made[...] = xp.restrided(x, cut, strides)
        x = made
    return x.reshape(shape)


@lru_cache(maxsize=4096)
def _additions(shape, size, stride, padding, dilation):
    """Return, for each axis, the shape of its sum and what is added where: pairs of indices. None: nothing to add."""
    rank = len(size)
    every = (slice(None),) * (rank + 1)
    stages = []
    for a in range(rank):
        count, places = shape[2], shape[rank + 2]
        shape = (*shape[:2], *shape[3 : rank + 2], size[a], *shape[rank + 3 :])
        if count == stride[a] == 1 and not padding[a] and places == size[a]:
            stages.append((shape, None))
            continue
        pairs = []
        for k in range(count):
            start = k * dilation[a] - padding[a]  # where the first place meets the input
            low = max(0, -(start // stride[a]))
            high = min(places, (size[a] - 1 - start) // stride[a] + 1)
            if low < high:
                into = slice(start + low * stride[a], start + (high - 1) * stride[a] + 1, stride[a])
                pairs.append(((*every[:2], k, *every[2:], slice(low, high)), (*every, into)))
        stages.append((shape, pairs))
    return stages


def put_patches_together(xp, patches, *, size, stride, padding, dilation, out=None):
    """Add patches (n, c, *kernel, *places) where they came from, in an array (n, c, *size)."""
    stages = _additions(patches.shape, size, stride, padding, dilation)
    last = max((a for a, (_, pairs) in enumerate(stages) if pairs is not None), default=None)
    for a, (shape, pairs) in enumerate(stages):
        if pairs is None:
            patches = patches.reshape(shape)
            continue
        if a != last:
            total = scratch(xp, f"sum {a}", shape, patches.dtype)
        else:
            total = xp.module.empty(shape, patches.dtype) if out is None else out.reshape(shape)
        _write_first(total, patches, pairs)
        for source, target in pairs[1:]:
            place = total[target]
            place += patches[source]
        patches = total
    if out is not None and last is None:
        out[...] = patches
        return out
    return patches


def _write_first(total, patches, pairs):
    """Write the first part, and zeros where it is not."""
    if not pairs:
        total[...] = 0
        return
    source, target = pairs[0]
    *every, into = target
    if into.step != 1:
        total[...] = 0
    else:
        if into.start:
            total[(*every, slice(0, into.start))] = 0
        if into.stop < total.shape[len(every)]:
            total[(*every, slice(into.stop, None))] = 0
    total[target] = patches[source]


# ---- loops over windows. See Note [Phases] in `_native.windows` ----
def _is_depthwise(x, channels_out, kernel, groups):
    """Tell whether each channel has a kernel of its own, which is too little for BLAS."""
    return groups == x.shape[1] == channels_out and prod(kernel) <= windows.PLACES and nests.takes(x)


def _direct_layout(arrays, channels, long, size, places, kernel, stride, padding, dilation):
    """Return where the windows of images (n, channels, *size) lie for direct loops; None if they are not for such arrays."""
    if len({a.dtype for a in arrays}) > 1 or not nests.takes(*arrays):
        return None
    layout = windows.layout_of(tuple(size), tuple(places), tuple(kernel), stride, padding, dilation)
    return layout if direct.takes(layout, channels, long) else None


def _is_finite(total):
    """Tell whether loops over windows may be believed: between rows they multiply zeros, also with what no window reads."""
    return np.isfinite(total).all()


def _rows(weight):
    return np.ascontiguousarray(weight).reshape(len(weight), -1)


# ---- the three products ----
def _native_layout(arrays, channels, made, groups, size, places, kernel, stride, padding, dilation):
    """Return how a kernel goes over the patches of images (n, channels, *size); None if there is none for such arrays."""
    if not native.takes_images(*arrays):
        return None
    layout = native.layout_of(
        channels, made, groups, tuple(size), tuple(places), tuple(kernel), stride, padding, dilation
    )
    return layout if layout.is_worth else None


def _is_small(layout):
    """Tell whether products have sizes for which they are compiled: those are quicker than direct loops."""
    return layout is not None and layout.is_small


def _parts(start, end, of_each):
    """Return the slices of a batch whose patches are made together."""
    step = max(1, PART // max(1, of_each))
    return [slice(at, min(at + step, end)) for at in range(start, end, step)]


def _over_images(xp, work, count, of_each, product):
    """Call `work(start, end)` for all images, on several threads unless BLAS takes several for each image's product."""
    if count > 1 and of_each * count >= WORTH_THREADS and product <= SMALL and xp.module is np:
        over_ranges(work, count)
    else:
        work(0, count)


def _by_group(weight, groups):
    """Return the weight as one matrix (channels out, channels in * kernel) for each group."""
    out = weight.shape[0] // groups
    return weight.reshape(groups, out, prod(weight.shape[1:])) if groups > 1 else weight.reshape(out, -1)


def _as_matrices(x, groups, rows, places):
    """Return an array (n, channels, ...) as matrices (n, [groups,] rows, places)."""
    return x.reshape(x.shape[0], groups, rows, places) if groups > 1 else x.reshape(x.shape[0], rows, places)


def convolve(xp, x, weight, bias=None, *, size, stride, padding, dilation, groups, keep=False):
    """Return the convolution (n, channels out, *size), and its patches if they are to be kept and are few.

    Half precision is computed in float32 and rounded once; the loops for kernels of each channel alone do it as they go.
    """
    count, kernel = x.shape[0], weight.shape[2:]
    depthwise = _is_depthwise(x, weight.shape[0], kernel, groups)
    if is_half(x.dtype) and not depthwise:
        wide = map(single, (x, weight, bias))
        out, kept = convolve(
            xp, *wide, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups, keep=keep
        )
        return cast(out, x.dtype), kept
    out = xp.module.empty((count, weight.shape[0], *size), x.dtype)
    inner, places = prod(weight.shape[1:]), prod(size)
    if not out.size or not inner:
        out[...] = 0
        return (out if bias is None or not out.size else out + _as_column(bias, len(size))), None
    if depthwise:
        layout = windows.layout_of(x.shape[2:], tuple(size), kernel, stride, padding, dilation)
        bias = None if bias is None else np.ascontiguousarray(bias)
        return windows.sums(np.ascontiguousarray(x), _rows(weight), layout, bias=bias), None
    windowed = x.shape[2:], size, kernel, stride, padding, dilation
    arrays = (x, weight) if bias is None else (x, weight, bias)
    patched = _native_layout(arrays, x.shape[1], weight.shape[0], groups, *windowed)
    layout = None if _is_small(patched) else _direct_layout(arrays, x.shape[1], direct.LONG, *windowed)
    if layout is not None:
        return direct.convolve(x, weight, bias, layout, groups), None
    if patched is not None:
        return native.convolve(x, weight, bias, patched), None
    matrices = _by_group(weight, groups)
    rows = matrices.shape[-2]
    of_each = inner * groups * places
    shape = (x.shape[1], *kernel, *size)
    kept = None
    if keep and of_each * count <= KEPT and prod(kernel) > 1:
        kept = xp.module.empty((count, *shape), x.dtype)

    def work(start, end):
        for part in _parts(start, end, of_each):
            patches = cut_into_patches(
                xp, x[part], size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation,
                out=scratch(xp, "patches", (part.stop - part.start, *shape), x.dtype) if kept is None else kept[part],
            )  # fmt: skip
            made = _as_matrices(out[part], groups, rows, places)
            xp.module.matmul(matrices, _as_matrices(patches, groups, inner, places), out=made)
            if bias is not None:
                made = out[part]
                made += _as_column(bias, len(size))

    _over_images(xp, work, count, of_each, rows * inner * places)
    return out, kept


def _as_column(bias, rank):
    return bias.reshape(-1, *(1,) * rank)


def convolve_weight(xp, g, x, *, size, stride, padding, dilation, groups, patches=None):
    """Return the gradient (channels out, channels in / groups, *size) of the weight; `patches` are those of x, if kept."""
    count, channels = g.shape[:2]
    inner, places = x.shape[1] // groups * prod(size), prod(g.shape[2:])
    shape = (channels, x.shape[1] // groups, *size)
    if not g.size or not inner or not x.size:
        return xp.module.zeros(shape, g.dtype)
    if patches is None and _is_depthwise(x, channels, size, groups):
        layout = windows.layout_of(x.shape[2:], g.shape[2:], tuple(size), stride, padding, dilation)
        images = windows.products(np.ascontiguousarray(g), np.ascontiguousarray(x), layout)
        if _is_finite(total := images.sum(0, dtype=np.float64)):
            return total.astype(g.dtype).reshape(shape)
    if is_half(g.dtype):
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "patches": patches}
        return cast(convolve_weight(xp, single(g), single(x), size=size, **options), g.dtype)
    windowed = x.shape[2:], g.shape[2:], size, stride, padding, dilation
    layout = None if patches is not None else _direct_layout((g, x), x.shape[1], direct.LONG_SUMS, *windowed)
    if layout is not None and _is_finite(total := direct.convolve_weight(g, x, layout, groups)):
        return total.reshape(shape)
    if patches is None and (layout := _native_layout((g, x), x.shape[1], channels, groups, *windowed)) is not None:
        return native.convolve_weight(g, x, layout).reshape(shape)
    rows, of_each = channels // groups, inner * groups * places
    if count == 1 < groups and patches is None:
        return convolve_weights(
            xp, g, x, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups
        )[0]  # fmt: skip
    totals = []

    def work(start, end):
        total = None
        for part in _parts(start, end, of_each):
            cut = patches[part] if patches is not None else _patches(xp, x[part], g, size, stride, padding, dilation)
            product = _weight_of_part(
                xp, _as_matrices(g[part], groups, rows, places), _as_matrices(cut, groups, inner, places), places
            )
            total = product if total is None else xp.module.add(total, product, out=total)
        if total is not None:
            totals.append((start, total))

    _over_images(xp, work, count, of_each, rows * inner * places)
    totals.sort(key=lambda one: one[0])  # the same order of addition every time
    total = totals[0][1]
    for _, other in totals[1:]:
        total += other
    return xp.module.ascontiguousarray(total.swapaxes(-1, -2)).reshape(shape)


def _patches(xp, x, g, kernel, stride, padding, dilation):
    """Return the patches of some images that meet the places of g, in memory that the next ones take."""
    size = g.shape[2:]
    out = scratch(xp, "patches", (*x.shape[:2], *kernel, *size), x.dtype)
    return cut_into_patches(xp, x, size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation, out=out)


def convolve_weights(xp, g, x, *, size, stride, padding, dilation, groups, patches=None):
    """Return what each image gives to the gradient of the weight: (n, channels out, channels in / groups, *size).

    The groups are as images, of which none is summed; `patches` are those of x, if kept.
    """
    shape = (*g.shape[:2], x.shape[1] // groups, *size)
    if not g.size or not x.size or 0 in shape:
        return xp.module.zeros(shape, g.dtype)
    g, x = (a.reshape(len(a) * groups, a.shape[1] // groups, *a.shape[2:]) for a in (g, x))
    count, rows = g.shape[:2]
    places, inner = prod(g.shape[2:]), prod(shape[2:])
    out = xp.module.empty((count, rows, inner), g.dtype)
    if patches is not None:
        patches = patches.reshape(count, inner, places)

    def work(start, end):
        for part in _parts(start, end, inner * places):
            cut = patches[part] if patches is not None else _patches(xp, x[part], g, size, stride, padding, dilation)
            cut = cut.reshape(-1, inner, places).swapaxes(-1, -2)
            xp.module.matmul(g[part].reshape(-1, rows, places), cut, out=out[part])

    _over_images(xp, work, count, inner * places, rows * inner * places)
    return out.reshape(shape)


def _weight_of_part(xp, g, patches, places):
    """Return (channels in * kernel, channels out) for each group: patches times the transpose of g, over all images."""
    if places >= FEW_PLACES or len(g) == 1:
        turned = g.swapaxes(-1, -2)
        if places * g.shape[-2] * patches.shape[-2] <= SMALL:
            in_order = scratch(xp, "turned", turned.shape, g.dtype)
            in_order[...] = turned
            turned = in_order
        product = xp.module.matmul(patches, turned)
        return product[0] if len(product) == 1 else xp.sum(product, axis=(0,))
    last = g.ndim - 1
    images_last = (*range(1, last), 0, last)  # (groups, rows, n, places)
    flat = (*g.shape[1:-1], -1), (*patches.shape[1:-1], -1)
    g, patches = (a.transpose(images_last).reshape(s) for a, s in zip((g, patches), flat, strict=True))
    return xp.module.matmul(patches, g.swapaxes(-1, -2))


def convolve_input(xp, g, weight, *, size, stride, padding, dilation, groups):
    """Return the gradient (n, channels in, *size) of the input, which is the transposed convolution of g."""
    n, channels = g.shape[:2]
    kernel, places = weight.shape[2:], prod(g.shape[2:])
    inner = prod(weight.shape[1:])
    depthwise = _is_depthwise(g, weight.shape[1] * groups, kernel, groups)
    if is_half(g.dtype) and not depthwise:
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return cast(convolve_input(xp, single(g), single(weight), size=size, **options), g.dtype)
    out = xp.module.empty((n, weight.shape[1] * groups, *size), g.dtype)
    if not out.size:
        return out
    if not g.size or not inner:
        out[...] = 0
        return out
    around = tuple(d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True))
    whole = all(s == length + a - p for s, length, a, p in zip(size, g.shape[2:], around, padding, strict=True))
    patched = _native_layout(
        (g, weight), out.shape[1], channels, groups, size, g.shape[2:], kernel, stride, padding, dilation
    )
    if whole and set(stride) == {1} and min(around) >= 0 and not _is_small(patched):
        windowed = g.shape[2:], size, kernel, stride, around, dilation
        if channels <= out.shape[1] or _direct_layout((g, weight), channels, direct.LONG, *windowed) is not None:
            return convolve(
                xp, g, _turned(weight, groups), size=size, stride=stride, padding=around, dilation=dilation,
                groups=groups,
            )[0]  # fmt: skip
    if depthwise:
        layout = windows.layout_of(tuple(size), g.shape[2:], kernel, stride, padding, dilation)
        return windows.spread(np.ascontiguousarray(g), _rows(weight), layout)
    if patched is not None:
        return native.convolve_input(g, weight, patched)
    matrices = _by_group(weight, groups).swapaxes(-1, -2).copy()
    rows, of_each = channels // groups, inner * groups * places

    short = groups == 1 and g.shape[-1] <= SHORT and inner >= 4 * channels  # else turning g costs more than is saved

    def work(start, end):
        for part in _parts(start, end, of_each):
            images = part.stop - part.start
            if short and images >= MANY_IMAGES:
                _input_of_part(xp, g[part], matrices, out[part], kernel, stride, padding, dilation)
                continue
            patches = scratch(xp, "patches", (images, out.shape[1], *kernel, *g.shape[2:]), g.dtype)
            xp.module.matmul(
                matrices,
                _as_matrices(g[part], groups, rows, places),
                out=_as_matrices(patches, groups, inner, places),
            )
            put_patches_together(
                xp, patches, size=size, stride=stride, padding=padding, dilation=dilation, out=out[part]
            )

    _over_images(xp, work, n, of_each, rows * inner * places)
    return out


def _input_of_part(xp, g, matrix, out, kernel, stride, padding, dilation):
    """Write the gradient of some inputs whose results have short rows: with images as the last axis all runs are long."""
    images, channels, *places = g.shape
    turned = scratch(xp, "turned", (prod(g.shape[1:]), images), g.dtype)
    turned[...] = g.reshape(images, -1).T
    patches = scratch(xp, "patches", (matrix.shape[0], prod(places) * images), g.dtype)
    xp.module.dot(matrix, turned.reshape(channels, -1), out=patches)
    whole = scratch(xp, "whole", (*out.shape[1:], images), g.dtype)
    put_patches_together(
        xp, patches.reshape(1, out.shape[1], *kernel, 1, *places, images), size=(*out.shape[2:], images),
        stride=(*stride, 1), padding=(*padding, 0), dilation=(*dilation, 1), out=whole,
    )  # fmt: skip
    out.reshape(images, -1)[...] = whole.reshape(-1, images).T


def _turned(weight, groups):
    """Return the weight of the opposite convolution: channels exchanged in each group, each kernel turned round."""
    out, inner, *kernel = weight.shape
    back = (..., *(slice(None, None, -1),) * len(kernel))
    turned = weight.reshape(groups, out // groups, inner, *kernel)[back].swapaxes(1, 2)
    return turned.copy().reshape(groups * inner, out // groups, *kernel)  # dense: BLAS takes no negative steps
