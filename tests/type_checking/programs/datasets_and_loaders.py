"""Datasets of tensors, of one's own and streams, and loaders over them."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, int]]):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.tensor([float(index)]) ** 2, index


class Countdown(IterableDataset[int]):
    def __init__(self, start: int) -> None:
        self.start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, 0, -1))


def stacked(samples: list[tuple[Tensor, int]]) -> Tensor:
    return torch.stack([square for square, _ in samples])


pairs = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 0]))
print(len(pairs), pairs[0])
for features, labels in DataLoader(pairs, batch_size=2, shuffle=False):
    print(features.shape, labels.tolist())
loader = DataLoader(Squares(5), batch_size=2, collate_fn=stacked, drop_last=True)
print(len(loader), [batch.flatten().tolist() for batch in loader])
print(list(DataLoader(Countdown(4), batch_size=None)))
first, second = random_split(Squares(6), [4, 2], generator=torch.Generator().manual_seed(1))
print(len(first), len(second), len(Subset(Squares(9), [0, 3])), len(ConcatDataset([first, second])))
square, index = Squares(4)[3]
print(square.item(), index + 1)
