"""Resizing: interpolation to another size, and sampling at the points of a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _errors
from ..._core.numpy_namespace import is_half
from ..._ops import grid_sampling, resizing
from ..._tracebacks import hide
from ..._warnings import warn
from ...overrides import overridable
from ...tensor._recording.record import record
from ...tensor._recording.refusals import kernel, refuse, refused
from ._pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from ._public import public_names

_AREAS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_NEEDS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
_NODES = {
    "linear": "UpsampleLinear1DBackward0",
    "bilinear": "UpsampleBilinear2DBackward0",
    "trilinear": "UpsampleTrilinear3DBackward0",
    "bicubic": "UpsampleBicubic2DBackward0",
}
_SMOOTH_NODES = {
    "bilinear": "UpsampleBilinear2DAaBackward0",
    "bicubic": "UpsampleBicubic2DAaBackward0",
    "lanczos": "UpsampleLanczos2DAaBackward0",
}
_WIDTHS = {"bilinear": 2, "bicubic": 4, "lanczos": 6}

refused("interpolate_1", "interpolate_3", bic=kernel("compute_indices_weights_nearest"))
refused("interpolate_2", bic=kernel("upsample_nearest2d_channels_last"))
refused("interpolate_linear", "interpolate_trilinear", bic=kernel("compute_indices_weights_linear"))
refused("interpolate_bilinear", bic=kernel("upsample_bilinear2d_channels_last"))
refused("interpolate_bicubic", bic=kernel("compute_indices_weights_cubic"))
refused("interpolate_smooth", bich=kernel("compute_index_ranges_weights"))
refused("grid_sampler_2d", bic=kernel("grid_sampler_2d_cpu_kernel_impl"))
refused("grid_sampler_3d", bic=kernel("grid_sampler3d_cpu"))


def _each(given: Any, ndim: int, sizes: Any, what: str, word: str, letter: str) -> list[Any]:
    """Read one value for each axis, or one for all."""
    if not isinstance(given, (list, tuple)):
        return [given] * ndim
    if len(given) != ndim:
        shape = "of shape " if word == "scale_factor" else "of "
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(sizes)} and {word} {shape}{given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{word} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    return list(given)


@overridable
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resize the axes behind the channels.

    Args:
        input: (N, C, ...) with one to three axes behind
        size: the new sizes
        scale_factor: or factors for the sizes
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear", "area" or "nearest-exact"
        align_corners: whether the corner elements stay where they are
        recompute_scale_factor: compute with the factor that the rounded sizes give
        antialias: smooth before making smaller, in "bilinear" and "bicubic"

    Example:
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), size=3, mode="linear", align_corners=True)
        tensor([[[1.0000, 1.5000, 2.0000]]])
    """
    rank = input.dim()
    shape = tuple(input._array.shape)
    ndim, sizes = max(rank - 2, 0), shape[2:]
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    counts: Any = None
    factors: Any = None
    if size is not None:
        counts = _each(size, ndim, sizes, "output", "output size", "o")
        if isinstance(size, (list, tuple)) and not all(isinstance(n, int) for n in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(n) for n in size]}"
            )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    elif scale_factor is not None:
        factors = _each(scale_factor, ndim, sizes, "scale_factor", "scale_factor", "s")
    else:
        raise ValueError("either size or scale_factor should be defined")
    if counts is None:
        counts = [math.floor(float(n * factor)) for n, factor in zip(sizes, factors, strict=True)]
        if recompute_scale_factor or mode == "area":
            factors = None
    if antialias and not (mode in _WIDTHS and rank == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    _check_mode(mode, rank, antialias, bool(align_corners))
    if mode == "area":
        return _AREAS[ndim](input, counts)
    _check_resized(shape, counts)
    return _resized(input, tuple(counts), factors or (None,) * ndim, mode, bool(align_corners), antialias)


def _check_mode(mode: str, rank: int, antialias: bool, align: bool) -> None:
    needed = _NEEDS.get(mode)
    fits = mode in ("nearest", "nearest-exact", "area") or needed == rank - 2
    if 3 <= rank <= 5 and fits:
        if mode == "lanczos":
            if not antialias:
                raise ValueError("Lanczos mode requires antialias=True")
            if align:
                raise ValueError("Lanczos mode does not support align_corners=True")
        return
    if 3 <= rank <= 5 and mode in ("linear", "bilinear", "trilinear"):
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {_NEEDS[mode] + 2}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: nearest | linear | bilinear | "
        f"bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def _check_resized(shape: tuple[int, ...], counts: Any) -> None:
    sizes, ndim = shape[2:], len(shape) - 2
    if min(sizes) <= 0 or min(counts) <= 0:
        names = ("D", "H", "W")[3 - ndim :]
        given = ", ".join([f"{name}: {n}" for name, n in zip(names, sizes, strict=True)])
        made = ", ".join([f"{name}: {n}" for name, n in zip(names, counts, strict=True)])
        link = " and" if ndim == 1 else ""
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({given}){link} output ({made})"
        )
    if shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {_errors.sizes(shape)}"
        )


