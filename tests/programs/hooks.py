"""Watching gradients on their way."""

import torch

x = torch.tensor([1.0, -2.0], requires_grad=True)
y = x * 3
handle = y.register_hook(lambda g: g * 2)
x.register_hook(lambda g: print("x receives", g))
y.sum().backward()
print(x.grad)
handle.remove()
x.grad = None
x.register_post_accumulate_grad_hook(lambda p: print("accumulated", p.grad))
(x * 3).sum().backward()
z = (x * x).sum()
z.grad_fn.register_hook(lambda gi, go: print("node", gi, go))
z.backward()
packed = []


def pack(t):
    packed.append(tuple(t.shape))
    return t.numpy(force=True)


with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
    w = (x.exp() * x).sum()
w.backward()
print(packed, x.grad)
