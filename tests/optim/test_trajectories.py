"""Every optimizer goes where torch's goes, with every option, over a hundred steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.optim.trajectories import assert_alike, assert_state_alike, gradients, numbers, start, train

import retrograd

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.5, "nesterov": True, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.1},
    ],
    "Adam": [
        {},
        {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "AdamW": [{}, {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True}, {"lr": 0.1, "maximize": True}],
    "Adamax": [{}, {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.1}, {"lr": 0.1, "maximize": True}],
    "NAdam": [
        {},
        {"lr": 0.1, "betas": (0.5, 0.8), "weight_decay": 0.1, "momentum_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.1, "betas": (0.5, 0.8), "weight_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RMSprop": [
        {},
        {"lr": 0.1, "alpha": 0.8, "eps": 1e-3, "weight_decay": 0.1},
        {"lr": 0.01, "momentum": 0.9, "maximize": True},
        {"lr": 0.01, "momentum": 0.9, "centered": True, "eps": 1e-2},
        {"centered": True, "eps": 1e-2},
    ],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3},
        {"lr": 0.1, "maximize": True},
    ],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1}, {"maximize": True}],
    "ASGD": [{}, {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 10, "weight_decay": 0.1}, {"t0": 5, "maximize": True}],
    "Rprop": [{}, {"lr": 0.05, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2)}, {"maximize": True}],
    "Adafactor": [
        {},
        {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-6, 1e-2), "d": 2.0, "weight_decay": 0.1},
        {"lr": 0.1, "maximize": True},
    ],
}
CASES = [(name, options) for name, listed in OPTIONS.items() for options in listed]
IDS = [f"{name}-{k}" for name, listed in OPTIONS.items() for k in range(len(listed))]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_hundred_steps(torch: Any, name: str, options: dict[str, Any], dtype: str) -> None:
    if name == "Adafactor" and dtype == "complex64":
        pytest.skip("torch refuses complex parameters")
    ours, mine = train(retrograd, name, options, dtype=dtype)
    theirs, other = train(torch, name, options, dtype=dtype)
    assert_alike(ours, theirs, dtype)
    assert_state_alike(mine.state_dict(), other.state_dict(), dtype)
