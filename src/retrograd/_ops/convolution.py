"""Convolution, its two transposes, and patches.

Note [One form, three products]
The sum of g * convolution(x, w) is linear in each of x, w and g. Leaving one of them out gives a product of the other two:
`convolve` (x, w), `convolve_input` (g, w), which is the transposed convolution, and `convolve_weight` (g, x). Each is linear in
both its arrays and the gradients of each are the other two, so derivatives of every order stay among the three.
`size` is the spatial size of the result of each; the other parameters are those of the convolution in all three.
With groups, channels are (groups, channels of a group). A batch of vmap is folded into the images, into channels, or, if both
arrays have it, into the groups: always one call.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .._core.fused import fused, single
from .._core.passes import ones
from .._core.primitive import linear, multilinear, vocabulary
from .._core.shown import saved_array
from . import convolution_kernels as kernels
from .matrices import conjugate


# ---- the products ----
@multilinear(torch="convolution")
def convolve(xp, x, w, *, size, stride, padding, dilation, groups):
    """x (n, c, *s), w (o, c / groups, *k) -> (n, o, *size)."""
    return kernels.convolve(xp, x, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)[0]


@multilinear(torch="convolution_transpose")
def convolve_input(xp, g, w, *, size, stride, padding, dilation, groups):
    """g (n, o, *p), w (o, c / groups, *k) -> (n, c, *size)."""
    return kernels.convolve_input(xp, g, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)


@multilinear(torch="convolution_weight")
def convolve_weight(xp, g, x, *, size, stride, padding, dilation, groups):
    """g (n, o, *p), x (n, c, *s) -> (o, c / groups, *size)."""
    return kernels.convolve_weight(
        xp, g, x, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@convolve.vjp("x")
def convolve_dx(xp, g, w, x_shape, stride, padding, dilation, groups):
    return xp.convolve_input(
        g, conjugate(xp, w), size=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@convolve.vjp("w")
def convolve_dw(xp, g, x, w_shape, stride, padding, dilation, groups):
    return xp.convolve_weight(
        g, conjugate(xp, x), size=w_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@convolve_input.vjp("g")
def convolve_input_dg(xp, gradient, w, g_shape, stride, padding, dilation, groups):
    return xp.convolve(
        gradient, conjugate(xp, w), size=g_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@convolve_input.vjp("w")
def convolve_input_dw(xp, gradient, g, w_shape, stride, padding, dilation, groups):
    return xp.convolve_weight(
        conjugate(xp, g), gradient, size=w_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@convolve_weight.vjp("g")
def convolve_weight_dg(xp, gradient, x, g_shape, stride, padding, dilation, groups):
    return xp.convolve(
        conjugate(xp, x), gradient, size=g_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@convolve_weight.vjp("x")
def convolve_weight_dx(xp, gradient, g, x_shape, stride, padding, dilation, groups):
    return xp.convolve_input(
        conjugate(xp, g), gradient, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


# ---- batches: images, channels or groups ----
def _moved(x, at, to):
    """Move one axis."""
    order = [a for a in range(x.ndim) if a != at]
    order.insert(to, at)
    return vocabulary.permute_dims(x, axes=tuple(order)) if at != to else x


def _joined(x, at):
    """Join an axis and the next."""
    shape = tuple(x.shape)
    return vocabulary.reshape(x, shape=(*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))


def _parted(x, at, first):
    """Split an axis in two; the first has a given length."""
    shape = tuple(x.shape)
    return vocabulary.reshape(x, shape=(*shape[:at], first, shape[at] // first, *shape[at + 1 :]))


def _into_channels(x, groups, at):
    """Fold the batch axis, which is first, into the channels of each group; `at` is where channels are without it."""
    x = _parted(x, at + 1, groups)  # (batch, ..., groups, channels of a group, ...)
    return _joined(_joined(_moved(x, 0, at + 1), at + 1), at)


def _out_of_channels(x, groups, at, size):
    """Take the batch axis out of the channels of each group."""
    x = _parted(_parted(x, at, groups), at + 1, size)  # (..., groups, batch, channels of a group, ...)
    return _joined(_moved(x, at + 1, 0), at + 1)


def _into_groups(x, at):
    """Fold the batch axis in front of the channels, which are at `at` without it."""
    return _joined(_moved(x, 0, at), at)


def _out_of_groups(x, at, size):
    return _moved(_parted(x, at, size), at, 0)


@convolve.batch
def convolve_batch(call, args, batched, size_, *, groups, **params):
    x, w = args
    if all(batched):
        out = call(_into_groups(x, 1), _joined(w, 0), groups=groups * size_, **params)
        return _out_of_groups(out, 1, size_)
    if batched[0]:
        return _parted(call(_joined(x, 0), w, groups=groups, **params), 0, size_)
    out = call(x, _into_channels(w, groups, 0), groups=groups, **params)
    return _out_of_channels(out, groups, 1, size_)


@convolve_input.batch
def convolve_input_batch(call, args, batched, size_, *, groups, **params):
    g, w = args
    if all(batched):
        out = call(_into_groups(g, 1), _joined(w, 0), groups=groups * size_, **params)
        return _out_of_groups(out, 1, size_)
    if batched[0]:
        return _parted(call(_joined(g, 0), w, groups=groups, **params), 0, size_)
    out = call(g, _into_groups(w, 1), groups=groups, **params)  # channels of one group: the batch in front of them
    return _out_of_channels(out, groups, 1, size_)


@convolve_weight.batch
def convolve_weight_batch(call, args, batched, size_, *, groups, **params):
    g, x = args
    if all(batched):
        return _parted(call(_into_groups(g, 1), _into_groups(x, 1), groups=groups * size_, **params), 0, size_)
    if batched[0]:
        out = call(_into_channels(g, groups, 1), x, groups=groups, **params)
        return _out_of_channels(out, groups, 0, size_)
    out = call(g, _into_channels(x, groups, 1), groups=groups, **params)
    return _out_of_groups(out, 1, size_)


# ---- convolutions with a bias, as torch records them ----
def _with_bias(xp, out, bias):
    if bias is None:
        return out
    return out + xp.reshape(bias, shape=(*bias.shape, *(1,) * (len(out.shape) - 2)))


def _sum_of_places(xp, g):
    """Sum over the places of each image, by BLAS."""
    rows = g.reshape(*g.shape[:2], prod(g.shape[2:]))
    return xp.module.matmul(rows, ones(rows.shape[-1], g.dtype)) if xp.module is np else rows.sum(-1)


def _bias_gradient(xp, g):
    """Sum over images and places."""
    return xp.sum(_sum_of_places(xp, g), axis=(0,))


def _shows(operation):
    """Declare what torch shows of its node for both directions."""

    def bias_sizes(node):
        bias = saved_array(node, "bias")
        return (0,) if bias is None else tuple(bias.shape)

    def output_padding(node):
        """Return how much longer the result of a transposed convolution is than it need be."""
        params, shape = node.params, saved_array(node, "input").shape[2:]
        if operation.name == "convolution":
            return (0,) * len(shape)
        given = [params[name] for name in ("size", "stride", "padding", "dilation")]
        lengths = zip(*given, shape, saved_array(node, "weight").shape[2:], strict=True)
        return tuple(m - ((n - 1) * step - 2 * pad + gap * (k - 1) + 1) for m, step, pad, gap, n, k in lengths)

    operation.shows(
        f"dilation groups input padding stride transposed={operation.name != 'convolution'} weight",
        bias_sym_sizes_opt=bias_sizes,
        output_padding=output_padding,
    )


@fused("ConvolutionBackward0", unread=("bias",), reads_result=False, takes_halves=True)
def convolution(xp, input, weight, bias, *, size, stride, padding, dilation, groups):
    """The convolution of a batch, and its patches if they are few."""
    out, patches = kernels.convolve(
        xp, input, weight, bias, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups, keep=True
    )
    return out, (patches,)


_shows(convolution)


@convolution.backward
def convolution_back(xp, g, needed, residuals, input, weight, bias, *, size, **params):
    return (
        kernels.convolve_input(xp, g, weight, size=input.shape[2:], **params) if needed[0] else None,
        kernels.convolve_weight(xp, g, input, size=weight.shape[2:], **params, patches=residuals[0])
        if needed[1]
        else None,
        _bias_gradient(xp, single(g)) if needed[2] else None,
    )


@convolution.batch
def convolution_batch(xp, count, batched, input, weight, bias, **params):
    """One weight for the images of all samples."""
    if batched != (True, False, False):
        return None
    images = input.shape[1]
    folded = input.reshape(count * images, *input.shape[2:])
    out, patches = kernels.convolve(xp, folded, weight, bias, **params, keep=True)
    return out.reshape(count, images, *out.shape[1:]), (patches,)


@convolution.batch_backward
def convolution_batch_back(xp, g, needed, residuals, batched, input, weight, bias, *, size, **params):
    count, images = input.shape[:2]
    folded, x = (a.reshape(count * images, *a.shape[2:]) for a in (g, input))
    dx = dw = db = None
    if needed[0]:
        dx = kernels.convolve_input(xp, folded, weight, size=x.shape[2:], **params).reshape(input.shape)
    if needed[1]:
        dw = kernels.convolve_weights(xp, folded, x, size=weight.shape[2:], **params, patches=residuals[0])
        dw = _total_of_images(xp, dw, count, images)
    if needed[2]:
        db = _total_of_images(xp, _sum_of_places(xp, folded), count, images)
    return dx, dw, db


def _total_of_images(xp, x, count, images):
    """Add what the images of each sample have given."""
    return x if images == 1 else xp.sum(x.reshape(count, images, *x.shape[1:]), axis=(1,))


@convolution.decomposition
def convolution_parts(xp, input, weight, bias, **params):
    return _with_bias(xp, xp.convolve(input, weight, **params), bias)


@fused("ConvolutionBackward0", unread=("bias",), reads_result=False)
def transposed_convolution(xp, input, weight, bias, *, size, stride, padding, dilation, groups):
    """The transposed convolution of a batch."""
    out = kernels.convolve_input(
        xp, input, weight, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(size))
    return out, None


_shows(transposed_convolution)


@transposed_convolution.backward
def transposed_convolution_back(xp, g, needed, residuals, input, weight, bias, *, size, **params):
    return (
        kernels.convolve(xp, g, weight, size=input.shape[2:], **params)[0] if needed[0] else None,
        kernels.convolve_weight(xp, input, g, size=weight.shape[2:], **params) if needed[1] else None,
        _bias_gradient(xp, g) if needed[2] else None,
    )


@transposed_convolution.decomposition
def transposed_convolution_parts(xp, input, weight, bias, **params):
    return _with_bias(xp, xp.convolve_input(input, weight, **params), bias)


# ---- patches ----
@linear
def im2col(xp, x, *, kernel, stride, padding, dilation):
    """The patches of x (n, c, *s), as columns (n, c * kernel, places); or of a single image (c, *s)."""
    size = kernels.places_of(x.shape[-len(kernel) :], kernel, stride, padding, dilation)
    images = x if x.ndim == len(kernel) + 2 else x[None]
    patches = kernels.cut_into_patches(
        xp, images, size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )
    columns = patches.reshape(*x.shape[: -1 - len(kernel)], images.shape[1] * prod(kernel), prod(size))
    return columns.copy() if prod(kernel) == 1 else columns  # which may be x itself


im2col.shows(
    "dilation kernel_size=kernel padding stride",
    self_sym_argsize_minus_1=lambda node: node.x_shape[-1],
    self_sym_argsize_minus_2=lambda node: node.x_shape[-2],
)


@im2col.vjp("x")
def im2col_dx(xp, g, x_shape, kernel, stride, padding, dilation):
    size = x_shape[-len(kernel) :]
    return xp.col2im(g, size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation)


@linear(shows="dilation kernel_size=kernel padding stride")
def col2im(xp, x, *, size, kernel, stride, padding, dilation):
    """Columns added where `im2col` took them from: the transpose of it."""
    places = kernels.places_of(size, kernel, stride, padding, dilation)
    channels = x.shape[-2] // prod(kernel)
    patches = x.reshape(x.shape[0] if x.ndim == 3 else 1, channels, *kernel, *places)
    if kernels.is_half(x.dtype):
        patches = patches.astype("float32")
    out = kernels.put_patches_together(xp, patches, size=size, stride=stride, padding=padding, dilation=dilation)
    return out.astype(x.dtype, copy=prod(kernel) == 1).reshape(*x.shape[:-2], channels, *size)


@col2im.vjp("x")
def col2im_dx(xp, g, kernel, stride, padding, dilation):
    return xp.im2col(g, kernel=kernel, stride=stride, padding=padding, dilation=dilation)


def _images_by_batch(axes):
    """Batch an operation on images of some axes, or on single ones, which then are images."""

    def batch(call, args, batched, size_, **params):
        (x,) = args
        return call(x, **params) if x.ndim == axes else _parted(call(_joined(x, 0), **params), 0, size_)

    return batch


im2col.batch(_images_by_batch(4))
col2im.batch(_images_by_batch(3))
