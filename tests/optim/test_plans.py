"""Plans: what a rule becomes, how large parameters are updated, and what a step leaves to Python's allocator."""

from __future__ import annotations

import dis
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import _thresholds
from retrograd._core import parallel
from retrograd._native import machine, program
from retrograd.optim import _plan, _step
from retrograd.optim._plan import Number, as_arrays, plan_for
from retrograd.optim.adam import Adam, adam_rule
from retrograd.optim.adamax import adamax_rule
from retrograd.optim.rprop import rprop_rule
from retrograd.optim.sgd import sgd_rule

WIDTH = 1100  # of a square parameter that threads share
OPTIONS = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "decoupled_weight_decay": False}
ADAM = Adam._numbers(3.0, OPTIONS)


def passes(plan: Any) -> int:
    """Count the calls of NumPy's functions in a plan."""
    return sum(one.opname.startswith("CALL") for one in dis.get_instructions(plan.run))


@pytest.mark.parametrize(
    ("rule", "numbers", "has", "calls", "scratch"),
    [
        (adam_rule, ADAM, (True, True, False), 12, 1),
        (adam_rule, ADAM, (True, True, True), 13, 1),
        (sgd_rule, (0.1, 0, 0, 0, False, False), (False,), 2, 1),
        (sgd_rule, (0.1, 0.9, 0, 0, False, False), (True,), 4, 1),
        (sgd_rule, (0.1, 0.9, 0, 0.1, True, False), (True,), 8, 2),
        (adamax_rule, (0.9, 0.99, 1e-8, 0, 0.1), (True, True), 10, 2),
    ],
)
def test_a_plan_goes_over_memory_as_seldom_as_its_rule_allows(
    rule: Any, numbers: Any, has: Any, calls: int, scratch: int
) -> None:
    plan = plan_for(rule, numbers, has, False)
    assert (passes(plan), plan.scratch) == (calls, scratch)


def test_numbers_that_decide_something_have_plans_of_their_own() -> None:
    once = plan_for(sgd_rule, (0.1, 0.9, 0, 0, False, True), (True,), False)
    later = plan_for(sgd_rule, (0.2, 0.8, 0, 0, False, False), (True,), False)
    assert once is not later
    assert later is plan_for(sgd_rule, (0.3, 0.7, 0, 0, False, False), (True,), False)
    assert later.numbers((0.2, 0.8, 0, 0, False, False)) == (0.8, -0.2)


def test_numbers_are_computed_from_the_rules() -> None:
    n = Number("n")
    found = eval(repr((1 - -n * 2) * (3 * n)), {"n": 5.0})
    assert found == (1 + 5.0 * 2) * 15.0


def test_arrays_of_numbers_do_not_pile_up() -> None:
    for value in range(5000):
        as_arrays((value / 7,), np.dtype(np.float64))
    assert len(_plan._arrays[np.dtype(np.float64)]) <= _plan.MOST_NUMBERS + 1


def test_only_results_that_live_at_once_have_memory_of_their_own() -> None:
    plan = plan_for(rprop_rule, (0.5, 1.2, 1e-6, 50), (True, True), False)
    assert (plan.scratch, plan.masks) == (2, 3)


