"""Functions that get ever new sizes: the same numbers as in eager, by kernels that are compiled once. See Note [Sizes]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd._native import machine
from retrograd.compiler import _sizes
from retrograd.nn import functional as F  # noqa: N812 - torch's name

native = pytest.mark.skipif(not machine.is_available(), reason="without llvmlite there are no kernels to compile")

# of x, which has n rows of 12 numbers
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "activations": lambda x: F.gelu(x).tanh() * torch.sigmoid(x),
    "shares": lambda x: (x - x.mean()).square().mean(),
    "rows": lambda x: x.softmax(1) * F.layer_norm(x, (12,)),
    "columns": lambda x: x.logsumexp(0) + x.mean(0) - x.amax(0),
    "all": lambda x: (x.var(unbiased=False) + 1).sqrt() * x.prod(1),
    "products": lambda x: (x @ x.T).relu().sum(1) + (x[:, :4] @ x[:, 4:8].T).mean(),
    "windows": lambda x: x[1:-1] * 2 - x[2:] - x[:-2],
    "losses": lambda x: F.cross_entropy(x, x.detach().abs().mul(7).long().sum(1) % 12) + F.mse_loss(x, x.detach() + 1),
    "shapes": lambda x: torch.cat([x.T.reshape(-1), x.flatten()]).view(2, -1).cumsum(1),
    "a count": lambda x: x.sum() / x.shape[0] + x.numel(),
    "half precision": lambda x: (x.bfloat16() * 3 + x.half().exp()).float().mean(),
    "whole numbers": lambda x: ((x * 100).long() % 17 + x.shape[0]).float() * x,
}


def value_and_gradient(function: Callable[[Any], Any], x: Any) -> Any:
    x = x.clone().requires_grad_()
    out = function(x)
    (out * torch.linspace(0.5, 1.5, max(out.numel(), 1))[: out.numel()].view(out.shape)).sum().backward()
    return out.detach(), x.grad


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_eager_s(name: str, dtype: Any) -> None:
    function = FUNCTIONS[name]
    compiled = torch.compile(function, dynamic=True)
    for n in (5, 33, 3, 400, 5):
        torch.manual_seed(n)
        x = torch.randn(n, 12, dtype=dtype)
        for _ in range(2):
            expected, found = value_and_gradient(function, x), value_and_gradient(compiled, x)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not compiled._compiled.reasons
    assert len(compiled._compiled.records) == 4


def trained(dynamic: Any, sizes: list[int]) -> tuple[Any, list[int], list[Any]]:
    """Train a model on batches of several sizes: the step, the new kernels that each call asked for, and the losses."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.LayerNorm(24), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    call = torch.compile(step, dynamic=dynamic) if dynamic != "eager" else step
    compiled, losses = [], []
    asked: set[str] = set()  # here: other tests may have compiled the same
    address = machine.address
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "address", lambda text, as_it_is=False: [asked.add(text), address(text, as_it_is)][1])
        for n in sizes:
            x, y = torch.randn(n, 12), torch.randint(0, 5, (n,))
            before = len(asked)
            losses.append(call(x, y).detach())
            compiled.append(len(asked) - before)
    return call, compiled, losses


SIZES = [16, 16, 17, 21, 30, 30, 22, 55, 80, 60, 16, 55]  # those of batches; the first step has no gradients yet


@native
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_compile_nothing_anew(dynamic: bool | None) -> None:
    call, compiled, losses = trained(dynamic, SIZES)
    _, _, expected = trained("eager", SIZES)
    torch.testing.assert_close(losses, expected)
    first = 3 if dynamic else 5  # for the second size, stages are divided otherwise than for the first
    assert _sizes.KNOWN == 3
    assert sum(compiled[first:]) == 0
    assert sum(compiled[:first]) > 0
    assert not call._compiled.reasons
    assert len(call._compiled.records) == len(set(SIZES)) + 1  # and for the first step


@native
def test_every_size_has_kernels_of_its_own_where_that_is_asked_for() -> None:
    _, compiled, losses = trained(False, SIZES[:7])
    _, _, expected = trained("eager", SIZES[:7])
    torch.testing.assert_close(losses, expected)
    assert compiled[6] > 0


