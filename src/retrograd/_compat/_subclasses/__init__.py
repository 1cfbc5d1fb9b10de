"""torch._subclasses: tensors without numbers, which torch's compiler runs programs on."""

from __future__ import annotations

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
