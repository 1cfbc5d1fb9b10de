"""torch.utils.data._utils.fetch: from indices to batches, in the main process and in workers alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dataset import Subset, TensorDataset
from .collate import rows_of, stacks_plainly


class _BaseDatasetFetcher:
    """What is common: the dataset, whether samples are put together, and how."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes the next samples of a stream; an index only says how many."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Takes samples by their indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if stacks_plainly(self.collate_fn):
            batch = batch_of_rows(self.dataset, possibly_batched_index)
            if batch is not None:
                return batch
        at_once = getattr(self.dataset, "__getitems__", None)
        samples = (
            at_once(possibly_batched_index) if at_once else [self.dataset[index] for index in possibly_batched_index]
        )
        return self.collate_fn(samples)


def batch_of_rows(dataset: Any, indices: Any) -> list[Any] | None:
    """Return the batch of a TensorDataset, or of a Subset of one, with one indexing for each tensor.

    None where samples may be more than rows: other datasets, methods of a subclass, tensors with a graph, odd indices.
    """
    kind = type(dataset)
    if kind is Subset:
        try:
            return batch_of_rows(dataset.dataset, [dataset.indices[index] for index in indices])
        except (IndexError, TypeError):
            return None
    if not isinstance(dataset, TensorDataset) or kind.__getitem__ is not TensorDataset.__getitem__:
        return None
    if hasattr(dataset, "__getitems__") or not isinstance(indices, (list, tuple)) or set(map(type, indices)) != {int}:
        return None
    batch = [rows_of(whole, indices) for whole in dataset.tensors]
    return None if any(part is None for part in batch) else batch
