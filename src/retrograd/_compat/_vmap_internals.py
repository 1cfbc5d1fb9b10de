"""torch._vmap_internals: vmap of old."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd._warnings import warn
from retrograd.autograd.function import OLD_VMAP
from retrograd.func._vmap import vmap as _new


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Map a function over a batch like `torch.vmap`, with a warning."""
    warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Map as gradcheck does: custom Functions run on the batched values, whether or not they say how to map them."""
    made: Callable[..., Any] = _new(
        func, in_dims, out_dims, randomness="error", _allow_none=allow_none_pass_through, _kind=OLD_VMAP
    )
    return made


__all__ = ["vmap"]
