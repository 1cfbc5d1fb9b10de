"""Writing in place: methods, operators, results in `out`."""

from typing import assert_type

import torch
from torch import Tensor, nn

x = torch.zeros(3)
assert_type(x.add_(1).mul_(2.0).clamp_(max=1.5), Tensor)
x += 1
x *= torch.tensor([1.0, 2.0, 3.0])
x -= 0.5
x /= 2
x **= 2
print(x)
torch.exp(x, out=x)
torch.add(x, 1, alpha=2, out=x)
print(x, x.fill_(2).zero_().sum().item())
x.copy_(torch.ones(3)).masked_fill_(x == 0, 1.0)
x.uniform_(0, 1).normal_().bernoulli_(0.5)
print(x.dtype, x.requires_grad_().requires_grad)
counts = torch.zeros(4, dtype=torch.long)
counts.index_add_(0, torch.tensor([0, 2, 2]), torch.ones(3, dtype=torch.long)).scatter_(0, torch.tensor([3]), 7)
print(counts.tolist())
weight = nn.Parameter(torch.ones(2))
with torch.no_grad():
    weight += 1
    weight.sub_(0.25)
print(weight)
nn.init.constant_(weight, 0.5)
nn.init.uniform_(weight, -1, 1)
print(weight.detach().abs().max().item() <= 1)
flags = torch.tensor([True, False])
flags |= torch.tensor([False, True])
print(flags.all().item(), (~flags).any().item())
