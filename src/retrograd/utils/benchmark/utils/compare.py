"""Measurements side by side."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

END = "\033[0m"
GOOD, FAIR, BAD = ("\033[92m", "\033[1m"), ("\033[34m", "\033[1m"), ("\033[2m", "\033[91m")
WORST = ("\033[31m", "\033[1m")
BETWEEN = "  |  "


class Colorize(enum.Enum):
    """With what a number is compared when it gets its colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table for each label: a row for each `sub_label`, a column for each `description`."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        results = list(results)
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst of each column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Show which measurements spread too far."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for one in Measurement.merge(self._results):
            groups.setdefault(one.task_spec.label, []).append(one)
        return "\n".join(self._table(label, group) for label, group in groups.items())

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(one.median for one in results))
        columns = ordered_unique(one.task_spec.description for one in results)
        rows = ordered_unique((one.task_spec.num_threads, one.task_spec.env, one.as_row_name) for one in results)
        rows.sort(key=lambda row: row[0])
        cells = {self._place(one): one for one in results}
        texts = self._texts(cells, scale)
        names = {row: f"  ({row[1]})  {row[2]}" if row[1] else f"      {row[2]}" for row in rows}
        first = max(len(name) for name in names.values())
        widths = [
            max([len(str(column)), *[len(text) for place, text in texts.items() if place[1] == column]])
            for column in columns
        ]
        head = BETWEEN.join([" " * first, *[str(c).center(w) for c, w in zip(columns, widths, strict=True)]])
        lines = ["[" + f" {label or ''} ".center(len(head) - 2, "-") + "]", head]
        for threads, members in groupby(rows, key=lambda row: row[0]):
            lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            for row in members:
                shown = [names[row].ljust(first)]
                for column, width in zip(columns, widths, strict=True):
                    text = texts.get((row, column), "").center(width)
                    shown.append(self._coloured(text, (row, column), cells))
                lines.append(BETWEEN.join(shown))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(one.has_warnings for one in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    @staticmethod
    def _place(one: Measurement) -> tuple[tuple[int, str | None, str], str | None]:
        task = one.task_spec
        return (task.num_threads, task.env, one.as_row_name), task.description

    def _texts(self, cells: dict[Any, Measurement], scale: float) -> dict[Any, str]:
        """Return the numbers; all of a column have as many decimals as each of them can show, at most one."""
        decimals = dict.fromkeys([column for _, column in cells], 1)
        for (_, column), one in cells.items():
            if self._trim:
                known = one.significant_figures - math.ceil(math.log10(one.median / scale))
                decimals[column] = max(0, min(decimals[column], known))
        texts = {}
        for place, one in cells.items():
            value = one.median / scale
            text = f"{trim_sigfig(value, one.significant_figures) if self._trim else value:.{decimals[place[1]]}f}"
            if self._warn and one.has_warnings:
                text += f" (! {one.iqr / one.median * 100:.0f}%)"
            texts[place] = text
        if self._warn:  # numbers stay below each other where some of a column have a remark
            for column in {place[1] for place in texts}:
                longest = max(len(text.partition(" ")[2]) for place, text in texts.items() if place[1] == column)
                for place, text in texts.items():
                    if place[1] == column and longest and " " not in text:
                        texts[place] = text + " " * (longest + 1)
        for column in decimals:
            width = max(len(text) for place, text in texts.items() if place[1] == column)
            texts |= {place: text.rjust(width) for place, text in texts.items() if place[1] == column}
        return texts

    def _coloured(self, text: str, place: Any, cells: dict[Any, Measurement]) -> str:
        if self._colorize is Colorize.NONE or place not in cells:
            return text
        row, column = place
        by_row = self._colorize is Colorize.ROWWISE
        others = [
            one.median for (r, c), one in cells.items() if (r == row if by_row else c == column and r[0] == row[0])
        ]
        ratio = cells[place].median / min(others)
        colours = GOOD if ratio <= 1.02 else FAIR if ratio <= 1.1 else None
        if ratio >= 2:
            colours = BAD if ratio < 5 else WORST
        return text if colours is None else "".join(colours) + text + END * len(colours)
