"""Modules as functions of their parameters: functional_call, stacked ensembles, per-sample gradients."""

import copy

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
parameters: dict[str, Tensor] = {name: p.detach() for name, p in model.named_parameters()}
x, y = torch.randn(5, 2), torch.randn(5, 1)


def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    predicted: Tensor = functional_call(model, parameters, (x,))
    return nn.functional.mse_loss(predicted, y)


gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
print({name: tuple(value.shape) for name, value in gradients.items()})
print(round(loss(parameters, x, y).item(), 4))
models = [nn.Linear(2, 1) for _ in range(3)]
stacked, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")


def run(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
    result: Tensor = functional_call(base, (parameters, buffers), (x,))
    return result


print(vmap(run, in_dims=(0, 0, None))(stacked, buffers, x).shape)
