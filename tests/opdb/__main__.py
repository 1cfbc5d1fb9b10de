"""Run torch's op_db on both libraries and print what differs.

python -m tests.opdb                      everything: the table by mode, the percentage, what fails
python -m tests.opdb --ops add,linalg.inv some operations, every failure in full
python -m tests.opdb --part               the fixed part that CI runs; fails if an operation fails that did not before
python -m tests.opdb --part --record      write what fails now into known.json
python -m tests.opdb --nn ...             the same for nn.functional, with known_nn.json
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tests.opdb import ops, reporting
from tests.opdb.limits import FULL, PART
from tests.opdb.modes import MODES
from tests.opdb.running import run_task

HERE = Path(__file__).parent


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
    tasks = [(k, limits, modes, options.nn, options.debug) for k in chosen]
    results = reporting.run_all(run_task, tasks, options.jobs)
    seconds = time.monotonic() - start
    known = HERE / ("known_nn.json" if options.nn else "known.json")
    failing = reporting.report(results, modes, known, "operations", bool(options.ops), seconds)
    if options.part and not options.ops:
        return reporting.judge(failing, known, options.record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
