"""torch.utils.data.datapipes.iter: streams made of streams."""

from __future__ import annotations

import copy
import io
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

from ....tensor import functions as _functions
from ..dataloader import default_collate
from ..sampler import Sampler as _Sampler
from ..sampler import SequentialSampler
from .datapipe import DataChunk, IterDataPipe, functional_datapipe
from .utils.common import StreamWrapper, get_file_binaries_from_pathnames, get_file_pathnames_from_root
from .utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__path__: list[str] = []  # torch has each class in a module of its own


def random_number() -> int:
    """Draw a seed from torch's stream."""
    return int(_functions()["empty"]((), dtype=_int64()).random_().item())


def _int64() -> Any:
    from ...._dtypes import int64

    return int64


class IterableWrapper(IterDataPipe[Any]):
    """A stream of what an iterable has; a copy of it unless told."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        yield from copy.deepcopy(self.iterable) if self.deepcopy else self.iterable

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]


class _OfOne(IterDataPipe[Any]):
    """A stream made of one other."""

    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe


class _AsLong(_OfOne):
    """A stream of as many samples as the one it is made of."""

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("map")
class Mapper(_AsLong):
    """What a function makes of each sample, or of some of its columns."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _apply(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        made = self.fn(*_columns(data, self.input_col))
        first = self.input_col[0] if isinstance(self.input_col, (list, tuple)) else self.input_col
        is_tuple = isinstance(data, tuple)
        data = list(data) if is_tuple else copy.copy(data)
        if self.output_col is None:
            data[first] = made
            if isinstance(self.input_col, (list, tuple)):
                for one in sorted(self.input_col[1:], reverse=True):
                    del data[one]
        elif self.output_col == -1 and not isinstance(data, dict):
            data.append(made)
        else:
            data[self.output_col] = made
        return tuple(data) if is_tuple else data

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply(data)


def _columns(data: Any, columns: Any) -> list[Any]:
    return [data[one] for one in columns] if isinstance(columns, (list, tuple)) else [data[columns]]


