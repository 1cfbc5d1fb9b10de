"""Make a failing program small, and print it as a script that runs in both libraries."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .compare import ENDLESS, Difference, find_difference, run
from .observing import Raised
from .steps import PRELUDE, Program, Step

MOST_ATTEMPTS = 400  # runs of the program spent on making one failure smaller

DROPPABLE = (
    *("requires_grad=True", "retain_graph=True", "create_graph=True", "allow_unused=True", "keepdim=True"),
    *("accumulate=True", "materialize_grads=True", "alpha=2", "alpha=0.5", "stable=True", "descending=True"),
)


class Reducer:
    """Greedy reduction of a program that keeps showing the same kind of difference."""

    def __init__(self, program: Program, difference: Difference, library: Any) -> None:
        self.library = library
        self.kind = difference.kind
        self.program = program
        self.difference = difference
        self.attempts = 0

    def reduce(self) -> tuple[Program, Difference]:
        if self.difference.aspect == ENDLESS:
            return self.program, self.difference
        self.blame_the_right_step()
        self.try_program(self.truncated(self.program, self.difference.step_index))
        before = None
        while before != self.program and self.attempts < MOST_ATTEMPTS:
            before = self.program
            self.remove_steps()
            self.simplify_steps()
            self.try_program(unwatched(self.program))
        return self.program, self.difference

    def blame_the_right_step(self) -> None:
        """Watch an unwatched program: the last step, the only one watched, is seldom the culprit."""
        if self.program.watch_every_step:
            return
        watched = dataclasses.replace(self.program, watch_every_step=True)
        difference = find_difference(watched, self.library)
        if difference is not None and difference.aspect == self.difference.aspect:
            self.program, self.difference, self.kind = watched, difference, difference.kind

    @staticmethod
    def truncated(program: Program, last: int) -> Program:
        return dataclasses.replace(program, steps=program.steps[: last + 1])

    def try_program(self, program: Program) -> bool:
        if program == self.program or self.attempts >= MOST_ATTEMPTS:
            return False
        self.attempts += 1
        difference = find_difference(program, self.library)
        if difference is None or difference.kind != self.kind:
            return False
        self.program = self.truncated(program, difference.step_index)
        self.difference = difference
        return True

    def remove_steps(self) -> None:
        index = len(self.program.steps) - 1
        while index >= 0:
            steps = self.program.steps
            if index < len(steps) and not steps[index].exits:
                self.try_program(dataclasses.replace(self.program, steps=without(steps, index)))
            index -= 1

    def simplify_steps(self) -> None:
        index = 0
        while index < len(self.program.steps):
            for source in self.simpler_sources(index):
                step = self.program.steps[index]
                operation = "leaf" if " = torch.ones(" in source else step.operation
                simpler = dataclasses.replace(step, source=source, operation=operation)
                steps = (*self.program.steps[:index], simpler, *self.program.steps[index + 1 :])
                if self.try_program(dataclasses.replace(self.program, steps=steps)):
                    break
            index += 1

    def simpler_sources(self, index: int) -> Iterator[str]:
        step = self.program.steps[index]
        for option in DROPPABLE:
            if option in step.source:
                yield step.source.replace(f", {option}", "").replace(option, "")
        yield re.sub(r'(record\("hook\d+", grad), [^)]*(\([^)]*\))?\)', r"\1)", step.source)
        if len(step.defines) == 1 and step.source.startswith("t") and index < len(self.program.steps) - 1:
            yield from self.plain_leaves(index)

    def plain_leaves(self, index: int) -> Iterator[str]:
        """Leaves that could stand in for the result of the step, plainest first."""
        step = self.program.steps[index]
        (name,) = step.defines
        head = dataclasses.replace(self.truncated(self.program, index), watch_every_step=False)
        observed = (run(head, torch)[-1].tensors or {}).get(name)
        if observed is None:
            return
        dtype, shape = observed[0][0], observed[0][1]
        for candidate in dict.fromkeys(((), (2,), shape)):
            for flag in ("", ", requires_grad=True"):
                source = f"{name} = torch.ones({candidate}, dtype=torch.{dtype}{flag})"
                if source == step.source:
                    return  # whatever would follow is no simpler
                yield source


def unwatched(program: Program) -> Program:
    """The same program watched only at its end, where that cannot crash torch (see hook_on)."""
    if any("register_multi_grad_hook" in step.source for step in program.steps):
        return program
    safe = tuple(
        dataclasses.replace(step, source=re.sub(r"(t\d+)\.register_hook\(", r"hook_on(\1, ", step.source))
        for step in program.steps
    )
    return dataclasses.replace(program, steps=safe, watch_every_step=False)


def without(steps: tuple[Step, ...], index: int) -> tuple[Step, ...]:
    """The steps without one of them and without all that depend on it."""
    gone = set(steps[index].defines)
    kept = list(steps[:index])
    for step in steps[index + 1 :]:
        if step.uses & gone:
            gone |= step.defines
        else:
            gone -= step.defines
            kept.append(step)
    return tuple(kept)


# -- scripts ------------------------------------------------------------------------------------------------


LOOK = '''
def look(values):
    """Reading grad_fn rebuilds it for a view whose base was modified, so looking is part of the program."""
    for value in list(values.values()):
        with contextlib.suppress(Exception):
            value.grad_fn
'''


def used_helpers(body: str) -> str:
    """The definitions of the prelude that the body needs, directly or through one another."""
    definitions = {
        node.name: ast.get_source_segment(PRELUDE, node) or ""
        for node in ast.parse(PRELUDE).body
        if isinstance(node, ast.FunctionDef)
    }
    needed: dict[str, str] = {}
    pending = [body]
    while pending:
        text = pending.pop()
        for name, source in definitions.items():
            if name not in needed and re.search(rf"\b{name}\b", text):
                needed[name] = source
                pending.append(source)
    ordered = [source for name, source in definitions.items() if name in needed]
    return "".join(f"\n\n{source}\n" for source in ordered)


def shortened(value: Any) -> str:
    text = f"{value.error}: {value.sentence}" if isinstance(value, Raised) else str(value)
    return text if len(text) <= 300 else text[:300] + " ..."


def script(program: Program, difference: Difference, library: Any) -> str:
    """A runnable script that prints the differing fact as each library sees it."""
    outcomes = [record.outcome for record in run(program, torch)]
    body: list[str] = []
    depth = 1

    def write(line: str) -> None:
        body.append("    " * depth + line)

    for index, step in enumerate(program.steps):
        last = index == len(program.steps) - 1
        if step.exits:
            if body[-1].endswith(":"):
                write("pass")
            depth -= 1
        elif step.enters:
            write(f"with {step.source}:")
            depth += 1
        elif last:
            write_last_step(write, step, difference, failed=outcomes[index] is not None)
        elif outcomes[index] is not None:
            write("with contextlib.suppress(Exception):")
            write(f"    {step.source}  # {outcomes[index].error}: {outcomes[index].sentence[:70]}")
        else:
            write(step.source)
        if program.watch_every_step and not last:
            write("look(locals())")
    write(f"return {difference.expression}" if difference.expression else "return 'no exception'")
    text = "\n".join(body)
    names = list(dict.fromkeys(("torch", library.__name__)))
    further = f"\n# Also different: {', '.join(difference.further)}" if difference.further else ""
    return f"""\
