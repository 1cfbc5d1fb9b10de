"""Steps of optimizers inside compiled functions: whatever is done to the optimizer between calls, eager's parameters and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn, optim

INSIDE: dict[str, tuple[Any, dict[str, Any]]] = {  # whose steps are part of the program
    "SGD": (optim.SGD, {"lr": 0.1}),
    "SGD, momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "SGD, Nesterov": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "Adam": (optim.Adam, {"lr": 0.01}),
    "Adam, amsgrad": (optim.Adam, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    "AdamW": (optim.AdamW, {"lr": 0.01}),
    "Adamax": (optim.Adamax, {"lr": 0.01}),
    "Adagrad": (optim.Adagrad, {"lr": 0.01, "lr_decay": 0.1}),
    "Adadelta": (optim.Adadelta, {"lr": 0.5}),
    "RMSprop": (optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    "RAdam": (optim.RAdam, {"lr": 0.01}),
    "Rprop": (optim.Rprop, {"lr": 0.01}),
}
CALLED: dict[str, tuple[Any, dict[str, Any]]] = {  # by the program, or the function runs in eager
    "NAdam": (optim.NAdam, {"lr": 0.01}),
    "ASGD": (optim.ASGD, {"lr": 0.01}),
    "Adafactor": (optim.Adafactor, {"lr": 0.01}),
    "Muon": (optim.Muon, {"lr": 0.01}),
}


class Training:
    """A small model with its optimizer, and a step."""

    def __init__(self, cls: Any, options: dict[str, Any], wide: int = 6) -> None:
        torch.manual_seed(0)
        self.weights = [nn.Parameter(torch.randn(wide, 4) * 0.3), nn.Parameter(torch.randn(4, 3) * 0.3)]
        self.extra = nn.Parameter(torch.zeros(1, 3))
        groups: Any = [{"params": self.weights[:1]}, {"params": self.weights[1:], "lr": options["lr"] * 0.5}]
        self.optimizer = cls(groups, **options)
        first, second, extra, optimizer = *self.weights, self.extra, self.optimizer

        def step(x: Any) -> Any:
            loss = (torch.tanh(x @ first) @ second + extra).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        self.step = step

    def seen(self) -> list[Any]:
        found: list[Any] = [*self.weights, self.extra]
        for param in (*self.weights, self.extra):
            found += [one for one in self.optimizer.state.get(param, {}).values() if isinstance(one, torch.Tensor)]
        return [one.detach().clone() for one in found] + [one._version for one in (*self.weights, self.extra)]


def assert_alike(made: Any, expected: Any) -> None:
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        if isinstance(one, int):
            assert one == other
        else:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def trained(
    cls: Any, options: dict[str, Any], change: Callable[[Training, int], None], steps: int = 8, **more: Any
) -> Any:
    """Train beside eager, and return the compiled function. `change` is done to both before each step."""
    eager, other = Training(cls, options, **more), Training(cls, options, **more)
    compiled = torch.compile(other.step)
    for number in range(steps):
        torch.manual_seed(number)
        x = torch.randn(5, eager.weights[0].shape[0])
        for one in (eager, other):
            change(one, number)
        assert_alike([compiled(x)], [eager.step(x)])
        assert_alike(other.seen(), eager.seen())
    return compiled


def schedule(training: Training, number: int) -> None:
    for group in training.optimizer.param_groups:
        group["lr"] *= 0.9


def is_called(compiled: Any) -> bool:
    return any(step.kind == "host" for run in compiled._compiled.records for step in run.record.found.forward.steps)


@pytest.mark.parametrize("name", INSIDE)
def test_a_schedule_compiles_nothing_anew(name: str) -> None:
    compiled = trained(*INSIDE[name], schedule)
    assert not compiled._compiled.reasons
    assert len(compiled._compiled.records) <= 2  # nobody forgets the gradient of `extra`; RAdam changes its rule once
    assert not is_called(compiled)


@pytest.mark.parametrize("name", CALLED)
def test_others_step_as_in_eager(name: str) -> None:
    options = CALLED[name][1]
    if name == "Muon":  # for matrices alone
        options = {**options, "weight_decay": 0.0}
    trained(CALLED[name][0], options, schedule)


@pytest.mark.parametrize("name", ["SGD, momentum", "AdamW"])
def test_large_parameters(name: str) -> None:
    compiled = trained(*INSIDE[name], schedule, steps=4, wide=5000)
    assert not compiled._compiled.reasons


def load(training: Training, number: int) -> None:
    if number == 4:
        training.optimizer.load_state_dict(training.optimizer.state_dict())


def forget(training: Training, number: int) -> None:
    if number == 4:
        training.optimizer.state.clear()


def add(training: Training, number: int) -> None:
    if number == 4:
        training.optimizer.add_param_group({"params": [training.extra]})


def options_change(training: Training, number: int) -> None:
    group = training.optimizer.param_groups[0]
    if number == 3:
        group["weight_decay"] = 0.2
    if number == 5:
        group["maximize"] = True
    if number == 6:
        group["weight_decay"] = 0


def freeze(training: Training, number: int) -> None:
    training.weights[0].requires_grad_(number not in (3, 4))


def a_hook(training: Training, number: int) -> None:
    if number == 4:
        training.optimizer.register_step_post_hook(lambda *_: training.extra.data.add_(1))


def rate_as_a_tensor(training: Training, number: int) -> None:
    if number == 2:
        training.optimizer.param_groups[0]["lr"] = torch.tensor(0.05)


@pytest.mark.parametrize("change", [load, forget, add, options_change, freeze, a_hook, rate_as_a_tensor])
@pytest.mark.parametrize("name", ["SGD", "SGD, momentum", "Adam"])
def test_whatever_changes(name: str, change: Any) -> None:
    cls, options = INSIDE[name]
    trained(cls, options, change)


def test_two_steps_in_one_call_run_in_eager() -> None:
    sides = []
    for compiles in (False, True):
        training = Training(*INSIDE["Adam"])

        def twice(x: Any, training: Training = training) -> Any:
            training.step(x)
            return training.step(x)

        run = torch.compile(twice) if compiles else twice
        for number in range(3):
            run(torch.full((2, 6), number / 3))
        sides.append(training.seen())
    assert_alike(*sides)


OPTIONS: dict[str, Any] = {
    "a rate": lambda group: group.update(lr=0.3),
    "an equal rate": lambda group: group.update(lr=float("0.1")),
    "a whole rate": lambda group: group.update(lr=1),
    "a tensor": lambda group: group.update(lr=torch.tensor(0.2)),
    "a tensor that changes": lambda group: (
        group["lr"].add_(0.1) if isinstance(group["lr"], torch.Tensor) else group.update(lr=torch.tensor(0.2))
    ),
    "decay": lambda group: group.update(weight_decay=0.5),
    "sign": lambda group: group.update(maximize=not group["maximize"]),
    "another option": lambda group: group.update(of_one_s_own=1),
    "an option less": lambda group: group.pop("foreach", None),
    "another dictionary": lambda group: None,
}


@pytest.mark.parametrize("change", OPTIONS)
def test_options_of_a_rule_without_counts(change: str) -> None:
    def weights(compiles: bool) -> list[Any]:
        weight = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)

        def step(x: Any) -> None:
            optimizer.zero_grad()
            (weight * x).sin().sum().backward()
            optimizer.step()

        run = torch.compile(step) if compiles else step
        found = []
        for call in range(10):
            if call in (4, 6, 7):
                OPTIONS[change](optimizer.param_groups[0])
                if change == "another dictionary":
                    optimizer.param_groups[0] = {**optimizer.param_groups[0], "lr": 0.1 * call}
            run(torch.tensor([1.0, 2.0, 3.0]))
            found.append(weight.detach().clone())
        assert not compiles or run._compiled.records
        return found

    torch.testing.assert_close(weights(True), weights(False))
