"""Gradients add up until somebody clears them."""

import torch

x = torch.tensor(3.0, requires_grad=True)
for _ in range(2):
    y = x**2
    y.backward()
    print(x.grad)
x.grad.zero_()
print(x.grad)
x.grad = None
y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
(y**2).backward(torch.ones_like(y))
print(y.grad)


def branch(x):
    y = x * 2
    return y * 3 if y.sum() > 0 else y - 100


v = torch.tensor([1.0, 2.0], requires_grad=True)
branch(v).sum().backward()
print(v.grad)
with torch.no_grad():
    print((v**2).requires_grad, v.requires_grad)
with torch.inference_mode():
    t = v * 2
print(t.requires_grad, t.is_inference())


@torch.no_grad()
def predict(x):
    return x @ x


print(predict(v), (v * 2).detach().requires_grad)
with torch.no_grad(), torch.enable_grad():
    print((v * 2).requires_grad)
with torch.set_grad_enabled(False):
    print((v * 2).requires_grad)
