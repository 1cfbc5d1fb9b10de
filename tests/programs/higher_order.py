"""Derivatives of derivatives."""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x**3
(first,) = torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True)
(second,) = torch.autograd.grad(first, x, grad_outputs=torch.ones_like(first))
print(first.detach(), second)

x = torch.tensor(2.0, requires_grad=True)
y = torch.tensor(4.0, requires_grad=True)
z = torch.sin(x * y)
dx, dy = torch.autograd.grad(z, (x, y), create_graph=True)
print("dz/dx:", dx)
print("dz/dy:", dy)
(d2x,) = torch.autograd.grad(dx, x, retain_graph=True)
(d2y,) = torch.autograd.grad(dy, y)
print("d2z/dx2:", d2x)
print("d2z/dy2:", d2y)

f = lambda x: (x.sin() * x.exp()).sum()  # noqa: E731
point = torch.tensor([0.3, -0.2, 1.0])
print(torch.func.grad(f)(point))
print(torch.func.hessian(f)(point))
print(torch.func.jacrev(lambda x: x * x.sum())(point))
print(torch.func.jacfwd(lambda x: x * x.sum())(point))
print(torch.func.jvp(f, (point,), (torch.ones(3),))[1])
print(torch.func.vmap(torch.func.grad(f))(point.expand(2, 3)))
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(point, torch.ones(3))
    print(torch.autograd.forward_ad.unpack_dual(f(dual)).tangent)
