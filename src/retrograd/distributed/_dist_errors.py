"""The errors of processes that work together."""

from __future__ import annotations


class DistError(RuntimeError):
    """An error of processes that work together."""


class DistBackendError(DistError):
    """An error of what carries messages."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of the store of notes."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing."""


def ranks_in_words(ranks: list[int]) -> str:
    """Name processes by their numbers."""
    return f"rank{'s' if len(ranks) != 1 else ''} {', '.join(map(str, ranks))}"


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "retrograd.distributed"  # where torch has them
