"""torch.backends: switches that programs set, and questions they ask. None of them changes a result here."""

from __future__ import annotations

from types import SimpleNamespace

from .. import cuda as _cuda

cudnn = SimpleNamespace(
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    is_available=_cuda.is_available,
    version=lambda: None,
)
cuda = SimpleNamespace(
    is_built=_cuda.is_available,
    matmul=SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True),
)
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
mkl = SimpleNamespace(is_available=lambda: False)
mkldnn = SimpleNamespace(is_available=lambda: False, enabled=False)
openmp = SimpleNamespace(is_available=lambda: True)

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
