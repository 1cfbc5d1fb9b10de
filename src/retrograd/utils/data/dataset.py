"""torch.utils.data.dataset: collections of samples, and how they are put together and taken apart."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..._public import set_all
from ..._tracebacks import guard_methods as _guard_methods
from ..._tracebacks import guard_public as _guard_public
from ..._warnings import warn
from ...tensor import Tensor
from ...tensor._functions.generators import default_generator
from ...tensor._functions.random_tensors import randperm

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Samples by key. A subclass has `__getitem__`, mostly `__len__`, and may have `__getitems__` for a list of keys.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> list(torch.utils.data.DataLoader(Squares(), batch_size=2))
        [tensor([0, 1]), tensor([4, 9])]
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """A stream of samples. In workers, each has its own copy: `get_worker_info` tells which part is theirs.

    Example:
        >>> class Stream(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(torch.utils.data.DataLoader(Stream(), batch_size=2))
        [tensor([0, 1]), tensor([2])]
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples are tuples of what the tensors have at one index of their first dimension.

    Args:
        *tensors: tensors of the same first size

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.arange(3), torch.arange(3) * 10)
        >>> len(data), data[1]
        (3, (tensor(1), tensor(10)))
    """

    tensors: tuple[Any, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


def _items_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Return several samples of a dataset, all at once if it can do that."""
    at_once = getattr(dataset, "__getitems__", None)
    if not callable(at_once):
        return [dataset[index] for index in indices]
    items: list[Any] = at_once(indices)
    return items


class StackDataset(Dataset[Any]):
    """Datasets side by side: a sample is the tuple, or the dict, of their samples."""

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        lengths = [len(one) for one in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError("Size mismatch between datasets")
        self._length = lengths[0]
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: dataset[index] for key, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        named = isinstance(self.datasets, dict)
        columns = []
        for dataset in self.datasets.values() if isinstance(self.datasets, dict) else self.datasets:
            items = _items_of(dataset, indices)
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
            columns.append(items)
        rows = zip(*columns, strict=True)
        return [dict(zip(self.datasets, row, strict=True)) for row in rows] if named else list(rows)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one after the other."""

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return where each dataset ends."""
        return list(itertools.accumulate(len(one) for one in sequence))

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(one, IterableDataset) for one in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]

    @property
    def cummulative_sizes(self) -> list[int]:
        """Return `cumulative_sizes` by its old, misspelt name."""
        warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[_T_co]):
    """The samples of a dataset at chosen indices.

    Args:
        dataset: the dataset
        indices: which of its samples

    Example:
        >>> list(torch.utils.data.Subset([10, 20, 30], [2, 0]))
        [30, 10]
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your custom "
                "logic. A simple implementation:\n\ndef __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[one] for one in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        return _items_of(self.dataset, [self.indices[one] for one in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _lengths_of_fractions(fractions: Sequence[float], size: int) -> list[int]:
    """Return how many samples each fraction gets; what rounding leaves over goes round, one each."""
    for k, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {k} is not between 0 and 1")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for k in range(size - sum(lengths)):
        lengths[k % len(lengths)] += 1
    for k, length in enumerate(lengths):
        if length == 0:
            warn(f"Length of split at index {k} is 0. This might result in an empty dataset.")
    return lengths


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = default_generator) -> list[Subset[Any]]:
    """Split a dataset at random into parts of given lengths, or of given fractions that sum to 1.

    Args:
        dataset: the dataset
        lengths: how many samples each part has, or which fraction
        generator: the stream of random numbers

    Example:
        >>> train, test = torch.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(train), len(test)
        (8, 2)
    """
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _lengths_of_fractions(lengths, len(dataset))
        total = sum(lengths)
    if total != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = iter(randperm(total, generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, int(length)))) for length in lengths]


set_all(globals())


_guard_public(globals())
for _cls in (TensorDataset, StackDataset, ConcatDataset, Subset):
    _guard_methods(_cls, "__getitem__", "__getitems__")