def parameter(library: Any, seed: int) -> Any:
    made = np.random.default_rng(seed)
    p = library.nn.Parameter(library.from_numpy(made.standard_normal((WIDTH, WIDTH)).astype(np.float32)))
    p.grad = library.from_numpy(made.standard_normal((WIDTH, WIDTH)).astype(np.float32))
    return p


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Rprop"])
def test_large_parameters_go_where_torchs_go(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        params = [parameter(library, seed) for seed in range(3)]
        params[1].grad = params[1].grad.T  # not contiguous
        optimizer = getattr(library.optim, name)(params, lr=1e-2)
        for _ in range(3):
            optimizer.step()
        found.append([p.detach().numpy() for p in params])
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_a_kernel_does_what_the_calls_of_the_plan_do() -> None:
    plan = plan_for(adam_rule, ADAM, (True, True, True), True)
    made = np.random.default_rng(0)
    rows = [np.abs(made.standard_normal(24_000)).astype(np.float32) for _ in range(5)]
    by_calls = [row.copy() for row in rows]
    size = min(8_000, _plan.LARGE)  # which RETROGRAD_NATIVE_FROM makes small
    scratch = _plan.Workspace().take(plan, rows[0].dtype, size)
    for start in range(0, 24_000, size):
        parts = [row[start : start + size] for row in by_calls]
        plan.run(*parts, *scratch, *as_arrays(plan.numbers(ADAM), rows[0].dtype))
    plan.update(rows, plan.numbers(ADAM))
    for mine, other in zip(rows, by_calls, strict=True):
        np.testing.assert_array_equal(mine, other)  # bit for bit: neither takes liberties with arithmetic


@pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("dtype", [retrograd.bfloat16, retrograd.float16])
@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}), ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"maximize": True}), ("RMSprop", {"momentum": 0.9, "centered": True}), ("Adagrad", {"weight_decay": 0.1}), ("Adadelta", {}),
    ("Adamax", {"weight_decay": 0.1}), ("NAdam", {"weight_decay": 0.1}), ("RAdam", {}), ("Rprop", {}), ("ASGD", {"weight_decay": 0.1}),
])  # fmt: skip
def test_large_parameters_of_half_precision_are_rounded_as_tensors_are(
    monkeypatch: Any, dtype: Any, name: str, options: dict[str, Any]
) -> None:
    """A kernel rounds after each operation of the rule, not once at its end."""
    found = []
    for large in (_step.LARGE, 1 << 40):
        monkeypatch.setattr(_step, "LARGE", large)
        made = np.random.default_rng(0)

        def numbers(made: Any = made) -> Any:
            return retrograd.from_numpy(made.uniform(0.5, 2, 9_001)).to(dtype)

        params = [retrograd.nn.Parameter(numbers()) for _ in range(2)]
        optimizer = getattr(retrograd.optim, name)(params, lr=1e-2, **options)
        for _ in range(3):
            for p in params:
                p.grad = numbers() * 0.1
            optimizer.step()
        kernels = [slot.kernel for slot in optimizer._slots.values()]
        assert len(kernels) == (0 if large > 1 << 30 else 2)
        assert None not in kernels
        state = optimizer.state[params[1]].values()
        found.append([*params, *[one for one in state if one.dtype == dtype]])
    for a, b in zip(*found, strict=True):  # a sum of three may end beside a tie
        assert ((a != b).sum() <= a.numel() / 500).item(), (a != b).sum()


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), [
    ("Adam", {"weight_decay": 0.1}), ("AdamW", {"amsgrad": True}), ("Adagrad", {"weight_decay": 0.1}),
])  # fmt: skip
def test_fused_steps_of_half_precision_round_once_as_torchs(name: str, options: dict[str, Any]) -> None:
    """On CPUs torch 2.13's fused steps leave bfloat16, and its fused SGD float16 as well, as they were: nothing to compare with."""
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        made = np.random.default_rng(0)
        p = library.nn.Parameter(library.from_numpy(made.uniform(0.5, 2, 9_001)).to(library.float16))
        optimizer = getattr(library.optim, name)([p], lr=1e-2, fused=True, **options)
        for _ in range(3):
            p.grad = library.from_numpy(made.uniform(-1, 1, 9_001)).to(p.dtype)
            optimizer.step()
        found.append(p.detach().double().numpy())
    assert (found[0] != found[1]).mean() < 0.02
    np.testing.assert_allclose(*found, rtol=0.008)


def test_large_parameters_on_the_same_memory_are_updated_one_after_another() -> None:
    p = parameter(retrograd, 0)
    twin = retrograd.nn.Parameter(p.detach())
    twin.grad = p.grad
    expected = p.detach() - 0.5 * p.grad - 0.5 * p.grad
    retrograd.optim.SGD([p, twin], lr=0.5).step()
    assert retrograd.equal(p.detach(), expected)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_take_a_share_of_every_parameter(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Also where there are fewer blocks than threads, and small parameters between."""

    def trained() -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        sizes = (30_000, 9_000, 40, 8_192, 12_289)
        parameters = [retrograd.nn.Parameter(retrograd.tensor(rng.normal(size=size))) for size in sizes]
        optimizer = retrograd.optim.Adam(parameters, lr=0.1)
        for _ in range(3):
            for one in parameters:
                one.grad = retrograd.tensor(rng.normal(size=one.shape))
            optimizer.step()
        return [one.detach().numpy() for one in parameters]

    monkeypatch.setattr(program, "get_num_threads", lambda: 1)
    alone = trained()
    monkeypatch.setattr(program, "get_num_threads", lambda: threads)
    monkeypatch.setattr(parallel, "get_num_threads", lambda: threads)
    monkeypatch.setattr(_thresholds, "NATIVE_CALLS", 1)
    assert all(np.array_equal(one, other) for one, other in zip(trained(), alone, strict=True))


def test_a_parameter_that_is_there_twice_is_updated_twice() -> None:
    p = parameter(retrograd, 0)
    expected = p.detach() - 0.5 * p.grad - 0.5 * p.grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = retrograd.optim.SGD([p, p], lr=0.5)
    optimizer.step()
    assert retrograd.equal(p.detach(), expected)


def test_large_parameters_before_an_error_are_updated() -> None:
    p, q = parameter(retrograd, 0), parameter(retrograd, 1)
    optimizer = retrograd.optim.Adam([{"params": [p]}, {"params": [q]}])
    optimizer.step()
    before = p.detach().clone()
    del optimizer.param_groups[1]["eps"]
    with pytest.raises(KeyError):
        optimizer.step()
    assert not retrograd.equal(p.detach(), before)


@pytest.mark.skipif(not machine.is_available(), reason="without kernels each block is computed in new memory")
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("width", [100, 300, WIDTH])
def test_steps_after_the_first_allocate_no_arrays(name: str, width: int) -> None:
    p = retrograd.nn.Parameter(retrograd.ones(width, width))
    p.grad = retrograd.ones(width, width)
    optimizer = getattr(retrograd.optim, name)([p], lr=1e-3)
    for _ in range(3):
        optimizer.step()  # every thread has had its turn
    tracemalloc.start()
    try:
        for _ in range(2):
            optimizer.step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000  # bytes; an array of the parameter has 360,000
