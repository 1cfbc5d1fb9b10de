"""Mistakes and what they say."""

import warnings

import torch


def attempt(function):
    try:
        function()
    except RuntimeError as error:
        print(type(error).__name__, str(error).split("\n")[0].split(" Hint:")[0])


x = torch.arange(1.0, 5.0, requires_grad=True)
y = torch.arange(5.0, 9.0, requires_grad=True)
attempt(lambda: x.outer(y).backward())
z = x.dot(y).sin()
z.backward()
attempt(z.backward)
z = x.dot(y).sin()
z.backward(retain_graph=True)
z.backward()
attempt(lambda: x.relu_())
attempt(lambda: torch.tensor(3, requires_grad=True))
attempt(lambda: torch.ones(2).sum().backward())
attempt(lambda: torch.autograd.grad((x * 2).sum(), y))
a = torch.ones(3, requires_grad=True)
b = a.exp()
c = b * b
b.add_(1)
attempt(lambda: print(str(c.sum().backward())))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    q = x.dot(y)
    q.sin().backward()
    print("q.grad:", q.grad)
print(str(caught[0].message).split(". ")[0])
