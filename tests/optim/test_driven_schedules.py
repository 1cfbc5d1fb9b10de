"""Schedules driven in odd ways, against torch's: moved from outside, loaded midway, several at once, several groups."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd

pytestmark = pytest.mark.oracle

Maker = Callable[[Any, Any], Any]  # of the library and the optimizer


def _scheduler(name: str, *args: Any, **options: Any) -> Maker:
    return lambda library, optimizer: getattr(library.optim.lr_scheduler, name)(optimizer, *args, **options)


def _in_sequence(library: Any, optimizer: Any) -> Any:
    s = library.optim.lr_scheduler
    parts = [s.ConstantLR(optimizer, 0.5, 3), s.ExponentialLR(optimizer, 0.9), s.LinearLR(optimizer, 0.2, 1.0, 3)]
    return s.SequentialLR(optimizer, parts, [3, 6])


def _chained(library: Any, optimizer: Any) -> Any:
    s = library.optim.lr_scheduler
    return s.ChainedScheduler([s.ConstantLR(optimizer, 0.5, 4), s.ExponentialLR(optimizer, 0.9)], optimizer=optimizer)


MAKERS: dict[str, Maker] = {
    "LambdaLR": _scheduler("LambdaLR", lambda epoch: 0.9**epoch),
    "MultiplicativeLR": _scheduler("MultiplicativeLR", lambda epoch: 0.9),
    "StepLR": _scheduler("StepLR", 3, 0.5),
    "MultiStepLR": _scheduler("MultiStepLR", [2, 4, 4, 7], 0.5),
    "ConstantLR": _scheduler("ConstantLR", 0.5, 4),
    "LinearLR": _scheduler("LinearLR", 0.3, 0.9, 5),
    "ExponentialLR": _scheduler("ExponentialLR", 0.8),
    "PolynomialLR": _scheduler("PolynomialLR", 6, 2.0),
    "CosineAnnealingLR": _scheduler("CosineAnnealingLR", 5, 0.001),
    "CosineAnnealingWarmRestarts": _scheduler("CosineAnnealingWarmRestarts", 3, 2, 0.001),
    "CyclicLR": _scheduler("CyclicLR", 0.001, 0.1, 3, 4, cycle_momentum=False),
    "CyclicLR of an exponential range": _scheduler("CyclicLR", 0.001, 0.1, 3, mode="exp_range", gamma=0.9),
    "OneCycleLR": _scheduler("OneCycleLR", 0.1, total_steps=40),
    "OneCycleLR of three phases": _scheduler(
        "OneCycleLR", 0.1, total_steps=40, three_phase=True, anneal_strategy="linear"
    ),
    "ReduceLROnPlateau": _scheduler("ReduceLROnPlateau", patience=1, factor=0.5, cooldown=1),
    "SWALR": lambda library, optimizer: library.optim.swa_utils.SWALR(optimizer, 0.05, anneal_epochs=3),
    "ChainedScheduler": _chained,
    "SequentialLR": _in_sequence,
}


class Drive:
    """One program on one library: what it does depends on the seed alone."""

    def __init__(self, library: Any, names: list[str], seed: int) -> None:
        self.draw = random.Random(seed)
        parameters = [library.nn.Parameter(library.zeros(2)) for _ in range(2)]
        groups = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.05}]
        self.optimizer = library.optim.SGD(groups, lr=0.02, momentum=0.9)
        self.schedules = [MAKERS[name](library, self.optimizer) for name in names]
        self.saved: dict[int, Any] = {}
        self.log: list[Any] = []
        self.actions = [self.step] * 5 + [self.move, self.step_to, self.save, self.load, self.set_rates, self.ask]

    def step(self, schedule: Any) -> None:
        self.optimizer.step()
        schedule.step(*([self.draw.random()] if type(schedule).__name__ == "ReduceLROnPlateau" else []))

    def move(self, schedule: Any) -> None:
        schedule.last_epoch = self.draw.randrange(-1, 12)

    def step_to(self, schedule: Any) -> None:
        epoch, value = self.draw.randrange(12), self.draw.random()
        if type(schedule).__name__ == "ReduceLROnPlateau":
            schedule.step(value, epoch)
        elif type(schedule).__name__ not in ("SequentialLR", "ChainedScheduler"):
            schedule.step(epoch)

    def save(self, schedule: Any) -> None:
        self.saved[id(schedule)] = schedule.state_dict()

    def load(self, schedule: Any) -> None:
        if id(schedule) in self.saved:
            schedule.load_state_dict(copy.deepcopy(self.saved[id(schedule)]))

    def set_rates(self, schedule: Any) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.draw.random()

    def ask(self, schedule: Any) -> None:
        self.log.append(schedule.get_last_lr())
        if hasattr(schedule, "get_lr"):
            self.log.append(schedule.get_lr())

    def run(self) -> list[Any]:
        try:
            for _ in range(14):
                self.draw.choice(self.actions)(self.draw.choice(self.schedules))
                self.log.append([(group["lr"], group["momentum"]) for group in self.optimizer.param_groups])
        except (
            ZeroDivisionError,
            ValueError,
            KeyError,
            NotImplementedError,
        ) as error:  # of steps after the last, for example
            self.log.append((type(error).__name__, str(error)))
        return [*self.log, [schedule.get_last_lr() for schedule in self.schedules]]


def compare(names: list[str], seed: int) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of epochs given to `step`, and of `get_lr`
        ours, theirs = (Drive(library, names, seed).run() for library in (retrograd, torch))
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-12, abs=1e-15), f"seed {seed}"
    assert [type(one) for one in ours] == [type(one) for one in theirs]


def flat(value: Any) -> list[float]:
    if isinstance(value, (list, tuple)):
        return [number for one in value for number in flat(one)]
    return [] if isinstance(value, str) else [float(value)]


@pytest.mark.parametrize("name", MAKERS)
def test_one_schedule(name: str) -> None:
    for seed in range(60):
        compare([name], seed)


@pytest.mark.parametrize("name", MAKERS)
def test_beside_another_schedule(name: str) -> None:
    for seed, other in enumerate(MAKERS):
        compare([name, other], seed)
