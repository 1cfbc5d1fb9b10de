"""`retrograd view`: a program runs as with `retrograd run`, and a page is written."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(2, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
print(sys.argv, __name__)
"""


def call(folder, *arguments):
    command = [sys.executable, "-m", "retrograd", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_it_runs_the_program_and_writes_a_page(folder):
    seen = call(folder, "view", "program.py", "--steps", "7")
    plain = call(folder, "run", "program.py", "--steps", "7")
    assert (seen.returncode, seen.stdout) == (plain.returncode, plain.stdout)
    page = folder / "retrograd-view.html"
    assert seen.stderr.startswith("retrograd view: ")
    assert str(page) in seen.stderr
    assert "<title>program.py · retrograd</title>" in page.read_text()


def test_its_own_options_stand_before_the_program(folder):
    one = call(folder, "view", "-o", "one.html", "program.py")
    whole = call(folder, "view", "--all", "--output", "all.html", "-m", "program", "-o", "x")
    assert (folder / "one.html").exists()
    assert (folder / "all.html").exists()
    assert "'-o', 'x']" in whole.stdout  # the program's
    counts = [int(done.stderr.split()[2]) for done in (one, whole)]
    assert counts[0] * 2 < counts[1]


def test_an_error_of_the_program_is_its_own(folder):
    (folder / "bad.py").write_text("import torch\ntorch.ones(2).exp()\nraise KeyError('here')\n")
    done = call(folder, "view", "bad.py")
    assert done.returncode == 1
    assert (folder / "retrograd-view.html").exists()
    assert done.stderr.splitlines()[1:] == [
        "Traceback (most recent call last):",
        f'  File "{folder / "bad.py"}", line 3, in <module>',
        "    raise KeyError('here')",
        "KeyError: 'here'",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope.py"], "retrograd view: can't open file"),
        (["-m", "nope"], "retrograd view: No module named nope"),
        (["broken.py"], "SyntaxError"),
        (["-c", "no_torch = 1; 1 / 0"], "ZeroDivisionError"),
    ],
)
def test_where_nothing_ran_no_page_is_written(folder, words, said):
    (folder / "broken.py").write_text("import torch\ndef (:\n")
    (folder / "retrograd-view.html").write_text("a good page")
    done = call(folder, "view", *words)
    assert done.returncode != 0
    assert said in done.stderr
    assert "retrograd run" not in done.stderr
    assert (folder / "retrograd-view.html").read_text() == "a good page"


def test_a_program_without_operations_gets_no_page(folder):
    done = call(folder, "view", "-c", "print('done')")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "retrograd view: no operation ran, so no page was written\n"
    assert not (folder / "retrograd-view.html").exists()


def test_the_lines_are_those_of_the_program(folder):
    launcher = folder / "retrograd"  # as pip writes it
    launcher.write_text(
        "import sys\nfrom retrograd.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    (folder / "checked.py").write_text(LINES)
    done = subprocess.run(
        [sys.executable, str(launcher), "view", "checked.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["['checked.py']", "[True]"], done.stderr


LINES = """
import atexit, os, sys
import torch
from retrograd.debug import _page

def report(trace, data_of=_page.data_of):
    data = data_of(trace)
    print([name.replace(' ', '_') for _, name, _ in data["files"]])
    return data

_page.data_of = report
torch.ones(2, requires_grad=True).exp().sum().backward()
with torch.profiler.profile(with_stack=True) as profiler:
    torch.ones(2).exp()
stacks = [line for event in profiler.events() for line in event.stack]
atexit.register(lambda: print([bool(stacks) and all("checked.py" in line for line in stacks)]))
"""


def test_an_exit_is_no_error(folder):
    done = call(folder, "view", "-c", "import torch, sys; torch.ones(1); sys.exit(3)")
    assert done.returncode == 3
    assert "0 findings" in done.stderr


@pytest.mark.parametrize("words", [["--steps", "0", "program.py"], ["--steps", "many", "program.py"], []])
def test_wrong_use(folder, words):
    done = call(folder, "view", *words)
    assert done.returncode == 2
    assert "usage: retrograd view" in done.stderr
    assert not (folder / "retrograd-view.html").exists()


@pytest.mark.parametrize(
    "words", [["--nproc-per-node", "2"], ["--nproc-per-node=2"], ["--steps", "2", "--nnodes", "2"]]
)
def test_options_of_several_processes_are_refused(folder, words):
    done = call(folder, "view", *words, "program.py")
    assert done.returncode == 2
    assert (
        f"view records one process, and knows no {words[-1] if '=' in words[-1] else words[-2]}"
        in done.stderr.splitlines()[-1]
    )
    assert not (folder / "retrograd-view.html").exists()


def test_a_page_in_a_folder_that_is_not_there_is_refused_before_the_program_runs(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = call(tmp_path, "view", "-o", "nowhere/page.html", "train.py")
    assert done.returncode == 2
    assert "there is no folder 'nowhere'" in done.stderr
    assert done.stdout == ""
