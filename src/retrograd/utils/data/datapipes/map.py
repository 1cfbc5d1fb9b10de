"""torch.utils.data.datapipes.map: tables made of tables."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from .datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe
from .iter import random_number

__path__: list[str] = []  # torch has each class in a module of its own


def default_fn(data: Any) -> Any:
    """Return a sample as it is."""
    return data


class SequenceWrapper(MapDataPipe[Any]):
    """The samples of a sequence, or of a mapping; a copy of it unless told."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe[Any]):
    """What a function makes of each sample."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = default_fn) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe[Any]):
    """Samples in batches."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = (
            datapipe,
            batch_size,
            drop_last,
            wrapper_class,
        )

    def __getitem__(self, index: int) -> Any:
        places = range(index * self.batch_size, min((index + 1) * self.batch_size, len(self.datapipe)))
        if not places or (self.drop_last and len(places) < self.batch_size):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[one] for one in places])

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class _OfMany(MapDataPipe[Any]):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(one, MapDataPipe) for one in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class Concater(_OfMany):
    """One table after another."""

    def __getitem__(self, index: int) -> Any:
        rest = index
        for one in self.datapipes:
            if rest < len(one):
                return one[rest]
            rest -= len(one)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(one) for one in self.datapipes)


@functional_datapipe("zip")
class Zipper(_OfMany):
    """Tuples of a sample of each table."""

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(one[index] for one in self.datapipes)

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes)


class Shuffler(IterDataPipe[Any]):
    """The samples of a table in random order, as a stream."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Switch the random order on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """Choose the next order."""
        self._seed = seed  # type: ignore[assignment]
        return self

    def reset(self) -> None:
        """Draw the next order."""
        if self._enabled:
            self._rng.seed(random_number() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        order = self._rng.sample(self.indices, len(self.indices))[::-1] if self._enabled else self.indices
        for one in order:
            yield self.datapipe[one]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_function("shuffle", lambda source, *args, **kwargs: Shuffler(source, *args, **kwargs))

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
for _name in __all__:  # torch's classes have longer names, and these as others
    _long = f"{_name}{'Iter' if _name == 'Shuffler' else 'Map'}DataPipe"
    globals()[_name].__name__ = globals()[_name].__qualname__ = _long
    globals()[_long] = globals()[_name]
