"""The programs of every test run, and those of them in which the library is known to differ from torch.

``open_differences.json`` maps the seeds of these to what differs. Each is a difference to be mended, in contrast to
those that ``compare.KNOWN_DIFFERENCES`` explains. Written by ``python -m tests.semantics.find_differences --write-open``.
"""

from __future__ import annotations

import json
from pathlib import Path

from .compare import Difference

FIXED_PROGRAMS = 2000
PARTS = 20  # test items: pytest-xdist spreads them over processes
OPEN_DIFFERENCES = Path(__file__).with_name("open_differences.json")
CRASH = "torch crashes"


def fixed_seeds() -> list[str]:
    return [f"fixed:{number}" for number in range(FIXED_PROGRAMS)]


def seeds_of_part(part: int) -> list[str]:
    return fixed_seeds()[part::PARTS]


def open_differences() -> dict[str, str]:
    return json.loads(OPEN_DIFFERENCES.read_text()) if OPEN_DIFFERENCES.exists() else {}


def in_words(difference: Difference) -> str:
    return " / ".join(difference.kind).replace("\n", " ")


def write_open_differences(found: dict[str, str]) -> None:
    ordered = {seed: found[seed] for seed in fixed_seeds() if seed in found}
    OPEN_DIFFERENCES.write_text(json.dumps(ordered, indent=2) + "\n")
