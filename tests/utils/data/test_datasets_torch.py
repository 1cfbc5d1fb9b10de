"""Datasets and samplers, against torch: what they hold, the order they draw, what they refuse."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd
import retrograd.utils.data
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def names(library: Any) -> dict[str, Any]:
    """Return what programs use."""
    data = library.utils.data

    class Plain(data.Dataset):  # type: ignore[misc]
        pass

    class Stream(data.IterableDataset):  # type: ignore[misc]
        def __init__(self, *items: Any) -> None:
            self.items = items

        def __iter__(self) -> Any:
            return iter(self.items)

        def __len__(self) -> int:
            return len(self.items)

    class Many(data.Dataset):  # type: ignore[misc]
        def __init__(self, short: bool = False) -> None:
            self.short = short

        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: Any) -> Any:
            return index

        def __getitems__(self, indices: Any) -> Any:
            return [100 + i for i in indices][int(self.short) :]

    class HalfASubset(data.Subset):  # type: ignore[misc]
        def __getitem__(self, index: Any) -> Any:
            return index

    library.manual_seed(11)
    own = {"Plain": Plain, "Stream": Stream, "Many": Many, "HalfASubset": HalfASubset, "data": data}
    return own | {"x": library.arange(6.0).reshape(3, 2), "y": library.arange(3), "Generator": library.Generator}


PROGRAMS = [
    "data.Dataset()[0]",
    "Plain()[0]",
    "len(Plain())",
    "data.TensorDataset(x, y)[1]",
    "data.TensorDataset(x, y)[-1]",
    "data.TensorDataset(x, y)[1:]",
    "len(data.TensorDataset(x, y))",
    "data.TensorDataset(x, y[:2])",
    "data.TensorDataset(x)[3]",
    "len(data.TensorDataset())",
    "list(data.ConcatDataset([range(3), 'ab']))",
    "len(data.ConcatDataset([range(3), 'ab']))",
    "[data.ConcatDataset([range(3), 'ab'])[i] for i in (-1, -5, 3, 2)]",
    "data.ConcatDataset([range(3), 'ab'])[-6]",
    "data.ConcatDataset([range(3), 'ab'])[5]",
    "data.ConcatDataset([])",
    "data.ConcatDataset([Stream(1)])",
    "data.ConcatDataset([range(3), 'ab']).cumulative_sizes",
    "data.ConcatDataset.cumsum([range(3), 'ab'])",
    "type(Many() + Many()).__name__, type(Stream() + Stream()).__name__",
    "list(Stream(1, 2) + Stream(3))",
    "len(Stream(1, 2) + Stream(3))",
    "list(data.ChainDataset([Many()]))",
    "len(data.ChainDataset([Many()]))",
    "data.StackDataset(range(3), 'abc')[1]",
    "str(data.StackDataset(one=range(3), two='abc')[1])",
    "data.StackDataset(range(3), Many())",
    "data.StackDataset()",
    "data.StackDataset(range(3), a='abc')",
    "data.StackDataset(a=range(3), b='ab')",
    "len(data.StackDataset(range(3)))",
    "data.StackDataset(range(5), Many()).__getitems__([0, 2])",
    "str(data.StackDataset(a=range(5), b=Many()).__getitems__([0, 2]))",
    "data.StackDataset(range(5), Many(True)).__getitems__([0, 2])",
    "list(data.Subset('abcde', [4, 0]))",
    "data.Subset(y, [2, 0])[[0, 1]]",
    "data.Subset(Many(), [4, 0]).__getitems__([1, 0])",
    "data.Subset(range(5), [4, 0]).__getitems__([1, 0])",
    "HalfASubset(range(5), [1])",
    "[list(s) for s in data.random_split(range(10), [3, 7])]",
    "[list(s) for s in data.random_split(range(10), [0.3, 0.3, 0.4])]",
    "[list(s) for s in data.random_split(range(11), [0.5, 0.25, 0.25], generator=Generator().manual_seed(2))]",
    "[s.indices for s in data.random_split(range(3), [0.1, 0.9])]",
    "data.random_split(range(10), [3, 6])",
    "data.random_split(range(10), [1.5, -0.5])",
    "data.random_split(range(10), [0.3, 0.3])",
    "list(data.Sampler())",
    "list(data.SequentialSampler('abc')), len(data.SequentialSampler('abc'))",
    "list(data.RandomSampler(range(10)))",
    "list(data.RandomSampler(range(10), num_samples=25))",
    "list(data.RandomSampler(range(10), num_samples=4))",
    "list(data.RandomSampler(range(10), replacement=True, num_samples=70))",
    "list(data.RandomSampler(range(10), generator=Generator().manual_seed(7)))",
    "len(data.RandomSampler(range(10), num_samples=25))",
    "data.RandomSampler(range(10), replacement=1)",
    "data.RandomSampler(range(10), num_samples=0)",
    "data.RandomSampler(range(10), num_samples=2.5)",
    "data.RandomSampler([])",
    "list(data.SubsetRandomSampler([3, 5, 8])), len(data.SubsetRandomSampler([3, 5, 8]))",
    "list(data.SubsetRandomSampler('abcd', generator=Generator().manual_seed(7)))",
    "list(data.WeightedRandomSampler([0.1, 0.9, 0.4], 9))",
    "list(data.WeightedRandomSampler([0.1, 0.9, 0.4], 3, replacement=False))",
    "list(data.WeightedRandomSampler(torch.tensor([0.1, 0.9]), 9, generator=Generator().manual_seed(7)))",
    "list(data.WeightedRandomSampler([0.1, 0.9], 3, replacement=False))",
    "data.WeightedRandomSampler([0.1], True)",
    "data.WeightedRandomSampler([0.1], 1, replacement=1)",
    "data.WeightedRandomSampler([[0.1]], 1)",
    "list(data.BatchSampler(range(10), 3, False)), list(data.BatchSampler(range(10), 3, True))",
    "len(data.BatchSampler(range(10), 3, False)), len(data.BatchSampler(range(10), 3, True))",
    "list(data.BatchSampler(iter(range(4)), 2, True))",
    "data.BatchSampler(range(10), 0, False)",
    "data.BatchSampler(range(10), True, False)",
    "data.BatchSampler(range(10), 3, 1)",
    "[list(data.DistributedSampler(range(10), 3, r)) for r in range(3)]",
    "[list(data.DistributedSampler(range(10), 3, r, shuffle=False)) for r in range(3)]",
    "[list(data.DistributedSampler(range(10), 3, r, seed=4, drop_last=True)) for r in range(3)]",
    "[list(data.DistributedSampler(range(2), 5, r)) for r in range(5)]",
    "[list(data.DistributedSampler(range(2), 5, r, drop_last=True)) for r in range(5)]",
    "[len(data.DistributedSampler(range(n), 3, 0, drop_last=d)) for n in range(8) for d in (True, False)]",
    "(s := data.DistributedSampler(range(10), 2, 0), s.set_epoch(3), list(s))[2]",
    "data.DistributedSampler(range(10), 3, 3)",
    "data.DistributedSampler(range(10), 3, -1)",
    "str(data.get_worker_info())",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_torch(program: str) -> None:
    ours, theirs = ((answer(lib, program, **names(lib)), answer(lib, "torch.rand(2)")) for lib in (retrograd, torch))
    assert ours == theirs  # and the stream goes on from the same point


def test_warnings() -> None:
    def warned(library: Any) -> list[tuple[str, str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.utils.data.random_split(range(2), [0.1, 0.2, 0.7])
            library.utils.data.ConcatDataset(["ab"]).cummulative_sizes  # noqa: B018
        return [(one.category.__name__, str(one.message), one.filename) for one in caught]  # type: ignore[misc]

    assert warned(retrograd) == warned(torch)


def test_a_sampler_follows_a_growing_dataset() -> None:
    growing = [0, 1]
    sampler = retrograd.utils.data.RandomSampler(growing)
    growing.append(2)
    assert sorted(sampler) == [0, 1, 2]


def test_without_process_groups_rank_is_needed() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        retrograd.utils.data.DistributedSampler(range(3))
