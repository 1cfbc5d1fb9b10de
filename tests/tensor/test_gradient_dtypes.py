"""A gradient has its tensor's dtype, whatever stood beside the tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

BESIDE: dict[str, Callable[[Any], Any]] = {
    "int64": lambda lib: lib.tensor([1, 2, 3]),
    "int64 number": lambda lib: lib.tensor(2),
    "float64 number": lambda lib: lib.tensor(2.0, dtype=lib.float64),
    "float64": lambda lib: lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64),
}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda x, y: y * x,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "rdiv": lambda x, y: y / x,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("beside", BESIDE)
def test_dtype_of_a_gradient(beside: str, call: str) -> None:
    found = []
    for lib in (retrograd, torch):
        x = lib.tensor([0.5, 1.5, 2.5], requires_grad=True)
        out = CALLS[call](x, BESIDE[beside](lib))
        (g,) = lib.autograd.grad(out.sum(), x)
        found.append((str(out.dtype), str(g.dtype), [round(v, 5) for v in g.tolist()]))
    assert found[0] == found[1]
