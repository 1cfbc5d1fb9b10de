"""Elementwise functions whose names torch lacks refuse arguments by their own signature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as torch
from retrograd._core.arrays import operators
from retrograd._core.primitive import elementwise, primitives
from retrograd.tensor._recording.record import binary, unary


@pytest.fixture
def of_one() -> Iterator[Any]:
    yield unary(
        elementwise("softsquare", dx=lambda xp, g, x: g * 2 * x, implementation=lambda xp, x: x * x), "softsquare"
    )
    del primitives["softsquare"], operators["softsquare"]


@pytest.fixture
def of_two() -> Iterator[Any]:
    primitive = elementwise("softsum", dx=lambda xp, g: g, dy=lambda xp, g: g, implementation=lambda xp, x, y: x + y)
    yield lambda numbers: binary(primitive, "softsum", numbers=numbers)
    del primitives["softsum"], operators["softsum"]


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        (([1.0],), {}, "argument 'input' (position 1) must be Tensor, not list"),
        ((None,), {}, "argument 'input' (position 1) must be Tensor, not NoneType"),
        ((), {}, 'missing 1 required positional arguments: "input"'),
        ((torch.ones(2), 3), {}, "takes 1 positional argument but 2 were given"),
        ((torch.ones(2),), {"foo": 3}, "got an unexpected keyword argument 'foo'"),
        ((torch.ones(2),), {"out": 3}, "argument 'out' must be Tensor, not int"),
    ],
)
def test_refused_by_a_function_of_one_tensor(of_one: Any, args: Any, options: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        of_one(*args, **options)
    assert words in str(caught.value)
    assert str(caught.value).startswith("softsquare()")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((torch.ones(2), [1.0]), "argument 'other' (position 2) must be Tensor, not list"),
        ((torch.ones(2), 1.0), "argument 'other' (position 2) must be Tensor, not float"),
        ((torch.ones(2),), 'missing 1 required positional arguments: "other"'),
        ((torch.ones(2), torch.ones(2), 3), "takes 2 positional arguments but 3 were given"),
    ],
)
def test_refused_by_a_function_of_two_tensors(of_two: Any, args: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        of_two("none")(*args)
    assert words in str(caught.value)


def test_numbers_are_taken_where_the_function_says_so(of_two: Any) -> None:
    assert of_two("other")(torch.ones(1), 2).tolist() == [3]
    assert of_two("both")(2, torch.ones(1)).tolist() == [3]
    with pytest.raises(TypeError, match=r"got \(int, Tensor\), but expected one of"):
        of_two("other")(2, torch.ones(1))


def test_usual_calls(of_one: Any) -> None:
    x, out = torch.tensor([3.0]), torch.empty(1)
    assert of_one(input=x).tolist() == of_one(x=x).tolist() == of_one(x, out=out).tolist() == out.tolist() == [9]
