"""Arguments and results of the wrong type."""

import torch
import torch.distributed
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.zeros(2, 3)
torch.zeros("2", 3)  # error
torch.cat(x, 1)  # error
torch.stack([x, 1])  # error
x.view("a")  # error
x.softmax(dim="last")  # error
x.to(3.5)  # error
x + "a"  # error
x @ 2  # error
x.reshape(2, 1.5)  # error
x.backward(1.0)  # error
torch.matmul(x, 3)  # error
torch.add(x, "1")  # error
F.relu("x")  # error
F.cross_entropy(x, [1, 2])  # error
torch.manual_seed("zero")  # error
number: int = x.sum()  # error
text: str = x.item()  # error
tensor: Tensor = x.shape  # error
pair: tuple[Tensor, Tensor, Tensor] = x.max(0)  # error
nn.Sequential(nn.Linear(2, 3), "relu")  # error
nn.Linear("2", 3)  # error
nn.ModuleList([1, 2])  # error
nn.ReLU(inplace="yes")  # error
torch.distributed.barrier(async_op="yes")  # error
nn.Parameter([1.0, 2.0])  # error
torch.optim.Adam([1.0], lr=0.1)  # error
TensorDataset([1, 2])  # error
DataLoader(5)  # error
x.register_hook(3)  # error
torch.allclose(x, 1.0)  # error
torch.linalg.solve(x, 2)  # error
x.requires_grad = "yes"  # error
x.grad = 1.0  # error


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.shape  # error


@torch.no_grad()
def evaluate(x: Tensor) -> Tensor:
    return x


evaluate(3)  # error
for size in x.shape:
    size.upper()  # error
