"""Programs as people write them: compiled, they are seen to do what they do in eager."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as torch
from tests.compiler.user_programs import PROGRAMS


def assert_alike(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found.detach(), expected.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
        assert found.requires_grad == expected.requires_grad
    elif isinstance(expected, (list, tuple)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_alike(list(found.values()), list(expected.values()))
    else:
        assert found == (pytest.approx(expected, rel=1e-5) if isinstance(expected, float) else expected)


def below(one: Any) -> Iterator[Any]:
    """Go through what a compiled function is inside vmap and forward mode."""
    for other in one.below.values():
        yield other
        yield from below(other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    made: list[Any] = []

    def wrap(function: Any) -> Any:
        compiled = torch.compile(function)
        made.append(getattr(compiled, "_compiled_forward", compiled)._compiled)
        return compiled

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = program.run(lambda function: function)
        assert_alike(program.run(wrap), expected)
    every = [[one, *below(one)] for one in made]
    reasons = [reason for one in every for part in one for reason in part.reasons]
    if program.eager:
        assert any(program.eager in reason for reason in reasons), reasons
    else:
        assert all(any(part.records for part in one) for one in every)
        assert not reasons
