"""The same function with and without writes, under every composition of transforms: the derivatives must be equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.func import grad, jacfwd, jacrev, jvp, linearize, vmap

POINT = torch.tensor([0.7, 1.3, 0.4], dtype=torch.float64)
AT = torch.tensor([2, 0])
MASK = torch.tensor([True, False, True])
SCALES = torch.tensor([1.0, 2.0], dtype=torch.float64)

Function = Callable[[Any], Any]
PAIRS: dict[str, tuple[Function, Function]] = {}


def like(plain: Function) -> Callable[[Function], Function]:
    """Let a function that writes be compared with one that does not."""

    def note(writing: Function) -> Function:
        PAIRS[writing.__name__] = (writing, plain)
        return writing

    return note


def zeros(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.float64)


@like(lambda x: torch.stack([x[1] ** 2, x[1], x[2]]) * x)
def an_element(x):
    y = x * 1
    y[0] = x[1] ** 2
    return y * x


@like(lambda x: torch.stack([x[0] ** 3, x[0] * 0, x[0] * 0]))
def an_element_of_a_constant(x):
    y = zeros(3)
    y[0] = x[0] ** 3
    return y


@like(lambda x: x.exp() * x)
def everything(x):
    y = zeros(3)
    y[...] = x.exp()
    return y * x


@like(lambda x: x.exp() * x)
def a_copy(x):
    y = torch.zeros_like(x)
    y.copy_(x.exp())
    return y * x


@like(lambda x: ((1 + x**2) * x - 1) / 2)
def arithmetic(x):
    y = zeros(3) + 1
    y += x**2
    y *= x
    y -= 1
    y /= 2
    return y


@like(lambda x: torch.cat([x[:1] ** 2, x[1:] ** 2 * x[:2]]) * x)
def a_view(x):
    y = x**2
    view = y[1:]
    view *= x[:2]
    return y * x


@like(lambda x: torch.stack([x[0] ** 2 + 0 * x[0], x[1] ** 2 * 0 + x[0] + x[1], x[2] ** 2]) * x)
def a_row_and_a_column(x):
    y = zeros(2, 3)
    y[0] = x**2
    y.t()[1] = x[:2]
    return y.sum(0) * x


@like(lambda x: torch.diag(x**2) @ x)
def a_diagonal(x):
    y = zeros(3, 3)
    y.diagonal().copy_(x**2)
    return y @ x


@like(lambda x: zeros(3).index_add(0, AT, (x**2)[:2]) * x)
def added_at_indices(x):
    y = zeros(3)
    y.index_add_(0, AT, (x**2)[:2])
    return y * x


@like(lambda x: zeros(3).scatter(0, AT, (x**2)[:2]) * x)
def scattered(x):
    y = zeros(3)
    y.scatter_(0, AT, (x**2)[:2])
    return y * x


@like(lambda x: zeros(3).scatter(0, AT, (x**2)[:2]) * x)
def at_an_index_tensor(x):
    y = zeros(3)
    y[AT] = (x**2)[:2]
    return y * x


@like(lambda x: torch.stack([x[0] ** 2, x[0] * 0, x[1] ** 2]) * x)
def at_a_mask(x):
    y = zeros(3)
    y[MASK] = (x**2)[:2]
    return y * x


@like(lambda x: (x**2).masked_fill(MASK, 2.0) * x)
def filled_at_a_mask(x):
    y = x**2
    y.masked_fill_(MASK, 2.0)
    return y * x


@like(lambda x: (-((x + x * x).clamp(max=5.0) ** 2)).sigmoid())
def a_chain_of_functions(x):
    y = x.clone()
    y.addcmul_(x, x).clamp_(max=5.0).pow_(2)
    return y.neg_().sigmoid_()


@like(lambda x: 1 + (1 + x[:, None] * x[None]) @ x)
def added_products(x):
    y = zeros(3, 3) + 1
    y.addmm_(x[:, None], x[None])
    z = zeros(3) + 1
    return z.addmv_(y, x)


@like(lambda x: x.lerp(x**2, 0.3).cumsum(0))
def sums_in_place(x):
    y = x.clone()
    y.lerp_(x**2, 0.3)
    return y.cumsum_(0)


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "grad": lambda f: grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](torch.ones_like(x)),
    "vmap": lambda f: lambda x: vmap(lambda s: f(x * s))(SCALES),
}
FORWARD = [one for one in itertools.product(("jacfwd", "jvp", "vmap"), repeat=3)]


@pytest.mark.parametrize("name", PAIRS)
def test_writes_change_no_derivative(name: str) -> None:
    """All pairs of transforms, and forward mode and batches three deep."""
    wrong = []
    for chain in [*itertools.product(TRANSFORMS, repeat=2), *FORWARD]:
        writing, plain = PAIRS[name]
        for one in chain:
            writing, plain = TRANSFORMS[one](writing), TRANSFORMS[one](plain)
        expected = plain(POINT)
        try:
            found = writing(POINT)
        except Exception as error:  # all of them are told at once
            wrong.append(f"{' of '.join(reversed(chain))}: {type(error).__name__} {error}")
            continue
        if found.shape != expected.shape or not torch.allclose(found, expected):
            wrong.append(f"{' of '.join(reversed(chain))}: {found.tolist()}, not {expected.tolist()}")
    assert not wrong, "\n".join(wrong)
