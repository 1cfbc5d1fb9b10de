"""Anomaly detection says which operation made the first NaN."""

from __future__ import annotations

import math
import warnings

import pytest

import retrograd as torch


def anomaly(program, check_nan: bool = True) -> str:
    """Run a program under anomaly detection and return the error it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=check_nan), pytest.raises(RuntimeError) as caught:
            program()
    return str(caught.value)


def test_a_nan_of_backward() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)

    def program():
        y = x * 0
        z = torch.sqrt(y)  # its derivative at 0 is infinite
        (z * y).sum().backward()

    said = anomaly(program)
    assert said.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.")
    assert "the backward of sqrt made the first one" in said
    assert "z = torch.sqrt(y)  # its derivative at 0 is infinite" in said


def test_a_nan_of_forward() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)

    def program():
        bad = torch.log(x * 2)  # of a negative number
        (bad * bad).sum().backward()

    said = anomaly(program)
    assert said.startswith("Function 'MulBackward0' returned nan values in its 0th output.")
    assert "the first NaN appeared in the forward pass: the output of log has NaN" in said
    assert "bad = torch.log(x * 2)  # of a negative number" in said


def test_the_oldest_of_several() -> None:
    x = torch.tensor([-1.0], requires_grad=True)

    def program():
        first = torch.sqrt(x)
        second = torch.log(first.detach() * 0 - 1 + x * 0)
        (first * second).sum().backward()

    assert "first = torch.sqrt(x)" in anomaly(program)


def test_a_nan_of_the_seed() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    said = anomaly(lambda: (x * 2).backward(torch.tensor([math.nan])))
    assert "the gradient passed to backward already contains NaN" in said


def test_check_nan_false_says_nothing() -> None:
    x = torch.tensor([-1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            x.log().sum().backward()
    assert x.grad is not None


def test_under_vmap_and_forward_mode() -> None:
    rows = torch.tensor([[1.0], [-1.0]])

    def program():
        return torch.func.vmap(torch.func.grad(lambda r: torch.log(r).pow(2).sum()))(rows)

    assert "the output of log has NaN" in anomaly(program)
