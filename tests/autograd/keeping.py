"""Notes how tensors are before an error, to see that it changed nothing."""

from __future__ import annotations

from typing import Any

kept: list[tuple[Any, Any]] = []


def state(tensor: Any) -> Any:
    """Return what must not change about a tensor."""
    version = None if tensor.is_inference() else tensor._version
    grad = tensor.grad if tensor.is_leaf else None
    values = None if grad is None else grad.tolist()
    return (
        tensor.detach().tolist(),
        tensor.shape,
        tensor.dtype,
        tensor.requires_grad,
        version,
        tensor.grad_fn,
        values,
    )


def keep(*tensors: Any) -> Any:
    """Note how tensors are before the error."""
    kept.extend((tensor, state(tensor)) for tensor in tensors)
    return tensors[0] if len(tensors) == 1 else tensors


def unchanged() -> bool:
    """Tell whether every noted tensor is as it was."""
    return all(state(tensor) == before for tensor, before in kept)


def ones(torch: Any, *shape: int, **options: Any) -> Any:
    return torch.ones(shape, dtype=torch.float64, **options)


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)
