"""torch.distributed.run: what torchrun does, for one process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("options", [["--nnodes", "2"], ["--nnodes=1:4"], ["--nnodes=2", "--node-rank=1"]])
def test_several_machines_need_numbers_and_an_address(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_NODEID", raising=False)
    with pytest.raises(ValueError, match=r"needs --node-rank .* and --master-addr"):
        launcher.main([*options, "program.py"])


def test_numbers_of_processes_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "device_count", lambda: 0)
    with pytest.raises(ValueError, match="Cuda is not available"):
        launcher.main(["--nproc-per-node", "gpu", "program.py"])
    with pytest.raises(ValueError, match="Unsupported nproc_per_node value: many"):
        launcher.main(["--nproc-per-node", "many", "program.py"])
    with pytest.raises(NotImplementedError, match="--no-python"):
        launcher.main(["--no-python", "program"])
