"""Jacobians of empty tensors, beside complex arguments, and of functions without a derivative."""

from __future__ import annotations

import pytest

import retrograd as torch


def test_a_jacobian_in_forward_mode_of_no_inputs_is_empty():
    jacobian = torch.func.jacfwd(lambda x: torch.ones(3) * x.sum())(torch.zeros(0))
    assert jacobian.shape == (3, 0)


@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
def test_a_jacobian_refuses_complex_arguments_beside_the_chosen_one(transform):
    with pytest.raises(RuntimeError, match=f"{transform}: Expected all inputs to be real .* at flattened input idx: 1"):
        getattr(torch.func, transform)(lambda x, y: x * y.real)(torch.ones(2), torch.ones(2) * 1j)


@pytest.mark.parametrize("function", [lambda x: x > 0, lambda x: x.argmax(), lambda x: (x, x.long())])
def test_vjp_refuses_results_that_have_no_derivative(function):
    with pytest.raises(
        RuntimeError, match=r"vjp\(f, ...\): All outputs of f must be floating-point or complex Tensors, got Tensor"
    ):
        torch.func.vjp(function, torch.ones(2))
