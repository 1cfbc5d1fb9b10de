"""torch.utils.data.datapipes.utils.snapshot: names that stand in other modules."""

from __future__ import annotations

from ...graph_settings import apply_random_seed
from ..datapipe import IterDataPipe

__all__ = ["IterDataPipe", "apply_random_seed"]
