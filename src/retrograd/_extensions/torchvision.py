"""The operations of torchvision's compiled library: boxes that overlap, regions of feature maps, deformable convolutions.

torchvision itself registers their derivatives, by the operations called `_..._backward`. The kernels compute on the CPU, wherever
their tensors are. Rotated boxes, quantized tensors and position-sensitive regions are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ..autograd import enable_grad, grad
from ..library import Library
from ..tensor import Tensor
from ..tensor._functions.creation import from_numpy

_MAP = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_BINS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_STEPS = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask"
)
_CONVOLVED = f"Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_STEPS}"
_library = Library("torchvision", "DEF")


def _computing(schema: str) -> Callable[[Any], Any]:
    """Define an operation that a function computes."""

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        _library.impl(_library.define(schema), function, "CompositeExplicitAutograd")
        return function

    return define


def _left_out(schema: str) -> None:
    name = schema.partition("(")[0]

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torchvision::{name} is compiled for torch's C++; retrograd cannot run it")

    _computing(schema)(refuse)


_left_out("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_left_out(
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    f"{_BINS}, int sampling_ratio, bool aligned) -> Tensor"
)
_left_out("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor")
_left_out(f"ps_roi_align(Tensor input, Tensor rois, {_BINS}, int sampling_ratio) -> (Tensor, Tensor)")
_left_out(
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BINS}, int sampling_ratio, {_MAP}) -> Tensor"
)
_left_out(f"ps_roi_pool(Tensor input, Tensor rois, {_BINS}) -> (Tensor, Tensor)")
_left_out(f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BINS}, {_MAP}) -> Tensor")


@_computing("_cuda_version() -> int")
def cuda_version() -> int:
    """Say that nothing here was compiled for CUDA."""
    return -1


def _numbers(*tensors: Tensor) -> list[Any]:
    """Return the arrays of tensors; those of a half precision as float32."""
    wide = [one if one.element_size() > 2 else one.float() for one in tensors]
    return [one.detach().cpu().numpy() for one in wide]


def _like(array: Any, of: Tensor) -> Tensor:
    made: Tensor = from_numpy(np.ascontiguousarray(array)).to(of.device)
    return made if of.element_size() > 2 else made.to(of.dtype)


# ---- boxes ----
@_computing("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the boxes that overlap no better one by more than a threshold, the best first."""
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if dets.size(0) != scores.size(0):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.size(0)} and {scores.size(0)}"
        )
    if dets.dtype != scores.dtype:
        raise RuntimeError("dets should have the same type as scores")
    boxes, ranks = _numbers(dets, scores)
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = (high - low).prod(axis=1)
    waiting, kept = np.argsort(-ranks, kind="stable"), []
    while waiting.size:
        best, waiting = waiting[0], waiting[1:]
        kept.append(best)
        sides = np.minimum(high[best], high[waiting]) - np.maximum(low[best], low[waiting])
        common = np.maximum(sides, 0).prod(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = common / (areas[best] + areas[waiting] - common)
        waiting = waiting[~(shares.astype(np.float64) > iou_threshold)]
    made: Tensor = from_numpy(np.array(kept, np.int64)).to(dets.device)
    return made


def _check_regions(values: Tensor, rois: Tensor, name: str, kernel: str) -> None:
    if rois.size(1) != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if values.dtype != rois.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 '{name}' to have the same type as tensor for argument #2 'rois'; but type "
            f"{values.type()} does not equal {rois.type()} (while checking arguments for {kernel})"
        )