def _resized(input: Any, counts: Any, factors: Any, mode: str, align: bool, antialias: bool) -> Any:
    dtype = input._array.dtype
    sizes = tuple(input._array.shape)[2:]
    bytes_ = dtype == np.uint8 and len(sizes) > 1 and mode != "trilinear"
    if not bytes_ and not (dtype == np.uint8 and mode.startswith("nearest")):
        refuse(f"interpolate_{_kind(mode, len(sizes), antialias)}", dtype)
    number = np.dtype(np.float32) if bytes_ else dtype
    shown = {
        "output_size": tuple(counts),
        "factors": factors,
        "align_corners": align,
        "self_sym_sizes": tuple(input._array.shape),
    }
    if mode.startswith("nearest"):
        exact = mode == "nearest-exact"
        node = f"UpsampleNearest{'Exact' if exact else ''}{len(sizes)}DBackward0"
        taps = tuple([
            resizing.nearest_taps(n, m, _scale(n, m, factor, False), exact)
            for n, m, factor in zip(sizes, counts, factors, strict=True)
        ])  # fmt: skip
        return record(resizing.resample, (input,), {"taps": taps}, node, shown)
    scales = [_scale(n, m, factor, align) for n, m, factor in zip(sizes, counts, factors, strict=True)]
    axes = zip(sizes, counts, scales, strict=True)
    if antialias:
        taps = tuple([resizing.smooth_taps(n, m, scale, _WIDTHS[mode], number) for n, m, scale in axes])
    else:
        make = resizing.cubic_taps if mode == "bicubic" else resizing.linear_taps
        taps = tuple([make(n, m, scale, align, number) for n, m, scale in axes])
    if bytes_:
        return _resized_bytes(input, taps)
    return record(resizing.resample, (input,), {"taps": taps}, (_SMOOTH_NODES if antialias else _NODES)[mode], shown)


def _kind(mode: str, ndim: int, antialias: bool) -> str:
    return "smooth" if antialias else str(ndim) if mode.startswith("nearest") else mode


def _scale(size: int, count: int, factor: Any, align: bool) -> float:
    """Return how far one result is from the next, in elements."""
    if align:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1.0 / factor if factor is not None and factor > 0 else size / count


def _resized_bytes(input: Any, taps: tuple[Any, ...]) -> Any:
    """Interpolate bytes in float32, axis by axis, rounding after each as torch does."""
    out = input
    for k in range(len(taps) - 1, -1, -1):
        one = tuple([resizing.taps_of_bytes(tap) if j == k else None for j, tap in enumerate(taps)])
        wide = record(resizing.resample, (out.float(),), {"taps": one})
        out = (wide + 0.5).floor().clamp(0, 255).to(input.dtype)
    return out


# ---- names of old ----
def _deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """Resize like `interpolate`, which is the name to use."""
    try:
        _deprecated("upsample")
        return interpolate(input, size, scale_factor, mode, align_corners)
    except Exception as error:
        hide(error)
        raise


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resize like `interpolate`, which is the name to use."""
    try:
        _deprecated("upsample_nearest")
        return interpolate(input, size, scale_factor, mode="nearest")
    except Exception as error:
        hide(error)
        raise


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resize like `interpolate` with `align_corners=True`, which is the name to use."""
    try:
        _deprecated("upsample_bilinear")
        return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
    except Exception as error:
        hide(error)
        raise


