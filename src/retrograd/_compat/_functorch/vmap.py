"""torch._functorch.vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd._absent import finder
from retrograd.func import vmap
from retrograd.func._vmap import restore_vmap


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Run a function once over batches."""
    return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)


__getattr__ = finder("torch._functorch.vmap")

__all__ = ["restore_vmap", "vmap_impl"]
