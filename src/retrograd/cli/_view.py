"""`retrograd view`: run a program, and write a page that shows what it computes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from retrograd._readable import counted
from retrograd.debug import record
from retrograd.debug._trace import LEAVES


def run_recorded(run: Callable[[], None], options: argparse.Namespace) -> None:
    """Run a program and record it; the page is written as soon as it is complete, also if an error ends the program."""
    recording = _Told(options.output, steps=options.steps)
    recording.opens = options.open
    recording.trace.title = options.module or os.path.basename(options.script or "") or "program"
    with recording:
        run()


class _Told(record):
    """A recording of a whole program, which tells where it has written the page."""

    opens = False

    def __enter__(self) -> _Told:
        self._start(None)  # all lines of the program
        return self

    def save(self, path: str | os.PathLike[str]) -> Path:
        if not self.trace.steps:  # a page of an earlier run stays
            print("retrograd view: no operation ran, so no page was written", file=sys.stderr)
            return Path(path)
        written = super().save(path)
        count = sum(box.kind not in LEAVES for box in self.trace.operations)
        found = f"{counted(count, 'operation')}, {counted(len(self.findings), 'finding')}"
        print(f"retrograd view: {found}, in {written}", file=sys.stderr)
        if self.opens:
            self.open()
        return written