# Smaller form of the program of `python -m tests.semantics.find_differences --program {program.seed}`
# After `{program.steps[-1].source or program.steps[-1].operation}`: {difference.aspect}
#   torch: {shortened(difference.in_torch)}
#   {library.__name__}: {shortened(difference.in_library)}{further}
import contextlib
import importlib
import warnings

log = []
hooked = set()
{used_helpers(text)}{LOOK if program.watch_every_step else ""}

def program(torch):
    log.clear()
{text}


for name in {names}:
    try:
        result = program(importlib.import_module(name))
    except Exception as error:
        result = f"{{type(error).__name__}}: {{error}}"
    print(f"{{name}}: {{result}}")
"""


def write_last_step(write: Callable[[str], None], step: Step, difference: Difference, failed: bool) -> None:
    if difference.aspect == "warnings":
        write("with warnings.catch_warnings(record=True) as caught, contextlib.suppress(Exception):")
        write("    warnings.simplefilter('always')")
        write(f"    {step.source}")
        write("return [str(warning.message) for warning in caught]")
        return
    if difference.aspect == "hook log":
        write("log.clear()")
    if failed and difference.expression:
        write("with contextlib.suppress(Exception):")
        write(f"    {step.source}")
    else:
        write(step.source)


def explain(program: Program, difference: Difference, library: Any) -> str:
    """The script of the smallest program found that fails in the same way."""
    smallest, same_difference = Reducer(program, difference, library).reduce()
    return script(smallest, same_difference, library)
