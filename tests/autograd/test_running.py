"""What hooks may ask about the running backward, the engine's switches, nested Functions."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd import _C


def graph() -> Any:
    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    product = a * b
    power = product.exp()
    return a, power, (power + product).sum()


def test_the_order_in_which_nodes_run() -> None:
    _, _, total = graph()
    seen: list[list[str]] = []
    total.register_hook(lambda g: seen.append([n.name() for n in _C._current_graph_task_execution_order()]))
    with torch.autograd.set_multithreading_enabled(False):
        total.backward()
    leaf = "torch::autograd::AccumulateGrad"
    assert seen == [["SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0", leaf, leaf]]


def test_grad_runs_only_what_leads_to_its_inputs() -> None:
    a, _, total = graph()
    seen: list[int] = []
    total.register_hook(lambda g: seen.append(len(_C._current_graph_task_execution_order())))
    with torch.autograd.set_multithreading_enabled(False):
        torch.autograd.grad(total, a)
    assert seen == [5]


def test_the_current_node_and_task() -> None:
    a, power, total = graph()
    names: list[str] = []
    numbers: list[int] = []
    power.register_hook(lambda g: names.append(_C._current_autograd_node().name()))
    power.register_hook(lambda g: numbers.append(_C._current_graph_task_id()))
    a.register_post_accumulate_grad_hook(lambda p: names.append(_C._current_autograd_node().name()))
    total.backward(retain_graph=True)
    total.backward()
    assert names == ["ExpBackward0", "torch::autograd::AccumulateGrad"] * 2
    assert numbers[0] >= 0
    assert numbers[1] > numbers[0]
    assert _C._current_graph_task_id() == -1
    assert _C._current_autograd_node() is None


def test_questions_at_the_wrong_time() -> None:
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        _C._current_graph_task_execution_order()
    _, _, total = graph()
    total.register_hook(lambda g: _C._current_graph_task_execution_order() and None)
    with pytest.raises(RuntimeError, match="expects the current backward to be executed with multithreading disabled"):
        total.backward()


@pytest.mark.parametrize(
    ("switch", "read"),
    [
        (torch.autograd.set_multithreading_enabled, _C._is_multithreading_enabled),
        (torch.autograd.enforce_grad_layout_policy, _C._is_grad_layout_enforcement_enabled),
    ],
)
def test_switches(switch: Any, read: Any) -> None:
    assert read() is True
    with switch(False):
        assert read() is False
        with switch(True):
            assert read() is True
        assert read() is False
    assert read() is True
    assert switch(False)(read)() is False
    assert read() is True
    switch(False)
    assert read() is False
    switch(True)


class Nested(torch.autograd.NestedIOFunction):
    @staticmethod
    def forward_extended(ctx: Any, pair: Any, factor: float) -> Any:
        ctx.factor = factor
        return {"sum": pair[0] + pair[1]["x"], "scaled": [pair[0] * factor]}

    @staticmethod
    def backward_extended(ctx: Any, gradients: Any) -> Any:
        of_sum, (of_scaled,) = gradients["sum"], gradients["scaled"]
        return of_sum + of_scaled * ctx.factor, of_sum


def test_nested_inputs_and_outputs() -> None:
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    out = Nested.apply((a, {"x": b}), 3.0)
    assert sorted(out) == ["scaled", "sum"]
    (out["sum"].sum() + 2 * out["scaled"][0].sum()).backward()
    assert a.grad.tolist() == [7.0, 7.0]
    assert b.grad.tolist() == [1.0, 1.0]


@pytest.mark.oracle
def test_torch_gives_the_same_order() -> None:
    theirs = pytest.importorskip("torch")
    answers = []
    for library in (torch, theirs):
        x = library.ones(3, requires_grad=True)
        y = (x.sin() * x.cos() + x.exp()).sum() * x.prod()
        order: list[str] = []
        y.register_hook(
            lambda g, lib=library, order=order: order.extend(
                n.name() for n in lib._C._current_graph_task_execution_order()
            )
        )
        with library.autograd.set_multithreading_enabled(False):
            y.backward()
        answers.append(order)
    assert answers[0] == answers[1]
