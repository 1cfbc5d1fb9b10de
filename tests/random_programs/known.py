"""The kinds of difference that are known, in known.json: who is right, why, and how to tell that a difference is of the kind.

A kind has regular expressions for what must be found: `aspect` of the difference, `reading`, `source` (the steps of `f`), `torch` and
`ours` (what each gave), and `finite differences` (who is right by these). The kinds marked OPEN are ours to mend.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from tests.random_programs.comparing import Difference
from tests.random_programs.programs import Program

KINDS = Path(__file__).with_name("known.json")


@functools.cache
def kinds() -> dict[str, dict[str, Any]]:
    """Return the known kinds by name."""
    return json.loads(KINDS.read_text())["kinds"]


def kind_of(program: Program, found: Difference) -> str | None:
    """Return the name of the known kind of a difference."""
    told = {
        "aspect": found.aspect,
        "reading": program.reading,
        "source": program.function(),
        "torch": found.torch,
        "ours": found.ours,
        "finite differences": found.right,
    }
    for name, kind in kinds().items():
        if all(re.search(kind["where"][field], text) for field, text in told.items() if field in kind["where"]):
            return name
    return None
