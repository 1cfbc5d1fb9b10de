"""Compare random programs on torch and on retrograd.

python -m tests.random_programs --count 1000 --seed 0            programs 0 to 999 of a seed; new differences are printed as scripts
python -m tests.random_programs --seed 0 --number 17             one program as a script, and what differs
python -m tests.random_programs --count 1000 --log found.jsonl   everything that differs, a line of JSON each, not shrunk
python -m tests.random_programs --again found.jsonl              once more what differed in a log; what is new is shrunk
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from itertools import pairwise
from typing import Any

import retrograd
from tests.random_programs import batches, building, known, operations
from tests.random_programs.comparing import difference
from tests.random_programs.shrinking import script, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.random_programs", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--number", type=int, help="show one program")
    parser.add_argument("--whole", action="store_true", help="do not shrink the program of --number")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--log", help="append what differs to this file")
    parser.add_argument("--again", help="run the programs of a log again")
    options = parser.parse_args()
    if options.number is not None:
        return show(options.seed, options.number, options.whole)
    batches.prepare()
    print(f"{len(operations.operations())} operations, {len(known.kinds())} known kinds", flush=True)
    if options.again:
        return again(options.again)
    ends = [options.start + options.count * k // options.jobs for k in range(options.jobs + 1)]
    parts = [range(a, b) for a, b in pairwise(ends)]
    if options.jobs == 1:
        return run(options.seed, parts[0], options.log)
    children = []
    for part in parts:
        child = os.fork()
        if child == 0:
            os._exit(run(options.seed, part, options.log))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def show(seed: int, number: int, whole: bool) -> int:
    """Print one program and what differs."""
    program = building.program(seed, number)
    found = difference(program)
    kind = known.kind_of(program, found) if found else None
    if found and not whole:
        program, found = shrunk(program, found, retrograd)
    print(script(program, found))
    print(f"# {'no difference' if found is None else kind or 'a new difference'}")
    return 0


def run(seed: int, numbers: range, log: str | None) -> int:
    """Run programs, print new differences and the counts by kind."""
    start = time.monotonic()
    counts: Counter[str] = Counter()
    used: Counter[str] = Counter()
    new = 0
    for first in range(numbers.start, numbers.stop, batches.AT_ONCE):
        part = range(first, min(first + batches.AT_ONCE, numbers.stop))
        for told in batches.run_batch(seed, part, shrink=log is None):
            if "used" in told:
                used.update(told["used"])
                continue
            counts[kind_in_words(told)] += 1
            if log:
                with open(log, "a") as file:
                    file.write(json.dumps({"seed": seed, **told}) + "\n")
            if told.get("kind") is None:
                new += 1
                if not log:
                    print(told.get("script") or told, flush=True)
        done = part.stop - numbers.start
        if log:
            rate = done / (time.monotonic() - start)
            print(f"{done} programs, {len(used)} operations, {new} new, {rate:.1f}/s", flush=True)
    print_counts(counts)
    print(f"{len(numbers)} programs, {len(used)} operations called, {new} new differences")
    return 1 if new else 0


def again(log: str) -> int:
    """Run the programs of a log again, print what is new, and the counts by kind."""
    with open(log) as file:
        told = [json.loads(line) for line in file]
    numbers: dict[int, list[int]] = {}
    for one in told:
        numbers.setdefault(one["seed"], []).append(one["number"])
    counts: Counter[str] = Counter()
    for seed, chosen in numbers.items():
        for one in batches.run_batch(seed, sorted(set(chosen))):
            if "used" in one:
                continue
            counts[kind_in_words(one)] += 1
            if one.get("kind") is None:
                print(one.get("script") or one, end="\n\n", flush=True)
    print_counts(counts)
    return 1 if counts["new"] or counts["broken"] else 0


def print_counts(counts: Counter[str]) -> None:
    for kind, count in counts.most_common():
        print(f"{count:6} {kind}")


def kind_in_words(told: dict[str, Any]) -> str:
    if "crash" in told:
        return f"a crash ({told['crash']})"
    return told.get("kind") or "new" if "broken" not in told else "broken"


if __name__ == "__main__":
    raise SystemExit(main())
