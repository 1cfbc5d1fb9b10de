"""torch.utils.data.distributed: the part of a dataset that one of several processes takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._tracebacks import guard_public as _guard_public
from ...distributed import get_rank, get_world_size
from ...tensor._functions.generators import Generator
from ...tensor._functions.random_tensors import randperm
from .sampler import Sampler


class DistributedSampler(Sampler[Any]):
    """Every `num_replicas`-th index, from `rank` on, of an order that all processes agree on.

    Args:
        dataset: a dataset with a length
        num_replicas: how many processes share it
        rank: the number of this process
        shuffle: a new random order in each epoch
        seed: the seed of that order, the same in all processes
        drop_last: leave samples out that do not divide evenly, instead of repeating some

    Example:
        >>> list(torch.utils.data.distributed.DistributedSampler(range(6), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 5]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = get_world_size()
        if rank is None:
            rank = get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(size, generator=generator).tolist()
        else:
            order = list(range(size))
        if not self.drop_last and order:
            order *= -(-self.total_size // size)  # repeated from the beginning until all processes have as many
        order = order[: self.total_size]
        if len(order) != self.total_size:
            raise AssertionError(f"Number of indices ({len(order)}) does not match total_size ({self.total_size})")
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number that makes each epoch's order another one."""
        self.epoch = epoch


__all__ = ["DistributedSampler"]


_guard_public(globals())
