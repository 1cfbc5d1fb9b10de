"""Python state that changes between calls: whatever is changed, compiled functions do what eager does.

The histories are samples: `python -m tests.compiler.changing_worlds 1000` tries others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as torch
from tests.compiler.changing_worlds import AROUND, CHANGES, FUNCTIONS, judged

calls = st.tuples(
    st.integers(0, len(AROUND) - 1),
    st.integers(0, 6),
    st.sampled_from([(2, 3), (3,), (4, 3)]),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
    st.integers(0, 4),
)
steps = st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 9), st.integers(1, 3), calls)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(FUNCTIONS), st.booleans(), st.lists(steps, min_size=2, max_size=5))
def test_whatever_changes(function: str, as_module: bool, history: list[Any]) -> None:
    told, _ = judged(function, as_module, history)
    assert told is None, told


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_does_not_change_is_compiled(function: str) -> None:
    call = (0, 0, (2, 3), torch.float32, True, 0)
    told, side = judged(function, False, [("nothing", 0, 4, call)])
    assert told is None, told
    assert side.compiled._compiled.records or side.compiled._compiled.split


def test_gradients_reach_a_leaf_that_is_a_view() -> None:
    def views(x: Any) -> Any:
        return x.view(-1), x[..., 1:], x.t()

    compiled = torch.compile(views)
    for _ in range(3):
        grads = []
        for function in (compiled, views):
            x = torch.arange(6.0).reshape(2, 3).requires_grad_()  # a leaf, and a view of what arange has made
            sum(out.square().sum() for out in function(x)).backward()
            grads.append(x.grad)
        torch.testing.assert_close(*grads)
    assert compiled._compiled.records


def test_a_class_gets_another_forward() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    model = Twice()
    model.compile()
    x = torch.ones(2)
    assert [model(x).tolist() for _ in range(2)] == [[2, 2], [2, 2]]
    Twice.forward = lambda self, x: x * 3  # type: ignore[method-assign]
    assert [model(x).tolist() for _ in range(2)] == [[3, 3], [3, 3]]


class Layers(torch.nn.Module):
    """Two parameters, and two buffers that each call writes."""

    def __init__(self, memory: Any) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0])), torch.nn.Parameter(torch.zeros(3))
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("most", torch.zeros(3))
        self.kept = torch.from_numpy(memory)

    def forward(self, x: Any) -> Any:
        before = x * self.weight + self.most.cos()
        with torch.no_grad():
            self.count.add_(x)
        found = before + x * self.weight + self.most.cos() + self.bias  # twice the same, unless it was written
        with torch.no_grad():
            self.most.add_(1)
        return found.sin() * self.kept


def infer(net: Layers, memory: Any) -> None:
    """Make an inference tensor of one that stays, and let its array stay, too."""
    with torch.inference_mode():
        other = torch.ones(3)
    other._array = memory
    net.kept.data = other
    assert net.kept.is_inference()
    assert net.kept._array is memory


def with_history(net: Layers, memory: Any) -> None:
    """Make a parameter the result of an operation on another one."""
    if net.bias.is_leaf:
        net.bias.requires_grad_(False)
    net.bias.add_(net.weight)


CHANGES_OF_TENSORS: dict[str, Any] = {
    "nothing": lambda net, memory: None,
    "numbers": lambda net, memory: net.weight.data.mul_(2),
    "other memory": lambda net, memory: setattr(net.weight, "data", torch.tensor([3.0, 2.0, 1.0])),
    "other strides": lambda net, memory: setattr(net.weight, "data", torch.arange(6.0)[::2]),
    "other dtype": lambda net, memory: setattr(net.weight, "data", torch.tensor([3, 2, 1], dtype=torch.float64)),
    "memory of another": lambda net, memory: setattr(net.weight, "data", net.bias.data),
    "memory that is written": lambda net, memory: setattr(net.weight, "data", net.count),
    "memory of two that are written": lambda net, memory: setattr(net.most, "data", net.count.data),
    "a part of memory that is written": lambda net, memory: setattr(net.count, "data", torch.arange(6.0)[3:]),
    "a view of memory that is written": lambda net, memory: setattr(net.weight, "data", net.count[:].view(3)),
    "no gradient": lambda net, memory: net.weight.requires_grad_(False),
    "history": with_history,
    "inference": infer,
    "class": lambda net, memory: setattr(net.bias, "__class__", torch.Tensor),
}


@pytest.mark.parametrize("change", CHANGES_OF_TENSORS)
@pytest.mark.parametrize("again", [False, True])
def test_tensors_that_stay_are_changed_in_place(change: str, again: bool) -> None:
    def history(compiles: bool) -> tuple[list[Any], Any]:
        memory = np.array([1.0, -1.0, 0.5], np.float32)
        net = Layers(memory)
        run = torch.compile(net.forward) if compiles else net.forward
        found: list[Any] = []
        for call in range(8):
            if call == 4 or (again and call == 6):
                CHANGES_OF_TENSORS[change](net, memory)
            try:
                x = torch.tensor([0.5, -1.0, 2.0]) * (call + 1)
                out = run(x)
                out.sum().backward()
                found += [out.detach().clone(), net.count.clone()]
            except RuntimeError as error:
                found.append(str(error).partition("\n")[0])
            found += [None if one.grad is None else one.grad.clone() for one in (net.weight, net.bias)]
            found += [one._version for one in (net.weight, net.bias, net.count)]
        return found, run

    (found, run), (expected, _) = history(True), history(False)
    assert run._compiled.records
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other)
        else:
            assert one == other


def test_what_is_given_may_show_memory_that_is_written() -> None:
    """An argument that a captured tensor's memory shows, among calls with others."""
    state, other = torch.zeros(4), torch.ones(4)

    def step(x: Any) -> Any:
        before = x * 2
        state.add_(1)
        return before + x * 2 + state

    compiled = torch.compile(step)
    given = [
        torch.ones(4),
        torch.ones(8)[4:],
        state,
        state[:],
        state.data,
        state.view(2, 2).view(4),
        other,
        torch.from_numpy(other.numpy()),
    ]
    for _ in range(3):
        for one in given:
            state.zero_()
            expected = step(one)
            state.zero_()
            assert torch.equal(compiled(one), expected)
    assert compiled._compiled.records


def test_versions_of_what_is_saved_are_checked() -> None:
    """What a compiled call has saved is not written before its backward, whether the tensor had a version then or gets one later."""
    weight = torch.ones(3, requires_grad=True)
    compiled = torch.compile(lambda x: (x * weight).tanh().sum())
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for written in (None, None, x, None, weight, x, None):
        out = compiled(x)
        if written is None:
            out.backward()
            continue
        with torch.no_grad():
            written.add_(1)
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* is at version"):
            out.backward()
    assert compiled._compiled.records
