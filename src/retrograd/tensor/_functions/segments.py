"""Reductions of runs along an axis, given by their lengths or by where they begin."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ...overrides import overridable
from .joining import stack
from .matrix_checks import scalar_name

_NAMES = {"sum": "sum", "prod": "prod", "mean": "mean", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin"}
_EMPTY = {"sum": 0.0, "prod": 1.0, "mean": float("nan"), "amax": float("-inf"), "amin": float("inf")}


@overridable(forms="function")
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    """Reduce runs along `axis`: each row of `lengths` says how long they are, or each row of `offsets` where they begin and end."""
    if reduce not in _NAMES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if offsets is not None:
        lengths = offsets.diff()
    if lengths.dtype not in (_dtypes.int32, _dtypes.int64):
        raise NotImplementedError(
            f"\"_segment_reduce_lengths_cpu_kernel1\" not implemented for '{scalar_name(lengths)}'"
        )
    axis = axis % data.dim()
    if axis != lengths.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if not unsafe:
        if lengths.numel() and int(lengths.min()) < 0:
            raise RuntimeError("lengths contains negative value!")
        if offsets is None and not bool((lengths.sum(-1) == data.shape[axis]).all()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    return _rows(data, _NAMES[reduce], lengths, initial)


def _rows(data: Any, name: str, lengths: Any, initial: Any) -> Any:
    """Reduce each row by its own lengths."""
    if lengths.dim() > 1:
        pairs = zip(data.unbind(0), lengths.unbind(0), strict=True)
        return stack([_rows(one, name, its, initial) for one, its in pairs])
    runs = data[: int(lengths.sum())].split(lengths.tolist())
    return stack([_reduced(run, name, initial) for run in runs])


def _reduced(run: Any, name: str, initial: Any) -> Any:
    count = run.shape[0]
    start = _EMPTY[name] if initial is None else initial
    if not count:
        return run.new_full(run.shape[1:], start)
    if name == "mean":
        return run.mean(0) if initial is None else (run.sum(0) + initial) / count
    found = getattr(run, name)(0)
    if initial is None:
        return found
    if name in ("amax", "amin"):
        return found.clamp(min=start) if name == "amax" else found.clamp(max=start)
    return found + start if name == "sum" else found * start
