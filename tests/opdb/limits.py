"""How much of op_db a run covers."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """How many samples of each operation and dtype a run takes."""

    samples: int | None
    second: int
    vmap: int


FULL = Limits(samples=None, second=12, vmap=12)
PART = Limits(samples=5, second=2, vmap=3)
