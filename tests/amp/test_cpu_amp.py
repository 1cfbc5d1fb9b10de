"""torch.cpu.amp: the older names of mixed precision on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import described


def test_names_are_found() -> None:
    from retrograd.cpu.amp import GradScaler, autocast

    assert retrograd.cpu.amp.autocast is autocast
    assert issubclass(autocast, retrograd.amp.autocast)
    assert issubclass(GradScaler, retrograd.amp.GradScaler)
    assert not hasattr(retrograd.cpu, "nothing")


def casts(torch: Any) -> Any:
    with torch.cpu.amp.autocast(enabled=True) as block:
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    with torch.cpu.amp.autocast(dtype=torch.float16):
        half = torch.ones(2, 2) @ torch.ones(2, 2)
    return block.fast_dtype, block.device, product.dtype, half.dtype


def scales(torch: Any) -> Any:
    return torch.cpu.amp.GradScaler(init_scale=4.0).scale(torch.ones(2))


@pytest.mark.oracle
@pytest.mark.parametrize("program", [casts, scales])
def test_answers_as_torch(program: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.warns(FutureWarning) as ours:
        own = described(program(retrograd))
    with pytest.warns(FutureWarning) as theirs:
        assert own == described(program(torch))
    assert [str(one.message) for one in ours] == [str(one.message) for one in theirs]
