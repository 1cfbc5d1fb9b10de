"""The graph that a computation leaves behind."""

import torch

torch.manual_seed(0)
x = torch.randn(3, requires_grad=True)
w = torch.randn(3, requires_grad=True)
y = x * w
z = y.sum()
print(y.grad_fn.name(), z.grad_fn.name())
print([node.name() for node, _ in z.grad_fn.next_functions])
print([node.name() for node, _ in z.grad_fn.next_functions[0][0].next_functions])
print(x.grad_fn, x.is_leaf, y.is_leaf)
z.backward()
print(x.grad, w.grad)

x = torch.arange(1.0, 5.0, requires_grad=True)
y = torch.arange(5.0, 9.0, requires_grad=True)
q = x.dot(y)
q.retain_grad()
z = q.sin()
print(z.requires_grad, x.grad, y.grad)
z.backward()
print(x.grad, y.grad, q.grad)
assert torch.allclose(x.grad, y * x.dot(y).cos())
print(z.grad_fn.name(), q.grad_fn.name())
node = z.grad_fn.next_functions[0][0]
print(node.name(), [n.name() for n, _ in node.next_functions])

w = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
loss = (w * torch.tensor(3.0) + b) ** 2
loss.backward()
print(loss, w.grad, b.grad)
