"""The page that shows a recording: one HTML file with everything in it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import os
import platform
from importlib.resources import files
from typing import Any

from .._places import cell_of
from ._findings import nothing_found
from ._statistics import Statistics
from ._trace import Finding, Operation, Trace, Value

PARTS = ("model.js", "layout.js", "drawing.js", "panels.js", "main.js")
LARGEST_SOURCE = 400_000  # characters of a file that are shown whole


def page_of(trace: Trace) -> str:
    """Return the page as text. It needs nothing from the net, and a browser of 2023 or later."""
    folder = files(__package__) / "viewer"
    read = {name: (folder / name).read_text("utf-8") for name in ("page.html", "viewer.css", "dagre.min.js", *PARTS)}
    text = json.dumps(data_of(trace), separators=(",", ":"), allow_nan=False)
    data = base64.b64encode(
        gzip.compress(text.encode(), 6, mtime=0)
    ).decode()  # no time: equal recordings give equal pages
    licence = (folder / "dagre.LICENSE").read_text("utf-8")
    scripts = f"/*! dagre\n{licence}*/\n{read['dagre.min.js']}\n" + "\n".join(read[name] for name in PARTS)
    page = read["page.html"]
    for mark, text in (
        ("TITLE", html.escape(trace.title)),
        ("STYLE", read["viewer.css"]),
        ("DATA", data),
        ("SCRIPT", scripts),
    ):
        page = page.replace(f"<!--{mark}-->", text)
    return page


def inline(page: str, height: int) -> str:
    """Return a page as notebooks show it: in a frame of its own."""
    return f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{height}" style="border:0"></iframe>'


def data_of(trace: Trace) -> dict[str, Any]:
    """Return what the page's scripts read, as JSON can say it. `viewer/model.js` gives the columns their names."""
    names = {file: at for at, file in enumerate(dict.fromkeys(file for file, _, _ in trace.places.lines))}
    sources = trace.places.sources()
    return {
        "title": trace.title,
        "python": platform.python_version(),
        "notes": trace.notes,
        "good": nothing_found(trace),
        "files": [[file, _shown_name(file), _text(sources[file])] for file in names],
        "lines": [[names[file], line, function] for file, line, function in trace.places.lines],
        "stacks": [list(stack) for stack in trace.places.stacks],
        "groups": [[group.name, group.module, group.parent] for group in trace.groups],
        "operations": [_operation(box) for box in trace.operations],
        "steps": [
            [
                step.kind[0],
                step.operation,
                step.run,
                step.began // 1000,
                round(step.took / 1000, 1),
                step.live,
                step.name,
                step.compiled,
                step.read,
                round(step.making / 1000, 1),
            ]
            for step in trace.steps
        ],
        "leaves": [
            [leaf.name, _value(leaf.value), leaf.requires_grad, _numbers(leaf.gradient), leaf.steps, leaf.remark]
            for leaf in trace.leaves
        ],
        "findings": [_finding(one) for one in trace.findings],
        "meant": [_finding(one) for one in trace.meant_cuts],
        "kernels": [trace.compiled, trace.read, trace.making // 1000],
    }


def _finding(one: Finding) -> list[Any]:
    return [one.kind, one.text, one.operation, one.step, one.before]


def _operation(box: Operation) -> list[Any]:
    saved = [[one.name, list(one.shape), one.dtype, one.bytes, one.source, int(one.is_first)] for one in box.saved]
    values = [_value(value) for value in box.values]
    return [
        *(box.name, box.kind, box.group, box.stack, box.inputs, values, _numbers(box.gradient), box.node, saved),
        *(box.released, box.remark, int(box.cut), int(box.is_meant), box.leaf, box.stepped),
    ]


def _value(value: Value) -> list[Any]:
    return [list(value.shape), value.dtype, value.bytes, _numbers(value.statistics), value.freed]


def _numbers(statistics: Statistics | None) -> list[Any] | None:
    if statistics is None:
        return None
    return [
        *map(_short, statistics[:4]),
        statistics.nans,
        statistics.infinities,
        _short(statistics.zeros),
        list(statistics.bars),
    ]


def _short(number: float | None) -> float | None:
    """Round to the digits that are shown; JSON has no infinity, which sums of huge numbers may be."""
    return float(f"{number:.5g}") if number is not None and math.isfinite(number) else None


def _shown_name(file: str) -> str:
    """Return how a file is called in the viewer: from the working folder, if it lies in it; a notebook's cell by its number."""
    if (cell := cell_of(file)) is not None:
        return cell
    try:
        short = os.path.relpath(file)
    except ValueError:  # on another drive
        return file
    return file if file.startswith("<") or short.startswith("..") else short


def _text(lines: list[str]) -> str:
    text = "".join(lines)
    return text if len(text) <= LARGEST_SOURCE else ""