def test_there_may_be_many_sizes_but_not_any_number() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1)
    for n in range(1, 40):
        torch.testing.assert_close(compiled(torch.arange(n)), torch.arange(n) * 2 + 1)
    assert len(compiled._compiled.records) == 39
    assert not compiled._compiled.reasons
    for n in range(40, 140):
        torch.testing.assert_close(compiled(torch.arange(n)), torch.arange(n) * 2 + 1)
    assert "records" in compiled._compiled.reasons[0]


def test_sizes_of_nothing_and_of_one() -> None:
    function = FUNCTIONS["rows"]
    compiled = torch.compile(function, dynamic=True)
    for n in (4, 0, 1, 4, 2, 0, 1):
        x = torch.randn(n, 12)
        torch.testing.assert_close(value_and_gradient(compiled, x), value_and_gradient(function, x))


@native
def test_regions_and_derivatives_of_derivatives_serve_all_sizes() -> None:
    said = []

    def told(x: Any) -> Any:
        y = (x.sin() * 2 + 1).exp().mean()
        said.append(x.shape[0])  # divides the function
        return y + (x.cos() * 3 - x).square().mean()

    cubed = torch.compile(lambda x: (x.sin() * x.exp() + x).square().mean(), dynamic=True)
    divided = torch.compile(told, dynamic=True)
    compiled = []
    for n in (20, 20, 20, 35, 35, 35, 50, 50, 50):
        x = torch.linspace(-1, 1, n, requires_grad=True)
        before = machine.Made.compiled + machine.Made.read
        torch.testing.assert_close(divided(x), told(x))
        sides = []
        for function in (cubed, cubed._torchdynamo_orig_callable):
            (g,) = torch.autograd.grad(function(x), x, create_graph=True)
            sides.append([g.detach(), *torch.autograd.grad(g.square().sum(), x)])
        torch.testing.assert_close(*sides)
        compiled.append(machine.Made.compiled + machine.Made.read - before)
    assert sum(compiled[:3]) > 0
    assert compiled[3:] == [0] * 6
    assert said == [n for n in (20, 20, 20, 35, 35, 35, 50, 50, 50) for _ in range(2)]


def counted(x: Any, kept: Any) -> Any:
    return x * x[x > 0].shape[0]


def counted_places(x: Any, kept: Any) -> Any:
    return x + torch.nonzero(x > 0).size(0) + torch.where(x < 0)[0].numel() + torch.argwhere(x > 1).shape[0]


def counted_choice(x: Any, kept: Any) -> Any:
    found = x[x > 0]
    return found.mean() if found.numel() > 2 else x.sum()


def counted_turns(x: Any, kept: Any) -> Any:
    parts = [x[at] * at for at in range(len(x[x > 0]))]
    return sum(parts, x[0]) + torch.zeros(x[x > 1].shape).sum()


def counted_draws(x: Any, kept: Any) -> Any:
    before = torch.rand(3)
    return before.sum() * x[x > 0].shape[0] + torch.rand(len(x[x < 0])).sum() + x.sum()


def counted_gradient(x: Any, kept: Any) -> Any:
    weight = x.detach().requires_grad_()
    return torch.autograd.grad((weight * weight).sum() * x[x > 0].shape[0], weight)[0]


def chosen_before_a_write(x: Any, kept: Any) -> Any:
    found = x[x > 0].sum()
    kept.add_(1)
    return found


def counted_before_a_write(x: Any, kept: Any) -> Any:
    count = x[x > 0].shape[0]
    kept.add_(count).mul_(0.5)
    return kept * count


@pytest.mark.parametrize(
    "function",
    [
        counted, counted_places, counted_choice, counted_turns, counted_draws, counted_gradient, chosen_before_a_write,
        counted_before_a_write,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_how_much_numbers_make_is_asked_again_in_every_call(function: Any) -> None:
    """Also where only the size is used; and before anything is written, so that a call that runs another program has written nothing."""
    compiled = torch.compile(function)
    kept = [torch.zeros(6) for _ in range(2)]
    for turn in range(16):
        torch.manual_seed(turn)
        x = torch.randn(6).round()
        found = []
        for run, own in zip((compiled, function), kept, strict=True):
            torch.manual_seed(turn)
            found.append((run(x, own), torch.rand(1), own._version))
        assert found[0][0].shape == found[1][0].shape
        torch.testing.assert_close(*found, equal_nan=True)
        torch.testing.assert_close(*kept)
    assert len(compiled._compiled.records) > 1
    assert not compiled._compiled.reasons
