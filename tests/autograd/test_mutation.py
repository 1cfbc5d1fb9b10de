"""allow_mutation_on_saved_tensors, as torch has it."""

from __future__ import annotations

import pytest

import retrograd
from retrograd.autograd.graph import allow_mutation_on_saved_tensors

LIBRARIES = [retrograd, pytest.param("torch", marks=pytest.mark.oracle)]


@pytest.fixture(params=LIBRARIES, ids=["retrograd", "torch"])
def torch(request):
    return pytest.importorskip("torch") if request.param == "torch" else request.param


def leaf(torch):
    return torch.tensor([1.0, 2.0], requires_grad=True)


def test_an_input_is_overwritten(torch) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_an_output_is_overwritten(torch) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch)
        b = torch.exp(a)
        out = b.sum()
        b.add_(5)
        out.backward()
    assert a.grad.tolist() == pytest.approx([2.71828, 7.38906], rel=1e-5)


def test_through_a_view(torch) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch)
        b = a.clone()
        out = (b.view(2, 1) ** 2).sum()
        b[0] = 5
        out.backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_a_leaf_without_grad_mode(torch) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch)
        out = (a * a).sum()
        with torch.no_grad():
            a.mul_(3)
        out.backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_several_writes_and_graphs(torch) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch)
        b = a.clone()
        first = (b * b).sum()
        b.mul_(2)
        second = (b * b).sum()
        b.zero_()
        first.backward(retain_graph=True)
        second.backward()
    assert a.grad.tolist() == [2.0 + 8.0, 4.0 + 16.0]


def test_second_order(torch) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch)
        b = a.clone()
        out = (b**3).sum()
        b.zero_()
        (g,) = torch.autograd.grad(out, a, create_graph=True)
        g.sum().backward()
    assert a.grad.tolist() == [6.0, 12.0]


def test_contexts_do_not_nest(torch) -> None:
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allow(), pytest.raises(RuntimeError, match="contexts cannot be nested"), allow():
        pass


@pytest.mark.parametrize("how", ["outside", "cleared"])
def test_backward_must_run_inside(torch, how) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        if how == "cleared":
            context.clear()
            with pytest.raises(AssertionError, match="Trying to backward outside of the"):
                out.backward()
    if how == "outside":
        with pytest.raises(AssertionError, match="Trying to backward outside of the"):
            out.backward()


def test_nothing_is_copied_without_a_write() -> None:
    with allow_mutation_on_saved_tensors() as context:
        a = retrograd.ones(3, requires_grad=True)
        b = a * 1
        out = (b * b).sum()
        assert [one._array is b._array for one in context.original.values()] == [True]
        assert not context.cloned
        out.backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]
