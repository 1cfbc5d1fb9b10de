"""Operations that torch writes in another way on samples of a vmap: what they save, share among equals, and take."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer

PROGRAMS = """
grad(lambda a: a.max(), x)
grad(lambda a: a.min(), x)
grad(lambda a: a.median(), x)
grad(lambda a: a.nanmedian(), x)
grad(lambda a: a.max(0).values, x)
grad_inside(lambda a: a.max(), x)
grad_inside(lambda a: a.median(), x)
torch.func.jvp(torch.vmap(lambda a: a.min()), (x,), (t,))
torch.vmap(lambda a, b: torch.func.jvp(lambda c: c.min(), (a,), (b,)))(x, t)
torch.vmap(lambda a: a.index_add(0, zero, one))(v)
torch.vmap(lambda a: a.index_add(0, zero, one), out_dims=0)(v)
torch.vmap(lambda a, b: a.index_add(0, zero, b))(v, v[:, None])
torch.vmap(lambda a, b: a.index_add(0, zero, b))(x, v[:2])
torch.vmap(lambda a: a.index_add(0, zero[0], one[0]))(x)
torch.func.jvp(lambda b: torch.vmap(lambda c: torch.addmm(c, m, m, beta=0))(b), (q,), (q,))
torch.func.jvp(lambda b: torch.vmap(lambda c: torch.addmm(c, m, m, beta=2))(b), (q,), (q,))
torch.func.jvp(lambda b: torch.vmap(lambda c: torch.addmm(c, m, m, beta=0))(b), (x[:, :2],), (x[:, :2],))
torch.vmap(lambda c: torch.addmm(c, m, m, beta=0, alpha=2))(q)
""".strip().splitlines()


def _scope(library: Any) -> dict[str, Any]:
    def grad(f: Any, x: Any) -> Any:
        x = x.clone().requires_grad_()
        y = library.vmap(f)(x)
        y.mul_(3)  # the result is not among what the gradient needs
        y.sum().backward()
        return x.grad

    x = library.tensor([[1.0, 3, 3], [1, 1, 5]])
    return {
        "grad": grad, "grad_inside": lambda f, x: library.vmap(library.func.grad(f))(x), "x": x,
        "t": library.tensor([[1.0, 2, 3], [4, 5, 6]]), "v": library.tensor([1.0, 2, 3]), "zero": library.tensor([0]),
        "one": library.tensor([2.0]), "m": library.tensor([[1.0, 2], [3, 4]]), "q": library.ones(3, 2, 2),
    }  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_as_torch(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program, **_scope(retrograd)) == answer(torch, program, **_scope(torch))
