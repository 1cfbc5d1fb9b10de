"""Programs that tests write into a folder and run, on retrograd or on torch, in one process or several."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from retrograd.distributed.run import free_port

RUN = (sys.executable, "-m", "retrograd", "run")
TORCH = (sys.executable,)
SECONDS = 240  # in which a program ends, however busy the machine is


def ran(
    folder: Path, program: str, *options: str, python: tuple[str, ...] = RUN, arguments: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    """Run a program; return its exit code and what it printed. Options stand before it, arguments behind."""
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [*python, *options, "program.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"},
    )
    return done.returncode, done.stdout, done.stderr


def ran_on_torch(folder: Path, program: str) -> tuple[int, str, str]:
    """Run a program on torch, again if gloo has aborted a process: it does if another one is at its end a moment earlier."""
    for _ in range(3):
        found = ran(folder, program, python=TORCH)
        if "signal SIGABRT" not in found[2]:
            break
    return found
