"""Python state that changes between calls: whatever is changed, compiled functions do what eager does.

The histories are samples: `python -m tests.compiler.changing_worlds 1000` tries others.
"""

from __future__ import annotations

from typing import Any

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
