"""Layers that change the shape."""

from __future__ import annotations

from typing import Any

from ._layers import Shown

__all__ = ["Flatten", "Unflatten"]


class Flatten(Shown):
    """Makes one dimension of several.

    Args:
        start_dim: the first of them
        end_dim: the last of them

    Example:
        >>> nn.Flatten()(torch.ones(2, 3, 4)).shape
        torch.Size([2, 12])
    """

    __constants__ = ["start_dim", "end_dim"]
    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Shown):
    """Makes several dimensions of one.

    Args:
        dim: the dimension
        unflattened_size: the sizes

    Example:
        >>> nn.Unflatten(1, (3, 4))(torch.ones(2, 12)).shape
        torch.Size([2, 3, 4])
    """

    __constants__ = ["dim", "unflattened_size"]
    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (list, tuple)):
            kind = type(unflattened_size).__name__
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {kind}")
        for at, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {at}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)
