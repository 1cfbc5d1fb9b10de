"""explain: the path of a gradient, or where it was cut."""

from __future__ import annotations

import pytest

import retrograd as torch
from retrograd.autograd import explain


def leaf() -> torch.Tensor:
    return torch.tensor([3.0, 4.0], requires_grad=True)


def test_the_path_with_its_norms() -> None:
    x = leaf()
    h = x * 2
    y = h.sum()
    story = explain(y, x)
    assert story.connected
    assert [step.operation for step in story.path] == ["SumBackward0", "MulBackward0", "input"]
    assert [step.norm for step in story.path] == pytest.approx([1.0, 2**0.5, 2 * 2**0.5])
    assert story.path[1].place.startswith(__file__)
    assert "|grad| = 2.828" in repr(story)
    y.backward()  # explaining frees nothing
    assert x.grad.tolist() == [2.0, 2.0]


def test_after_backward_there_are_no_norms() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward()
    story = explain(y, x)
    assert story.connected
    assert "a backward has freed the graph" in story.reason
    assert [step.operation for step in story.path] == ["SumBackward0", "MulBackward0", "input"]


def test_from_a_node_inside_the_graph() -> None:
    x = leaf()
    h = x.exp()
    assert explain(h.sum(), h).connected
    assert explain(h.max(0)[0], h).connected


def test_a_gradient_that_is_zero() -> None:
    x = leaf()
    assert "zero when it arrives" in repr(explain((x * 0).sum(), x))


CUTS = {
    "detach()": lambda h: h.detach(),
    ".data": lambda h: h.data,
    "tensor(...)": lambda h: torch.tensor(h),
    "cast to torch.int64": lambda h: h.long(),
}


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.parametrize("how", CUTS)
def test_a_cut_is_named_with_its_line(how: str) -> None:
    x = leaf()
    h = x * 2
    story = explain((CUTS[how](h) * leaf()).sum(), x)
    assert not story.connected
    assert [c.how for c in story.cuts] == [how]
    assert "Values that depend on input left the graph here" in story.reason
    assert f'"{how}": lambda h' in repr(story)


def test_a_cut_whose_graph_is_gone_is_a_candidate() -> None:
    x = leaf()
    y = (x * 3).detach()  # nobody holds the product
    story = explain((leaf() * y).sum(), x)
    assert not story.connected
    assert "y = (x * 3).detach()  # nobody holds the product" in repr(story)


def test_cuts_of_other_values_are_not_blamed() -> None:
    other = leaf()
    kept = other * 2
    kept.detach()
    x = leaf()
    mine = x * 3
    mine.detach()
    story = explain((leaf() * 2).sum(), x)
    assert len(story.cuts) == 1
    assert "mine.detach()" in repr(story)


def test_no_grad_is_named() -> None:
    x = leaf()
    with torch.no_grad():  # gradients are off
        y = (x * 2).sum()
    story = explain(y, x)
    assert not story.connected
    assert "with torch.no_grad():  # gradients are off" in repr(story)


def test_an_input_that_requires_no_grad() -> None:
    x = torch.ones(2)
    story = explain((leaf() * x).sum(), x)
    assert "input requires no grad" in story.reason


def test_tensors_that_have_nothing_to_do_with_each_other() -> None:
    assert not explain(leaf().sum(), leaf()).connected


def test_nothing_is_kept_alive() -> None:
    import gc
    import weakref

    x = leaf()
    h = x * 2
    h.detach()
    gone = weakref.ref(h.grad_fn)
    del h
    gc.collect()
    assert gone() is None


def test_refuses_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="output must be a Tensor, not int"):
        explain(3, leaf())