# ---- roi_align ----
def _samples(start: Any, length: Any, bins: int, ratio: int, size: int) -> tuple[Any, Any, Any]:
    """Return what the bins of each region read along one axis: positions, their weights, and how many points a bin has.

    The first two have the shape (regions, bins, points, 2): each point lies between two positions. A point outside has the position -1.
    """
    kind = length.dtype.type
    step = length / kind(bins)
    points = np.full(len(start), ratio) if ratio > 0 else np.ceil(step).astype(np.int64)
    within = np.arange(max(int(points.max(initial=0)), 1), dtype=kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        fine = (within + kind(0.5)) * step[:, None] / points[:, None].astype(kind)
    coarse = start[:, None] + np.arange(bins, dtype=kind) * step[:, None]
    at = coarse[:, :, None] + fine[:, None, :]
    inside = (at >= -1) & (at <= size) & (within < points[:, None])[:, None, :]
    at = np.clip(np.where(inside, at, 0), 0, size - 1)
    low = at.astype(np.int64)
    share = at - low.astype(kind)
    positions = np.stack([low, np.minimum(low + 1, size - 1)], -1)
    weights = np.stack([1 - share, share], -1)
    return np.where(inside[..., None], positions, -1), weights, points


def _averages(rois: Any, scale: float, bins: tuple[int, int], ratio: int, aligned: bool, shape: Any) -> tuple[Any, Any]:
    """Return the matrix that takes a feature map, one row a place, to the sums of all bins, and the points in each region's bins."""
    batch, height, width = shape
    edges = rois[:, 1:] * rois.dtype.type(scale) - rois.dtype.type(0.5 if aligned else 0)
    lengths = edges[:, 2:] - edges[:, :2]
    if not aligned:
        lengths = np.maximum(lengths, 1)
    rows, row_weights, tall = _samples(edges[:, 1], lengths[:, 1], bins[0], ratio, height)
    columns, column_weights, wide = _samples(edges[:, 0], lengths[:, 0], bins[1], ratio, width)
    count = len(rois)
    rows, row_weights = (a.reshape(count, bins[0], 1, -1, 1) for a in (rows, row_weights))
    columns, column_weights = (a.reshape(count, 1, bins[1], 1, -1) for a in (columns, column_weights))
    image = rois[:, 0].astype(np.int64).reshape(-1, 1, 1, 1, 1)
    inside = ((rows >= 0) & (columns >= 0)).reshape(count * bins[0] * bins[1], -1)
    places = ((image * height + rows) * width + columns).reshape(inside.shape)
    weights = (row_weights * column_weights).reshape(inside.shape)
    ends = np.concatenate([[0], inside.sum(axis=1).cumsum()])
    size = (len(inside), batch * height * width)
    made = scipy.sparse.csr_array((weights[inside], places[inside], ends), shape=size)
    return made, np.maximum(tall * wide, 1).astype(rois.dtype)


@_computing(f"roi_align(Tensor input, Tensor rois, {_BINS}, int sampling_ratio, bool aligned) -> Tensor")
def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, height: int, width: int, sampling_ratio: int, aligned: bool
) -> Tensor:
    """Return the averages of points, read between places, in the bins of each region."""
    _check_regions(input, rois, "input", "roi_align_forward_kernel")
    values, regions = _numbers(input, rois)
    batch, channels, *size = values.shape
    matrix, points = _averages(regions, spatial_scale, (height, width), sampling_ratio, aligned, (batch, *size))
    sums = matrix @ values.transpose(0, 2, 3, 1).reshape(-1, channels)
    made = sums.reshape(-1, height, width, channels).transpose(0, 3, 1, 2) / points[:, None, None, None]
    return _like(made, input)


@_computing(
    f"_roi_align_backward(Tensor grad, Tensor rois, {_BINS}, {_MAP}, int sampling_ratio, bool aligned) -> Tensor"
)
def roi_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch: int, channels: int,
    height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Return the gradient of the feature map."""
    _check_regions(grad, rois, "grad", "roi_align_backward_kernel")
    values, regions = _numbers(grad, rois)
    bins, shape = (pooled_height, pooled_width), (batch, height, width)
    matrix, points = _averages(regions, spatial_scale, bins, sampling_ratio, aligned, shape)
    shares = (values / points[:, None, None, None]).transpose(0, 2, 3, 1).reshape(-1, channels)
    return _like((matrix.T @ shares).reshape(*shape, channels).transpose(0, 3, 1, 2), grad)


# ---- roi_pool ----
def _rounded(values: Any) -> Any:
    """Round half away from zero, as C does."""
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values)).astype(np.int64)


def _windows(start: int, end: int, bins: int, size: int, kind: Any) -> list[slice]:
    """Return the places of each bin of a region along one axis."""
    step = kind(max(end - start + 1, 1)) / kind(bins)
    low = np.clip(np.floor(np.arange(bins).astype(kind) * step).astype(np.int64) + start, 0, size)
    high = np.clip(np.ceil(np.arange(1, bins + 1).astype(kind) * step).astype(np.int64) + start, 0, size)
    return [slice(int(a), int(b)) for a, b in zip(low, high, strict=True)]


@_computing(f"roi_pool(Tensor input, Tensor rois, {_BINS}) -> (Tensor, Tensor)")
def roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the largest values in the bins of each region, and where they are; an empty bin has 0 and -1."""
    _check_regions(input, rois, "input", "roi_pool_forward_kernel")
    values, regions = _numbers(input, rois)
    channels, tall, wide = values.shape[1:]
    most = np.zeros((len(regions), channels, height, width), values.dtype)
    places = np.full(most.shape, -1, np.int32)
    edges, kind = _rounded(regions[:, 1:] * regions.dtype.type(spatial_scale)).tolist(), values.dtype.type
    for at, (left, top, right, bottom) in enumerate(edges):
        image = values[int(regions[at, 0])]
        for i, rows in enumerate(_windows(top, bottom, height, tall, kind)):
            for j, columns in enumerate(_windows(left, right, width, wide, kind)):
                window = image[:, rows, columns]
                if window.size:
                    first = window.reshape(channels, -1).argmax(axis=1)
                    most[at, :, i, j] = window.reshape(channels, -1)[np.arange(channels), first]
                    row, column = np.divmod(first, window.shape[2])
                    places[at, :, i, j] = (row + rows.start) * wide + column + columns.start
    return _like(most, input), from_numpy(places).to(input.device)


