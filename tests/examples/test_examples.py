"""Every example runs by `retrograd run` and by torch, and prints the same text up to rounding."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "shared")
STEPS = 20  # later, rounding takes the two libraries' trainings apart
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


RETROGRAD = ["-m", "retrograd", "run"]


@pytest.fixture
def start(tmp_path):
    """Run an example in an empty folder, by retrograd unless told otherwise."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")

    def start(name, *arguments, by=RETROGRAD):
        return subprocess.run(
            [sys.executable, *by, str(ROOT / "examples" / f"{name}.py"), *arguments],
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # tests run side by side
            capture_output=True,
            text=True,
            timeout=300,
        )

    return start


@pytest.fixture
def printed(start):
    """Give what an example printed: plain text, since there is no terminal."""

    def printed(*arguments, **options):
        finished = start(*arguments, **options)
        assert (finished.returncode, finished.stderr) == (0, "")
        return finished.stdout

    return printed


def picture_named_in(text):
    return text.splitlines()[-1].removeprefix("picture: ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_and_draws_its_picture(printed, tmp_path, name):
    text = printed(name, "--steps", "2", "--out", "pictures")
    assert (tmp_path / picture_named_in(text)).read_bytes().startswith(b"\x89PNG")
    assert "step     2: " in text


@pytest.mark.oracle
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_it_prints_with_torch(printed, name):
    pytest.importorskip("torch")
    ours = printed(name, "--steps", str(STEPS))
    theirs = printed(name, "--steps", str(STEPS), by=[])
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for our_line, their_line in zip(ours.splitlines(), theirs.splitlines(), strict=True):
        for our_number, their_number in zip(NUMBER.findall(our_line), NUMBER.findall(their_line), strict=True):
            assert is_rounding(our_number, their_number), f"{our_line}\n{their_line}"


def is_rounding(a, b):
    """Whether two numbers as printed differ by a thousandth of their size, or by one in their last place."""
    last_place = 10.0 ** -len(a.partition(".")[2]) if "." in a else 0
    return math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1.01 * last_place)


@pytest.mark.slow
def test_digits_are_read_with_97_percent(printed):
    (percent,) = re.findall(r"test accuracy: ([\d.]+)%", printed("digits"))
    assert float(percent) >= 97


@pytest.mark.parametrize("name", EXAMPLES)
def test_gallery_shows_the_example(name):
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    assert f"(../examples/{name}.py)" in gallery
    assert f"(pictures/{name}.png)" in gallery
    assert (ROOT / "docs" / "pictures" / f"{name}.png").exists()


def test_steps_below_one_are_refused(start):
    finished = start("vae", "--steps", "0")
    assert finished.returncode == 2
    assert finished.stderr.endswith("--steps must be at least 1\n")
