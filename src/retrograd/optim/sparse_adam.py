"""torch.optim.sparse_adam: not here, because there are no sparse gradients."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, ParamsT


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which retrograd does not have."""

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        raise NotImplementedError(
            "SparseAdam needs sparse gradients, and retrograd's gradients are dense. Use torch.optim.Adam: on dense "
            "gradients it takes the same steps."
        )


__all__ = ["SparseAdam"]
