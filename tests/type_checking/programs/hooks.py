"""Hooks on tensors, modules and nodes."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

seen: list[str] = []


def clip(grad: Tensor) -> Tensor:
    return grad.clamp(-1, 1)


def note(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
    seen.append(f"{type(module).__name__} {tuple(output.shape)}")


def double(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(2 * one for one in args)


x = torch.tensor([3.0, -4.0], requires_grad=True)
handle: RemovableHandle = x.register_hook(clip)
(x**2).sum().backward()
print(x.grad)
handle.remove()
x.register_hook(lambda grad: seen.append("tensor"))
x.register_post_accumulate_grad_hook(lambda parameter: seen.append("accumulated"))
model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
handles = [layer.register_forward_hook(note) for layer in model]
model[0].register_forward_pre_hook(double)
model.register_full_backward_hook(lambda module, inputs, outputs: seen.append("backward"))
model(x).sum().backward()
for one in handles:
    one.remove()
print(seen)
