"""Examples with their modules compiled, or the function that trains them, print what they print without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler.samples import ALL
from tests.examples.test_examples import NUMBER, RETROGRAD, ROOT, is_rounding

STEPS = "5"


def printed(name: str, by: list[str], folder: Path) -> list[str]:
    command = [sys.executable, *by, str(ROOT / "examples" / f"{name}.py"), "--steps", STEPS]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["digits", "lstm", "vae", "gpt", "wgan_gp", *(["neural_ode", "maml", "pinn"] if ALL else [])]
)
def test_an_example_says_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    *made, last = printed(name, ["-m", "tests.compiler.compiled_example"], tmp_path)
    expected = printed(name, RETROGRAD, tmp_path)
    assert int(last.removeprefix("compiled programs: ")) > 0
    for one, other in zip(made, expected, strict=True):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
        for found, wanted in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
            assert is_rounding(found, wanted), f"{one}\n{other}"
