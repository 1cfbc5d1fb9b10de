"""Modules whose forward takes what it likes: several tensors, numbers, keywords, nothing."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Scaled(nn.Module):
    def __init__(self, width: int, scale: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = scale

    def forward(self, x: Tensor, mask: Tensor | None = None, *, scale: float | None = None) -> Tensor:
        y: Tensor = self.linear(x) * (self.scale if scale is None else scale)
        return y if mask is None else y.masked_fill(mask, 0.0)


class Pair(nn.Module):
    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        return first + second, first - second


class Constant(nn.Module):
    value: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.ones(2))

    def forward(self) -> Tensor:
        return self.value * 2


class Gated(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * torch.sigmoid(input)


torch.manual_seed(0)
x = torch.randn(2, 3)
model = Scaled(3, scale=0.5)
print(model(x, mask=x > 0, scale=2.0))
total, difference = Pair()(x, x.abs())
print(total.sum().item() < 10, difference.shape)
print(Constant()(), Gated(3, 3)(x).shape)
print(F.gelu(model(x)).mean().detach())
print(sum(p.numel() for p in model.parameters()), model.scale, model.training)
