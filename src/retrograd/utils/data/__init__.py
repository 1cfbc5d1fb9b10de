"""torch.utils.data: datasets, samplers and the DataLoader. Data pipes are loaded when asked for."""

from __future__ import annotations

from ..._absent import finder
from . import dataset, sampler
from .dataloader import DataLoader, _DatasetKind, default_collate, default_convert, get_worker_info
from .dataset import *  # noqa: F403
from .distributed import DistributedSampler
from .sampler import *  # noqa: F403

__getattr__ = finder("torch.utils.data")

__all__ = [
    *dataset.__all__,
    *sampler.__all__,
    "DataLoader",
    "DistributedSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
