"""Recomputation runs under what the first run ran under: autocast, and the device of new tensors."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

import retrograd
from retrograd import nn
from retrograd.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

REENTRANT = functools.partial(checkpoint, use_reentrant=True)
FRAMES = functools.partial(checkpoint, use_reentrant=False)


def selective(function: Any, x: Any) -> Any:
    kept = functools.partial(create_selective_checkpoint_contexts, [retrograd.ops.aten.exp.default])
    return checkpoint(function, x, use_reentrant=False, context_fn=kept)


def in_segments(function: Any, x: Any, use_reentrant: bool) -> Any:
    return checkpoint_sequential(function, 2, x, use_reentrant=use_reentrant)


WAYS = {
    "reentrant": REENTRANT,
    "frames": FRAMES,
    "selective": selective,
    "segments": functools.partial(in_segments, use_reentrant=False),
    "segments_reentrant": functools.partial(in_segments, use_reentrant=True),
}


class Exp(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.exp()


def gradients(way: Any, first: bool, then: bool) -> list[Any]:
    """Train one step, with autocast on or off in the two halves."""
    retrograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), Exp(), nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 4))
    x = retrograd.randn(3, 4, requires_grad=True)
    with retrograd.autocast("cpu", dtype=retrograd.bfloat16, enabled=first):
        y = way(model, x)
    with retrograd.autocast("cpu", dtype=retrograd.bfloat16, enabled=then):
        y.sum().backward()
    return [x.grad, *(p.grad for p in model.parameters())]


@pytest.mark.parametrize(("first", "then"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_under_autocast_are_those_of_the_plain_run(way: str, first: bool, then: bool) -> None:
    expected = gradients(lambda model, x: model(x), first, then)
    for found, wanted in zip(gradients(WAYS[way], first, then), expected, strict=True):
        assert found.dtype == wanted.dtype
        assert retrograd.equal(found, wanted)


@pytest.mark.parametrize("lead", [(129,), (3, 17)])
def test_products_of_layers_are_bitwise_those_of_the_plain_run(lead: tuple[int, ...]) -> None:
    retrograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(37, 91), nn.GELU(), nn.Linear(91, 53, bias=False), nn.LayerNorm(53))
    x = retrograd.randn(*lead, 37)

    def gradients_by(way: Any) -> list[Any]:
        model.zero_grad()
        way(model, x).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    for found, wanted in zip(gradients_by(FRAMES), gradients_by(lambda f, x: f(x)), strict=True):
        assert retrograd.equal(found, wanted)


def devices_seen(library: Any) -> list[str]:
    module = importlib.import_module(f"{library.__name__}.utils.checkpoint")
    seen: list[str] = []

    def function(x: Any) -> Any:
        seen.append(str(library.get_default_device()))
        return x.sin()

    x = library.ones(2, requires_grad=True)
    with library.device("meta"):
        y = module.checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    return seen


def test_the_default_device_is_that_of_the_first_run() -> None:
    assert devices_seen(retrograd) == ["meta", "meta"]


@pytest.mark.oracle
def test_the_default_device_is_that_of_torch() -> None:
    assert devices_seen(retrograd) == devices_seen(pytest.importorskip("torch"))
