"""The documents as tests see them: their blocks of code, and what running those prints.

All python blocks of a page form one program, for which `import torch` gives retrograd. Each runs as a file of its own, `example.py`, as
messages name it. A block that is followed by a block of text prints that text. A block that must not run says why, in a line before it:
`<!-- not run: needs a CUDA device -->`.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import re
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
FENCE = re.compile(
    r"^(?P<mark>```+)(?P<language>[\w+-]*)[^\n]*\n(?P<body>.*?)^(?P=mark)[ \t]*$", re.DOTALL | re.MULTILINE
)
FILE = "example.py"
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^\n]+?) -->\n\Z")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    body: str
    line: int  # of its first line of code
    not_run: str | None  # why not
    prints: str | None  # what the block of text that follows says


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = list(FENCE.finditer(text))
    made = []
    for i, fence in enumerate(found):
        reason = NOT_RUN.search(text, 0, fence.start())
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
                reason["reason"] if reason else None,
                following["body"] if following is not None and is_output else None,
            )
        )
    return made


def programs(text: str) -> list[Block]:
    """Return the blocks of a page that are to be run."""
    return [block for block in blocks(text) if block.language == "python" and block.not_run is None]


def run(page: Path) -> list[str]:
    """Run the blocks of a page in order, and return what each prints."""
    import retrograd

    retrograd.as_torch()
    names = {"__name__": "__main__"}
    printed = []
    for block in programs(page.read_text()):
        said = io.StringIO()
        linecache.cache[FILE] = (len(block.body), None, block.body.splitlines(keepends=True), FILE)
        try:
            with contextlib.redirect_stdout(said):
                exec(compile(block.body, FILE, "exec"), names)
        except Exception as error:
            error.add_note(f"in the block that begins at {page}:{block.line}")
            raise
        printed.append(said.getvalue())
    return printed


if __name__ == "__main__":  # a process of its own: what a page defines or switches stays there
    try:
        print(json.dumps(run(Path(sys.argv[1]))))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
