"""Print the share of torch's own autograd tests whose programs pass: `python -m tests.torch_tests [word ...]`.

With `--torch` they run in torch; with `--all` every test is printed with its answer; with `--record` programs that pass leave the
known differences.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from tests.torch_tests.suite import SUITES, modes_restored

MODULES = ("forward_mode", "saved", "graphs", "functions", "modes", "checkpoints", "devices", "vmap", "transforms")


def load() -> None:
    """Load every module of programs."""
    for module in MODULES:
        importlib.import_module(f"tests.torch_tests.{module}")


def problem(library: Any, program: Any) -> str | None:
    """Run a program, and say in a line what went wrong."""
    with warnings.catch_warnings(), modes_restored():
        warnings.simplefilter("ignore")
        try:
            program(library)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            at = traceback.extract_tb(error.__traceback__)
            line = next(
                (one for one in reversed(at) if "torch_tests" in one.filename and "suite" not in one.filename), at[-1]
            )
            return f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''} [{line.lineno}: {line.line}]"
    return None


def record(passing: set[str]) -> None:
    """Take programs that pass out of the known differences."""
    path = Path(__file__).parent / "known.json"
    known = {name: why for name, why in json.loads(path.read_text()).items() if name not in passing}
    path.write_text(json.dumps(known, indent=0, ensure_ascii=False) + "\n")


def main() -> None:
    """Run all programs, and print the counts by class."""
    library = importlib.import_module("torch" if "--torch" in sys.argv else "retrograd")
    words = [one for one in sys.argv[1:] if not one.startswith("-")]
    load()
    total: Counter[str] = Counter()
    passing = set()
    for suite in SUITES.values():
        counts: Counter[str] = Counter()
        for name, program in suite.programs.items():
            if words and not any(word in name for word in words):
                continue
            wrong = problem(library, program)
            counts["passes" if wrong is None else "fails"] += 1
            if wrong is None:
                passing.add(f"{suite.name}.{name}")
            if wrong is not None or "--all" in sys.argv:
                print(f"  {suite.name}.{name}: {wrong or 'passes'}")
        for name, why in suite.absent.items() if "--all" in sys.argv else ():
            print(f"  {suite.name}.{name}: cannot be asked ({why})")
        counts["absent"] = len(suite.absent)
        total += counts
        print(f"{suite.name}: {counts['passes']} pass, {counts['fails']} fail, {counts['absent']} cannot be asked")
    ran = total["passes"] + total["fails"]
    print(f"all: {total['passes']} of {ran} ({total['passes'] / max(1, ran):.1%}); {total['absent']} cannot be asked")
    if "--record" in sys.argv:
        record(passing)


if __name__ == "__main__":
    main()
