"""Every public module can be the first that a program imports: no circle of imports depends on who was there before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUBS = Path(__file__).parents[2] / "src" / "torch-stubs"

PROGRAM = """
import importlib, os, sys
import retrograd.autograd.functional, retrograd.distributions, retrograd.linalg, retrograd.nn, retrograd.optim  # most need these
for name in sys.stdin.read().split():
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(name, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""


def names() -> list[str]:
    found = []
    for path in sorted(STUBS.rglob("*.pyi")):
        parts = path.relative_to(STUBS).with_suffix("").parts
        found.append(".".join(["retrograd", *(parts[:-1] if parts[-1] == "__init__" else parts)]))
    return [name for name in found if ".tensorboard" not in name]  # which needs another package


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="one process for each module")
def test_every_public_module_can_be_imported_first() -> None:
    assert len(names()) > 200
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(names()),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout == ""
