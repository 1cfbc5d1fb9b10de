"""torch.optim.swa_utils: averages of weights, and batch norms of averages; functional forms; swapped parameters."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.optim.test_trajectories import OPTIONS
from tests.optim.trajectories import assert_alike, gradients, numbers, start


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def model(library: Any) -> Any:
    made = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 2))
    with library.no_grad():
        for k, p in enumerate(made.parameters()):
            p.copy_(library.tensor(np.linspace(-1, 1 + k, p.numel()).reshape(tuple(p.shape)).tolist()))
    return made


def averaged(library: Any, **options: Any) -> Any:
    """Train a model for some steps and average it."""
    swa = library.optim.swa_utils
    made = model(library)
    options = {
        name: getattr(swa, value[0])(*value[1:]) if isinstance(value, tuple) else value
        for name, value in options.items()
    }
    average = swa.AveragedModel(made, **options)
    optimizer = library.optim.SGD(made.parameters(), lr=0.1)
    inputs = library.tensor(np.linspace(-2, 2, 15).reshape(5, 3).tolist())
    for _ in range(10):
        optimizer.zero_grad()
        made(inputs).square().sum().backward()
        library.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(made)
    return average, inputs


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_buffers": True},
        {"avg_fn": ("get_ema_avg_fn", 0.9)},
        {"avg_fn": ("get_swa_avg_fn",)},
        {"multi_avg_fn": ("get_ema_multi_avg_fn", 0.9), "use_buffers": True},
        {"multi_avg_fn": ("get_swa_multi_avg_fn",)},
    ],
)
def test_averages(torch: Any, options: dict[str, Any]) -> None:
    (mine, inputs), (other, theirs) = averaged(retrograd, **options), averaged(torch, **options)
    assert list(mine.state_dict()) == list(other.state_dict())
    for name, value in other.state_dict().items():
        np.testing.assert_allclose(numbers(mine.state_dict()[name]), numbers(value), rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(numbers(mine(inputs)), numbers(other(theirs)), rtol=1e-3, atol=1e-4)


@pytest.mark.oracle
def test_update_bn(torch: Any) -> None:
    found = []
    for library in (retrograd, torch):
        average, inputs = averaged(library)
        average.eval()
        library.optim.swa_utils.update_bn([(inputs,), [inputs * 2], inputs + 1], average)
        norm = average.module[1]
        found.append([norm.running_mean, norm.running_var])
        assert not average.training
        assert norm.momentum == 0.1
    assert_alike(*found)


def test_refusals() -> None:
    swa = retrograd.optim.swa_utils
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        swa.AveragedModel(model(retrograd), avg_fn=swa.get_swa_avg_fn(), multi_avg_fn=swa.get_swa_multi_avg_fn())
    with pytest.raises(ValueError, match="Invalid decay value 2 provided"):
        swa.get_ema_avg_fn(2)


# ---- functional forms ----
LISTS = {
    "sgd": ("momentum_buffer",),
    "adam": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"),
    "adamw": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"),
    "adamax": ("exp_avg", "exp_inf", "step"),
    "nadam": ("exp_avg", "exp_avg_sq", "mu_product", "step"),
    "radam": ("exp_avg", "exp_avg_sq", "step"),
    "rmsprop": ("square_avg", "grad_avg", "momentum_buffer", "step"),
    "adagrad": ("sum", "step"),
    "adadelta": ("square_avg", "acc_delta", "step"),
    "asgd": ("ax", "mu", "eta", "step"),
    "rprop": ("prev", "step_size", "step"),
}
CLASSES = {name.lower(): name for name in OPTIONS}


@pytest.mark.parametrize("name", LISTS)
def test_functional_forms_step_like_the_classes(name: str) -> None:
    function = getattr(importlib.import_module(f"retrograd.optim.{name}"), name)
    for options in OPTIONS[CLASSES[name]]:
        params = start(retrograd)
        optimizer = getattr(retrograd.optim, CLASSES[name])(params, **options)
        gradients(params, 0, retrograd)
        optimizer.step()
        others = [p.detach().clone() for p in params]
        states = [copy.deepcopy(optimizer.state.get(p, {})) for p in params]
        gradients(params, 1, retrograd)
        group = {
            k: v for k, v in optimizer.param_groups[0].items() if k not in ("params", "foreach", "fused", "capturable")
        }
        if "betas" in group:
            group["beta1"], group["beta2"] = group.pop("betas")
        if "etas" in group:
            group["etaminus"], group["etaplus"] = group.pop("etas")
            group["step_size_min"], group["step_size_max"] = group.pop("step_sizes")
            group.pop("lr")
        for gone in ("initial_accumulator_value",) + (("decoupled_weight_decay",) if name == "adamw" else ()):
            group.pop(gone, None)
        if name == "sgd":
            group.pop("differentiable")
        lists = [[state.get(key) for state in states] for key in LISTS[name]]
        function(others, [p.grad for p in params], *lists, **group)
        optimizer.step()
        assert_alike(others, params)


# ---- swapped parameters ----
def test_other_parameters_for_a_while() -> None:
    params = start(retrograd)
    optimizer = retrograd.optim.Adam(params)
    swap = retrograd.optim.swap_in_optimizer_params_and_state
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"), swap(optimizer, {}, {}):
        pass
    gradients(params, 0, retrograd)
    optimizer.step()
    before = [numbers(p) for p in params]
    others = {str(k): p.detach().clone() for k, p in enumerate(params)}
    gradients(list(others.values()), 1, retrograd)
    state = copy.deepcopy(optimizer.state_dict())
    with swap(optimizer, others, state):
        optimizer.step()
    assert state["state"][0]["step"].item() == 2
    assert optimizer.state[params[0]]["step"].item() == 1
    for p, was, other in zip(params, before, others.values(), strict=True):
        assert (numbers(p) == was).all()
        assert (numbers(other) != was).any()
    with (
        pytest.raises(RuntimeError, match="different number of parameter groups"),
        swap(optimizer, others, {**state, "param_groups": []}),
    ):
        pass
