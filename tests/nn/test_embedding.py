"""Embeddings against torch: values, gradients with padding and frequencies, bags, errors, modules."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

PROGRAMS = """
F.embedding(i([1, 5]), W)
F.embedding(i([-1]), W)
F.embedding(i([1.]), W)
F.embedding(i([1]), W, padding_idx=4)
F.embedding(i([1], dtype=torch.int32), W)
F.embedding(i(1), W)
F.embedding(i([1]), W[0])
F.embedding([1], W)
F.embedding(i([1]), [1])
torch.embedding(W, i([1, 2]))
F.embedding_bag(i([1, 2, 3]), W)
F.embedding_bag(i([1, 2, 3]), W, i([0, 2]))
F.embedding_bag(i([[1, 2], [3, 0]]), W, i([0]))
F.embedding_bag(i([1, 2, 3]), W, i([0, 4]))
F.embedding_bag(i([1, 2, 3]), W, i([[0]]))
F.embedding_bag(i([1, 2, 3]), W, i([0, 2]), mode='x')
F.embedding_bag(i([1, 2, 3]), W, i([0, 2]), mode='max')
F.embedding_bag(i([1, 2, 3]), W, i([0, 2]), mode='mean', per_sample_weights=torch.ones(3))
F.embedding_bag(i([1, 2, 3]), W, i([0, 2]), mode='sum', per_sample_weights=torch.ones(2))
F.embedding_bag(i([1, 2, 3]), W, i([0, 2, 2]), mode='sum', include_last_offset=True)
F.embedding_bag(i([[1, 2]]), W, mode='max', scale_grad_by_freq=True)
F.embedding_bag(i([[[1, 2]]]), W)
F.embedding_bag(i([1, 9]), W, i([0]))
torch.embedding_bag(W, i([1, 2, 3]), i([0, 2]))
torch.embedding_bag(W, i([1, 2, 3]), i([0, 2]), mode=1)
torch.embedding_bag(W, i([1, 2, 3]), i([0, 2]), mode=2)
F.one_hot(i([0, 2]))
F.one_hot(i([0, 2]), 2)
F.one_hot(i([0, -2]))
F.one_hot(i([0.]))
F.one_hot(i([], dtype=torch.long))
F.one_hot(i([], dtype=torch.long), 3)
F.one_hot(i(1), 3)
torch.nn.Embedding(3, 4, padding_idx=3)
torch.nn.Embedding(3, 4, padding_idx=-1)
torch.nn.Embedding(3, 4, 2, max_norm=1., norm_type=3., scale_grad_by_freq=True, sparse=True)
torch.nn.Embedding.from_pretrained(W)
torch.nn.Embedding.from_pretrained(torch.ones(3))
torch.nn.Embedding(3, 4, _weight=W)
torch.nn.EmbeddingBag(3, 4)
torch.nn.EmbeddingBag(3, 4, padding_idx=1, mode='sum', max_norm=2.)
torch.nn.EmbeddingBag.from_pretrained(W)
""".strip().splitlines()
GRADIENTS = [
    {},
    {"padding_idx": 1},
    {"padding_idx": -3},
    {"scale_grad_by_freq": True},
    {"padding_idx": 1, "scale_grad_by_freq": True},
    {"max_norm": 2.0},
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_answers(program) -> None:
    found = []
    for library in (retrograd, torch):
        table = library.arange(12.0).reshape(4, 3)
        found.append(answer(library, program, F=library.nn.functional, i=library.tensor, W=table))
    assert found[0] == found[1]


@pytest.mark.parametrize("options", GRADIENTS, ids=str)
def test_gradients(options) -> None:
    found = []
    for library in (retrograd, torch):
        weight = library.arange(12.0).reshape(4, 3).requires_grad_()
        indices = library.tensor([[0, 1, 1], [2, 1, 0]])
        library.nn.functional.embedding(indices, weight, **options).square().sum().backward()
        found.append((weight.tolist(), weight.grad.tolist()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 1])
def test_bags(mode, padding_idx) -> None:
    found = []
    for library in (retrograd, torch):
        weight = library.arange(12.0).reshape(4, 3).requires_grad_()
        indices, offsets = library.tensor([0, 1, 1, 2, 1]), library.tensor([0, 3, 3, 4])
        out = library.nn.functional.embedding_bag(indices, weight, offsets, mode=mode, padding_idx=padding_idx)
        out.square().sum().backward()
        found.append((out.tolist(), weight.grad.tolist()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


@pytest.mark.parametrize("padding_idx", [None, 0, 1])
@pytest.mark.parametrize(
    "bags", [([0, 1, 2, 1], [0, 0, 2, 4]), ([1, 2, 2, 0], [0, 1]), ([2, 0, 1], [0, 3]), ([], [0, 0])]
)
def test_the_largest_among_values_that_are_no_numbers(bags, padding_idx) -> None:
    nan, inf = float("nan"), float("inf")
    found = []
    for library in (retrograd, torch):
        weight = library.tensor([[inf, nan, 1.0, -inf, nan], [2.0, 3.0, nan, -inf, nan], [5.0, nan, 6.0, 1.0, 1.0]])
        weight.requires_grad_()
        indices, offsets = library.tensor(bags[0], dtype=library.int64), library.tensor(bags[1])
        out = library.nn.functional.embedding_bag(indices, weight, offsets, mode="max", padding_idx=padding_idx)
        out.sum().backward()
        found.append((out.tolist(), weight.grad.tolist()))
    np.testing.assert_equal(found[0], found[1])


@pytest.mark.parametrize(
    "module", ["Embedding(5, 3, padding_idx=1)", "EmbeddingBag(5, 3)", "EmbeddingBag(5, 3, padding_idx=2)"]
)
def test_same_seed_same_table(module) -> None:
    tables = []
    for library in (retrograd, torch):
        library.manual_seed(1)
        made = eval(f"nn.{module}", {"nn": library.nn})
        tables.append((list(made.state_dict()), made.weight.tolist()))
    assert tables[0] == tables[1]


def test_many_indices() -> None:
    found = []
    for library in (retrograd, torch):
        library.manual_seed(0)
        weight = library.randn(100, 16, requires_grad=True)
        indices = library.randint(0, 100, (50, 20))
        library.nn.functional.embedding(indices, weight, padding_idx=3).square().sum().backward()
        found.append(weight.grad.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_sparse_gradients_are_refused() -> None:
    weight = retrograd.ones(4, 3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="sparse"):
        retrograd.nn.functional.embedding(retrograd.tensor([1]), weight, sparse=True)
    with retrograd.no_grad():
        assert weight.detach().sum() == 12
        assert retrograd.nn.functional.embedding(retrograd.tensor([1]), weight.detach(), sparse=True).shape == (1, 3)


INDICES = [0, 2, 2, 4, 2, 1, 1]


def second_order(library, function):
    """First gradients of a function of a table, and second ones, which also go to what the first began with."""
    weight, direction = (library.tensor(np.cos(np.arange(15) + k).reshape(5, 3)) for k in (0, 7))
    weight.requires_grad_()
    out = function(library, weight)
    seed = library.tensor(np.sin(np.arange(out.numel())).reshape(out.shape), requires_grad=True)
    (first,) = library.autograd.grad((out**3 * seed).sum(), weight, create_graph=True)
    return [one.tolist() for one in (first, *library.autograd.grad((first * direction).sum(), (weight, seed)))]


def bagged(library, weight, own=None, **options):
    return library.nn.functional.embedding_bag(
        library.tensor(INDICES), weight, library.tensor([0, 3, 3, 6]), per_sample_weights=own, **options
    )


@pytest.mark.parametrize("options", [one for one in GRADIENTS if "max_norm" not in one], ids=str)
def test_second_order(options) -> None:
    def picked(library, weight):
        return library.nn.functional.embedding(library.tensor(INDICES), weight, **options)

    for ours, theirs in zip(*(second_order(library, picked) for library in (retrograd, torch)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("padding_idx", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted"])
def test_second_order_of_bags(mode, padding_idx) -> None:
    """Torch has none; here they are those of its other operations."""
    options = {"mode": "sum" if mode == "weighted" else mode, "padding_idx": padding_idx}

    def in_one(library, weight):
        own = weight.square().sum(1)[library.tensor(INDICES)] if mode == "weighted" else None
        return bagged(library, weight, own, **options)

    def by_hand(library, weight):
        bags = []
        for bag in (INDICES[:3], [], INDICES[3:6], INDICES[6:]):
            rows = [
                weight[one] * (weight[one].square().sum() if mode == "weighted" else 1)
                for one in bag
                if one != padding_idx
            ]
            found = library.stack(rows) if rows else weight[:1] * 0
            bags.append(found.amax(0) if mode == "max" else found.mean(0) if mode == "mean" else found.sum(0))
        return library.stack(bags)

    for ours, theirs in zip(second_order(retrograd, in_one), second_order(torch, by_hand), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_share_gradients_by_frequency(mode) -> None:
    """As `scale_grad_by_freq` is documented; torch divides by the counts of other rows."""
    rows = []
    for scaled in (False, True):
        weight = retrograd.ones(5, 3, dtype=retrograd.float64, requires_grad=True)
        bagged(retrograd, weight, mode=mode, scale_grad_by_freq=scaled).square().sum().backward()
        rows.append(weight.grad.numpy())
    np.testing.assert_allclose(rows[1], rows[0] / np.array([1, 2, 3, 1, 1])[:, None])
