"""Evenly spaced numbers, and the identity matrix."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import LevelArray
from ..._dtypes import CPP_NAMES
from ..._modes import current_mode
from .. import _base
from .._object.numbers import element_of
from .creation import as_dtype, as_tensor, finish, into, numpy_dtype, options_of


def _refuse_kernel(name: str, dtype: np.dtype[Any], kinds: str) -> None:
    if dtype.kind in kinds or dtype.num in _dtypes.STORED_NUMBERS:
        scalar = _dtypes.from_numpy(dtype)._scalar_name
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{scalar}'")


def _number(value: Any) -> Any:
    if isinstance(value, _base.Tensor):
        return value.item()
    if not isinstance(value, (int, float, complex, np.generic)):
        raise TypeError("arange(): not a number")
    return value


_MISSING: Any = object()


def arange(
    *args: Any,
    start: Any = _MISSING,
    end: Any = _MISSING,
    step: Any = _MISSING,
    **options: Any,
) -> Any:
    """Make the numbers from `start` to `end`, without `end`, a step apart.

    Args:
        *args: end; or start and end; or start, end and step
        start: where it begins; 0 if it is not given
        end: where it stops
        step: the distance of two numbers
        **options: `dtype` (int64 if all three are integers, else the default float dtype), `device`, `requires_grad`, `out`

    Example:
        >>> torch.arange(4), torch.arange(1, 2, 0.5)
        (tensor([0, 1, 2, 3]), tensor([1.0000, 1.5000]))
    """
    out, dtype, device, requires_grad = options_of("arange", options) if options else (None, None, None, False)
    only_positions = start is end is step is _MISSING and dtype is out is None
    if only_positions and len(args) == 1 and type(args[0]) is int and args[0] >= 0:
        return finish(np.arange(args[0]), device, requires_grad)
    given = list(args)
    if given:
        if len(given) == 1 and end is _MISSING:
            end = given.pop()
        elif start is _MISSING:
            start = given.pop(0)
        end = given.pop(0) if given and end is _MISSING else end
        step = given.pop(0) if given and step is _MISSING else step
    if end is _MISSING or given:
        raise TypeError("arange(): too many arguments, or no end")
    first = 0 if start is _MISSING else _number(start)
    last = _number(end)
    by = 1 if step is _MISSING else _number(step)
    if out is not None:
        return into(out, dtype, lambda own: finish(_counted(first, last, by, own.numpy)))
    if dtype is None:
        whole = type(first) is not float and all(isinstance(a, (int, np.integer)) for a in (first, last, by))
        dtype = _dtypes.int64 if whole else _dtypes.get_default_dtype()
    return finish(_counted(first, last, by, as_dtype(dtype, "arange").numpy), device, requires_grad)


def _counted(first: Any, last: Any, by: Any, dtype: np.dtype[Any]) -> Any:
    if any(isinstance(a, complex) for a in (first, last, by)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    _refuse_kernel("arange", dtype, "bc")
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first:g} -> {last:g}")
    if (by > 0 and first > last) or (by < 0 and first < last):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype == np.int64:  # torch counts in integers then
        first, last, by = int(first), int(last), int(by)
        if by == 0:
            raise ValueError("step must be nonzero")
        return np.arange(first, last, by)
    count = math.ceil((last - first) / by)
    if dtype.kind in "iu":
        return (int(first) + np.arange(count) * int(by)).astype(dtype)
    return (
        (first + np.arange(count) * by).astype(np.float32 if dtype.itemsize == 2 else dtype).astype(dtype, copy=False)
    )


def _ends(name: str, start: Any, end: Any, steps: Any) -> None:
    """Raise torch's errors for the ends and the number of evenly spaced numbers."""
    if isinstance(steps, _base.Tensor):
        steps = steps.item()
    ranks = [
        (which, one._array.ndim) for which, one in (("start", start), ("end", end)) if isinstance(one, _base.Tensor)
    ]
    if any(rank for _, rank in ranks):
        words = " and ".join(f"{which} with {rank} dimension(s)" for which, rank in ranks)
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {words}.")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def _dtype_of_space(name: str, start: Any, end: Any, dtype: Any) -> np.dtype[Any]:
    kinds = [
        one._array.dtype.kind if isinstance(one, _base.Tensor) else np.asarray(one).dtype.kind for one in (start, end)
    ]
    if "c" not in kinds:
        return numpy_dtype(dtype, name)
    inferred = _dtypes.default_complex()
    if dtype is not None and not dtype.is_complex:
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {CPP_NAMES[inferred.name]} can't be safely cast to passed dtype "
            f"{dtype._scalar_name}"
        )
    return (inferred if dtype is None else dtype).numpy


