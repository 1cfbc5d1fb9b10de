"""Tensors that a function under vmap reads or writes but did not receive."""

from __future__ import annotations

import pytest

import retrograd as torch


def test_a_write_into_a_captured_tensor_is_refused_and_changes_nothing():
    captured = torch.zeros(2)

    def write(a):
        captured[0] = a
        return a

    for function in (lambda a: captured.add_(a), write):
        with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
            torch.vmap(function)(torch.ones(3))
        assert captured.tolist() == [0.0, 0.0]
        assert (captured + 1).tolist() == [1.0, 1.0]


def test_a_tensor_made_inside_may_be_written():
    def fill(a):
        out = torch.zeros(2)
        out[0] = a
        view = out[1:]
        view += a * 2
        return out

    assert torch.vmap(fill)(torch.tensor([1.0, 2.0])).tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_shapes_that_depend_on_values_are_refused():
    with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can output dynamic shape"):
        torch.vmap(lambda a: a.nonzero())(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        torch.vmap(lambda a: a if a > 0 else -a)(torch.ones(2))
