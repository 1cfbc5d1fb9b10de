"""Indexing in all its forms, reading and writing."""

from typing import assert_type

import torch
from torch import Tensor

x = torch.arange(24.0).reshape(2, 3, 4)
assert_type(x[0], Tensor)
assert_type(x[..., 1:, None], Tensor)
print(x[0, 1, 2], x[:, -1].shape, x[..., ::2].shape, x[None].shape)
rows = torch.tensor([0, 1, 1])
columns = [2, 0, 1]
print(x[rows, columns], x[x > 20], x[:, [0, 2]].shape, x[True].shape)
x[0] = 0
x[1, :, 0] = torch.tensor([1.0, 2.0, 3.0])
x[x > 21] = -1.5
x[rows[:1], ..., 1:3] += 2
print(x)
for row in x:
    assert_type(row, Tensor)
    print(row.sum().item(), len(row))
print(torch.take_along_dim(x[1], x[1].argsort(dim=1), dim=1)[:, 0], 3.0 in x)
print(x.gather(2, torch.zeros(2, 3, 1, dtype=torch.long)).squeeze(-1))
print(torch.where(x > 0, x, 0.0).count_nonzero().item(), x.nonzero(as_tuple=True)[0].shape)
