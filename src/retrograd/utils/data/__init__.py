"""torch.utils.data: datasets, samplers and the DataLoader. Data pipes are loaded when asked for."""

from __future__ import annotations

from ..._absent import finder
from ..._public import set_all
from .dataloader import DataLoader as DataLoader
from .dataloader import _DatasetKind as _DatasetKind
from .dataloader import default_collate as default_collate
from .dataloader import default_convert as default_convert
from .dataloader import get_worker_info as get_worker_info
from .dataset import *  # noqa: F403
from .distributed import DistributedSampler as DistributedSampler
from .sampler import *  # noqa: F403

__getattr__ = finder("torch.utils.data")


set_all(globals(), "_DatasetKind")
