"""Arithmetic of tensors with Python's numbers, on both sides, and comparisons, which are tensors."""

from typing import assert_type

import torch
from torch import Tensor

x = torch.tensor([1.0, 2.0, 4.0])
i = torch.tensor([1, 2, 5])
assert_type(x + 1, Tensor)
assert_type(1 - x, Tensor)
assert_type(2 ** (x / 2), Tensor)
assert_type(x // 2 % 3, Tensor)
assert_type(-x @ x, Tensor)
assert_type(x == 1, Tensor)
assert_type(x != x, Tensor)
assert_type(x > 1, Tensor)
assert_type((x > 1) & (x <= 3) | ~(x >= 0), Tensor)
assert_type(i << 1, Tensor)
assert_type(abs(x), Tensor)
print(x + 1, 1 - x, 3 / x, 2**x, x // 3, 7 % x, 7.5 // x)
print(x * 2j, (x + 1j).conj().imag, (x > 1) & (i < 5), True ^ (x > 1), i | 8, i >> 1)
print((x == 2).sum().item(), (x != 2).tolist(), bool((x < 5).all()), float(x[0]), int(i[2]), complex(x[1]))
print(sum([x, x, x]), max(x[0], x[1]), round(x.mean().item(), 3), divmod(7, 2))
print(x.add(1, alpha=2), torch.sub(x, i), torch.mul(x, 2), x.div(2, rounding_mode="floor"), x.pow(2))
if x.sum() > 3:
    print("more than three")
numbers: list[float] = [float(one) for one in x]
print(numbers, [10, 20, 30, 40, 50, 60][i[2]])
