"""What is not there says so in words of its own."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer


@pytest.mark.parametrize("name", ["to_sparse", "to_sparse_csr", "to_sparse_coo"])
def test_sparse_tensors(name: str) -> None:
    assert not hasattr(retrograd.ones(2), name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}': retrograd has no sparse tensors"):
        getattr(retrograd.ones(2), name)()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    ["pow(x, 2, 5)", "pow(2, x, 5)", "pow(x, x, x)", "x.__pow__(2, 5)", "x.__rpow__(2, 5)", "pow(x, 2)", "pow(2, x)"],
)
def test_power_takes_no_modulus(program: str) -> None:
    torch: Any = pytest.importorskip("torch")
    assert answer(retrograd, program, x=retrograd.tensor(3)) == answer(torch, program, x=torch.tensor(3))
