"""torch.func: gradients, Jacobians, vmap and their compositions."""

import torch
from torch import Tensor, vmap
from torch.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp


def loss(weight: Tensor, x: Tensor) -> Tensor:
    return ((x @ weight).tanh() ** 2).sum()


def rows(x: Tensor) -> Tensor:
    return x.sin() * 2


torch.manual_seed(3)
weight, x = torch.randn(3), torch.randn(4, 3)
slope: Tensor = grad(loss)(weight, x)
print(slope)
each: Tensor = vmap(grad(loss), in_dims=(None, 0))(weight, x)
print(each.shape, torch.allclose(each.sum(0), slope, atol=1e-5))
print(jacrev(rows)(weight).shape, torch.allclose(jacfwd(rows)(weight), jacrev(rows)(weight)))
print(hessian(loss)(weight, x).shape)
value, tangent = jvp(rows, (weight,), (torch.ones(3),))
print(value.shape, tangent.shape)
out, pull = vjp(rows, weight)
print(pull(torch.ones_like(out))[0])
gradient, result = grad_and_value(loss, argnums=0)(weight, x)
print(gradient.shape, result.dim())
print(torch.func.vmap(torch.dot)(x, x).shape)