@functional_datapipe("collate")
class Collator(Mapper):
    """Samples put together as the DataLoader does."""

    def __init__(
        self, datapipe: Any, conversion: Any = default_collate, collate_fn: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(datapipe, fn=collate_fn if collate_fn is not None else conversion)


@functional_datapipe("filter")
class Filter(_OfOne):
    """The samples of which a function is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        super().__init__(datapipe)
        self.filter_fn, self.input_col = filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            given = [data] if self.input_col is None else _columns(data, self.input_col)
            keep = self.filter_fn(*given)
            if not isinstance(keep, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got " + str(type(keep))
                )
            if keep:
                yield data


class InBatches:
    """What streams and tables of batches share."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size, self.drop_last, self.wrapper_class = batch_size, drop_last, wrapper_class

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("batch")
class Batcher(InBatches, IterDataPipe[Any]):
    """Samples in batches."""

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for one in self.datapipe:
            batch.append(one)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcher(_OfOne):
    """The samples of batches, of as many levels as told; -1 takes all apart."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        super().__init__(datapipe)
        self.unbatch_level = unbatch_level

    def _apart(self, element: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(element, (list, DataChunk))):
            yield element
        elif isinstance(element, (list, DataChunk)):
            for item in element:
                yield from self._apart(item, level if level == -1 else level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._apart(element, self.unbatch_level)


@functional_datapipe("groupby")
class Grouper(_OfOne):
    """Samples that a function gives the same key, together."""

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        super().__init__(datapipe)
        self.group_key_fn, self.keep_key = group_key_fn, keep_key
        self.buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.drop_remaining = drop_remaining

    def __iter__(self) -> Iterator[Any]:
        groups: defaultdict[Any, list[Any]] = defaultdict(list)
        count = 0
        for one in self.datapipe:
            key = self.group_key_fn(one)
            groups[key].append(one)
            count += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                made = groups.pop(key)
                yield (key, made) if self.keep_key else made
                count -= len(made)
            if count == self.buffer_size:
                largest = max(groups, key=lambda key: len(groups[key]))
                size = len(groups[largest])
                if (
                    self.guaranteed_group_size is not None
                    and size < self.guaranteed_group_size
                    and not self.drop_remaining
                ):
                    raise RuntimeError("Failed to group items", str(groups[largest]))
                made = groups.pop(largest)
                count -= size
                if self.guaranteed_group_size is None or size >= self.guaranteed_group_size:
                    yield (largest, made) if self.keep_key else made
        for key in tuple(groups):
            made = groups.pop(key)
            yield (key, made) if self.keep_key else made


class OfMany:
    """What is made of several streams, or of several tables."""

    _kind: type = IterDataPipe

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(one, self._kind) for one in datapipes):
            raise TypeError(f"Expected all inputs to be `{self._kind.__name__}`")
        self.datapipes = datapipes


class Joined(OfMany):
    """One after another."""

    def __len__(self) -> int:
        return sum(len(one) for one in self.datapipes)


class Beside(OfMany):
    """One sample of each at a time, as long as all have one."""

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes)


@functional_datapipe("concat")
class Concater(Joined, IterDataPipe[Any]):
    """One stream after another."""

    def __iter__(self) -> Iterator[Any]:
        for one in self.datapipes:
            yield from one


@functional_datapipe("zip")
class Zipper(Beside, IterDataPipe[Any]):
    """Tuples of a sample of each stream."""

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)


@functional_datapipe("mux")
class Multiplexer(Beside, IterDataPipe[Any]):
    """A sample of each stream in turn, until the shortest ends."""

    def __iter__(self) -> Iterator[Any]:
        for row in zip(*self.datapipes, strict=False):
            yield from row

    def __len__(self) -> int:
        return super().__len__() * len(self.datapipes)


class _Source:
    """A stream that several read, each at its own pace: what one has not read yet waits for it."""

    def __init__(self, datapipe: Any, count: int, buffer_size: int, route: Callable[[Any], Sequence[int]]) -> None:
        self.datapipe, self.count, self.buffer_size, self.route = datapipe, count, buffer_size, route
        self.begin()

    def begin(self) -> None:
        self.waiting: list[deque[Any]] = [deque() for _ in range(self.count)]
        self.iterator: Iterator[Any] | None = None
        self.finished: set[int] = set()

    def read(self, number: int) -> Iterator[Any]:
        if number in self.finished:  # a second pass begins the stream anew
            self.begin()
        if self.iterator is None:
            self.iterator = iter(self.datapipe)
        while True:
            while not self.waiting[number]:
                try:
                    value = next(self.iterator)
                except StopIteration:
                    self.finished.add(number)
                    return
                for target in self.route(value):
                    self.waiting[target].append(value)
                    if 0 <= self.buffer_size < len(self.waiting[target]) and target != number:
                        raise BufferError(
                            f"{type(self.datapipe).__name__} buffer overflow, buffer size {self.buffer_size} is insufficient."
                        )
            yield self.waiting[number].popleft()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the streams that a stream was forked, or divided, into."""

    def __init__(self, main: _Source, number: int) -> None:
        self.main_datapipe, self.instance_id = main, number

    def __iter__(self) -> Iterator[Any]:
        yield from self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        return len(self.main_datapipe.datapipe)


@functional_datapipe("fork")
class Forker(IterDataPipe[Any]):
    """The same stream several times."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> Any:
        """Make the streams."""
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return [datapipe]
        source = _Source(datapipe, num_instances, buffer_size, lambda value: range(num_instances))
        return [_ChildDataPipe(source, number) for number in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe[Any]):
    """A stream divided into several by a function that says which."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        """Make the streams."""
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")

        def route(value: Any) -> Sequence[int]:
            place = classifier_fn(value)
            if place is None and drop_none:
                return []
            if place is None or not 0 <= place < num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {num_instances - 1}. {place} is returned."
                )
            return [place]

        source = _Source(datapipe, num_instances, buffer_size, route)
        return [_ChildDataPipe(source, number) for number in range(num_instances)]


class InRandomOrder(_AsLong):
    """A stream that draws its order anew whenever it begins."""

    def __init__(self, datapipe: Any) -> None:
        super().__init__(datapipe)
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Switch the random order on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """Choose the next order."""
        self._seed = seed  # type: ignore[assignment]
        return self

    def reset(self) -> None:
        """Draw the next order."""
        if self._enabled:
            self._rng.seed(random_number() if self._seed is None else self._seed)
            self._seed = None


@functional_datapipe("shuffle")
class Shuffler(InRandomOrder):
    """Samples out of a buffer in random order."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level))
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = []
        for one in self.datapipe:
            if len(buffer) == self.buffer_size:
                at = self._rng.randint(0, len(buffer) - 1)
                chosen, buffer[at] = buffer[at], one
                yield chosen
            else:
                buffer.append(one)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))


