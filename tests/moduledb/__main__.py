"""Run torch's module_db on both libraries and print what differs.

python -m tests.moduledb                          everything: the table by mode, the percentage, what fails
python -m tests.moduledb --modules Linear,Conv2d  some modules, every failure in full
python -m tests.moduledb --part                   the fixed part that CI runs; fails if a module fails that did not before
python -m tests.moduledb --part --record          write what fails now into known.json
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tests.moduledb import entries
from tests.moduledb.modes import MODES
from tests.moduledb.running import run_task
from tests.opdb import reporting
from tests.opdb.limits import FULL, PART

KNOWN = Path(__file__).parent / "known.json"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.moduledb", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--modules", help="names, separated by commas")
    parser.add_argument("--modes", help="modes, separated by commas")
    parser.add_argument("--part", action="store_true", help="the part that CI runs")
    parser.add_argument("--record", action="store_true", help="write known.json")
    parser.add_argument("--debug", action="store_true", help="whole tracebacks")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    modes = options.modes.split(",") if options.modes else list(MODES)
    limits = PART if options.part else FULL
    wanted = options.modules.split(",") if options.modules else None
    infos = entries.counted()
    chosen = [k for k, info in enumerate(infos) if wanted is None or entries.name(info) in wanted]
    start = time.monotonic()
    tasks = [(k, limits, modes, options.debug) for k in chosen]
    results = reporting.run_all(run_task, tasks, options.jobs)
    seconds = time.monotonic() - start
    failing = reporting.report(results, modes, KNOWN, "modules", bool(options.modules), seconds)
    if options.part and not options.modules:
        return reporting.judge(failing, KNOWN, options.record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
