"""torch.functional: an older home of functions that are torch's own."""

from __future__ import annotations

from typing import Any

from .tensor import find, functions

__all__ = """atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index""".split()  # noqa: SIM905 - names read better as text


def __getattr__(name: str) -> Any:
    if name in __all__:
        return functions().get(name) or find(name)
    raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")
