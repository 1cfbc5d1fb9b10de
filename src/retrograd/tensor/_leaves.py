"""Leaves: which tensors are, and switching `requires_grad`."""

from __future__ import annotations

from typing import Any

from .._modes import current_mode
from ._base import LEAF
from ._views import NOWHERE, _edge_slot, sync, sync_views

NOT_A_LEAF = "you can only change requires_grad flags of leaf variables."
DETACH_INSTEAD = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
    "var.detach()."
)


def is_leaf(tensor: Any) -> bool:
    """Tell whether a tensor has no node, even where reading `grad_fn` would raise."""
    edge = _edge_slot.__get__(tensor)
    return edge is None or edge is LEAF or edge is NOWHERE


def set_requires_grad(tensor: Any, value: bool, kinds: str = "floating point dtype") -> None:
    """Change whether autograd follows a leaf; its views follow it."""
    if value and tensor._array.dtype.kind not in "fcV":
        raise RuntimeError(f"only Tensors of {kinds} can require gradients")
    storage = tensor._storage
    if value and storage is not None and storage.inference and not current_mode().inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if (
        value
        and any(t.kind in ("grad", "vjp", "jacrev") for t in current_mode().transforms)
        and _edge_slot.__get__(tensor) is None
    ):
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
            "inside of a function being transformed by a functorch transform. This is unsupported, please attempt "
            "to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() "
            "outside of a function being transformed instead."
        )
    _edge_slot.__set__(tensor, LEAF if value else None)
    if tensor._extra is not None and tensor._extra.view is not None:
        sync(tensor, storage.version)
    elif storage is not None and storage.views is not None:
        sync_views(storage)
