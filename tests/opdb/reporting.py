"""Running many tasks, the table by mode, and what is known to fail."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

ROUNDS = 5  # how often processes may die: torch itself crashes now and then
PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "-"
Results = dict[str, dict[str, Any]]  # by name and mode: the outcome and what differs
Failing = dict[str, dict[str, str]]


def run_all(run_task: Callable[[Any], tuple[str, dict[str, Any]]], tasks: list[Any], jobs: int) -> Results:
    """Run tasks, many of them in processes of their own."""
    if len(tasks) < 8 or jobs == 1:
        return dict(map(run_task, tasks))
    results: Results = {}
    left = tasks
    for _ in range(ROUNDS):
        size = 60 * jobs  # then new processes: the old ones have grown
        parts = [left[i : i + size] for i in range(0, len(left), size)]
        left = [task for part in parts for task in _run_in_processes(run_task, part, jobs, results)]
        if not left:
            return results
        print(f"a process died; what it and its neighbours had left, {len(left)} tasks, runs again", file=sys.stderr)
    raise RuntimeError(f"processes died {ROUNDS} times; left: {left[:5]}")


def _run_in_processes(run_task: Callable[..., Any], tasks: list[Any], jobs: int, results: Results) -> list[Any]:
    """Run tasks until all are done or a process dies; return those that are left. A pool would wait for the dead for ever."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        asked = {pool.submit(run_task, task): task for task in tasks}
        try:
            for done, future in enumerate(as_completed(asked), 1):
                name, found = future.result()
                results[name] = found
                del asked[future]
                if sys.stderr.isatty():
                    print(f"\r{done}/{len(tasks)} {name:<50}", end="", file=sys.stderr, flush=True)
        except BrokenProcessPool:
            pass
    return list(asked.values())


def failing_in(results: Results, modes: list[str]) -> Failing:
    """Return what fails, by name and mode."""
    found = {name: {m: r[m][1] for m in modes if r[m][0] == FAILED} for name, r in sorted(results.items())}
    return {name: by_mode for name, by_mode in found.items() if by_mode}


def table(results: Results, modes: list[str]) -> list[str]:
    """Return the table by mode."""
    lines = [f"{'mode':<10}{'applies':>9}{'passed':>9}{'failed':>9}{'percent':>9}"]
    for mode in modes:
        outcomes = [r[mode][0] for r in results.values()]
        applies = len(outcomes) - outcomes.count(NOT_APPLICABLE)
        passed = outcomes.count(PASSED)
        lines.append(f"{mode:<10}{applies:>9}{passed:>9}{applies - passed:>9}{100 * passed / max(applies, 1):>9.1f}")
    return lines


def report(results: Results, modes: list[str], known: Path, what: str, whole: bool, seconds: float) -> Failing:
    """Print what fails, the table, and how many pass in every mode; returns what fails."""
    counted = [m for m in modes if m != "beyond"]
    failing = failing_in(results, counted)
    reasons = known_reasons(known)
    for name, by_mode in failing.items():
        for text in dict.fromkeys(by_mode.values()):
            told = ", ".join(mode for mode in by_mode if by_mode[mode] == text)
            print(f"{name:<28} {told:<8} {text if whole else text[:230]}")
        if name in reasons:
            print(f"{'':<28} because  {reasons[name]}")
    print("\n".join(["", *table(results, counted)]))
    if "beyond" in modes:
        beyond = sum(found["beyond"][0] == PASSED for found in results.values())
        print(f"forward mode where torch has none: {beyond} {what}")
    passed = len(results) - len(failing)
    print(f"{passed} of {len(results)} {what} pass in every mode: {100 * passed / max(len(results), 1):.1f} %", end="")
    print(f" ({seconds:.0f} s)")
    return failing


def known_reasons(known: Path) -> dict[str, str]:
    """Return why entries are known to fail."""
    return json.loads(known.read_text())["reasons"] if known.exists() else {}


def judge(failing: Failing, known: Path, record: bool) -> int:
    """Compare with what is known to fail; write it down if asked to."""
    now = {name: sorted(by_mode) for name, by_mode in failing.items()}
    if record:
        reasons = dict.fromkeys(now, "") | known_reasons(known)  # some fail on all samples only
        known.write_text(json.dumps({"failing": now, "reasons": reasons}, indent=1) + "\n")
        return 0
    before = json.loads(known.read_text())["failing"] if known.exists() else {}
    worse = {n: sorted(set(m) - set(before.get(n, []))) for n, m in now.items() if set(m) - set(before.get(n, []))}
    for name, modes in worse.items():
        print(f"worse than before: {name}: {', '.join(modes)}")
    return 1 if worse else 0
