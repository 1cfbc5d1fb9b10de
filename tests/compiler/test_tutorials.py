"""Whole programs with `torch.compile` in them say what they say without."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd as torch
from tests.compiler.tutorials import TUTORIALS


def as_it_is(function: Any = None, **options: Any) -> Any:
    return (lambda one: one) if function is None else function


def assert_alike(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert found.requires_grad == expected.requires_grad
        torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-5, equal_nan=True)
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_alike(list(found.values()), list(expected.values()))
    else:
        assert found == (pytest.approx(expected, rel=1e-3, abs=1e-4) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sides = []
        for compile in (as_it_is, torch.compile):
            torch.manual_seed(0)
            sides.append([*TUTORIALS[name](compile), torch.rand(1)])
    assert_alike(sides[1], sides[0])
