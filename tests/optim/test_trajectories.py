"""Every optimizer goes where torch's goes, with every option, over a hundred steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from tests.optim.trajectories import assert_alike, assert_state_alike, gradients, numbers, start, train

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


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(torch: Any, name: str, options: dict[str, Any], dtype: str) -> None:
    if dtype == "float16" and name in ("Adam", "AdamW", "NAdam", "RAdam") and options.get("eps", 1e-8) == 1e-8:
        pytest.skip("1e-8 is zero in float16: torch divides by zero")
    ours, _ = train(retrograd, name, options, steps=15, dtype=dtype)
    theirs, _ = train(torch, name, options, steps=15, dtype=dtype)
    assert_alike(ours, theirs, dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("way", [{"foreach": True}, {"foreach": False}, {"fused": True}, {"differentiable": True}])
@pytest.mark.parametrize("name", OPTIONS)
def test_ways_of_stepping(torch: Any, name: str, way: dict[str, Any]) -> None:
    """`foreach`, `fused` and `differentiable` are accepted where torch accepts them, with the same result."""
    try:
        theirs, _ = train(torch, name, OPTIONS[name][1], steps=10)
        train(torch, name, {**OPTIONS[name][1], **way}, steps=0)
    except TypeError:
        with pytest.raises(TypeError):
            train(retrograd, name, {**OPTIONS[name][1], **way}, steps=0)
        return
    if "differentiable" in way:
        ours = train_on_copies(name, {**OPTIONS[name][1], **way})
    else:
        ours, _ = train(retrograd, name, {**OPTIONS[name][1], **way}, steps=10)
    assert_alike(ours, theirs)


def train_on_copies(name: str, options: dict[str, Any]) -> list[Any]:
    """Train copies that are in a graph: torch refuses to write into leaves that require grad."""
    params = [p.clone() for p in start(retrograd)]
    for p in params:
        p.retain_grad()
    optimizer = getattr(retrograd.optim, name)(params, **options)
    for step in range(10):
        gradients(params, step, retrograd)
        optimizer.step()
    return params


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@pytest.mark.parametrize("shape", [(5, 3), (700, 403)], ids=["small", "large"])
def test_plans_and_tensors_agree(name: str, options: dict[str, Any], shape: Any, monkeypatch: Any) -> None:
    """The plan of a rule, in blocks where the parameter is large, does what the rule does on Tensors."""
    from retrograd.optim._step import RuleOptimizer

    quick, _ = train(retrograd, name, options, steps=5, shapes=(shape,))
    monkeypatch.setattr(RuleOptimizer, "_make_slot", lambda *args: None)
    slow, _ = train(retrograd, name, options, steps=5, shapes=(shape,))
    assert_alike(quick, slow)


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_a_state_dict_is_exchanged_mid_way(torch: Any, name: str, options: dict[str, Any]) -> None:
    """Forty steps in torch, forty here, twenty in torch: as a hundred in torch."""
    straight, _ = train(torch, name, options)
    theirs, other = train(torch, name, options, steps=40)
    ours = [retrograd.nn.Parameter(retrograd.tensor(numbers(p).tolist())) for p in theirs]
    mine = getattr(retrograd.optim, name)(ours, **options)
    mine.load_state_dict(translated(other.state_dict(), retrograd))
    for step in range(40, 80):
        gradients(ours, step, retrograd)
        mine.step()
    theirs = [torch.nn.Parameter(torch.tensor(numbers(p).tolist())) for p in ours]
    other = getattr(torch.optim, name)(theirs, **options)
    other.load_state_dict(translated(mine.state_dict(), torch))
    for step in range(80, 100):
        gradients(theirs, step, torch)
        other.step()
    assert_alike(theirs, straight)


def translated(value: Any, library: Any) -> Any:
    """Return a state_dict with the tensors of another library."""
    if isinstance(value, dict):
        return {name: translated(one, library) for name, one in value.items()}
    if hasattr(value, "dtype"):
        return library.tensor(numbers(value).tolist())
    return value


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"nesterov": False, "weight_decay": 0.0}, {"adjust_lr_fn": "match_rms_adamw"}])
def test_muon(torch: Any, options: dict[str, Any]) -> None:
    """Its matrices are computed in bfloat16, so that the numbers agree to three digits."""
    shapes = ((6, 4), (4, 6), (5, 5))
    ours, mine = train(retrograd, "Muon", {"lr": 0.01, **options}, shapes=shapes, steps=20)
    theirs, other = train(torch, "Muon", {"lr": 0.01, **options}, shapes=shapes, steps=20)
    assert list(mine.state_dict()["state"][0]) == list(other.state_dict()["state"][0])
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(two), rtol=1e-2, atol=1e-2)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.1, "max_iter": 4},
        {"lr": 0.5, "history_size": 3},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 3, "history_size": 2, "lr": 0.3},
        {"line_search_fn": "strong_wolfe", "max_eval": 4, "tolerance_grad": 1e-3, "tolerance_change": 1e-4},
    ],
)
def test_lbfgs(torch: Any, options: dict[str, Any]) -> None:
    """In float64: the line search takes the same ways."""
    runs = []
    for library in (retrograd, torch):
        p = library.nn.Parameter(library.tensor([-1.2, 1.0, 0.5], dtype=library.float64))
        q = library.nn.Parameter(library.tensor([[0.3]], dtype=library.float64))
        optimizer = library.optim.LBFGS([p, q], **options)
        losses = []

        def closure(p: Any = p, q: Any = q, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (p - 1).square().sum() + 0.3 * (p[1:] - p[:-1]).pow(4).sum()
            loss = loss + (q - p[0]).square().sum() + (q**4).sum()
            loss.backward()
            return loss

        for _ in range(100):
            losses.append(optimizer.step(closure).item())
        state = optimizer.state_dict()["state"][0]
        runs.append((losses, p.tolist(), q.tolist(), sorted(state), state["func_evals"], state["n_iter"]))
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(runs[0][1], runs[1][1], rtol=1e-5)
    assert runs[0][3:] == runs[1][3:]
