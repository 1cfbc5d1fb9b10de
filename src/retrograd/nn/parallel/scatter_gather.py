"""torch.nn.parallel.scatter_gather: arguments cut for several devices, and results joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tensor import Tensor
from . import comm


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Cut the tensors in nested arguments for each device; all else goes to each as it is."""
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, target_gpus, dim=dim)
    if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
        return [
            type(inputs)(*parts) for parts in zip(*(scatter(one, target_gpus, dim) for one in inputs), strict=False)
        ]
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = zip(*(scatter(one, target_gpus, dim) for one in inputs), strict=False)
        return [type(inputs)(one) for one in parts]
    if isinstance(inputs, dict) and inputs:
        values = zip(*(scatter(one, target_gpus, dim) for one in inputs.values()), strict=False)
        return [type(inputs)(zip(inputs, one, strict=True)) for one in values]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Cut positional and named arguments for each device; the shorter list gets empty ones."""
    given = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    given += [()] * (len(named) - len(given))
    named += [{}] * (len(given) - len(named))
    return tuple(given), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Join nested results of several devices on one."""
    first = outputs[0]
    if isinstance(first, Tensor):
        if not all(one.is_cuda for one in outputs):
            raise AssertionError("Gather function not implemented for CPU tensors")
        rows = [one.unsqueeze(0) for one in outputs] if not first.dim() else list(outputs)
        return comm.gather(rows, dim, target_device)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(one) == len(first) for one in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([one[key] for one in outputs], target_device, dim)) for key in first)
    parts = [gather(alike, target_device, dim) for alike in zip(*outputs, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


__all__ = ["gather", "scatter", "scatter_kwargs"]
