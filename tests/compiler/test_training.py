"""Whole training steps under compile, against eager: parameters, gradients, buffers, versions and the state of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.nn import functional as F  # noqa: N812


def small_model(norm: bool) -> Any:
    torch.manual_seed(0)
    layers = [
        nn.Linear(6, 8, bias=not norm),
        *([nn.BatchNorm1d(8)] if norm else []),
        nn.ReLU(),
        nn.Linear(8, 8),
        nn.Tanh(),
    ]
    return nn.Sequential(*layers, nn.Linear(8, 3))


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda params: torch.optim.Adam(params, lr=0.01),
    "AdamW": lambda params: torch.optim.AdamW(params, lr=0.01, amsgrad=True),
    "RMSprop": lambda params: torch.optim.RMSprop(params, lr=0.01),
}


def zero_first(model: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def zero_last_and_clip(model: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), norm

    return step


def accumulate(model: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        loss = F.mse_loss(model(x), F.one_hot(y, 3).float())
        (loss / 2).backward()
        return loss.detach()

    return step


def only_the_loss(model: Any, optimizer: Any) -> Any:
    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x), y, label_smoothing=0.1)

    return loss


def state_of(model: Any, optimizer: Any) -> dict[str, Any]:
    found = {f"model {name}": one for name, one in model.state_dict().items()}
    for number, param in enumerate(model.parameters()):
        if param.grad is not None:
            found[f"grad {number}"] = param.grad
        for name, one in optimizer.state.get(param, {}).items():
            if isinstance(one, torch.Tensor):
                found[f"state {number} {name}"] = one
    return found


def assert_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(
            value.detach(), other[name].detach(), rtol=1e-4, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}"
        )


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch_norm"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [zero_first, zero_last_and_clip, accumulate])
def test_steps(make: Any, optimizer: str, norm: bool) -> None:
    models = [small_model(norm), small_model(norm)]
    optimizers = [OPTIMIZERS[optimizer](one.parameters()) for one in models]
    eager, compiled = make(models[0], optimizers[0]), torch.compile(make(models[1], optimizers[1]), fullgraph=True)
    for number in range(7):
        torch.manual_seed(number)
        x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
        if number == 4:
            for one in optimizers:  # a schedule: no program may have the rate in it
                one.param_groups[0]["lr"] *= 0.3
        if number == 5 and make is accumulate:
            for one in optimizers:
                one.zero_grad()
        expected, made = eager(x, y), compiled(x, y)
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-6)
        assert_alike(state_of(models[1], optimizers[1]), state_of(models[0], optimizers[0]))
        for one, other in zip(models[1].parameters(), models[0].parameters(), strict=True):
            assert one._version == other._version
        for one, other in zip(models[1].buffers(), models[0].buffers(), strict=True):
            assert one._version == other._version
    assert 1 <= len(compiled._compiled.records) <= 2
    assert not compiled._compiled.reasons


def test_only_the_loss_is_compiled() -> None:
    models = [small_model(True), small_model(True)]
    optimizers = [OPTIMIZERS["momentum"](one.parameters()) for one in models]
    functions = (
        only_the_loss(models[0], optimizers[0]),
        torch.compile(only_the_loss(models[1], optimizers[1]), fullgraph=True),
    )
    for number in range(5):
        torch.manual_seed(number)
        x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
        losses = []
        for function, optimizer in zip(functions, optimizers, strict=True):
            optimizer.zero_grad()
            losses.append(function(x, y))
            losses[-1].backward()
            optimizer.step()
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-6)
        assert_alike(state_of(models[1], optimizers[1]), state_of(models[0], optimizers[0]))


def test_a_module_that_goes_to_eval_and_back() -> None:
    models = [small_model(True), small_model(True)]
    compiled = torch.compile(models[1])
    for number in range(6):
        x = torch.randn(5, 6)
        for one in models:
            one.train(number % 3 != 2)
        torch.testing.assert_close(compiled(x), models[0](x), rtol=1e-4, atol=1e-6)
        assert_alike(models[1].state_dict(), models[0].state_dict())


def test_the_loss_of_a_step_has_no_graph_any_more() -> None:
    model = small_model(False)
    step = torch.compile(zero_first(model, OPTIMIZERS["SGD"](model.parameters())))
    x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
    for _ in range(3):
        loss = step(x, y)
        assert loss.requires_grad
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_a_hook_that_comes_later_is_called() -> None:
    model = small_model(False)
    step = torch.compile(zero_first(model, OPTIMIZERS["SGD"](model.parameters())))
    x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
    step(x, y)
    step(x, y)
    seen: list[Any] = []
    handle = model[0].weight.register_hook(lambda grad: seen.append(grad.shape))
    step(x, y)
    assert len(seen) == 1
    handle.remove()
    optimizer_calls: list[Any] = []
    other = OPTIMIZERS["SGD"](model.parameters())
    other.register_step_post_hook(lambda *call: optimizer_calls.append(call))
    again = torch.compile(zero_first(model, other))
    for _ in range(3):
        again(x, y)
    assert len(optimizer_calls) == 3


LOSSES: dict[str, Callable[[Any], Any]] = {
    "mean": lambda out: (out**2).mean(),
    "sum": lambda out: out.tanh().sum(),
    "neg": lambda out: -out.log_softmax(1).mean(),
    "half": lambda out: out.square().mean() / 2,
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_whose_last_step_saves_nothing(name: str) -> None:
    models = [small_model(False), small_model(False)]
    optimizers = [OPTIMIZERS["Adam"](one.parameters()) for one in models]
    loss_of = LOSSES[name]

    def training(model: Any, optimizer: Any) -> Any:
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model(x))
            loss.backward()
            optimizer.step()
            return loss

        return step

    eager = training(models[0], optimizers[0])
    compiled = torch.compile(training(models[1], optimizers[1]), fullgraph=True)
    for number in range(4):
        torch.manual_seed(number)
        x = torch.randn(10, 6)
        expected, made = eager(x), compiled(x)
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-6)
        assert_alike(state_of(models[1], optimizers[1]), state_of(models[0], optimizers[0]))
        with pytest.raises(RuntimeError, match="second time"):
            made.backward()
    assert len(compiled._compiled.records) == 1


def test_a_result_whose_graph_is_freed_in_part_keeps_the_other_part() -> None:
    weight, bias = torch.full((3,), 2.0, requires_grad=True), torch.full((3,), 3.0, requires_grad=True)

    def step(x: Any) -> Any:
        y = weight * weight * x
        y.sum().backward()
        return y.sum() + (bias * bias).sum()

    for function in (step, torch.compile(step)):
        for _ in range(3):
            weight.grad = None
            (grad,) = torch.autograd.grad(function(torch.ones(3)), bias)
            assert grad.tolist() == [6.0] * 3
