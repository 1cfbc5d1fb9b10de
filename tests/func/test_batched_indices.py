"""Indices under vmap: one that is outside of its sample raises, and never reaches the next sample."""

from __future__ import annotations

import pytest

import retrograd as torch
from retrograd.func import vmap

CALLS = {
    "gather": lambda x, i, s: x.gather(0, i),
    "scatter": lambda x, i, s: x.scatter(0, i, s),
    "scatter_add": lambda x, i, s: x.scatter_add(0, i, s),
    "scatter_reduce": lambda x, i, s: x.scatter_reduce(0, i, s, "sum"),
    "index_add": lambda x, i, s: x.index_add(0, i, s),
    "index_copy": lambda x, i, s: x.index_copy(0, i, s),
    "index_fill": lambda x, i, s: x.index_fill(0, i, 2.0),
    "index_put": lambda x, i, s: x.index_put((i,), s),
    "index_reduce": lambda x, i, s: x.index_reduce(0, i, s, "prod"),
    "index_select": lambda x, i, s: x.index_select(0, i),
    "put": lambda x, i, s: x.put(i, s),
    "take": lambda x, i, s: x.take(i),
    "take_along_dim": lambda x, i, s: torch.take_along_dim(x, i),
    "getitem": lambda x, i, s: x[i],
}


@pytest.mark.parametrize("position", [4, 3, -4])
@pytest.mark.parametrize("name", CALLS)
def test_an_index_outside_raises(name: str, position: int) -> None:
    x, i, s = torch.zeros(2, 3), torch.tensor([[position], [0]]), torch.tensor([[7.0], [1.0]])
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        vmap(CALLS[name])(x, i, s)


@pytest.mark.parametrize("name", CALLS)
def test_an_unbatched_tensor_with_batched_indices(name: str) -> None:
    x, i, s = torch.zeros(3), torch.tensor([[0], [5]]), torch.tensor([[7.0], [1.0]])
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        vmap(CALLS[name], in_dims=(None, 0, 0))(x, i, s)
