"""Tensors among NumPy's functions, and beside tensors of an installed torch."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

PROGRAMS = """
np.exp(torch.ones(2))
np.isnan(torch.ones(2))
np.maximum(torch.tensor([1.0, -1.0]), 0)
np.add(np.ones(2), torch.ones(2))
torch.ones(2) @ np.ones(2)
np.ones((2, 2)) @ torch.ones(2)
np.sqrt(torch.tensor(4.0))
np.modf(torch.ones(2))
np.cumsum(torch.ones(2))
np.reshape(torch.ones(2, 3), (3, 2))
np.exp(torch.ones(2, requires_grad=True))
np.float64(2) * torch.ones(2)
""".strip().splitlines()


@pytest.mark.parametrize("program", PROGRAMS)
def test_numpy_functions_of_tensors(program: str) -> None:
    assert answer(retrograd, program, np=np) == answer(torch, program, np=np)


MIXED = """
ours + theirs
theirs + ours
theirs * ours
retrograd.add(ours, theirs)
retrograd.matmul(ours, theirs)
retrograd.nn.functional.linear(theirs, ours)
ours.add_(theirs)
ours @ theirs
ours == theirs
theirs != ours
ours[theirs]
ours[0, theirs > 0]
ours.expand_as(theirs)
retrograd.sin(theirs)
retrograd.cat([ours, theirs])
retrograd.stack([theirs, theirs])
retrograd.vmap(retrograd.sin)(theirs)
retrograd.func.grad(retrograd.sum)(theirs)
""".strip().splitlines()


@pytest.mark.parametrize("program", MIXED)
def test_tensors_of_two_libraries_do_not_mix(program: str) -> None:
    scope = {"ours": retrograd.ones(2, 2), "theirs": torch.ones(2, 2), "retrograd": retrograd}
    with pytest.raises(TypeError, match=r"got a tensor of another library, torch.Tensor with shape \(2, 2\)"):
        eval(program, scope)
    assert retrograd.from_dlpack(scope["theirs"]).equal(retrograd.ones(2, 2))


GIVEN_OURS = """
torch.sin(ours)
torch.add(ours, ours)
torch.stack([ours, ours])
torch.nn.functional.relu(ours)
""".strip().splitlines()


@pytest.mark.parametrize("program", GIVEN_OURS)
def test_functions_of_torch_refuse_our_tensors(program: str) -> None:
    with pytest.raises(TypeError, match=r"is a function of torch(.|\n)*torch.from_dlpack\(x\)"):
        eval(program, {"ours": retrograd.ones(2), "torch": torch})


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64"])
def test_a_tensor_of_torch_becomes_ours(dtype: str) -> None:
    theirs = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
    for ours in (retrograd.tensor(theirs), retrograd.as_tensor(theirs), retrograd.tensor(theirs.T).T):
        assert type(ours) is retrograd.Tensor
        assert (str(ours.dtype), ours.tolist()) == (str(theirs.dtype), theirs.tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool", "complex64"])
def test_lists_of_tensors_of_torch_become_ours(dtype: str) -> None:
    theirs = torch.tensor([0, 1]).to(getattr(torch, dtype))
    for given in (
        [theirs, theirs],
        ([theirs[0], theirs[1]], theirs),
        [theirs.requires_grad_(theirs.is_floating_point())] * 2,
    ):
        ours = retrograd.tensor(given)
        assert (str(ours.dtype), ours.tolist()) == (str(theirs.dtype), [theirs.tolist()] * 2)
    assert retrograd.tensor([torch.tensor(1), 2.5]).tolist() == [1.0, 2.5]


def test_memory_and_graph_of_a_tensor_of_torch() -> None:
    theirs = torch.ones(2, requires_grad=True)
    copied, shared = retrograd.tensor(theirs, requires_grad=True), retrograd.as_tensor(theirs)
    theirs.data.fill_(5.0)
    assert (copied.tolist(), copied.requires_grad) == ([1.0, 1.0], True)
    assert (shared.tolist(), shared.requires_grad) == ([5.0, 5.0], False)
    assert retrograd.tensor(theirs, dtype=retrograd.float64).dtype is retrograd.float64
    assert retrograd.tensor(torch.tensor([1j]).conj()).tolist() == [-1j]
