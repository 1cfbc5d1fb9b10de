"""Run torch's op_db on both libraries and print what differs.

python -m tests.opdb                      everything: the table by mode, the percentage, what fails
python -m tests.opdb --ops add,linalg.inv some operations, every failure in full
python -m tests.opdb --part               the fixed part that CI runs; fails if an operation fails that did not before
python -m tests.opdb --part --record      write what fails now into known.json
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

from tests.opdb import ops
from tests.opdb.limits import FULL, PART
from tests.opdb.modes import MODES
from tests.opdb.running import FAILED, NOT_APPLICABLE, PASSED, run_task

KNOWN = Path(__file__).parent / "known.json"


def table(results: dict[str, dict[str, Any]], modes: list[str]) -> list[str]:
    """Return the table by mode."""
    lines = [f"{'mode':<10}{'applies':>9}{'passed':>9}{'failed':>9}{'percent':>9}"]
    for mode in modes:
        outcomes = [r[mode][0] for r in results.values()]
        applies = len(outcomes) - outcomes.count(NOT_APPLICABLE)
        passed = outcomes.count(PASSED)
        lines.append(f"{mode:<10}{applies:>9}{passed:>9}{applies - passed:>9}{100 * passed / max(applies, 1):>9.1f}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.opdb", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ops", help="names, separated by commas")
    parser.add_argument("--modes", help="modes, separated by commas")
    parser.add_argument("--part", action="store_true", help="the part that CI runs")
    parser.add_argument("--nn", action="store_true", help="nn.functional instead of everything else")
    parser.add_argument("--record", action="store_true", help="write known.json")
    parser.add_argument("--debug", action="store_true", help="whole tracebacks")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    modes = options.modes.split(",") if options.modes else [*MODES, "beyond"]
    limits = PART if options.part else FULL
    entries = ops.counted(options.nn)
    wanted = set(options.ops.split(",")) if options.ops else None
    chosen = [k for k, op in enumerate(entries) if wanted is None or {op.name, ops.full_name(op)} & wanted]
    start = time.monotonic()
    results: dict[str, dict[str, Any]] = {}
    tasks = [(k, limits, modes, options.nn, options.debug) for k in chosen]
    if len(tasks) < 8 or options.jobs == 1:
        outcomes: Any = map(run_task, tasks)
        results.update(outcomes)
    else:
        with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=60) as pool:
            for done, (name, found) in enumerate(pool.imap_unordered(run_task, tasks), 1):
                results[name] = found
                if sys.stderr.isatty():
                    print(f"\r{done}/{len(tasks)} {name:<50}", end="", file=sys.stderr, flush=True)
    counted_modes = [m for m in modes if m != "beyond"]
    failing = {
        name: {m: found[m][1] for m in counted_modes if found[m][0] == FAILED}
        for name, found in sorted(results.items())
    }
    failing = {name: by_mode for name, by_mode in failing.items() if by_mode}
    for name, by_mode in failing.items():
        for mode, text in by_mode.items():
            print(f"{name:<28} {mode:<8} {text if options.ops else text[:230]}")
        if name in known_reasons():
            print(f"{'':<28} because  {known_reasons()[name]}")
    print("\n".join(["", *table(results, counted_modes)]))
    if "beyond" in modes:
        beyond = sum(found["beyond"][0] == PASSED for found in results.values())
        print(f"forward mode where torch has none: {beyond} operations")
    passed = len(results) - len(failing)
    print(
        f"{passed} of {len(results)} operations pass in every mode: {100 * passed / max(len(results), 1):.1f} %", end=""
    )
    print(f" ({time.monotonic() - start:.0f} s)")
    if options.part and not options.ops and not options.nn:
        return judge(failing, options.record)
    return 0


@functools.cache
def known_reasons() -> dict[str, str]:
    """Return why operations are known to fail."""
    return json.loads(KNOWN.read_text())["reasons"] if KNOWN.exists() else {}


def judge(failing: dict[str, dict[str, str]], record: bool) -> int:
    """Compare with what is known to fail; write it down if asked to."""
    now = {name: sorted(by_mode) for name, by_mode in failing.items()}
    if record:
        reasons = dict.fromkeys(now, "") | known_reasons()  # some fail on all samples only
        KNOWN.write_text(json.dumps({"failing": now, "reasons": reasons}, indent=1) + "\n")
        return 0
    known = json.loads(KNOWN.read_text())["failing"]
    worse = {n: sorted(set(m) - set(known.get(n, []))) for n, m in now.items() if set(m) - set(known.get(n, []))}
    for name, modes in worse.items():
        print(f"worse than before: {name}: {', '.join(modes)}")
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
