"""What the proof of purity accepts and refuses, on a table of functions whose effects are seen by calling them."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler._guards import compile_guards, why_not
from retrograd.compiler._purity import analyse
from tests.compiler.programs import IMPURE, PURE


def shown(value: Any) -> Any:
    """Return a result as plain values, which can be compared."""
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    if isinstance(value, (list, tuple)):
        return [shown(one) for one in value]
    return {key: shown(one) for key, one in value.items()} if isinstance(value, dict) else value


def test_the_table_is_large() -> None:
    assert len(PURE) + len(IMPURE) >= 150


@pytest.mark.parametrize("name", PURE)
def test_pure(name: str) -> None:
    program = PURE[name]
    verdict = analyse(program.function, program.args, {})
    assert verdict.pure, f"{verdict.reason} {verdict.place}"
    check = compile_guards(verdict.guards)
    assert check(program.function, program.args, {}), why_not(verdict.guards, program.function, program.args, {})
    program.function(*program.args)  # the guards hold after a call, too: it has changed nothing that they know
    assert check(program.function, program.args, {}), why_not(verdict.guards, program.function, program.args, {})
    assert why_not(verdict.guards, program.function, program.args, {}) == ""


@pytest.mark.parametrize("name", IMPURE)
def test_impure(name: str) -> None:
    program = IMPURE[name]
    verdict = analyse(program.function, program.args, {})
    assert not verdict.pure
    assert program.reason in verdict.reason
    assert verdict.place is not None
    assert verdict.place[0].endswith((".py", ">"))
    assert verdict.place[1] > 0


@pytest.mark.parametrize("name", IMPURE)
def test_the_effect_of_an_impure_function_would_be_missed(name: str) -> None:
    program = IMPURE[name]
    default = torch.get_default_dtype()
    try:
        first = program.function(*program.args)
        before = shown(first) if program.look is None else program.look()
        second = program.function(*program.args)
        after = shown(second) if program.look is None else program.look()
        assert before != after
    finally:
        torch.set_default_dtype(default)
