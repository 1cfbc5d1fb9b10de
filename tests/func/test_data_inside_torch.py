"""`.data` inside transforms is a constant to the innermost one only, `detach` to all."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd

TRANSFORMS = """torch.func.hessian
torch.func.jacfwd
torch.func.jacrev
lambda f: torch.func.jacfwd(torch.func.jacfwd(f))
lambda f: torch.func.jacrev(torch.func.jacrev(f))
lambda f: torch.func.jacrev(torch.func.jacfwd(f))
lambda f: torch.func.jacrev(torch.func.jacrev(torch.func.jacrev(f)))
lambda f: torch.func.grad(lambda x: torch.func.grad(f)(x).sum())
lambda f: (lambda x: torch.vmap(torch.func.grad(f))(torch.stack([x, x])))
lambda f: (lambda x: torch.func.vjp(torch.func.grad(f), x)[1](x)[0])
lambda f: (lambda x: torch.func.jvp(torch.func.grad(f), (x,), (x,))[1])""".splitlines()
FUNCTIONS = """lambda a: (a * a.data * a).sum()
lambda a: (a * a.detach() * a).sum()
lambda a: (a.exp().data * a ** 3).sum()
lambda a: (a.data.exp() * a.exp().data * a ** 3).sum()
lambda a: (a.data.data * a ** 3).sum()""".splitlines()


def _value(library: Any, transform: str, function: str) -> Any:
    scope = {"torch": library}
    x = library.tensor([1.0, 2.0], dtype=library.float64)
    return eval(transform, scope)(eval(function, scope))(x)


@pytest.mark.oracle
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_as_torch(transform: str, function: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = _value(retrograd, transform, function), _value(torch, transform, function)
    torch.testing.assert_close(torch.tensor(ours.tolist()), theirs.float())


def test_writes_into_data_are_seen_by_what_is_around() -> None:
    def written(a: Any) -> Any:
        b = a * 2
        b.data.mul_(3)
        return (b * b).sum()

    assert retrograd.func.hessian(written)(retrograd.tensor([1.0, 2.0])).tolist() == [[24.0, 0.0], [0.0, 24.0]]
