"""torch._tensor: the class of tensors, and what pickles call for those that have attributes or are of a subclass."""

from __future__ import annotations

from retrograd.tensor import Tensor
from retrograd.tensor._files.pickling import _rebuild_from_type_v2

__all__ = ["Tensor", "_rebuild_from_type_v2"]
