"""Find all differences between torch and the library under test: many programs, failures grouped by kind.

    python -m tests.semantics.find_differences --n 20000 --seed 0
    python -m tests.semantics.find_differences --n 2000 --report /tmp/semantics_report.md
    python -m tests.semantics.find_differences --program 0:417          # one program again, with its script
    python -m tests.semantics.find_differences --write-open             # list the differences that test_programs.py puts up with

The library is chosen by SEMANTICS_LIB (default retrograd; ``torch`` must never fail).
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .compare import SKIPPED_OPERATIONS, Difference, find_difference, library_under_test
from .fixed import CRASH, fixed_seeds, in_words, write_open_differences
from .programs import random_program
from .reporting import Reducer, script
from .steps import Program

PROGRAMS_PER_PROCESS = 500


@dataclass
class Group:
    """Failures of one kind, with the smallest program that shows it."""

    kind: tuple[str, ...]
    count: int = 0
    seeds: list[str] = field(default_factory=list)
    program: Program | None = None
    difference: Difference | None = None

    def add(self, seed: str, program: Program, difference: Difference) -> None:
        self.count += 1
        self.seeds.append(seed)
        if self.program is None or size(program) < size(self.program):
            self.program, self.difference = program, difference


def size(program: Program) -> tuple[int, int]:
    return len(program.steps), sum(len(step.source) for step in program.steps)


def group_key(program: Program, difference: Difference) -> tuple[str, ...]:
    """The kind; for backward passes also the operations involved, since ``backward`` alone says nothing."""
    if len(difference.kind) > 2 or not difference.operation.startswith(("backward", "autograd.grad")):
        return difference.kind
    involved = sorted({step.operation for step in program.steps} - {"leaf", "exit", difference.operation})
    return (*difference.kind, "with " + ", ".join(involved) if involved else "alone")


@dataclass
class Findings:
    """What a stretch of programs showed."""

    programs: int = 0
    failures: int = 0
    crashes: list[str] = field(default_factory=list)
    differing: dict[str, str] = field(default_factory=dict)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    reduced: Counter[tuple[str, ...]] = field(default_factory=Counter)
    unreduced: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def try_seed(self, seed: str, library: Any, reductions_per_kind: int) -> None:
        self.programs += 1
        program = random_program(seed, frozenset(SKIPPED_OPERATIONS))
        difference = find_difference(program, library)
        if difference is None:
            return
        self.failures += 1
        self.differing[seed] = in_words(difference)
        # Reduction costs a hundred programs: enough of one kind are enough.
        if self.reduced[difference.kind] >= reductions_per_kind:
            self.unreduced[difference.kind] += 1
            return
        self.reduced[difference.kind] += 1
        program, difference = Reducer(program, difference, library).reduce()
        key = group_key(program, difference)
        self.groups.setdefault(key, Group(key)).add(seed, program, difference)


def search(findings: Findings, seeds: Sequence[str], library: Any, reductions_per_kind: int) -> Findings:
    """Try the seeds in a process of its own: torch itself crashes on rare programs."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    reached = context.Value("i", 0)

    def work() -> None:
        for number, seed in enumerate(seeds):
            reached.value = number
            findings.try_seed(seed, library, reductions_per_kind)
        sender.send(findings)

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = None
    process.join()
    if found is not None:
        return found
    place = reached.value
    findings = search(findings, seeds[:place], library, reductions_per_kind) if place else findings
    findings.crashes.append(seeds[place])
    findings.programs += 1
    remaining = seeds[place + 1 :]
    return search(findings, remaining, library, reductions_per_kind) if remaining else findings


class Hunt:
    def __init__(self, library: Any, reductions_per_kind: int) -> None:
        self.library = library
        self.reductions_per_kind = reductions_per_kind
        self.findings = Findings()
        self.started = time.monotonic()

    def search(self, seeds: Sequence[str]) -> None:
        self.findings = search(self.findings, seeds, self.library, self.reductions_per_kind)

    def summary(self) -> str:
        seconds = time.monotonic() - self.started
        found = self.findings
        crashed = f"{len(found.crashes)} crashed ({', '.join(found.crashes[:5])}), " if found.crashes else ""
        return (
            f"{found.programs} programs, {found.failures} failed, {crashed}{len(found.groups)} kinds, "
            f"{found.programs / seconds:.0f} programs/s"
        )

    def report(self) -> str:
        lines = [f"# Differences between torch and {self.library.__name__}", "", self.summary(), ""]
        ordered = sorted(self.findings.groups.values(), key=lambda group: (-self.weight(group), group.kind))
        lines += ["| failures | kind | seed |", "| ---: | --- | --- |"]
        for group in ordered:
            kind = " / ".join(group.kind).replace("|", "\\|").replace("\n", " ")
            lines.append(f"| {self.weight(group)} | {kind} | {group.seeds[0]} |")
        for group in ordered:
            assert group.program is not None
            assert group.difference is not None
            lines += ["", f"## {' / '.join(group.kind)}", ""]
            lines += [f"{self.weight(group)} failures, for example of seeds {', '.join(group.seeds[:5])}", ""]
            lines += ["```python", script(group.program, group.difference, self.library).rstrip(), "```"]
        return "\n".join(lines) + "\n"

    def weight(self, group: Group) -> int:
        """Failures in the group, with its share of those of the same kind that were not reduced."""
        assert group.difference is not None
        kind = group.difference.kind
        unreduced, reduced = self.findings.unreduced[kind], self.findings.reduced[kind]
        return group.count + unreduced * group.count // max(reduced, 1)


def main(arguments: list[str] | None = None) -> int:
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument("--n", type=int, default=2000, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="programs are numbered within a seed")
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--program", help="run only this program, SEED:NUMBER as printed in a report")
    parser.add_argument("--report", type=Path, help="write the report there instead of to stdout")
    parser.add_argument("--reductions", type=int, default=20, help="failures of one kind to make smaller")
    parser.add_argument("--write-open", action="store_true", help="write open_differences.json anew")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    hunt = Hunt(library_under_test(), 0 if options.write_open else options.reductions)
    if options.write_open:
        seeds = fixed_seeds()
    elif options.program:
        seeds = [options.program]
    else:
        seeds = [f"{options.seed}:{number}" for number in range(options.start, options.start + options.n)]
    try:
        for first in range(0, len(seeds), PROGRAMS_PER_PROCESS):
            hunt.search(seeds[first : first + PROGRAMS_PER_PROCESS])
            print(hunt.summary(), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted; reporting what was found", file=sys.stderr)
    if options.write_open:
        found = hunt.findings
        write_open_differences(found.differing | dict.fromkeys(found.crashes, CRASH))
        print(hunt.summary())
        return 0
    text = hunt.report()
    if options.report:
        options.report.write_text(text)
        print(hunt.summary())
    else:
        print(text)
    return 1 if hunt.findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