class Sampler(_OfOne):
    """Samples that a sampler chooses of a table."""

    def __init__(
        self,
        datapipe: Any,
        sampler: type[_Sampler[Any]] = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: Any = None,
    ) -> None:
        super().__init__(datapipe)
        named = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*(sampler_args or ()), **named)

    def __iter__(self) -> Iterator[Any]:
        yield from self.sampler

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]


class SHARDING_PRIORITIES:  # noqa: N801 - torch's name
    """Who shares a stream: processes on machines before workers of a process."""

    DEFAULT, DISTRIBUTED, MULTIPROCESSING = 1, 2, 3


@functional_datapipe("sharding_filter")
class ShardingFilter(_OfOne):
    """Every n-th sample, for one of n that share a stream."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__(source_datapipe)
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self) -> bool:
        """Tell that the stream can be shared."""
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = 1) -> None:
        """Say how many share the stream, and which this one is."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        if self.sharding_group_filter is None or sharding_group == self.sharding_group_filter:
            self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for number, one in enumerate(self.datapipe):
            if number % self.num_of_instances == self.instance_id:
                yield one

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)


# ---- files ----
class _OfGivenLength(_OfOne):
    """A stream that is as long as its maker says."""

    length: int

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


class FileLister(_OfGivenLength):
    """The names of files below folders."""

    def __init__(
        self,
        root: Any = ".",
        masks: Any = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        given = [root] if isinstance(root, str) else root
        self.datapipe = given if isinstance(given, IterDataPipe) else IterableWrapper(given, deepcopy=False)
        self.masks, self.recursive, self.abspath, self.length = masks, recursive, abspath, length
        self.non_deterministic = non_deterministic

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


IterDataPipe.register_function("list_files", lambda source, *args, **kwargs: FileLister(source, *args, **kwargs))


@functional_datapipe("open_files")
class FileOpener(_OfGivenLength):
    """Files of names, opened: tuples of the name and the stream."""

    def __init__(self, datapipe: Any, mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        super().__init__(datapipe)
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.mode, self.encoding, self.length = mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe("read_from_stream")
class StreamReader(_OfOne):
    """The contents of opened files, whole or in pieces."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        super().__init__(datapipe)
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, stream in self.datapipe:
            while piece := stream.read(self.chunk):
                yield name, piece
                if self.chunk is None:
                    break
            StreamWrapper.close_streams(stream)


@functional_datapipe("routed_decode")
class RoutedDecoder(_AsLong):
    """The contents of opened files, decoded by what their names end in."""

    def __init__(
        self, datapipe: Any, *handlers: Callable[..., Any], key_fn: Callable[[Any], str] = extension_extract_fn
    ) -> None:
        super().__init__(datapipe)
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Ask further functions, before the ones there are."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for name, stream in self.datapipe:
            raw = stream.read() if isinstance(stream, (io.IOBase, StreamWrapper)) else stream
            StreamWrapper.close_streams(stream)
            yield name, self.decoder({name: raw})[name]


__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "RoutedDecoder",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]
for _name in __all__:  # torch's classes have longer names, and these as others
    globals()[_name].__name__ = globals()[_name].__qualname__ = f"{_name}IterDataPipe"
    globals()[f"{_name}IterDataPipe"] = globals()[_name]
