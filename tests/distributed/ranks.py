"""Checks that several processes do together.

    mpiexec -n 3 python -m tests.distributed.ranks tests.distributed.checks_collectives

A file of checks has functions `check_*`, which every process calls in the order of the file. The first that fails ends the job. What
became of each is printed as JSON, and the tests report it: a job starts once, with the checks of one file or of several.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MARK = "checked: "
TIMEOUT = timedelta(
    seconds=200
)  # after which processes that a failure has put out of step give up: a busy machine is no failure
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


def _joins_processes() -> bool:
    """Tell whether there is an MPI that joins processes however they were started: Open MPI joins those of its own mpiexec alone."""
    if find_spec("mpi4py") is None or MPIEXEC is None:
        return False
    version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, check=False).stdout
    return "Open MPI" not in version and "OpenRTE" not in version


needs_mpi = pytest.mark.skipif(not _joins_processes(), reason="needs MPICH: pip install mpi4py mpich")


def names_of(*files: ModuleType) -> list[str]:
    """Return the checks of files, each with the name of its file."""
    found = ((file.__name__.rpartition(".")[2], name) for file in files for name in vars(file))
    return [f"{file}.{name}" for file, name in found if name.startswith("check_")]


def starter(count: int, by: str) -> list[str]:
    """Return the beginning of a command that starts a module of Python in several processes."""
    if by == "mpiexec":
        return [str(MPIEXEC), "-n", str(count), sys.executable, "-m"]
    return [sys.executable, "-m", "retrograd", "run", "--nproc-per-node", str(count), "-m"]


@cache
def outcomes(checks: tuple[str, ...], count: int, by: str) -> dict[str, str]:
    """Return what went wrong with each check: nothing, or a traceback. Of several pytest processes one runs the job."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return job(checks, count, by)
    import fcntl  # which MPI's systems have

    kept = Path(tempfile.gettempdir()) / f"retrograd-{run}-{checks[0]}-{count}-{by}.json"
    with kept.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            text = json.dumps(job(checks, count, by))
            file.write(text)
    result: dict[str, str] = json.loads(text)
    return result


def job(checks: tuple[str, ...], count: int, by: str) -> dict[str, str]:
    """Run files of checks in several processes."""
    command = [*starter(count, by), __name__, *checks]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    found = [line.partition(MARK)[2] for line in ran.stdout.splitlines() if MARK in line]
    assert found, f"{ran.returncode}\n{ran.stdout[-3000:]}\n{ran.stderr[-6000:]}"
    result: dict[str, str] = json.loads(found[0])
    return result


def assert_passed(files: tuple[ModuleType, ...], count: int, by: str, check: str) -> None:
    """Fail with what a process said of a check, or that it was not reached."""
    found = outcomes(tuple(file.__name__ for file in files), count, by)
    assert found.get(check, "not reached: a check before it failed") == ""


def raised_by(call: Callable[[], Any]) -> str:
    """Return the error of a call, in words."""
    try:
        call()
    except BaseException as error:  # as torch's of checkpoints are
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def main() -> None:
    """Run the checks in one of the processes."""
    from retrograd import distributed

    distributed.init_process_group("gloo", timeout=TIMEOUT)
    files = [importlib.import_module(name) for name in sys.argv[1:]]
    checks = [getattr(file, name) for file in files for name in vars(file) if name.startswith("check_")]
    done: dict[str, str] = {}
    for name, check in zip(names_of(*files), checks, strict=True):
        try:
            check(distributed.get_rank(), distributed.get_world_size())
            done[name] = ""
        except Exception:  # the others wait in vain from here on: say what is known, and end the job
            print(MARK + json.dumps(done | {name: traceback.format_exc()}), flush=True)
            raise
    distributed.barrier()
    if distributed.get_rank() == 0:
        print(MARK + json.dumps(done), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
