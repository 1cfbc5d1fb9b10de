"""Random numbers inside compiled functions: eager's, number for number, from whatever stream they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn

DRAWS: dict[str, Callable[[Any], Any]] = {
    "bernoulli": lambda p: torch.bernoulli(p),
    "bernoulli in place": lambda p: torch.empty(2, *p.shape).bernoulli_(p),
    "bernoulli, gradients": lambda p: torch.bernoulli(p) * p,
    "multinomial": lambda p: torch.multinomial(p, 3, replacement=True),
    "multinomial without replacement": lambda p: p[torch.multinomial(p, 2)],
    "normal": lambda p: torch.normal(p, p + 1),
    "normal with one deviation": lambda p: torch.normal(p, 2.0),
    "poisson": lambda p: torch.poisson(p * 5),
    "randperm": lambda p: p[torch.randperm(4)] + torch.rand(4),
    "randint": lambda p: p + torch.randint(5, (4,)),
    "rrelu": lambda p: nn.functional.rrelu(p - 0.5, training=True),
    "gumbel": lambda p: nn.functional.gumbel_softmax(p, hard=True),
    "vmap, different": lambda p: torch.vmap(lambda v: v + torch.rand(3), randomness="different")(p),
    "vmap, same": lambda p: torch.vmap(lambda v: v + torch.rand(3), randomness="same")(p),
    "a branch on what is drawn": lambda p: p * 2 if torch.rand(()) > 0.5 else p - torch.rand(4),
    "a branch behind what is drawn": lambda p: (p * torch.rand(4), torch.rand(2))[0 if torch.rand(4).sum() > 2 else 1],
    "as many as are drawn": lambda p: p[torch.rand(4) > 0.5].sum() + torch.rand(2),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_stream_is_eager_s(name: str) -> None:
    function = DRAWS[name]
    compiled = torch.compile(function)
    for turn in range(10):
        p = torch.linspace(0.1, 0.9, 4).add(0.01 * turn).requires_grad_("gradients" in name)
        sides = []
        for call in (function, compiled):
            torch.manual_seed(turn)
            out = call(p)
            sides.append((out, torch.get_rng_state(), torch.autograd.grad(out.sum(), p) if out.requires_grad else ()))
        torch.testing.assert_close(*sides)
    assert compiled._compiled.records
    assert not compiled._compiled.reasons


def test_chances_that_are_refused() -> None:
    def f(p: Any) -> Any:
        return torch.rand(2) + torch.bernoulli(p)

    compiled = torch.compile(f)
    for _ in range(2):
        compiled(torch.tensor([0.5, 0.5]))
    states = []
    for call in (f, compiled):
        torch.manual_seed(3)
        with pytest.raises(RuntimeError, match="p_in >= 0"):
            call(torch.tensor([0.5, 1.5]))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


HELD = torch.Generator()


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()

    def forward(self, x: Any, generator: Any = None) -> Any:
        y = x + torch.randn(3, generator=self.generator) + torch.rand(3, generator=HELD)
        return y + torch.empty(3).uniform_(generator=generator) + torch.rand(3)


def test_generators_of_one_s_own() -> None:
    model = Noisy()
    compiled = torch.compile(model)
    others = [torch.Generator(), torch.Generator(), None, model.generator, HELD, torch.default_generator]
    for turn in range(20):
        generator = others[turn * 5 % 6 if turn % 2 else turn % 3]
        sides = []
        for call in (model, compiled):
            streams = [one for one in others if one is not None]
            for number, one in enumerate(streams):
                one.manual_seed(turn + number)
            out = call(torch.zeros(3), generator)
            sides.append([out, *(one.get_state() for one in streams)])
        torch.testing.assert_close(*sides)
        if turn % 5 == 4:
            model.generator = others[turn % 2]
    assert not compiled._compiled_forward._compiled.reasons


def test_a_new_generator_in_every_call() -> None:
    def f(x: Any, generator: Any, other: Any) -> Any:
        return x + torch.rand(3, generator=generator) * torch.rand(3, generator=other)

    compiled = torch.compile(f)
    for turn in range(30):
        made = []
        for call in (f, compiled):
            first = torch.Generator().manual_seed(turn)
            second = first if turn % 3 == 0 else torch.Generator().manual_seed(turn + 1)
            made.append([call(torch.zeros(3), first, second), first.get_state(), second.get_state()])
        torch.testing.assert_close(*made)
    assert len(compiled._compiled.records) == 2  # one generator, or two
    assert not compiled._compiled.reasons


def test_derivatives_of_derivatives_draw_the_same() -> None:
    generator = torch.Generator()

    def f(x: Any) -> Any:
        return (x.pow(3) * torch.rand(3, generator=generator) * torch.rand(3)).sum()

    compiled = torch.compile(f)
    for turn in range(4):
        sides = []
        for call in (f, compiled):
            x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            torch.manual_seed(turn)
            generator.manual_seed(turn)
            out = call(x)
            torch.rand(1), torch.rand(1, generator=generator)
            (g,) = torch.autograd.grad(out, x, create_graph=True)
            (h,) = torch.autograd.grad(g.sum(), x)
            sides.append((out, g, h, torch.get_rng_state(), generator.get_state()))
        torch.testing.assert_close(*sides)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_once(reentrant: bool) -> None:
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
    drop, generator = nn.Dropout(0.5), torch.Generator()

    def part(layer: Any, x: Any) -> Any:
        return drop(layer(x)) * torch.rand(4, generator=generator)

    def step(x: Any) -> Any:
        for p in layers.parameters():
            p.grad = None
        for layer in layers:
            x = torch.utils.checkpoint.checkpoint(part, layer, x, use_reentrant=reentrant).relu()
        loss = x.sum()
        loss.backward()
        return loss.detach()

    compiled = torch.compile(step)
    for turn in range(4):
        sides = []
        for call in (step, compiled):
            torch.manual_seed(turn)
            generator.manual_seed(turn)
            loss = call(torch.randn(3, 4).requires_grad_())
            sides.append([loss, torch.get_rng_state(), *(p.grad.clone() for p in layers.parameters())])
        torch.testing.assert_close(*sides)
    if not reentrant:
        assert compiled._compiled.records
