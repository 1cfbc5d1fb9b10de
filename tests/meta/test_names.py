"""The index of public names is what the sources say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "make_names.py"


def test_the_index_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def loaded() -> Any:
    """Return the tool as a module."""
    spec = importlib.util.spec_from_file_location("make_names", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@takes_out\ndef softsquare(input): ...\n", r"own\.py:2: torch has no softsquare: say which forms it has"),
        ("\nsoftsquare = unary(e.softsquare, 'softsquare')\n", r"own\.py:2: torch has no softsquare: say which forms"),
        (
            "@takes_out(forms='function methods')\ndef softsquare(input): ...\n",
            r"own\.py:1: methods is no form: function, ",
        ),
        ("@takes_out(raise_='cpu')\ndef tanh(input): ...\n", r"own\.py:1: raise_ is none of forms, in_functional, "),
        ("tanh = declared(unary(e.tanh, 'tanh'),\n form='')\n", r"own\.py:2: form is none of forms, in_functional, "),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    tool = loaded()
    path = tmp_path / "own.py"
    path.write_text(text)
    with pytest.raises(SystemExit, match=words):
        tool.check_public(list(tool.bound(path)), tool.torch_names())
