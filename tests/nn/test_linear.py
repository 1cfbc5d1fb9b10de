"""Linear layers against torch: weights of a seed, graph, errors, versions of saved values."""

from __future__ import annotations

import pytest

import retrograd
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

PROGRAMS = """
F.linear(torch.ones(2, 3), torch.ones(4, 5))
F.linear(torch.ones(2, 3), torch.ones(4, 5), torch.ones(4))
F.linear(torch.ones(3), torch.ones(4, 5), torch.ones(4))
F.linear(torch.ones(2, 2, 3), torch.ones(4, 5))
F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(5))
F.linear(torch.ones(2, 3).double(), torch.ones(4, 3), torch.ones(4))
F.linear(torch.ones(2, 3).double(), torch.ones(4, 3))
F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4).double())
F.linear(torch.tensor(1.), torch.ones(4, 3))
F.linear(torch.ones(2, 3), torch.ones(2, 4, 3))
F.linear(torch.ones(2, 3), [1])
F.linear(3, torch.ones(4, 3))
F.linear(torch.ones(2, 3), torch.ones(3), torch.tensor(2.))
F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(2, 4))
F.bilinear(torch.ones(2, 3), torch.ones(3, 4), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 3), torch.ones(2, 2, 4), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 4), torch.ones(2, 4), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4), torch.ones(4))
F.bilinear(torch.ones(2, 3), torch.ones(2, 4).double(), torch.ones(5, 3, 4))
torch.nn.Linear(3, 4)
torch.nn.Linear(3, 4, bias=False)
torch.nn.Linear(-1, 4)
torch.nn.Linear(3, 4, dtype=torch.long)
torch.nn.Bilinear(2, 3, 4)
torch.nn.Bilinear(0, 2, 3)
torch.nn.Identity(3, a=4)
torch.nn.LazyLinear(3)
torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [])
torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 4])
torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], div_value=2, head_bias=True)
""".strip().splitlines()
LAYERS = [
    "Linear(3, 4)",
    "Linear(3, 4, bias=False)",
    "Bilinear(2, 3, 4)",
    "AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_answers(program) -> None:
    ours = answer(retrograd, program, F=retrograd.nn.functional)
    assert ours == answer(torch, program, F=torch.nn.functional)


@pytest.mark.parametrize("layer", LAYERS)
def test_same_seed_same_weights(layer) -> None:
    states = []
    for library in (retrograd, torch):
        library.manual_seed(4)
        made = eval(f"nn.{layer}", {"nn": library.nn})
        states.append({name: value.tolist() for name, value in made.state_dict().items()})
    assert states[0] == states[1]


@pytest.mark.parametrize("bias", [True, False])
def test_graph_of_a_matrix(bias) -> None:
    seen = []
    for library in (retrograd, torch):
        x, w = library.ones(2, 3, requires_grad=True), library.ones(4, 3, requires_grad=True)
        b = library.ones(4, requires_grad=True) if bias else None
        node = library.nn.functional.linear(x, w, b).grad_fn
        following = [one.name() for one, _ in node.next_functions]
        seen.append((node.name(), following, tuple(node._saved_mat2.shape)))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("which", ["input", "weight"])
def test_overwritten_values_are_noticed(which) -> None:
    texts = []
    for library in (retrograd, torch):
        x = (library.ones(2, 3, requires_grad=True) * 1).detach().requires_grad_() * 1
        w = library.ones(4, 3, requires_grad=True) * 1
        y = library.nn.functional.linear(x, w)
        (x if which == "input" else w).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        texts.append(y.tolist())
    assert texts[0] == texts[1]


def test_a_parameter_that_an_optimizer_moved() -> None:
    layer = retrograd.nn.Linear(3, 2)
    x = retrograd.ones(4, 3)
    y = layer(x)
    with retrograd.no_grad():
        layer.weight.sub_(0.1)
    y.sum().backward()  # the input needs no gradient, so the weights were not saved
    assert layer.weight.grad.tolist() == [[4.0] * 3] * 2


def test_few_rows_of_many_columns() -> None:
    found = []
    for library in (retrograd, torch):
        library.manual_seed(0)
        layer = library.nn.Linear(64, 192)
        x = library.randn(2, 8, 64, requires_grad=True)
        y = layer(x)
        y.square().mean().backward()
        found.append([y.detach().numpy(), x.grad.numpy(), layer.weight.grad.numpy(), layer.bias.grad.numpy()])
        assert y.stride() == (1536, 192, 1)
    for ours, theirs in zip(*found, strict=True):
        assert abs(ours - theirs).max() < 1e-5


def test_adaptive_softmax() -> None:
    found = []
    for library in (retrograd, torch):
        library.manual_seed(0)
        layer = library.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], div_value=2.0)
        x = library.randn(6, 16, requires_grad=True)
        output, loss = layer(x, library.tensor([0, 4, 7, 12, 19, 3]))
        loss.backward()
        found.append(
            [output.tolist(), loss.item(), x.grad.tolist(), layer.log_prob(x).tolist(), layer.predict(x).tolist()]
        )
    for ours, theirs in zip(*found, strict=True):
        assert abs(retrograd.tensor(ours) - retrograd.tensor(theirs)).max() < 1e-5


def test_a_class_with_a_call_of_its_own() -> None:
    class Counting(retrograd.nn.Linear):
        calls = 0

        def _call_impl(self, *args, **kwargs):
            self.calls += 1
            return super()._call_impl(*args, **kwargs)

    layer = Counting(2, 2)
    layer(retrograd.ones(1, 2))
    assert layer.calls == 1
