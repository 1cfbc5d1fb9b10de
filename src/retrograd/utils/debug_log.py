"""torch.utils.debug_log: the sizes of gradients, told as they come."""

from __future__ import annotations

import logging
from typing import Any

from ..autograd.graph import register_multi_grad_hook

_log = logging.getLogger("torch.utils.debug_log")


def debug_grad_log(*tensors: Any) -> None:
    """Log the norms of the tensors' gradients once all of them have come."""
    watched = [one for one in tensors if one.requires_grad]
    if not watched:
        return

    def tell(grads: Any) -> None:
        norms = [f"t{k}_grad_norm={one.norm().item():.4f}" for k, one in enumerate(grads) if one is not None]
        _log.info("[rank 0][bwd] %s", " ".join(norms))

    register_multi_grad_hook(watched, tell)
