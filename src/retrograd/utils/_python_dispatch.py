"""torch.utils._python_dispatch: libraries ask whether a tensor is made of others."""

from __future__ import annotations

from typing import Any

from .._absent import finder
from ..tensor import Tensor

__getattr__ = finder("torch.utils._python_dispatch")
__all__ = ["is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Tell whether a class of tensors says which tensors it consists of, and how to put it together from them."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Tell whether a value is a tensor that consists of others, and says so."""
    return is_traceable_wrapper_subclass_type(type(t))
