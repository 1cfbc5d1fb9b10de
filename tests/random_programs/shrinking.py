"""Drop steps and outputs of a program while it still shows the same kind of difference; print it as a script."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.random_programs.comparing import Difference, difference
from tests.random_programs.programs import HELPERS, Program
from tests.random_programs.readings import READINGS


def shrunk(program: Program, found: Difference, library: Any) -> tuple[Program, Difference]:
    """Return the smallest program that was found with the same aspect of difference."""
    again = True
    while again:
        again = False
        for smaller in smaller_ones(program):
            now = difference(smaller, library)
            if now is not None and same(now, found):
                program, found, again = smaller, now, True
                break
    return program, found


def same(now: Difference, before: Difference) -> bool:
    if now.aspect != before.aspect:
        return False
    if now.aspect in {"torch raises", "error"} and now.torch[:30] != before.torch[:30]:
        return False
    return now.aspect not in {"retrograd raises", "error"} or now.ours[:30] == before.ours[:30]


def smaller_ones(program: Program) -> list[Program]:
    """Return programs with one step, output or leaf less."""
    made = []
    names = [leaf.name for leaf in program.leaves]
    if len(program.outputs) > 1:
        made += [replace(program, outputs=(one,)) for one in program.outputs]
    for k in reversed(range(len(program.steps))):
        step = program.steps[k]
        rest = program.steps[:k] + program.steps[k + 1 :]
        if step.defines is None:
            made.append(replace(program, steps=rest))
            continue
        for other in sorted(step.uses & ({s.defines for s in program.steps[:k]} | set(names))):
            made.append(renamed(program, rest, step.defines, other))
    for leaf in program.leaves:
        used = any(leaf.name in step.uses for step in program.steps) or leaf.name in program.outputs
        if not used and len(program.leaves) > 1:
            made.append(replace(program, leaves=tuple(one for one in program.leaves if one is not leaf)))
    return [one.pruned() for one in made]


def renamed(program: Program, steps: Any, old: str, new: str) -> Program:
    import re

    swap = re.compile(rf"\b{old}\b")
    return replace(
        program,
        steps=tuple(replace(step, text=swap.sub(new, step.text)) for step in steps),
        outputs=tuple(new if one == old else one for one in program.outputs),
    )


def script(program: Program, found: Difference | None = None) -> str:
    """Return the program as a script; its first line chooses the library."""
    body = program.text(READINGS[program.reading].text)
    needed = [part.strip() for part in HELPERS.split("\n\n\n")]
    chosen: list[str] = []
    for part in reversed(needed):
        name = part.split()[1].split("(")[0]
        if name in body or any(name in one for one in chosen):
            chosen.insert(0, part)
    head = [f"# seed {program.seed}, number {program.number}, reading: {program.reading}"]
    if found is not None:
        head += [
            f"# {found.aspect} {found.where}",
            *(f"# {n}: {t}".split("\n")[0] for n, t in (("torch", found.torch), ("ours ", found.ours))),
        ]
        head += [f"# right by finite differences: {found.right}"] if found.right else []
    return "\n".join([*head, "import torch  # or: import retrograd as torch", "", *chosen, "", body, "print(r)"])
