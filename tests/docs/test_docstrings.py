"""The examples in docstrings print what they say, here and on torch; the names that programs use most have some."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest

from .pages import ROOT


def found(library):
    """Run the examples of all docstrings on a library."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    environment["OMP_NUM_THREADS"] = (
        "1"  # torch's threads are not in the processes of a DataLoader, which may wait for them
    )
    command = [sys.executable, "-m", "tests.docs.docstrings", library]
    for limit in (150, 300) if library == "torch" else (300,):  # torch stood still once in several runs
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)
            break
    else:
        pytest.fail(f"the examples did not end on {library}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_examples_print_what_they_say():
    here = found("retrograd")
    assert here["failures"] == {}
    assert here["lacking"] == {}, "many libraries use these; CONTRIBUTING.md says what a docstring has"
    assert here["examples"] >= 500


@pytest.mark.oracle
def test_torch_prints_the_same():
    assert found("torch")["failures"] == {}
