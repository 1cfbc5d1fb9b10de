"""Second derivatives of products that are scattered or reduced by index, where factors are zero; finite differences decide."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch

SELF = [[1.5, 0.0, 3.0], [2.0, -1.0, 0.5]]
SOURCES = {
    "none": [[1.0, 2.0, 3.0, -0.5, 1.2], [2.0, 1.0, 0.5, 3.0, -1.0]],
    "one": [[1.0, 2.0, 0.0, -0.5, 1.2], [0.0, 1.0, 0.5, 3.0, -1.0]],
    "two at a place": [[0.0, 2.0, 0.0, -0.5, 1.2], [2.0, 0.0, 0.5, 3.0, 0.0]],
    "three at a place": [[0.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0, 0.0]],
}
PLACES = [[0, 1, 0, 0, 1], [2, 1, 2, 2, 1]]


def leaf(values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("zeros", SOURCES)
def test_second_derivatives(zeros: str, include_self: bool) -> None:
    at = torch.tensor(PLACES)

    def scattered(x: Any, source: Any) -> Any:
        return x.scatter_reduce(1, at, source, "prod", include_self=include_self)

    def by_index(x: Any, source: Any) -> Any:
        return x.index_reduce(1, at[0], source, "prod", include_self=include_self)

    def each_row(x: Any, source: Any) -> Any:
        row = lambda x, at, source: x.scatter_reduce(0, at, source, "prod", include_self=include_self)  # noqa: E731
        return torch.func.vmap(row)(x, at, source)

    for function in (scattered, by_index, each_row):
        inputs = leaf(SELF), leaf(SOURCES[zeros])
        assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, inputs)


def test_of_numbers() -> None:
    """A source without dimensions goes to one place."""
    x, source = leaf(2.0), leaf(0.0)

    def number(x: Any, source: Any) -> Any:
        return x.scatter_reduce(0, torch.tensor(0), source, "prod")

    assert torch.autograd.gradgradcheck(number, (x, source))
