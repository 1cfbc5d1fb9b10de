"""autograd: backward, grad, higher order, Jacobians, anomaly, graphs."""

import torch
from torch import Tensor
from torch.autograd.functional import hessian, jacobian


def loss(x: Tensor) -> Tensor:
    return (x**3).sum()


x = torch.tensor([1.0, 2.0], requires_grad=True)
y = loss(x)
y.backward(retain_graph=True)
if x.grad is not None:
    print(x.grad, x.grad.dtype)
x.grad = None
(first,) = torch.autograd.grad(y, x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), [x])
print(first.detach(), second, first.grad_fn is not None, x.is_leaf)
torch.autograd.backward([loss(x), x.sum()], [torch.tensor(1.0), torch.tensor(1.0)])
print(x.grad)
print(jacobian(lambda t: t * 2, x.detach()), hessian(loss, x.detach()))
(x * 2).backward(gradient=torch.ones(2), inputs=[x])
detached = x.detach().clone().requires_grad_(True)
print(detached.requires_grad, detached.grad, x.data.sum())
total = detached.exp()
total.retain_grad()
total.sum().backward()
print(total.grad, torch.autograd.grad(loss(x), x, grad_outputs=torch.tensor(2.0))[0])
saved: list[Tensor] = []


def pack(tensor: Tensor) -> Tensor:
    saved.append(tensor)
    return tensor


with torch.autograd.profiler.record_function("block"), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    (x * x).sum().backward()
print(len(saved) > 0)
