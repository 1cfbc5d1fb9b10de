"""torch.utils.data.sampler: the orders in which samples are drawn, on torch's random stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ... import _dtypes
from ..._public import set_all
from ..._tracebacks import guard_public as _guard_public
from ...tensor._functions.creation import as_tensor, empty
from ...tensor._functions.generators import Generator
from ...tensor._functions.random_tensors import randint, randperm

_T_co = TypeVar("_T_co", covariant=True)
AT_ONCE = 32  # how many indices torch draws in one call, with replacement


def drawn_seed(generator: Any = None) -> int:
    """Draw a seed from a generator, by default from the default one: one 64-bit number of its stream."""
    return int(empty((), dtype=_dtypes.int64).random_(generator=generator).item())


class Sampler(Generic[_T_co]):
    """An order of indices, or of lists of indices. A subclass has `__iter__`, and mostly `__len__`.

    Args:
        data_source: for torch's sake

    Example:
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter([2, 1, 0])
        >>> list(torch.utils.data.DataLoader([10, 20, 30], sampler=Backwards()))
        [tensor([30]), tensor([20]), tensor([10])]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All indices, in order."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order, or drawn with replacement.

    Args:
        data_source: a dataset with a length
        replacement: whether an index may come again
        num_samples: how many indices; as many as samples if it is not given
        generator: the stream of random numbers

    Example:
        >>> _ = torch.manual_seed(0)
        >>> sorted(torch.utils.data.RandomSampler([10, 20, 30]))
        [0, 1, 2]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """Return how many indices an epoch has; a dataset may grow between epochs."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        # Without a generator, torch starts one of its own at a seed drawn from the default stream.
        generator = Generator().manual_seed(drawn_seed()) if self.generator is None else self.generator
        if self.replacement:
            for _ in range(count // AT_ONCE):
                yield from randint(high=size, size=(AT_ONCE,), generator=generator).tolist()
            yield from randint(high=size, size=(count % AT_ONCE,), generator=generator).tolist()
        else:
            for _ in range(count // size):
                yield from randperm(size, generator=generator).tolist()
            # From a given generator torch draws one more even if nothing of it is wanted.
            if count % size or self.generator is not None:
                yield from randperm(size, generator=generator).tolist()[: count % size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices, in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights.

    Args:
        weights: a weight for each sample
        num_samples: how many indices
        replacement: whether an index may come again
        generator: the stream of random numbers

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 0.0], 3))
        [1, 1, 1]
    """

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=_dtypes.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from self.weights.multinomial(self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of as many indices of another sampler as a batch has."""

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices, size = iter(self.sampler), self.batch_size
        fewest = size if self.drop_last else 1
        while len(batch := list(itertools.islice(indices, size))) >= fewest:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]  # an iterable without length raises Python's own error
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


set_all(globals(), but="drawn_seed")


_guard_public(globals())