def _spaced(start: Any, end: Any, steps: int, dtype: np.dtype[Any], base: float | None) -> Any:
    """Return the numbers, counted from both ends as torch does, or a base raised to them, as an array or a Tensor."""
    if any(isinstance(one, _base.Tensor) and isinstance(one._array, LevelArray) for one in (start, end)):
        return _spaced_tensors(start, end, steps, _dtypes.from_numpy(dtype), base)
    first, last = (one.item() if isinstance(one, _base.Tensor) else one for one in (start, end))
    if steps == 1 and base is not None and dtype.kind in "fV":
        return finish(np.array([base**first]).astype(np.float32 if dtype.itemsize == 2 else dtype).astype(dtype))
    half = dtype.itemsize == 2 and dtype.kind in "fV"
    if dtype.kind in "iu":
        low, high = (int(element_of(one, dtype)) for one in (first, last))
        wide: np.dtype[Any] = np.dtype(np.float64)
    else:
        wide = np.dtype(np.float32) if half else dtype
        low, high = (element_of(one, dtype).astype(wide) for one in (first, last))
    if steps == 1:
        values = np.array([low], wide)
    else:
        step = wide.type(wide.type(high) - wide.type(low)) / wide.type(max(steps - 1, 1))
        k = np.arange(steps)
        near = (wide.type(low) + step * k.astype(wide)).astype(wide)
        far = (wide.type(high) - step * (steps - 1 - k).astype(wide)).astype(wide)
        values = np.where(k < steps // 2 if dtype.kind in "iu" and base is None else k < steps / 2, near, far)
    if base is not None:
        with np.errstate(all="ignore"):
            values = np.power(wide.type(base), values)
    with np.errstate(all="ignore"):
        return finish(values.astype(dtype))


def _spaced_tensors(start: Any, end: Any, steps: int, dtype: Any, base: float | None) -> Any:
    """Compute with Tensors, of which some belong to a transform."""
    wide = _dtypes.float64 if not (dtype.is_floating_point or dtype.is_complex) else dtype
    low, high = (as_tensor(one).detach().to(dtype).to(wide) for one in (start, end))
    k = finish(np.arange(steps, dtype=np.float64)).to(wide)
    step = (high - low) / max(steps - 1, 1)
    near, far = low + step * k, high - step * (steps - 1 - k)
    values = near.where(finish(np.arange(steps) < max(steps / 2, 1)), far)
    return (values if base is None else base**values).to(dtype)


def _spaces(name: str, start: Any, end: Any, steps: Any, base: float | None, options: dict[str, Any]) -> Any:
    out, dtype, device, requires_grad = options_of(name, options)
    _ends(name, start, end, steps)
    if out is not None:
        return into(out, dtype, lambda own: _spaces(name, start, end, steps, base, {"dtype": own}))
    wanted = _dtype_of_space(name, start, end, None if dtype is None else as_dtype(dtype, name))
    _refuse_kernel(name, wanted, "b")
    made = _spaced(start, end, int(steps), wanted, base)
    made = made if device is None else made.to(device)
    return finish(made._array, None, True) if requires_grad else made


FEW = 64


@lru_cache(32)
def _counts(steps: int, dtype: np.dtype[Any]) -> Any:
    """Return how many steps each value is away from its own end: from the start 0, 1, ..., to the end ..., -1, -0."""
    counts = np.arange(steps, dtype=dtype)
    half = (steps + 1) // 2
    counts[half:] = -counts[: steps - half][::-1]
    return counts


def _few_spaced(start: Any, end: Any, steps: int, base: float | None) -> Any:
    """Return what `_spaced` does, for few numbers between two numbers in the default dtype; None if it is another case."""
    dtype = _dtypes.get_default_dtype().numpy
    if dtype.itemsize < 4 or not (-1e38 < start < 1e38 and -1e38 < end < 1e38):
        return None
    number = dtype.type
    first, last = number(start), number(end)
    values = _counts(steps, dtype) * ((last - first) / number(steps - 1))
    half = (steps + 1) // 2
    near, far = values[:half], values[half:]
    np.add(near, first, near)
    np.add(far, last, far)
    if base is not None:
        current_mode()  # which silences what NumPy has to say about numbers too large
        values = np.power(np.array(base, dtype), values)
    return finish(values)


_NUMBERS = frozenset({int, float})


def linspace(start: Any, end: Any, steps: Any = _MISSING, **options: Any) -> Any:
    """Make `steps` evenly spaced numbers, both ends included.

    Args:
        start: the first number
        end: the last number
        steps: how many
        **options: `dtype`, `device`, `requires_grad`, `out`

    Example:
        >>> torch.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if not options and type(steps) is int and 1 < steps < FEW and type(start) in _NUMBERS and type(end) in _NUMBERS:
        made = _few_spaced(start, end, steps, None)
        if made is not None:
            return made
    return _spaces("linspace", start, end, steps, None, options)


def logspace(start: Any, end: Any, steps: Any = _MISSING, base: float = 10.0, **options: Any) -> Any:
    """Make numbers that are evenly spaced on a logarithmic scale, both ends included.

    Args:
        start: the exponent of the first number
        end: the exponent of the last number
        steps: how many
        base: the base
        **options: `dtype`, `device`, `requires_grad`, `out`

    Example:
        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    if not options and type(steps) is int and 1 < steps < FEW and type(start) in _NUMBERS and type(end) in _NUMBERS:
        made = _few_spaced(start, end, steps, base)
        if made is not None:
            return made
    return _spaces("logspace", start, end, steps, base, options)


def eye(n: Any, m: Any = None, **options: Any) -> Any:
    """Make the identity matrix.

    Args:
        n: the number of rows
        m: the number of columns; as many as rows if it is not given
        **options: `dtype`, `device`, `requires_grad`, `out`

    Example:
        >>> torch.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    out, dtype, device, requires_grad = options_of("eye", options)
    if out is not None:
        return into(out, dtype, lambda own: eye(n, m, dtype=own))
    for which, count in (("n", n), ("m", n if m is None else m)):
        if count < 0:
            raise RuntimeError(f"{which} must be greater or equal to 0, got {count}")
    wanted = numpy_dtype(dtype, "eye")
    if wanted.num in _dtypes.STORED_NUMBERS and wanted not in [each.numpy for each in _dtypes.FLOAT8_DTYPES]:
        raise NotImplementedError(f"\"eye\" not implemented for '{_dtypes.from_numpy(wanted)._scalar_name}'")
    return finish(np.eye(n, n if m is None else m, dtype=wanted), device, requires_grad)
