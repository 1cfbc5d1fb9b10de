"""What the library keeps in Python: a compiled function does with it what eager does."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch

SCHEDULERS: dict[str, Any] = {
    "StepLR": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "ExponentialLR": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.5),
    "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 1.0, total_steps=20),
    "ReduceLROnPlateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
    "ChainedScheduler": lambda o: torch.optim.lr_scheduler.ChainedScheduler(
        [torch.optim.lr_scheduler.ExponentialLR(o, 0.9), torch.optim.lr_scheduler.ConstantLR(o, 0.5, 3)]
    ),
}


def rates(name: str, compiled: bool) -> list[Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = SCHEDULERS[name](optimizer)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        if name == "ReduceLROnPlateau":
            scheduler.step(1.0)
        else:
            scheduler.step()
        return loss

    call = torch.compile(step) if compiled else step
    return [number for _ in range(6) for number in (call(torch.ones(4, 3)).item(), optimizer.param_groups[0]["lr"])]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_inside_steps_once_a_call(name: str) -> None:
    assert rates(name, True) == pytest.approx(rates(name, False), rel=1e-5)


def losses_and_scales(compiled: bool) -> list[Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    call = torch.compile(step) if compiled else step
    return [(call(torch.ones(4, 3)).item(), scaler.get_scale()) for _ in range(6)]


def test_a_scaler_inside_grows_as_in_eager() -> None:
    found, expected = losses_and_scales(True), losses_and_scales(False)
    assert [scale for _, scale in found] == [scale for _, scale in expected]
    assert [loss for loss, _ in found] == pytest.approx([loss for loss, _ in expected], rel=1e-5)


def test_weights_that_a_block_keeps_are_kept() -> None:
    class Double(torch.nn.Module):
        def forward(self, weight: Any) -> Any:
            return weight * 2

    layer = torch.nn.Linear(2, 2)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Double())
    call = torch.compile(layer)
    x = torch.ones(1, 2)
    for _ in range(3):
        call(x)
    with torch.nn.utils.parametrize.cached():
        before = call(x).detach().clone()
        layer.parametrizations.weight.original.data.fill_(2.0)
        assert torch.equal(call(x), before)
    assert not torch.equal(call(x), before)
