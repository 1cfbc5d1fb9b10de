"""Pooling to a given size: windows that cover each axis evenly, and windows whose places are drawn."""

from __future__ import annotations

import math
from typing import Any

from ... import _errors
from ..._core.arrays import raw_leaf
from ..._ops import pooling as p
from ..._ops import pooling_places, resizing
from ...overrides import overridable_as
from ...tensor._functions.random_tensors import rand
from ...tensor._functions.reduce import mean
from ...tensor._object.devices import beside, on_host
from ...tensor._recording.record import record
from ...tensor._recording.refusals import REFUSED, kernel, refuse
from ._pooling import LAST, MANY, ints_of

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]

for _kind in ("avg", "max"):
    for _ndim in (1, 2):
        REFUSED[f"adaptive_{_kind}_pool{_ndim}d"] = {"bic": kernel(f"adaptive_{_kind}_pool2d")}
    REFUSED[f"adaptive_{_kind}_pool3d"] = {"bic": kernel(f"adaptive_{_kind}_pool3d_cpu")}
for _ndim in (2, 3):
    REFUSED[f"fractional_max_pool{_ndim}d"] = {
        "bi": kernel("check_uniform_bounds"),
        "c": kernel(f"fractional_max_pool{_ndim}d_out_frame"),
    }
_RANKS = {2: "3D or 4D", 3: "4D or 5D"}


def _with_defaults(output_size: Any, shape: Any) -> Any:
    """Put the input's size where the wanted one is None."""
    if isinstance(output_size, int):
        return output_size
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = shape[len(shape) - len(output_size) :]
    return tuple([n if wanted is None else wanted for wanted, n in zip(output_size, sizes, strict=True)])


def _counts(name: str, ndim: int, input: Any, output_size: Any) -> tuple[int, ...]:
    """Read the wanted sizes and refuse what torch refuses."""
    shape = tuple(input._array.shape)
    average = "avg" in name
    counts = ints_of(name, "output_size", 2, output_size)
    if isinstance(output_size, int):
        counts *= ndim
    rank = len(shape)
    if ndim == 1:
        if len(counts) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(counts)})")
        if not 2 <= rank <= 3:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {rank}-dimensional tensor for argument #1 'self' (while checking "
                f"arguments for {name})"
            )
    elif average and len(counts) != ndim:
        raise RuntimeError(f"{name}: output_size must be {ndim}")
    if not average or not _to_one(ndim, input._array, counts):  # torch looks no further at what becomes a mean
        _check_shape(name, ndim, shape, counts)
    return counts


def _to_one(ndim: int, array: Any, counts: tuple[int, ...]) -> bool:
    return all(n == 1 for n in counts) and (ndim > 1 or not array.size or array.dtype.kind not in "fV")


def _check_shape(name: str, ndim: int, shape: tuple[int, ...], counts: tuple[int, ...]) -> None:
    average, rank = "avg" in name, len(shape)
    if ndim == 1 and average:  # torch pools over two axes
        name, ndim, shape, counts, rank = "adaptive_avg_pool2d", 2, (*shape[:-1], 1, shape[-1]), (1, *counts), rank + 1
    if average and min(counts) < 0:
        shown = f"{{{counts[0]}, " + ",".join([str(n) for n in counts[1:]]) + "}"
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {shown}")
    if not ndim + 1 <= rank <= ndim + 2:
        colon = "" if average else ":"
        raise RuntimeError(f"{name}(): Expected {_RANKS[ndim]} tensor, but got{colon} {_errors.sizes(shape)}")
    first = rank - ndim if (average and ndim < 3) or rank == ndim + 1 else rank - ndim - 1
    for axis in range(first, rank):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{_errors.sizes(shape)} with dimension {axis} being empty"
            )
    if not average and len(counts) != ndim:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {ndim}")
    if min(counts) < 0:
        lead = shape[: rank - ndim]
        made = (*lead, 1, *counts) if ndim == 1 else (*lead, *counts)
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {_errors.sizes(made)}")


