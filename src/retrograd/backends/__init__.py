"""torch.backends: switches that programs set, and questions they ask. None of them changes a result here."""

from __future__ import annotations

from types import SimpleNamespace

from . import cuda, cudnn, mps

mkl = SimpleNamespace(is_available=lambda: False)
mkldnn = SimpleNamespace(is_available=lambda: False, enabled=False)
openmp = SimpleNamespace(is_available=lambda: True)
opt_einsum = SimpleNamespace(is_available=lambda: False, enabled=False, strategy=None)

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
