"""The comparison itself: torch agrees with torch, and a runnable script tells every mutant from torch."""

from __future__ import annotations

import contextlib
import importlib
import io
import time

import pytest

torch = pytest.importorskip("torch")

from . import compare  # noqa: E402 - torch may be missing
from .compare import Difference, find_difference  # noqa: E402
from .mutants import MUTANTS, Mutant  # noqa: E402
from .observing import first_sentence  # noqa: E402
from .programs import random_program  # noqa: E402
from .reporting import Reducer, script  # noqa: E402
from .steps import Program, Step  # noqa: E402

pytestmark = pytest.mark.oracle


def test_torch_agrees_with_itself():
    for number in range(200):
        program = random_program(f"self:{number}")
        assert find_difference(program, torch) is None


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found_and_explained(name, monkeypatch):
    mutant = MUTANTS[name]
    tried = 0
    for number in range(2500):
        program = random_program(f"mutant:{number}")
        if f".{mutant.method}(" not in "".join(step.source for step in program.steps):
            continue
        difference = find_difference(program, mutant)
        if difference is None:
            continue
        smallest, difference = Reducer(program, difference, mutant).reduce()
        tried += 1
        if len(smallest.steps) <= 6 or tried == 4:  # some programs show a mutant by a long way only
            break
    else:
        pytest.fail("no program told the mutant from torch")
    assert len(smallest.steps) <= 6
    import_module = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda n: mutant if n == name else import_module(n))
    lines = printed_by(script(smallest, difference, mutant), mutant)
    assert lines["torch"] != lines[name]


def printed_by(text: str, mutant) -> dict[str, str]:
    """What the script prints for torch and, with the mutation in force, for the mutant."""
    plain, mutated = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(plain):
        exec(text, {"__name__": "script"})
    with contextlib.redirect_stdout(mutated), mutant.patched():
        exec(text, {"__name__": "script"})
    first = dict(line.split(": ", 1) for line in plain.getvalue().splitlines())
    second = dict(line.split(": ", 1) for line in mutated.getvalue().splitlines())
    return {"torch": first["torch"], mutant.__name__: second[mutant.__name__]}


def test_modes_are_written_as_blocks():
    steps = (
        Step("leaf", "t0 = torch.ones((2,), dtype=torch.float64, requires_grad=True)"),
        Step("enter no_grad", "torch.no_grad()", enters="guard0"),
        Step("enter enable_grad", "torch.enable_grad()", enters="guard1"),
        Step("exit", "", exits="guard1"),
        Step("mul", "t1 = t0 * 2"),
        Step("exit", "", exits="guard0"),
        Step("backward", "t1.sum().backward()"),
        Step("sin", "t2 = t0.sin()"),
    )
    difference = Difference(7, "sin", "values", "t2.tolist()", 1, 2)
    text = script(Program(steps, watch_every_step=False), difference, torch)
    assert "    with torch.no_grad():\n        with torch.enable_grad():\n            pass\n        t1 = t0" in text
    assert "    with contextlib.suppress(Exception):\n        t1.sum().backward()  # RuntimeError" in text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(text, {"__name__": "script"})
    assert printed.getvalue() == f"torch: {torch.ones(2, dtype=torch.float64).sin().tolist()}\n"


def test_an_endless_step_is_reported(monkeypatch):
    endless = Mutant("endless", "sin", lambda self: time.sleep(60))
    monkeypatch.setattr(compare, "SECONDS_PER_PROGRAM", 1)
    program = Program((Step("leaf", "t0 = torch.ones(2)"), Step("sin", "t1 = t0.sin()")))
    difference = find_difference(program, endless)
    assert (difference.step_index, difference.aspect) == (1, compare.ENDLESS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a leaf Variable that requires grad is being used in an in-place operation.", None),
        ("one thing: [torch.DoubleTensor [2]], at version 1. Hint: enable anomaly detection", "one thing: "),
        ("sizes do not match\nretrograd adds a line", "sizes do not match"),
        ("deprecated. (Triggered internally at /pytorch/x.cpp:1.)", "deprecated"),
    ],
)
def test_first_sentence(text, sentence):
    assert first_sentence(text).startswith(sentence or text.rstrip("."))
    assert "\n" not in first_sentence(text)
    assert "Triggered" not in first_sentence(text)
