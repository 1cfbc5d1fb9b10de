"""Indexing as torch makes it of views and of operations on tensors of positions."""

from __future__ import annotations

from typing import Any

from .._modes import current_mode
from ..tensor import _base
from . import hidden
from .composites import Tensor, aten, composite, fresh, torch


# ---- indexing ----
@composite("__getitem__")
def getitem(self: Any, index: Any) -> Any:
    result, tensors = _by_views(self, index)
    return result if tensors is None else aten.index.Tensor(result, tensors)


def _by_views(self: Any, index: Any) -> tuple[Any, Any]:
    """Take what views give of an index; and the tensors that are left, None if there are none."""
    parts = list(index) if isinstance(index, tuple) else [index]
    used = sum(_dims_of(one) for one in parts)
    if any(one is Ellipsis for one in parts):
        at = next(k for k, one in enumerate(parts) if one is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (self.dim() - used)
        parts = [slice(None) if one is Ellipsis else one for one in parts]  # any further one
    tensors: list[Any] = []
    dim, result = 0, self
    for one in parts:
        if one is None:
            result = result.unsqueeze(dim)
            tensors.append(None)
            dim += 1
        elif isinstance(one, bool):
            result = result.unsqueeze(dim)
            tensors.append(torch.tensor([0] if one else [], dtype=torch.int64))
            dim += 1
        elif isinstance(one, slice):
            if one != slice(None):
                size = result.shape[dim]
                start, stop = (None if x is None else int(x) for x in (one.start, one.stop))
                start = 0 if start is None else start
                stop = 9223372036854775807 if stop is None else stop
                if not (start == 0 and stop >= size and one.step in (None, 1)):
                    step = () if one.step in (None, 1) else (int(one.step),)
                    result = aten.slice.Tensor(result, dim, start, stop, *step)
            tensors.append(None)
            dim += 1
        elif isinstance(one, Tensor) and (one.dim() or one.dtype == torch.bool):
            tensors.append(one)
            dim += one.dim() if one.dtype in (torch.bool, torch.uint8) else 1
        elif isinstance(one, (list, tuple)) or (hasattr(one, "__array__") and not isinstance(one, Tensor) and one.ndim):
            one = torch.tensor(one)
            tensors.append(one)
            dim += one.dim() if one.dtype == torch.bool else 1
        else:
            number = int(one)
            size = result.shape[dim] if dim < result.dim() else 0
            if dim >= result.dim():
                raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of bounds for dimension {dim} with size {size}")
            result = result.select(dim, number)
    while tensors and tensors[-1] is None:
        tensors.pop()
    if not any(one is not None for one in tensors):
        return (result if result is not self or index in ((), Ellipsis) else aten.alias.default(result)), None
    return result, tensors


def _dims_of(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype in (torch.bool, torch.uint8):
        return int(part.dim())
    return 1


@composite("__setitem__")
def setitem(self: Any, index: Any, value: Any) -> Any:
    if not isinstance(value, Tensor):
        with hidden():
            value = torch.tensor(value, dtype=self.dtype, device=self.device)
        value = fresh(value) if current_mode().dispatch_modes else value
    target, tensors = _by_views(self, index)
    if tensors is not None:
        if value.dtype != self.dtype:
            value = value.to(self.dtype)
        aten.index_put_.default(target, tensors, value)
    elif not value.dim() and target.dim() and type(self) not in _base.dispatch_types:
        target.fill_(value)
    else:
        while value.dim() > target.dim() and value.shape[0] == 1:
            value = value.squeeze(0)
        target.copy_(value)
    return None


@composite("index_put_", "index_put")
def index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return NotImplemented


@composite("take_along_dim")
def take_along_dim(input: Any, indices: Any, dim: Any = None) -> Any:
    if dim is None:
        return NotImplemented
    batch = torch.broadcast_shapes(
        [n if k != dim % input.dim() else 1 for k, n in enumerate(input.shape)],
        [n if k != dim % input.dim() else 1 for k, n in enumerate(indices.shape)],
    )
    own, wanted = list(batch), list(batch)
    own[dim], wanted[dim] = input.shape[dim], indices.shape[dim]
    spread = input.expand(own)
    return spread.gather(dim, indices.expand(wanted).remainder(input.shape[dim]))
