"""Shapes: sizes one by one or in a sequence, views, joins and splits."""

from typing import assert_type

import torch
from torch import Size, Tensor

x = torch.zeros(2, 3, 4)
assert_type(x.shape, Size)
assert_type(x.shape[0], int)
assert_type(x.size(), Size)
assert_type(x.size(-1), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.ndim, int)
batch, *rest = x.shape
print(batch, rest, x.shape[1:], x.numel(), x.dim(), x.stride(0), len(x))
for made in (
    x.view(-1, 4),
    x.view((6, 4)),
    x.reshape(4, -1),
    x.reshape([2, 12]),
    x.permute(2, 0, 1),
    x.permute((1, 0, 2)),
):
    print(tuple(made.shape))
print(x.expand(2, 3, 4).shape, x[:1].expand(5, -1, -1).shape, x.repeat(1, 2, 1).shape, x.flatten(1).shape)
print(x.transpose(0, 1).shape, x.mT.shape, x[0].T.shape, x.unsqueeze(0).squeeze(0).shape, x.movedim(0, -1).shape)
print(torch.cat([x, x], dim=1).shape, torch.stack((x, x)).shape, torch.cat(tuple(x.split(1, dim=2)), 0).shape)
first, second = x.chunk(2)
assert_type(first, Tensor)
print(first.shape, [part.shape[2] for part in x.split([1, 3], dim=2)], [len(part) for part in x.unbind(1)])
print(
    torch.ones(2, 3, dtype=torch.int).shape,
    torch.ones((2, 3)).shape,
    torch.empty([4]).shape,
    torch.rand(Size([1, 2])).shape,
)
print(
    torch.broadcast_shapes((2, 1), (1, 3)),
    [one.shape for one in torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")],
)
print(torch.einsum("bij,bkj->bik", x, x).shape, torch.tensordot(x, x, dims=([2], [2])).shape, x.new_zeros(3, 1).shape)
print(torch.arange(3), torch.arange(1, 2, 0.5), torch.linspace(0, 1, 3), torch.eye(2), torch.full((2,), 7))
