"""no_grad, enable_grad, inference_mode and set_grad_enabled, as contexts and as decorators."""

from typing import assert_type

import torch
from torch import Tensor


@torch.no_grad()
def evaluate(x: Tensor, scale: float = 2.0) -> Tensor:
    return x * scale


@torch.no_grad
def bare(x: Tensor) -> Tensor:
    return x + 1


@torch.inference_mode()
def infer(x: Tensor) -> int:
    return int(x.sum())


class Meter:
    total: float = 0.0

    @torch.no_grad()
    def update(self, value: Tensor) -> None:
        self.total += value.item()


x = torch.ones(3, requires_grad=True)
assert_type(evaluate(x, scale=3.0), Tensor)
assert_type(bare(x), Tensor)
assert_type(infer(x), int)
print(evaluate(x).requires_grad, bare(x).requires_grad, infer(x))
meter = Meter()
meter.update(x.mean())
print(meter.total)
with torch.no_grad():
    print((x * 2).requires_grad, torch.is_grad_enabled())
    with torch.enable_grad():
        print((x * 2).requires_grad)
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
with torch.inference_mode():
    print((x * 2).is_inference())
with torch.autograd.set_detect_anomaly(True), torch.autograd.graph.save_on_cpu():
    (x**2).sum().backward()
print(x.grad)
