"""torch.utils.data.datapipes.map: tables made of tables."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from .datapipe import MapDataPipe, functional_datapipe
from .iter import Beside, InBatches, InRandomOrder, Joined

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
class Batcher(InBatches, MapDataPipe[Any]):
    """Samples in batches."""

    def __getitem__(self, index: int) -> Any:
        places = range(index * self.batch_size, min((index + 1) * self.batch_size, len(self.datapipe)))
        if not places or (self.drop_last and len(places) < self.batch_size):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[one] for one in places])


@functional_datapipe("concat")
class Concater(Joined, MapDataPipe[Any]):
    """One table after another."""

    _kind = MapDataPipe

    def __getitem__(self, index: int) -> Any:
        rest = index
        for one in self.datapipes:
            if rest < len(one):
                return one[rest]
            rest -= len(one)
        raise IndexError(f"Index {index} is out of range.")


@functional_datapipe("zip")
class Zipper(Beside, MapDataPipe[Any]):
    """Tuples of a sample of each table."""

    _kind = MapDataPipe

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(one[index] for one in self.datapipes)


class Shuffler(InRandomOrder):
    """The samples of a table in random order, as a stream."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__(datapipe)
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def __iter__(self) -> Iterator[Any]:
        order = self._rng.sample(self.indices, len(self.indices))[::-1] if self._enabled else self.indices
        for one in order:
            yield self.datapipe[one]


MapDataPipe.register_function("shuffle", lambda source, *args, **kwargs: Shuffler(source, *args, **kwargs))

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
for _name in __all__:  # torch's classes have longer names, and these as others
    _long = f"{_name}{'Iter' if _name == 'Shuffler' else 'Map'}DataPipe"
    globals()[_name].__name__ = globals()[_name].__qualname__ = _long
    globals()[_long] = globals()[_name]
