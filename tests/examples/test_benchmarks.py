"""The benchmarks that start processes of their own: their tables run, and their processes answer."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")


def run(code, *arguments):
    """Run a program that imports from the folder; return what it prints."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


KERNELS = """
import sys, native, retrograd
for kernel in native.GROUP:
    try:
        calls, moved = native.make(retrograd, name=kernel, n=2048, dtype=sys.argv[1])
    except ValueError as error:
        print(kernel, error)
        continue
    assert calls.keys() == moved.keys() and all(count > 0 for count in moved.values()), kernel
    for call in calls.values():
        call()
    if kernel in ("gelu", "less", "layer_norm", "lstm", "rand", "normal_", "Adam"):
        print(kernel, *(f"{name}:{count}" for name, count in moved.items()))
"""


@pytest.mark.slow
def test_every_kernel_runs_and_knows_the_bytes_it_moves():
    """Forward reads operands and writes the result; backward reads both again, and writes a gradient for each operand."""
    lstm = 4 * (4 * 64 * 64 * 2 + 4 * 64 * 2)  # bytes of its weights and biases
    inputs = 4 * 16 * 2 * 64
    assert run(KERNELS, "float32") == [
        "gelu forward:16384 +backward:40960",
        "less forward:18432",
        "to float32 it has that dtype already",
        f"layer_norm forward:{4 * (2 * 2048 + 2 * 64)} +backward:{4 * (5 * 2048 + 6 * 64)}",
        f"lstm forward:{lstm + 2 * inputs} +backward:{3 * lstm + 5 * inputs}",
        "rand forward:8192",
        "normal_ forward:8192",
        f"Adam step:{7 * 4 * 2040}",
    ]


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from processes import serve
serve(sys.argv[2], lambda lib, start: ({{"sum": lambda: lib.array("d", [start]).tolist()}}, lib.__name__))
"""

ASK = """
import sys
from processes import Library, NotMeasuredError, race
with Library(sys.argv[1], "array") as one, Library(sys.argv[1], "array") as other:
    print(one.ask(make={"start": 1.0}), other.ask(make={"start": 2.0}))
    times = race((one, other), "sum", 1, 3, 0.001)
    print([len(of_one) for of_one in times], all(t > 0 for of_one in times for t in of_one))
    other.ask(make={"start": "text"})
    try:
        race((one, other), "sum", 1, 3)
    except NotMeasuredError as error:
        print(error)
    try:
        one.ask(time="product", threads=1, seconds=0)
    except NotMeasuredError as error:
        print(error)
    print(one.ask(make={"start": 3.0}))
print(one.process.poll() is not None, other.process.poll() is not None)
"""


def test_libraries_answer_in_turns_and_say_what_went_wrong(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(FOLDER)))
    assert run(ASK, str(script)) == [
        "array array",
        "[3, 3] True",
        "array: TypeError: must be real number, not str",
        "array: KeyError: 'product'",
        "array",
        "True True",
    ]


COLD_START = """
import cold_start
ways = cold_start.measured("digits", rounds=1)
for way in ways:
    print(way, ways[way].get("first", 0) > 0)
print(ways["no kernels"]["llvm"])
"""


@pytest.mark.slow
def test_a_program_starts_without_kernels_with_an_empty_cache_and_with_a_full_one():
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    assert run(COLD_START) == ["no kernels True", "cold cache True", "warm cache True", "cache False", "False"]
