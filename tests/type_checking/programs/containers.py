"""Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict."""

from collections import OrderedDict

import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Identity()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(depth)])
        self.table = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(2))})

    def forward(self, x: Tensor, head: str = "a") -> Tensor:
        for layer, scale in zip(self.layers, self.scales, strict=True):
            x = torch.relu(layer(x)) * scale
        x = x + self.table["bias"]
        result: Tensor = self.heads[head](x)
        return result


model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
print(len(model), type(model[0]).__name__, len(model[1:]), [type(layer).__name__ for layer in model])
model.append(nn.Sigmoid())
named = nn.Sequential(OrderedDict([("first", nn.Linear(2, 2)), ("second", nn.Tanh())]))
print([name for name, _ in named.named_children()], model(torch.zeros(3, 2)).shape)
net = Net(2)
net.layers.append(nn.Linear(2, 2))
net.scales.append(nn.Parameter(torch.full((1,), 0.5)))
net.layers.extend([nn.Identity()])
net.scales.extend([nn.Parameter(torch.ones(1))])
print(net(torch.ones(1, 2)).shape, len(net.layers), len(net.scales), list(net.heads.keys()), "b" in net.heads)
print(sorted(name for name, _ in net.named_parameters())[:3])
for module in net.modules():
    if isinstance(module, nn.Linear):
        nn.init.ones_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
print(net(torch.ones(1, 2), head="b").detach(), [type(child).__name__ for child in net.children()])