@_computing(f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_BINS}, {_MAP}) -> Tensor")
def roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch: int,
    channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    """Return the gradient of the feature map: each bin's goes to its largest value."""
    values, regions = _numbers(grad, rois)
    places = argmax.cpu().numpy()
    made = np.zeros((batch, channels, height * width), values.dtype)
    image = regions[:, 0].astype(np.int64)[:, None, None, None]
    of_image, of_channel, place = np.broadcast_arrays(image, np.arange(channels)[:, None, None], places)
    found = places >= 0
    np.add.at(made, (of_image[found], of_channel[found], place[found]), values[found])
    return _like(made.reshape(batch, channels, height, width), grad)


# ---- deformable convolution ----
@_computing(f"deform_conv2d({_CONVOLVED}) -> Tensor")
def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """Convolve with places that are moved by offsets, and read between the places of the input."""
    batch, channels, height, width = input.shape
    out_channels, _, *kernel = weight.shape
    out, taps = offset.shape[-2:], kernel[0] * kernel[1]
    moved = offset.reshape(batch, offset_groups, taps, 2, *out)
    # Where each tap reads if it is not moved.
    tap_row, tap_column = np.divmod(np.arange(taps), kernel[1])
    rows = np.arange(out[0])[None, :, None] * stride_h - pad_h + tap_row[:, None, None] * dilation_h
    columns = np.arange(out[1])[None, None, :] * stride_w - pad_w + tap_column[:, None, None] * dilation_w
    y = moved[:, :, :, 0] + from_numpy(np.broadcast_to(rows, (taps, *out)).copy()).to(offset)
    x = moved[:, :, :, 1] + from_numpy(np.broadcast_to(columns, (taps, *out)).copy()).to(offset)
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    top, left = y.detach().floor(), x.detach().floor()
    flat = input.reshape(batch, offset_groups, channels // offset_groups, height * width)
    read: Any = 0
    for down in (0, 1):
        for right in (0, 1):
            row, column = (top + down).long(), (left + right).long()
            share = (y - top if down else 1 - (y - top)) * (x - left if right else 1 - (x - left))
            exists = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).reshape(batch, offset_groups, 1, -1)
            values = flat.gather(3, place.expand(-1, -1, flat.size(2), -1))
            read = read + values * share.where(exists, 0).reshape(batch, offset_groups, 1, -1)
    if use_mask:
        read = read * mask.reshape(batch, offset_groups, 1, -1)
    taken = read.reshape(batch, groups, channels // groups * taps, out[0] * out[1])
    made = weight.reshape(groups, out_channels // groups, -1) @ taken
    result: Tensor = made.reshape(batch, out_channels, *out) + bias.reshape(-1, 1, 1)
    return result


@_computing(f"_deform_conv2d_backward(Tensor grad, {_CONVOLVED}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
def deform_conv2d_backward(gradient: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    """Return the gradients of input, weight, offset, mask and bias."""
    leaves = [one.detach().requires_grad_() for one in arguments[:5]]
    with enable_grad():
        made = deform_conv2d(*leaves, *arguments[5:])
    return grad(made, leaves, gradient, materialize_grads=True)
