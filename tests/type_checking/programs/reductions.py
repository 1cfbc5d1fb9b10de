"""Reductions: over everything, over dimensions, with named results."""

from typing import assert_type

import torch
from torch import Tensor

x = torch.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
assert_type(x.max(), Tensor)
assert_type(x.max(0).values, Tensor)
assert_type(x.max(dim=1).indices, Tensor)
assert_type(torch.sort(x).values, Tensor)
assert_type(x.item() if x.numel() == 1 else 0, int | float | bool)
values, indices = x.min(dim=1)
assert_type(values, Tensor)
print(x.max(), x.max(0).values, values, indices)
print(x.sum(), x.sum(0), x.sum(dim=(0, 1)), x.mean(dim=1, keepdim=True).shape, x.prod(1))
print(torch.max(x, torch.full_like(x, 2.5)), x.amax((0, 1)), x.argmax(), x.argmin(dim=1))
top = x.topk(2, dim=1)
print(top.values, top[1], x.sort(descending=True).indices, x.kthvalue(2).values, x.median(), x.median(0).values)
print(x.std(), x.var(dim=0, correction=0), torch.var_mean(x)[0], x.norm(), x.cumsum(1), x.cummax(1).values)
low, high = torch.aminmax(x)
print(low, high, x.unique(), x.logsumexp(1), x.any(), x.all(dim=0), torch.count_nonzero(x))
print(x.quantile(0.5), x.mode().values, torch.tensor([2.5]).item(), x.tolist(), x.flatten().tolist()[0])
q, r = torch.linalg.qr(x.T)
print(torch.allclose(q @ r, x.T, atol=1e-5), torch.linalg.svd(x).S.shape, torch.linalg.eigh(x @ x.T).eigenvalues.shape)
