"""torch.distributed.run: what torchrun does, for one process."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from retrograd.cli import main as command
from retrograd.distributed import run as launcher
from tests.distributed.programs import RUN, SECONDS

LAUNCH = (*RUN, "-m", "torch.distributed.run")
PROGRAM = """
import os, sys
import torch.distributed as dist

dist.init_process_group("gloo")
print(sys.argv[1:], __name__, dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"], dist.is_torchelastic_launched())
assert os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"])
sys.exit(len(sys.argv) - 1)
"""


def launch(folder: Path, *arguments: str) -> tuple[int, str, str]:
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [*LAUNCH, *arguments], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "options", [["--nproc-per-node", "1"], ["--standalone", "--nproc_per_node=1", "--nnodes=1"], []]
)
def test_a_program_runs_as_the_one_process(tmp_path: Path, options: list[str]) -> None:
    seen = "['--lr', '1'] __main__ 0 1 0 True\n"
    assert launch(tmp_path, *options, "program.py", "--lr", "1") == (2, seen, "")


def test_a_module_runs_by_its_name(tmp_path: Path) -> None:
    assert launch(tmp_path, "--master-port", "29501", "-m", "program") == (0, "[] __main__ 0 1 0 True\n", "")


def test_an_error_shows_the_program_alone(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    code, _, text = launch(tmp_path, "wrong.py")
    assert code == 1
    assert text.splitlines()[1].startswith(f'  File "{tmp_path / "wrong.py"}", line 1')


def refused(*arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what is said of a wrong command line: how it is used, and what is wrong."""
    with pytest.raises(SystemExit) as end:
        launcher.main([*arguments, "program.py"])
    assert end.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("usage: torch.distributed.run ")
    return lines[1:]


@pytest.mark.parametrize(
    "options",
    [
        ["--nnodes", "2"],
        ["--nnodes=1:4"],
        ["--nnodes=2", "--node-rank=1"],
        ["--nnodes=2", "--node-rank=2", "--master-addr=h"],
    ],
)
def test_several_machines_need_numbers_and_an_address(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SLURM_NODEID", raising=False)
    (line,) = refused(*options, capsys=capsys)
    assert re.fullmatch(r"torch.distributed.run: error: --nnodes \d needs --node-rank .* and --master-addr.*", line)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--nproc-per-node gpu", "Cuda is not available."),
        ("--nproc-per-node two", "Unsupported nproc_per_node value: two"),
        ("--nproc-per-node 0", "Unsupported nproc_per_node value: 0"),
        ("--nproc-per-node=-1", "Unsupported nproc_per_node value: -1"),
        ("--nnodes x", "expected a number of machines, or least:most, but got 'x'"),
        ("--nnodes 0", "expected a number of machines"),
        ("--max-restarts x", "invalid int value: 'x'"),
        ("--max-restarts=-1", "invalid int value: '-1'"),
        ("--master-port 99999", "expected the number of a port"),
        ("--redirects x", "x does not match: <^[0123]$>"),
        ("--no-python", "--no-python is not implemented: retrograd runs programs that are written in Python"),
        ("--tee 3", "--tee is not implemented"),
    ],
)
def test_wrong_options_are_refused_in_a_line(
    options: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launcher, "device_count", lambda: 0)
    (line,) = refused(*options.split(), capsys=capsys)
    assert line.startswith("torch.distributed.run: error: ")
    assert words in line


@pytest.mark.parametrize("option", ["--tee", "-t"])
def test_an_option_of_torchrun_may_stand_first(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["run", option, "3", "--nproc-per-node", "2", "program.py"])
    assert capsys.readouterr().err.splitlines()[1].startswith("torch.distributed.run: error: --tee is not implemented")


def test_an_interrupt_ends_the_processes_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import os, time\nos.write(1, b'here\\n')\ntime.sleep(600)")
    job = subprocess.Popen(
        [*RUN, "--nproc-per-node", "2", "sleeps.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells let what runs behind ignore it
    )
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(2)] == ["here\n", "here\n"]
    job.send_signal(signal.SIGINT)
    _, text = job.communicate(timeout=SECONDS)
    assert (job.returncode, text) == (130, "")


def test_a_program_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    code, out, text = launch(tmp_path, "--nproc-per-node", "2", "nowhere.py")
    assert (code, out) == (2, "")
    assert text == (
        f"torch.distributed.run: can't open file {str(tmp_path / 'nowhere.py')!r}: [Errno 2] No such file or directory\n"
    )
