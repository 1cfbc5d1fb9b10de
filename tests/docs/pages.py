"""The documents as tests see them: their blocks of code, and what running those prints.

All python blocks of a page form one program, for which `import torch` gives retrograd. Each runs as a file of its own, `example.py`, as
messages name it. A block that is followed by a block of text prints that text. Comments of a page say what its readers need not see:

    <!-- in: retrograd._ops.cumulative -->     before a block that would stand in this file of the package, and has its names
    <!-- before: model = nn.Linear(2, 3) -->   before a block: what it finds there
    <!-- run by: tools/make_errors.py -->      before a block that this tool runs, and a test of what it wrote
    <!-- processes: 2 -->                      the page is a program of two processes
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import os
import re
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
FENCE = re.compile(
    r"^(?P<mark>```+)(?P<language>[\w+-]*)[^\n]*\n(?P<body>.*?)^(?P=mark)[ \t]*$", re.DOTALL | re.MULTILINE
)
FILE = "example.py"
REMARK = re.compile(r"<!-- (?P<kind>in|before|run by):\s(?P<text>(?:(?!-->).)+?)\s*-->\n\Z", re.DOTALL)
PROCESSES = re.compile(r"^<!-- processes: (\d+) -->$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    body: str
    line: int  # of its first line of code
    remarks: dict[str, str]  # what the comment before it says, by its kind
    prints: str | None  # what the block of text that follows says


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = list(FENCE.finditer(text))
    made = []
    for i, fence in enumerate(found):
        remark = REMARK.search(text, text.rfind("<!--", 0, fence.start()), fence.start())
        following = found[i + 1] if i + 1 < len(found) else None
        is_output = (
            following is not None
            and following["language"] == "text"
            and not text[fence.end() : following.start()].strip()
        )
        made.append(
            Block(
                fence["language"],
                fence["body"],
                text.count("\n", 0, fence.start("body")) + 1,
                {remark["kind"]: remark["text"]} if remark else {},
                following["body"] if following is not None and is_output else None,
            )
        )
    return made


def programs(text: str) -> list[Block]:
    """Return the blocks of a page that are run here."""
    return [block for block in blocks(text) if block.language == "python" and "run by" not in block.remarks]


def processes(text: str) -> int:
    """Return how many processes run a page."""
    said = PROCESSES.search(text)
    return int(said[1]) if said else 1


def run(page: Path) -> list[str]:
    """Run the blocks of a page in order, and return what each prints."""
    import retrograd
    from retrograd._core.fused import fused_operations
    from retrograd._core.primitive import primitives

    retrograd.as_torch()
    program: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for block in programs(page.read_text()):
        said = io.StringIO()
        home = block.remarks.get("in")
        names = program if home is None else dict(vars(import_module(home)))
        linecache.cache[FILE] = (len(block.body), None, block.body.splitlines(keepends=True), FILE)
        try:
            with contextlib.ExitStack() as around:
                around.enter_context(contextlib.redirect_stdout(said))
                for declared in () if home is None else (primitives, fused_operations):
                    around.enter_context(
                        patch.dict(declared, clear=True)
                    )  # what the file has declared is declared again
                exec(block.remarks.get("before", ""), names)
                exec(compile(block.body, FILE, "exec", dont_inherit=True), names)
        except Exception as error:
            error.add_note(f"in the block that begins at {page}:{block.line}")
            raise
        printed.append(said.getvalue())
    return printed


if __name__ == "__main__":  # a process of its own: what a page defines or switches stays there
    try:
        printed = run(Path(sys.argv[1]))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(printed))
