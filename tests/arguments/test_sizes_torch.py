"""Sizes and dims: methods take them one by one or in one sequence, functions of the package in one sequence only."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer

PROGRAMS = """
t.permute(1, 0)
t.permute((1, 0))
t.permute([1, 0])
t.permute(dims=(1, 0))
t.permute()
s.permute()
torch.permute(t, (1, 0))
torch.permute(t, 1, 0)
torch.permute(t)
torch.permute(input=t, dims=(1, 0))
t.flip(0, 1)
t.flip(0)
t.flip(())
t.flip()
t.flip(dims=0)
t.flip(dims=(0,))
t.flip(0, dims=(0,))
t.flip(True)
t.flip(0, True)
t.flip((True,))
t.flip(1.5, 2)
t.flip((0,), (1,))
torch.flip(t, ())
torch.flip(t)
torch.flip(t, 0)
torch.flip(t, 0, 1)
torch.flip(t, dims=0)
torch.flip(t, (1.5,))
torch.flip(t, dims=(1.5,))
t.tile(2)
t.tile(2, 2)
t.tile()
t.tile(dims=2)
torch.tile(t)
torch.tile(t, 2)
torch.tile(t, (2,))
t.reshape(4)
t.reshape(-1)
t.reshape(k)
t.reshape((k,))
t.reshape(s.shape)
t.reshape()
t.reshape(True, 4)
t.reshape([True, 4])
t.reshape('x', 4)
torch.reshape(t, -1)
torch.reshape(t, 2, 2)
torch.reshape(t, [True, 4])
torch.reshape(t, k)
t.broadcast_to(2, 2, 2)
t.broadcast_to(t.shape)
t.broadcast_to()
torch.broadcast_to(t, 2, 2, 2)
torch.broadcast_to(t, 4)
r.squeeze(0, 1)
r.squeeze((0, 1))
r.squeeze(0)
r.squeeze(dim=0)
r.squeeze()
r.squeeze(True)
torch.squeeze(r, 0, 1)
t.count_nonzero(0, 1)
t.count_nonzero()
torch.count_nonzero(t, 0, 1)
t.hsplit(1, 1)
t.hsplit(2)
t.hsplit(sections=2)
t.vsplit(1, 1)
torch.hsplit(t, 1, 1)
t.expand(2, 2, 2)
t.expand(size=(2, 2))
t.expand(2, 2, implicit=True)
s.expand()
t.expand('x', 4)
t.repeat(2, 1)
t.repeat(repeats=(2, 2))
t.repeat()
t.sum_to_size(1, 2)
t.sum_to_size()
s.view()
t.view(True, 4)
t.view(size=(4,))
t.view(size=4)
t.view(dtype=torch.int32)
t.new_zeros(2, 2)
t.new_zeros(True)
torch.zeros(True)
torch.zeros((True, 2))
torch.zeros((2, True))
torch.zeros(1.5)
torch.zeros(1.5, 2)
torch.zeros((1.5, 2))
torch.ones(True)
torch.rand(True)
torch.sum(t, keepdim=True)
torch.sum(t, None, True)
t.sum(keepdim=True)
t.sum(dim=None, keepdim=True)
t.mean(keepdim=True)
t.mean(None, True)
t.max(keepdim=True)
torch.unflatten(t, 0, [2, 1])
t.unflatten(0, (2, -1))
""".strip().splitlines()


def _scope(library: Any) -> dict[str, Any]:
    t = library.tensor([[0.5, 0.25], [0.125, 0.75]])
    return {"t": t, "r": t[:1, :1], "s": library.tensor(1.5), "k": library.tensor(4)}


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_as_torch(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program, **_scope(retrograd)) == answer(torch, program, **_scope(torch))


def test_method_and_function_are_taken_over_as_what_was_called() -> None:
    seen = []

    class Seeing(retrograd.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((function, args[1:], kwargs or {}))
            return super().__torch_function__(function, types, args, kwargs or {})

    x = retrograd.ones(2, 3).as_subclass(Seeing)
    seen.clear()
    assert x.permute(1, 0).shape == (3, 2)
    assert retrograd.permute(x, (1, 0)).shape == (3, 2)
    calls = [one for one in seen if one[0] in (retrograd.Tensor.permute, retrograd.permute)]
    assert calls == [(retrograd.Tensor.permute, (1, 0), {}), (retrograd.permute, ((1, 0),), {})]
    assert retrograd.Tensor.permute is not retrograd.permute
