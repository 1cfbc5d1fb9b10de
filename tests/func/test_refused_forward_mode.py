"""Operations without a forward derivative say so, however they are called."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch


@pytest.mark.parametrize("name", ["floor_divide", "//"])
@pytest.mark.parametrize("other", [2, torch.tensor(2.0), None])
def test_floor_divide(name: str, other: Any) -> None:
    def f(x: Any) -> Any:
        divisor = x if other is None else other
        return x // divisor if name == "//" else torch.floor_divide(x, divisor)

    x = torch.tensor([1.0, 2.5])
    with pytest.raises(NotImplementedError, match="Trying to use forward AD with aten::floor_divide"):
        torch.func.jvp(f, (x,), (x,))
