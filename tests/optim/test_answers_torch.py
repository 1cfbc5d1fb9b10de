"""Optimizers and schedules that answered otherwise than torch's: rates, line searches, milestones, messages."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import Raised, answer

OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"]
OPTIMIZERS += ["LBFGS", "Adafactor", "Muon"]
CALLS = [
    *[f"torch.optim.{name}([p], lr={lr}).defaults['lr']" for name in OPTIMIZERS for lr in ("nan", "'a'", "None", "-1")],
    *[f"torch.optim.SGD([p], lr=.1, {option}=nan).defaults['{option}']" for option in ("momentum", "weight_decay")],
    *[f"S.MultiplicativeLR(o, {f})._last_lr" for f in ("3", "[3]", "[f, f]", "None", "f", "[f]")],
    *[
        f"(o.param_groups[0].update({groups}), S.OneCycleLR(o, .5, 15, last_epoch={last}))[1]._last_lr"
        for groups in ("initial_lr=.1", "initial_lr=.1, max_lr=.5", "initial_lr=.1, max_lr=.5, min_lr=.1")
        for last in (2, 10)
    ],
]


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_calls_answer_as_torchs(call: str) -> None:
    def told(library: Any) -> Any:
        p = library.nn.Parameter(library.ones(2, 2))
        scope = {"p": p, "nan": float("nan"), "S": library.optim.lr_scheduler, "f": float}
        return answer(library, call, o=library.optim.SGD([p], lr=0.1, momentum=0.9), **scope)

    assert told(retrograd) == told(pytest.importorskip("torch"))


def test_a_refused_schedule_changes_nothing() -> None:
    optimizer = retrograd.optim.SGD([retrograd.nn.Parameter(retrograd.ones(2))], lr=0.1)
    with pytest.raises(TypeError, match="lr_lambda should be a function, but got int"):
        retrograd.optim.lr_scheduler.MultiplicativeLR(optimizer, 3)
    assert "initial_lr" not in optimizer.param_groups[0]


def _rates(library: Any, milestones: list[int]) -> list[float]:
    schedules = library.optim.lr_scheduler
    optimizer = library.optim.SGD([library.nn.Parameter(library.ones(2))], lr=0.1)
    parts = [schedules.LinearLR(optimizer, 0.1, total_iters=1), schedules.CosineAnnealingLR(optimizer, 5)]
    parts.append(schedules.ConstantLR(optimizer, 0.5, 2))
    schedule = schedules.SequentialLR(optimizer, parts, milestones)
    found = [*schedule.get_last_lr()]
    for _ in range(6):
        optimizer.step()
        schedule.step()
        found += [optimizer.param_groups[0]["lr"], *schedule.get_last_lr()]
    return found


@pytest.mark.oracle
@pytest.mark.parametrize("milestones", [[0, 4], [0, 0], [-1, 3], [-2, -1], [1, 4]])
def test_milestones_at_the_start_are_past(milestones: list[int]) -> None:
    torch = pytest.importorskip("torch")
    assert _rates(retrograd, milestones) == pytest.approx(_rates(torch, milestones), rel=1e-12)


def _descent(library: Any, options: dict[str, Any]) -> tuple[list[Any], list[float]]:
    x = library.nn.Parameter(library.tensor([-1.2, 1.0, 0.5], dtype=library.float64))
    if "rate" in options:
        options = {"lr": library.tensor(options["rate"])}
    optimizer = library.optim.LBFGS([x], line_search_fn="strong_wolfe", **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - x[:-1]).pow(2).sum() + 100 * (x[1:] - x[:-1] ** 2).pow(2).sum()
        loss.backward()
        return loss

    found: list[Any] = []
    for _ in range(4):
        optimizer.step(closure)
        state = optimizer.state[x]
        found.append((state["func_evals"], state["n_iter"], type(state["t"]).__name__, list(state)))
    return found, x.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{"max_iter": 10}, {"max_eval": 7}, {"rate": 0.7}, {"lr": 2, "max_iter": 3}])
def test_a_line_search_is_bounded_by_the_evaluations_left(options: dict[str, Any]) -> None:
    states, end = _descent(pytest.importorskip("torch"), options)
    assert _descent(retrograd, options) == (states, pytest.approx(end, rel=1e-6))


STEP = "(setattr(p, 'grad', torch.ones(2, 2)), torch.optim.{}([p], lr=lr, differentiable=True{}).step(), p)[-1]"


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTIMIZERS[:-3])
@pytest.mark.parametrize("more", ["", ", momentum=.9"])
def test_a_rate_that_requires_grad(name: str, more: str) -> None:
    def told(library: Any) -> Any:
        p = library.ones(2, 2, requires_grad=True).clone()
        answered = answer(library, STEP.format(name, more), p=p, lr=library.tensor(0.1, requires_grad=True))
        return answered if isinstance(answered, Raised) else p[0].tolist()

    expected = told(pytest.importorskip("torch"))
    assert told(retrograd) == (expected if isinstance(expected, Raised) else pytest.approx(expected, rel=1e-5))
