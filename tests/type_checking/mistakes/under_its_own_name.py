"""The package under its own name."""

from typing import assert_type

import retrograd
from retrograd import linalg, nn

x = retrograd.randn(3, 4, requires_grad=True)
y: retrograd.Tensor = (x @ x.t()).softmax(dim=-1).sum(0, keepdim=True) * 2 + 1
z: retrograd.Tensor = retrograd.add(x, 1.0, alpha=2, out=y)
same: bool = retrograd.allclose(x, x)
assert_type(linalg.inv(y), retrograd.Tensor)
assert_type(nn.Parameter(y), nn.Parameter)
x.add_(1).view(-1, 2).to(retrograd.float64)
x.no_such_method()  # error
retrograd.no_such_function(x)  # error
number: int = retrograd.add(x, 1)  # error