def _even_windows(sizes: tuple[int, ...], counts: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return windows of one size, if such windows cover every axis."""
    if any(count == 0 or size % count for size, count in zip(sizes, counts, strict=True)):
        return None
    return tuple([p.Window(n, n // m, n // m, 0, 1, m) for n, m in zip(sizes, counts, strict=True)])


# ---- means ----
def _adaptive_avg(name: str, ndim: int, input: Any, output_size: Any) -> Any:
    counts = _counts(name, ndim, input, output_size)
    array = input._array
    if _to_one(ndim, array, counts):
        return mean(input, tuple(range(-ndim, 0)), keepdim=True)
    if 0 not in counts:  # torch looks at the dtype where there is something to compute
        refuse(name, array.dtype)
    sizes = tuple(array.shape)[array.ndim - ndim :]
    node = f"AdaptiveAvgPool{ndim}DBackward0"
    windows = _even_windows(sizes, counts)
    if windows is not None:
        return record(p.avg_pool, (input,), {"windows": windows, "counts": "all"}, node)
    taps = tuple([resizing.mean_taps(n, m) for n, m in zip(sizes, counts, strict=True)])
    return record(resizing.resample, (input,), {"taps": taps}, node)


def _adaptive_avg_pool(ndim: int) -> Any:
    name = f"adaptive_avg_pool{ndim}d"

    def pool(input: Any, output_size: Any) -> Any:
        if ndim > 1:
            output_size = _with_defaults(output_size, input._array.shape)
        return _adaptive_avg(name, ndim, input, output_size)

    none = "; None keeps an axis" if ndim > 1 else ""
    doc = f"Take means of the {LAST[ndim]} so that as many remain as wanted{none}."
    return overridable_as(name, pool, doc, raised="cpu" if ndim == 3 else "")


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_pool, (1, 2, 3))


# ---- largest elements ----
def _adaptive_max(name: str, ndim: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    counts = _counts(name, ndim, input, output_size)
    array = input._array
    refuse(name, array.dtype)
    sizes = tuple(array.shape)[array.ndim - ndim :]
    node = f"AdaptiveMaxPool{ndim}DBackward0"
    windows = _even_windows(sizes, counts)
    if windows is not None and math.prod([w.kernel for w in windows]) <= MANY:
        values, at = record(p.max_pool, (input,), {"windows": windows}, node)
        return (values, record(p.max_pool_indices, (at,), {"windows": windows})) if return_indices else values
    places = beside(pooling_places.of_adaptive(sizes, counts), array)
    values, indices = record(p.max_of_places, (input, places), {"ndim": ndim, "shape": counts}, node)
    return (values, indices) if return_indices else values


def _adaptive_max_pools(ndim: int) -> tuple[Any, Any]:
    """Make the pooling of so many axes, and the one that always returns indices."""
    name = f"adaptive_max_pool{ndim}d"

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        if ndim > 1:
            output_size = _with_defaults(output_size, input._array.shape)
        return _adaptive_max(name, ndim, input, output_size, return_indices)

    def with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        return public(input, output_size, True)

    none = "; None keeps an axis" if ndim > 1 else ""
    doc = f"Take the largest elements of parts of the {LAST[ndim]}, as many as wanted{none}."
    public = overridable_as(name, pool, doc, raised="cpu" if ndim == 3 else "")
    doc = f"Pool like `{name}`, and return the indices, too."
    return public, overridable_as(f"{name}_with_indices", with_indices, doc)


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pools(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pools(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pools(3)


# ---- drawn windows ----
_AXES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _fractional(
    ndim: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any, return_indices: bool
) -> Any:
    name = f"fractional_max_pool{ndim}d"
    shape = tuple(input._array.shape)
    rank = len(shape)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(output_ratio) > ndim:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        sizes = shape[rank - ndim :]
        output_size = tuple([int(sizes[k] * output_ratio[k]) for k in range(ndim)])
    if samples is None:
        if rank <= ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}], but got -{ndim + 1})"
            )
        if input._array.dtype.kind not in "fV":
            refuse(name, input._array.dtype)
        samples = rand(1 if rank == ndim + 1 else shape[0], shape[rank - ndim - 1], ndim, dtype=input.dtype)
    kernels, counts = _fractional_sizes(name, ndim, kernel_size, output_size)
    _check_fractional(name, ndim, input, kernels, counts, samples)
    numbers = on_host(raw_leaf(samples._array))
    numbers = numbers[: shape[0]] if rank == ndim + 2 else numbers[0]
    if ndim == 2:
        numbers = numbers[..., ::-1]  # torch draws for the width first
    places = pooling_places.of_fractions(numbers, shape[rank - ndim :], kernels, counts)
    params = {"ndim": ndim, "shape": counts}
    places = beside(places, input._array)
    node, shown = f"FractionalMaxPool{ndim}DBackward0", {"kernel_size": kernels, "output_size": counts}
    values, indices = record(p.max_of_places, (input, places), params, node, shown)
    return (values, indices) if return_indices else values


def _fractional_sizes(name: str, ndim: int, kernel_size: Any, output_size: Any) -> tuple[Any, Any]:
    found = []
    for argument, position, value in (("kernel_size", 2, kernel_size), ("output_size", 3, output_size)):
        values = ints_of(name, argument, position, value)
        values = values * ndim if len(values) == 1 else values
        if len(values) != ndim:
            words = "tuple of Ints" if ndim == 2 else "tuple of three Ints"
            raise RuntimeError(f"{name}: {argument} must either be a single Int or {words}")
        found.append(values)
    return found[0], found[1]


def _check_fractional(name: str, ndim: int, input: Any, kernels: Any, counts: Any, samples: Any) -> None:
    shape = tuple(input._array.shape)
    rank = len(shape)
    who = f"{name}()" if ndim == 2 else f"{name}_out()"
    if not ndim + 1 <= rank <= ndim + 2:
        raise RuntimeError(f"{who}: Expected {_RANKS[ndim]} tensor, but got: {_errors.sizes(shape)}")
    for axis in range(rank - ndim - 1, rank):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{who}: Expected input to have non-zero size for non-batch dimensions, but got"
                f"{_errors.sizes(shape)} with dimension {axis} being empty."
            )
    sizes = shape[rank - ndim :]
    for word, width, size, count in zip(_AXES[ndim], kernels, sizes, counts, strict=True):
        if count + width - 1 > size:
            raise RuntimeError(f"{who}: pool {word} {width} too large relative to input {word} {size}")
    given = tuple(samples._array.shape)
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(given) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(given)}")
    if given[0] < (shape[0] if rank == ndim + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if given[1] != shape[rank - ndim - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if given[2] != ndim:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {ndim}; got {given[2]}.")
    refuse(name, input._array.dtype)


def _fractional_pools(ndim: int) -> tuple[Any, Any]:
    """Make the pooling of so many axes, and the one that always returns indices."""
    name = f"fractional_max_pool{ndim}d"

    def pool(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        return _fractional(ndim, input, kernel_size, output_size, output_ratio, _random_samples, return_indices)

    def with_indices(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        return _fractional(ndim, input, kernel_size, output_size, output_ratio, _random_samples, True)

    drawn = "Take the largest elements of windows whose places are drawn"
    return (
        overridable_as(name, pool, f"{drawn}, as many along the {LAST[ndim]} as wanted.", raised="cpu"),
        overridable_as(f"{name}_with_indices", with_indices, f"Pool like `{name}`, and return the indices, too."),
    )


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_pools(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_pools(3)
