"""torch.backends: switches that programs set, and questions they ask. None of them changes a result here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from .._absent import finder
from . import cpu, cuda, cudnn, kleidiai, mha, mkl, mps, nnpack, quantized

mkldnn = SimpleNamespace(is_available=lambda: False, enabled=False)
openmp = SimpleNamespace(is_available=lambda: True)
opt_einsum = SimpleNamespace(is_available=lambda: False, enabled=False, strategy=None)


@contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """A block in which switches may be set: they may be everywhere."""
    yield


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
