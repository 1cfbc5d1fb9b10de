"""torch.backends: switches that programs set, and questions they ask. None of them changes a result here."""

from __future__ import annotations

from types import SimpleNamespace

from .._absent import finder
from . import cpu, cuda, cudnn, kleidiai, mha, mkl, mps, nnpack, quantized

mkldnn = SimpleNamespace(is_available=lambda: False, enabled=False)
openmp = SimpleNamespace(is_available=lambda: True)
opt_einsum = SimpleNamespace(is_available=lambda: False, enabled=False, strategy=None)

__allow_nonbracketed_mutation = True
fp32_precision = "none"  # which of its own precisions torch may use for float32: it is kept

__getattr__ = finder("torch.backends")

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "kleidiai",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]
