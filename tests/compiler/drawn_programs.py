"""Random programs in eager and under compile: three calls of each, on other numbers, must leave the same behind.

`python -m tests.compiler.drawn_programs FIRST COUNT [SEED]` tries more of them, and counts why programs ran in eager.
"""

from __future__ import annotations

import contextlib
import re
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

import retrograd
from retrograd.compiler import _making
from retrograd.compiler._purity import Verdict
from tests.compiler.sources import define
from tests.random_programs import building, comparing, running
from tests.random_programs.programs import DRAWING, HELPERS, Program
from tests.random_programs.readings import READINGS
from tests.random_programs.running import Raised

SCALES = ("", "0.9", "1.1")  # what the leaves are multiplied with, call by call
# What is compiled: the function of a program, or the program that asks something of it. The analysis would refuse most of the
# latter, because they hand tuples on; so it is taken for granted that they are pure, unless they register something.
WAYS = ("function", "whole")
REGISTERS = re.compile(
    "hook|class |Doubled|save_on_cpu|checkpoint|dual_level|inference_mode|autocast|requires_grad_|retain_grad|profile"
)
NODE = re.compile(r"(?i)output \d+ of \w+")  # nodes inside a compiled function are not seen
ROUNDING = 3000  # how much looser results of double precision are compared if narrower numbers take part


def run(program: Program, way: str | None) -> tuple[list[Any], Any]:
    """Call a program three times: what is seen each time, and the compiled function. `way` None is eager."""
    scope: dict[str, Any] = {"torch": retrograd, "__name__": "program"}
    define(HELPERS, "<helpers of programs>", scope)
    names = ", ".join(leaf.name for leaf in program.leaves)
    drawn = ["torch.manual_seed(0)"] if any(DRAWING.search(step.text) for step in program.steps) else []
    reading = READINGS[program.reading].text
    text = [*program.constants, program.function(), f"def whole({names}):", f"    xs = ({names},)"]
    text += [textwrap.indent(reading, "    "), "    return r"]
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        define("\n".join(text), f"<program {program.seed}:{program.number}>", scope)
        compiled = None
        trust = contextlib.nullcontext()
        if way == "whole" and not REGISTERS.search("\n".join(text)):
            constants = [("", scope[line.split(" = ")[0]]) for line in program.constants]
            verdict = Verdict(True, "", None, [], constants, [], [])
            trust = mock.patch.object(_making, "analyse", return_value=verdict)
        if way is not None:
            name = {"function": "f", "whole": "whole"}[way]
            compiled = scope[name] = retrograd.compile(scope[name])
        for scale in SCALES:
            leaves = [*drawn, *(leaf.line(scale) for leaf in program.leaves)]
            try:
                exec("\n".join(leaves), scope)
                with running.watched(), trust:
                    result = scope["whole"](*[scope[leaf.name] for leaf in program.leaves])
                found.append(
                    {
                        "r": running.seen(result),
                        **{leaf.name: running.seen(scope[leaf.name]) for leaf in program.leaves},
                        "stream": retrograd.get_rng_state().tolist() if drawn else None,
                    }
                )
            except running.EndlessError:
                found.append(Raised("endless", ""))
            except Exception as error:
                raised = running.raised(error)
                found.append(Raised(raised.kind, NODE.sub("", raised.text.partition("\n")[0])))
            finally:
                running.restore(retrograd)
    return found, compiled


def differences(program: Program) -> Iterator[tuple[str, str | None, Any]]:
    """Go through the ways to compile a program: the way, what differs from eager, and the compiled function."""
    expected, _ = run(program, None)
    for way in WAYS:
        made, compiled = run(program, way)
        told = None
        for call, (one, other) in enumerate(zip(expected, made, strict=True)):
            if isinstance(one, Raised) or isinstance(other, Raised):
                found = None if one == other else comparing.Difference("error", "", str(one)[:300], str(other)[:300])
            else:
                found = comparing.walk(one, other, "", ROUNDING if comparing.narrow(program) else 1)
            if found is not None:
                told = f"call {call + 1} of program {program.seed}:{program.number}, {way} compiled: {found.aspect} of {found.where}\n"
                told += f"eager: {found.torch}\ncompiled: {found.ours}\n{program.text(READINGS[program.reading].text)}"
                break
        else:
            wrong = [
                reason
                for reason in compiled._compiled.reasons
                if "differs from eager" in reason and "strides" not in reason
            ]
            if wrong:  # it must not hide behind eager
                told = f"program {program.seed}:{program.number}, {way} compiled: {wrong[0]}\n"
                told += program.text(READINGS[program.reading].text)
        yield way, told, compiled


def main() -> None:
    first, count, *rest = map(int, sys.argv[1:])
    why: Counter[str] = Counter()
    for number in range(first, first + count):
        for way, told, compiled in differences(building.program(rest[0] if rest else 0, number)):
            if told is not None:
                print("=====", told, flush=True)
            why[f"{way}: {'compiled' if compiled._compiled.records else 'eager'}"] += 1
            why.update(f"{way}: {reason.partition('(')[0][:120]}" for reason in compiled._compiled.reasons)
    for reason, times in why.most_common():
        print(f"{times:6} {reason}")


if __name__ == "__main__":
    main()
