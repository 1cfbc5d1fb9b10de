"""Transforms in and around compiled functions: what is read inside of them is guarded, and what they give is eager's."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap

FACTOR = 2.0


def used(compiled: Any) -> Any:
    return compiled._compiled


def test_what_a_transformed_function_reads_is_guarded() -> None:
    def f(x: Any) -> Any:
        return (x.sin() * FACTOR).sum()

    x = torch.tensor([0.5, -1.0, 2.0])
    for transform in (grad, hessian, lambda g: vmap(grad(lambda v: v.exp() * g(v[None])))):
        compiled = torch.compile(transform(f))
        for factor in (2.0, 3.0, 2.0, -1.0):
            globals()["FACTOR"] = factor
            for _ in range(2):
                torch.testing.assert_close(compiled(x), transform(f)(x))
        assert len(used(compiled).records) <= 3
        assert not used(compiled).reasons
    globals()["FACTOR"] = 2.0


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.b = self.a

    def forward(self, x: Any) -> Any:
        return x * self.b


def test_weights_that_are_no_longer_tied() -> None:
    model = Tied()

    def f(params: Any, x: Any) -> Any:
        return functional_call(model, params, (x,)).square().sum()

    compiled = torch.compile(f)
    params, x = {"a": torch.tensor([3.0, 4.0])}, torch.tensor([1.0, -1.0])
    for _ in range(3):
        assert compiled(params, x).item() == 25
    model.a = nn.Parameter(torch.tensor([5.0, 6.0]))  # it is read nowhere, but b is not replaced any more
    for _ in range(3):
        assert compiled(params, x).item() == 5
    assert not used(compiled).reasons


def test_modules_that_watch_what_is_assigned_run_in_eager() -> None:
    seen = []

    class Watching(Tied):
        def __setattr__(self, name: str, value: Any) -> None:
            seen.append(name)
            super().__setattr__(name, value)

    model = Watching()
    compiled = torch.compile(lambda x: functional_call(model, {"a": x, "c": x}, (x,)).sum())
    seen.clear()
    for turn in range(3):
        compiled(torch.ones(2))
        assert seen == ["c"] * (turn + 1)


def test_structures_of_results() -> None:
    def f(x: Any) -> Any:
        out = vmap(lambda v: {"a": (v.sum(), v * 2), "b": [v.max()]})(x)
        rows = jacrev(lambda v: {"p": v * 2, "q": v.sum()})(x[0])
        return out["a"][0] + out["b"][0].abs() + rows["p"].sum() + rows["q"].mean(), out

    compiled = torch.compile(f)
    for x in (torch.randn(3, 4), torch.randn(3, 4), torch.randn(2, 5)):
        torch.testing.assert_close(compiled(x), f(x))
    assert len(used(compiled).records) == 2
    assert not used(compiled).reasons


# ---- transforms around compiled functions ----
SCALE = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def energy(x: Any) -> Any:
    return (x.sin() * x.pow(2) * SCALE).sum()


def test_reverse_mode_runs_the_program() -> None:
    compiled = torch.compile(energy)
    for transform in (
        grad,
        lambda f: grad(lambda v: grad(f)(v).square().sum()),
        lambda f: lambda v: vjp(f, v)[1](torch.tensor(2.0)),
    ):
        for _ in range(4):
            x = torch.randn(3, requires_grad=True)
            sides = []
            for call in (energy, compiled):
                out = transform(call)(x)
                out = out[0] if isinstance(out, tuple) else out
                sides.append((out, torch.autograd.grad(out.sum(), (x, SCALE))))  # what is outside is seen, too
            torch.testing.assert_close(*sides)
    assert len(used(compiled).records) == 1
    assert not used(compiled).reasons


def test_one_record_serves_inside_and_outside() -> None:
    compiled = torch.compile(energy)
    x = torch.randn(3, requires_grad=True)
    compiled(x), compiled(x)
    (record,) = used(compiled).records
    torch.testing.assert_close(grad(compiled)(x.detach()), grad(energy)(x.detach()))
    assert used(compiled).records == [record]


@pytest.mark.parametrize(
    "transform",
    [vmap, lambda f: lambda x: jvp(f, (x[0],), (x[1],)), lambda f: vmap(grad(f)), lambda f: vmap(hessian(f))],
)
def test_other_transforms_of_what_reads_a_leaf_run_in_eager(transform: Any) -> None:
    compiled = torch.compile(energy)
    for _ in range(3):
        x = torch.randn(2, 3)
        torch.testing.assert_close(transform(compiled)(x), transform(energy)(x))
    assert "inside vmap or forward mode" in used(compiled).reasons[0]


def test_writes_and_views_inside_a_transform() -> None:
    counts = torch.zeros(3)

    def writes(x: Any, counts: Any) -> Any:
        counts.add_(1)
        return (x * counts).sum()

    def writes_captured(x: Any) -> Any:
        return writes(x, counts)

    def views(x: Any) -> Any:
        return x[1:]

    compiled, also = torch.compile(writes), torch.compile(views)
    for turn in range(1, 5):
        x = torch.randn(3)
        torch.testing.assert_close(grad(compiled)(x, counts), torch.full((3,), float(turn)))
        torch.testing.assert_close(grad(lambda v: also(v).sum())(x), torch.tensor([0.0, 1.0, 1.0]))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            grad(torch.compile(writes_captured))(x)
    assert counts.tolist() == [4, 4, 4]
    assert "inside a transform" in used(compiled).reasons[0]


# ---- graphs of the backward, and backward of some results ----
def levels_of_records(run: Any) -> int:
    derivatives = [one for one in run.record.derivatives.values() if callable(one)]
    return 1 + max(map(levels_of_records, derivatives), default=0)


def test_graphs_of_the_backward_are_compiled() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Softplus())
    compiled = torch.compile(net)
    for turn in range(12):
        x = torch.randn(2, 3, requires_grad=True)
        sides = []
        for call in (net, compiled):
            (first,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
            third = torch.autograd.grad(second.sum(), [x, *net.parameters()], allow_unused=True)
            sides.append((first, second, third))
        torch.testing.assert_close(*sides)
        if turn == 8:
            net[0].weight.data.mul_(1.5)
    (run,) = compiled._compiled_forward._compiled.records
    assert levels_of_records(run) == 3


def test_graphs_of_the_backward_know_what_was_changed() -> None:
    compiled = torch.compile(energy)
    x = torch.randn(3, requires_grad=True)
    for _ in range(4):
        (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        torch.autograd.grad(first.sum(), x)
    out = compiled(x)
    with torch.no_grad():
        SCALE.add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(out, x, create_graph=True)


def test_some_results_have_programs_of_their_own() -> None:
    torch.manual_seed(0)
    layer, norm = nn.Linear(3, 4), nn.BatchNorm1d(4)

    def pure(x: Any) -> Any:
        h = layer(x)
        return h * 2, h.square().mean(), h.exp().sum()

    def writing(x: Any) -> Any:
        h = norm(layer(x))
        return h * 2, h.square().sum()

    for function, count in ((pure, 3), (writing, 2)):
        compiled = torch.compile(function)
        for turn in range(12):
            chosen = [0, count - 1, count - 1][turn % 3]
            x, state = torch.randn(5, 3), {name: value.clone() for name, value in norm.state_dict().items()}
            sides = []
            for call in (function, compiled):
                norm.load_state_dict(state)
                layer.zero_grad()
                outs = call(x)
                outs[chosen].sum().backward()
                sides.append([*outs, layer.weight.grad.clone(), norm.running_mean.clone(), norm.num_batches_tracked])
            torch.testing.assert_close(*sides, rtol=1e-4, atol=1e-5)
        (run,) = used(compiled).records
        assert {frozenset({0}), frozenset({count - 1}), frozenset(range(count))} <= set(run.record.backwards)
