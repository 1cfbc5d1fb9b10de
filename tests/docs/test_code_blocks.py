"""Every block of Python in the documents runs, and prints what the page says it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.distributed.ranks import needs_mpi, starter

from .pages import PAGES, ROOT, blocks, processes, programs

RUNNING = [
    pytest.param(page, id=str(page.relative_to(ROOT)), marks=needs_mpi if processes(page.read_text()) > 1 else ())
    for page in PAGES
    if programs(page.read_text())
]


@pytest.mark.parametrize("page", RUNNING)
def test_a_page_runs_and_prints_what_it_says(page, tmp_path):
    count = processes(page.read_text())
    start = [sys.executable, "-m"] if count == 1 else starter(count, "launcher")
    command = [*start, "tests.docs.pages", str(page)]
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


def test_all_other_blocks_are_mistakes():
    """tests/errors/test_mistakes_torch.py runs what tools/make_errors.py has written."""
    others = {
        (page.name, block.remarks["run by"])
        for page in PAGES
        for block in blocks(page.read_text())
        if "run by" in block.remarks
    }
    assert others == {("errors.md", "tools/make_errors.py")}


PAGE = """\
```python
print(1)
```

```text
1
```

<!-- before:
made = 2
-->
```python
print(made)
```

<!-- in: retrograd._ops.cumulative -->
```python
print(cumsum)
```
and then
```text
3
```
"""


def test_what_a_page_is_read_as():
    first, _, second, last, _ = blocks(PAGE)
    assert (first.prints, first.line, first.remarks) == ("1\n", 2, {})
    assert second.remarks == {"before": "made = 2"}
    assert (last.prints, last.remarks) == (None, {"in": "retrograd._ops.cumulative"})
    assert [block.body for block in programs(PAGE)] == ["print(1)\n", "print(made)\n", "print(cumsum)\n"]