# ---- grids ----
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _warn_corners() -> None:
    warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
    )


@overridable(raised="cpu")
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """Sample images at the points of a grid.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W)
        grid: points (N, Hout, Wout, 2), x before y, between -1 and 1 inside the image
        mode: "bilinear", "nearest" or "bicubic"
        padding_mode: outside: "zeros", "border" or "reflection"
        align_corners: whether -1 and 1 are the centres of the corner pixels, or their edges

    Example:
        >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> F.grid_sample(image, torch.zeros(1, 1, 1, 2), align_corners=True)
        tensor([[[[2.5000]]]])
    """
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        _warn_corners()
    return grid_sampler(input, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners))


@overridable(in_functional=False)
def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Sample at the points of a grid; modes are numbers."""
    shape, points = tuple(input._array.shape), tuple(grid._array.shape)
    if shape[:1] != points[:1]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{_errors.sizes(shape)} and grid with sizes {_errors.sizes(points)}"
        )
    if points[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes "
            f"{_errors.sizes(points)}"
        )
    for axis in range(2, len(shape)):
        if shape[axis] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{_errors.sizes(shape)} with dimension {axis} being empty"
            )
    ndim = len(shape) - 2
    if ndim not in (2, 3) or len(points) != len(shape):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{_errors.sizes(shape)} and grid with sizes {_errors.sizes(points)}"
        )
    if ndim == 3 and interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    refuse(f"grid_sampler_{ndim}d", input._array.dtype)
    if input._array.dtype != grid._array.dtype:
        names = input.dtype._scalar_name, grid.dtype._scalar_name
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    params = {
        "mode": _MODES[interpolation_mode],
        "padding": _PADDINGS[padding_mode],
        "align": bool(align_corners),
        # nearest and linear choose elements as torch does, which rounds at every step; cubic weights are rounded once
        "half": input._array.dtype if is_half(input._array.dtype) and interpolation_mode != 2 else None,
    }
    operation = grid_sampling.grid_sample_2d if ndim == 2 else grid_sampling.grid_sample_3d
    return record(operation, (input, grid), params)


@overridable(in_functional=False)
def grid_sampler_2d(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Sample at the points of a grid over two axes; modes are numbers."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@overridable(in_functional=False)
def grid_sampler_3d(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Sample at the points of a grid over three axes; modes are numbers."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@overridable
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Make the grids, for `grid_sample`, of affine maps (N, axes, axes + 1).

    Args:
        theta: the maps: (N, 2, 3) or (N, 3, 4)
        size: the size of the images, (N, C, H, W) or (N, C, D, H, W)
        align_corners: whether -1 and 1 are the centres of the corner pixels, or their edges

    Example:
        >>> F.affine_grid(torch.eye(2, 3).unsqueeze(0), (1, 1, 2, 2), align_corners=True).shape
        torch.Size([1, 2, 2, 2])
    """
    if align_corners is None:
        _warn_corners()
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = tuple(size)
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{_as_written(size)}."
        )
    ndim = len(size) - 2
    shape = tuple(theta._array.shape)
    if len(shape) != 3 or shape[1:] != (ndim, ndim + 1):
        raise ValueError(
            f"Expected a batch of {ndim}D affine matrices of shape Nx{ndim}x{ndim + 1} for size {_as_written(size)}. Got "
            f"{theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not "
            "an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {_as_written(size)}")
    return affine_grid_generator(theta, size, align_corners)


def _as_written(size: tuple[int, ...]) -> str:
    return f"({', '.join([str(n) for n in size])})"


@overridable(in_functional=False)
def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Any:
    """Make the grids of affine maps."""
    size = tuple(size)
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    shape = tuple(theta._array.shape)
    if shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {shape[2]}] but got: "
            f"[{shape[0]}, {shape[2]}]."
        )
    params = {"sizes": size[2:], "align": bool(align_corners)}
    return record(grid_sampling.affine_grid, (theta,), params, "AffineGridGeneratorBackward0", {"size": size})


__all__ = public_names(globals(), "upsample", "upsample_bilinear", "upsample_nearest")
