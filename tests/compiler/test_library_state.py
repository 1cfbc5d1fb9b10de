"""What the library keeps in Python: a compiled function does with it what eager does."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch

lr = torch.optim.lr_scheduler
SCHEDULERS: dict[str, Any] = {
    "StepLR": lambda o: lr.StepLR(o, 2, 0.5),
    "MultiStepLR": lambda o: lr.MultiStepLR(o, [2, 3], 0.5),
    "ExponentialLR": lambda o: lr.ExponentialLR(o, 0.5),
    "LinearLR": lambda o: lr.LinearLR(o, 0.1, total_iters=3),
    "PolynomialLR": lambda o: lr.PolynomialLR(o, 8, 2.0),
    "CosineAnnealingLR": lambda o: lr.CosineAnnealingLR(o, 10),
    "CosineAnnealingWarmRestarts": lambda o: lr.CosineAnnealingWarmRestarts(o, 3),
    "CyclicLR": lambda o: lr.CyclicLR(o, 0.01, 0.1, step_size_up=2),
    "OneCycleLR": lambda o: lr.OneCycleLR(o, 1.0, total_steps=20),
    "LambdaLR": lambda o: lr.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda o: lr.MultiplicativeLR(o, lambda epoch: 0.9),
    "ReduceLROnPlateau": lambda o: lr.ReduceLROnPlateau(o, patience=0),
    "SequentialLR": lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 0.5, 2), lr.LambdaLR(o, lambda e: 0.9**e)], [3]),
    "ChainedScheduler": lambda o: lr.ChainedScheduler([lr.ExponentialLR(o, 0.9), lr.ConstantLR(o, 0.5, 3)]),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.5, anneal_epochs=4),
}


class Scheduled:
    """A model that is trained with a schedule."""

    def __init__(self, make: Any, compiled: bool, optimizer: Any = torch.optim.SGD, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = model = torch.nn.Linear(3, 2)
        self.optimizer = used = optimizer(
            [{"params": [model.weight]}, {"params": [model.bias], "lr": 0.05}], lr=0.1, **options
        )
        self.scheduler = scheduler = make(used)
        takes_loss = isinstance(scheduler, lr.ReduceLROnPlateau)

        def step(x: Any) -> Any:
            used.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            used.step()
            if takes_loss:
                scheduler.step(loss.detach())
            else:
                scheduler.step()
            return loss

        self.call = torch.compile(step) if compiled else step

    def seen(self, x: Any) -> list[Any]:
        loss = self.call(x)
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [
            loss.item(),
            *rates,
            self.scheduler.get_last_lr(),
            self.scheduler.last_epoch if hasattr(self.scheduler, "last_epoch") else 0,
            *self.model.weight.tolist(),
        ]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_schedule_is_part_of_a_step(name: str) -> None:
    sides = [Scheduled(SCHEDULERS[name], compiled) for compiled in (False, True)]
    for _ in range(9):
        x = torch.randn(4, 3)
        expected, found = [side.seen(x) for side in sides]
        assert [pytest.approx(one, rel=1e-4, abs=1e-6) for one in expected] == found
    run = sides[1].call._compiled
    assert not run.reasons
    assert (
        len(run.records) <= 3
    )  # a schedule makes no records, but the first call has no gradients yet, and a rate of 0 computes otherwise


def test_a_schedule_with_momentum_goes_on_after_a_program() -> None:
    sides = [
        Scheduled(lambda o: lr.CosineAnnealingLR(o, 50), compiled, torch.optim.AdamW, weight_decay=0.1)
        for compiled in (False, True)
    ]
    for turn in range(20):
        x = torch.randn(4, 3)
        if turn == 10:
            for side in sides:
                side.scheduler.load_state_dict(side.scheduler.state_dict() | {"last_epoch": 3})
        expected, found = [side.seen(x) for side in sides]
        assert [pytest.approx(one, rel=1e-3, abs=1e-5) for one in expected] == found
    assert len(sides[1].call._compiled.records) == 1


def test_a_schedule_that_is_at_its_end_raises_after_the_step() -> None:
    sides = [Scheduled(lambda o: lr.OneCycleLR(o, 1.0, total_steps=4), compiled) for compiled in (False, True)]
    for turn in range(6):
        x = torch.randn(4, 3)
        seen = []
        for side in sides:
            if turn < 4:
                side.call(x)
            else:
                with pytest.raises(ValueError, match="Tried to step"):
                    side.call(x)
            seen.append([side.model.weight.detach().clone(), side.model.weight.grad.clone()])
        torch.testing.assert_close(*seen)


def test_what_reads_a_rate_after_a_schedule_runs_in_eager() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = lr.StepLR(optimizer, 2, 0.5)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        scheduler.step()
        return optimizer.param_groups[0]["lr"], scheduler.last_epoch

    compiled = torch.compile(step)
    assert [compiled(torch.ones(1, 3)) for _ in range(6)] == [
        (0.1, 1),
        (0.05, 2),
        (0.05, 3),
        (0.025, 4),
        (0.025, 5),
        (0.0125, 6),
    ]


def test_a_schedule_before_the_step() -> None:
    sides = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = lr.ExponentialLR(optimizer, 0.5)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer, scheduler: Any = scheduler) -> None:
            optimizer.zero_grad()
            model(x).sum().backward()
            scheduler.step()
            optimizer.step()

        call = wrap(step)
        with pytest.warns(UserWarning, match="before `optimizer.step"):
            call(torch.ones(1, 3))
        for _ in range(3):
            call(torch.ones(1, 3))
        sides.append(model.weight.detach())
    torch.testing.assert_close(*sides)


def test_a_schedule_of_one_s_own_runs_in_eager() -> None:
    class Own(lr.LRScheduler):
        def get_lr(self) -> list[float]:
            seen.append(self.last_epoch)
            return [0.1 / (1 + self.last_epoch)]

    seen: list[int] = []
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    scheduler = Own(optimizer)
    call = torch.compile(lambda: scheduler.step())
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        call()
    for _ in range(3):
        call()
    assert seen == [0, 1, 2, 3, 4]


# ---- GradScaler ----
class Scaled:
    """A model that is trained with a scaler."""

    def __init__(self, wrap: Any, how: str, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = model = torch.nn.Linear(3, 2)
        self.optimizer = optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        self.scaler = scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2, **options)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().sum()
            scaler.scale(loss).backward()
            if how == "unscaled":
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            if how != "updated outside":
                scaler.update()
            return loss.detach()

        self.how, self.call = how, wrap(step)

    def seen(self, x: Any) -> list[Any]:
        loss = self.call(x)
        if self.how == "updated outside":
            self.scaler.update()
        state = {key: value for key, value in self.scaler.state_dict().items()}
        return [loss, self.model.weight.detach().clone(), self.model.weight.grad.clone(), state]


@pytest.mark.parametrize("how", ["", "unscaled", "updated outside"])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_scaler_is_part_of_a_step(how: str, enabled: bool) -> None:
    sides = [Scaled(wrap, how, enabled=enabled) for wrap in (lambda f: f, torch.compile)]
    for turn in range(16):
        x = torch.randn(4, 3) * (float("inf") if turn in (5, 9, 10) else 1.0)
        if turn == 13 and enabled:
            for side in sides:
                side.scaler.load_state_dict(side.scaler.state_dict() | {"scale": 128.0})
        torch.testing.assert_close(*[side.seen(x) for side in sides], equal_nan=True)
    run = sides[1].call._compiled
    assert not run.reasons
    assert len(run.records) <= 3  # with finite gradients and with infinite ones, and without gradients at first


def test_a_scaler_that_is_used_again_after_an_update() -> None:
    sides = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer, scaler: Any = scaler) -> None:
            for part in (x, x * 2):
                optimizer.zero_grad()
                scaler.scale(model(part).sum()).backward()
                scaler.step(optimizer)
                scaler.update()

        call = wrap(step)
        for _ in range(4):
            call(torch.ones(1, 3))
        sides.append([model.weight.detach(), scaler.get_scale()])
    torch.testing.assert_close(*sides)


# ---- several steps, and what raises ----
@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, 0.1),
        lambda p: torch.optim.RAdam(p, 0.1),
    ],
)
def test_several_steps_in_one_call(make: Any) -> None:
    sides = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = make(model.parameters())

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> None:
            for turn in range(3):
                optimizer.zero_grad(set_to_none=turn > 0)
                out = model(x) if turn != 1 else x @ model.weight.T  # the bias has no gradient in the second step
                out.square().sum().backward()
                optimizer.step()

        call = wrap(step)
        seen = []
        for turn in range(6):
            torch.manual_seed(turn)
            call(torch.randn(2, 3))
            state = [one["step"].item() for one in optimizer.state.values() if "step" in one]
            seen.append([model.weight.detach().clone(), model.bias.detach().clone(), state, model.weight._version])
            if turn == 3:
                optimizer.param_groups[0]["lr"] = 0.01
        sides.append(seen)
    torch.testing.assert_close(*sides)
    assert call._compiled.records
    assert not call._compiled.reasons


def test_a_rate_that_raises_raises_after_the_backward() -> None:
    sides = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

        call = wrap(step)
        for _ in range(3):
            call(torch.ones(1, 3))
        optimizer.param_groups[0]["lr"] = "much"
        with pytest.raises(Exception) as error:  # noqa: PT011 - it is eager's
            call(torch.full((1, 3), 2.0))
        sides.append([type(error.value), model.weight.grad.tolist(), model.weight.tolist()])
    assert sides[0] == sides[1]


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


class Unusable:
    """A rate that cannot be computed with."""

    def __neg__(self, *other: Any) -> Any:
        raise ArithmeticError("no rate")

    __float__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __lt__ = __neg__


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam"])  # the last is called by its program
def test_a_rate_that_raises_leaves_what_eager_leaves(name: str) -> None:
    def seen(compiled: bool, when: int) -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False), torch.nn.BatchNorm1d(4))
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
        calls = torch.zeros(1)

        def step(x: Any) -> None:
            calls.add_(1)
            optimizer.zero_grad()
            model(x).exp().mean().backward()  # no gradient is zero but for rounding, of which Adam would make a step
            optimizer.step()

        run = torch.compile(step) if compiled else step
        found: list[Any] = []
        for turn in range(5):
            optimizer.param_groups[0]["lr"] = Unusable() if turn == when else 0.1
            try:
                run(torch.arange(15.0).reshape(5, 3) % (4 + turn))
            except ArithmeticError as error:
                found.append(str(error))
            tensors = [calls, *model.parameters(), *model.buffers()]
            found += [one._version for one in tensors]
            found += [one.detach().clone() for one in tensors]
            found += [None if one.grad is None else one.grad.clone() for one in model.parameters()]
            found += [value.clone() for state in optimizer.state.values() for value in state.values()]
        return found

    for when in (0, 1, 3):
        expected = seen(False, when)
        assert "no rate" in expected
        found = seen(True, when)
        assert [one for one in found if type(one) in (int, str)] == [one for one in expected if type(one) in (int, str)]
        arrays = [[one for one in side if isinstance(one, torch.Tensor)] for side in (found, expected)]
        torch.testing.assert_close(*arrays, rtol=1e-3, atol=1e-4)
