"""Running one module in every mode, in a process of its own kind."""

from __future__ import annotations

from typing import Any

import retrograd
from tests.moduledb import entries
from tests.moduledb.modes import MODES
from tests.opdb.reporting import FAILED
from tests.opdb.running import outcomes


def run_task(task: Any) -> tuple[str, dict[str, Any]]:
    """Run one module in every mode; returns its name and its outcomes."""
    index, limits, modes, debug = task
    info = entries.counted()[index]
    if not hasattr(retrograd.nn, entries.name(info)):
        return entries.name(info), dict.fromkeys(modes, (FAILED, "missing"))
    return entries.name(info), outcomes(info, limits, {m: MODES[m] for m in modes}, debug)
