"""torch.autograd.variable: a Variable has long been a Tensor."""

from __future__ import annotations

from ..tensor._tensor import Tensor

Variable = Tensor

__all__ = ["Variable"]
