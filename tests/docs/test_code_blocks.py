"""Every block of Python in the documents runs, and prints what the page says it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .pages import PAGES, ROOT, blocks, programs

RUNNING = [page for page in PAGES if programs(page.read_text())]


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs_and_prints_what_it_says(page, tmp_path):
    command = [sys.executable, "-m", "tests.docs.pages", str(page)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "agg"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    shown = [block.prints for block in programs(page.read_text())]
    assert [said for said, prints in zip(printed, shown, strict=True) if prints is not None] == [
        prints for prints in shown if prints is not None
    ]


def test_blocks_of_python_are_marked_as_such():
    """A block without a language would escape the test above."""
    unmarked = [
        f"{page.relative_to(ROOT)}:{block.line}"
        for page in PAGES
        for block in blocks(page.read_text())
        if not block.language and block.body.lstrip().startswith(("import ", "from ", ">>>", "def ", "class "))
    ]
    assert unmarked == []


def test_a_reason_is_a_sentence():
    reasons = [block.not_run for page in PAGES for block in blocks(page.read_text()) if block.not_run is not None]
    assert reasons
    assert [reason for reason in reasons if len(reason.split()) < 3] == []


PAGE = """\
```python
print(1)
```

```text
1
```

<!-- not run: it would take a year -->
```python
while True:
    pass
```

```python
print(2)
```
and then
```text
3
```
"""


def test_what_a_page_is_read_as():
    first, _, endless, last, _ = blocks(PAGE)
    assert (first.prints, first.line) == ("1\n", 2)
    assert endless.not_run == "it would take a year"
    assert last.prints is None
    assert [block.body for block in programs(PAGE)] == ["print(1)\n", "print(2)\n"]
