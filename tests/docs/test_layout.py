"""docs/layout.md names files and notes that exist, and the files that calls pass through."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYOUT = (ROOT / "docs" / "layout.md").read_text()
SOURCE = ROOT / "src" / "retrograd"


def test_the_files_of_calls_are_up_to_date():
    command = [
        sys.executable,
        "tools/call_files.py",
    ]  # a process of its own: what others loaded or switched changes the way
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout in LAYOUT, f"run `python tools/call_files.py --write`; now it is\n{done.stdout}"


def test_the_folders_and_files_exist():
    table = LAYOUT.split("## The folders")[1].split("## The notes")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    assert len(names) > 40
    assert [name for name in names if not (SOURCE / name).is_dir() and not (SOURCE / f"{name}.py").is_file()] == []


def test_every_folder_is_named():
    folders = [path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [name for name in folders if f"`{name}/`" not in LAYOUT] == []


def test_the_notes_stand_where_it_says():
    text = LAYOUT.replace("; ", "\n")
    found = [
        (note, path)
        for line in text.splitlines()
        if (path := re.search(r"`([\w/]+\.py)`", line))
        for note in re.findall(r"\[([A-Z][a-z][\w' -]+)\](?!\()", line)
    ]
    assert len(found) >= 10
    for note, path in found:
        assert f"Note [{note}]" in (SOURCE / path[1]).read_text(), note
