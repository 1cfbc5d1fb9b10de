"""Running one operation in every mode, in a process of its own kind."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np

from tests.opdb import ops
from tests.opdb.limits import Limits
from tests.opdb.modes import MODES, Skipped, forward_beyond

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "-"


def run_op(index: int, limits: Limits, modes: list[str], nn: bool, debug: bool = False) -> tuple[str, dict[str, Any]]:
    """Run one operation in every mode; returns its name and, by mode, the outcome and what differs."""
    op = ops.counted(nn)[index]
    found: dict[str, Any] = {}
    for mode in modes:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                (forward_beyond if mode == "beyond" else MODES[mode])(op, limits)
            found[mode] = (PASSED, "")
        except Skipped:
            found[mode] = (NOT_APPLICABLE, "")
        except Exception as error:
            text = traceback.format_exc() if debug else f"{type(error).__name__}: {error}"
            found[mode] = (FAILED, text)
    return ops.full_name(op), found


def run_task(task: Any) -> tuple[str, dict[str, Any]]:
    return run_op(*task)
