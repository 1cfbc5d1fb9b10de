"""torch.torch_version: the release whose behaviour is matched, as a version that compares by its numbers."""

from __future__ import annotations

from ._as_torch import TORCH_VERSION, TorchVersion

__version__ = TorchVersion(TORCH_VERSION)

__all__ = ["TorchVersion"]
