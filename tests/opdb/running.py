"""Running one operation in every mode, in a process of its own kind."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opdb import ops
from tests.opdb.calls import Skipped
from tests.opdb.derivatives import forward_beyond
from tests.opdb.limits import Limits
from tests.opdb.modes import MODES
from tests.opdb.reporting import FAILED, NOT_APPLICABLE, PASSED


def outcomes(
    entry: Any, limits: Limits, checks: dict[str, Callable[[Any, Limits], None]], debug: bool
) -> dict[str, tuple[str, str]]:
    """Run one entry of a table in every mode; returns, by mode, the outcome and what differs."""
    found = {}
    for mode, check in checks.items():
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check(entry, limits)
            found[mode] = (PASSED, "")
        except Skipped:
            found[mode] = (NOT_APPLICABLE, "")
        except Exception as error:
            text = traceback.format_exc() if debug else f"{type(error).__name__}: {error}"
            found[mode] = (FAILED, text)
    return found


def run_op(index: int, limits: Limits, modes: list[str], nn: bool, debug: bool = False) -> tuple[str, dict[str, Any]]:
    """Run one operation in every mode; returns its name and its outcomes."""
    op = ops.counted(nn)[index]
    known = MODES | {"beyond": forward_beyond}
    return ops.full_name(op), outcomes(op, limits, {m: known[m] for m in modes}, debug)


def run_task(task: Any) -> tuple[str, dict[str, Any]]:
    return run_op(*task)
