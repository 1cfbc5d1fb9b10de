"""torch.distributed.run: start a program in several processes, as torchrun does.

    retrograd run --nproc-per-node 4 script.py [argument ...]
    retrograd run -m torch.distributed.run --nnodes 2 --node-rank 0 --master-addr host --nproc-per-node 4 script.py [argument ...]

The options are torchrun's. One process is this one. Several are started on this machine, and find those of other machines by
MASTER_ADDR and MASTER_PORT; MPI joins them when they call `init_process_group` (Note [Processes that nobody started with mpiexec] in
`_rendezvous.py`). If one fails, the others are ended, and all start again as often as `--max-restarts` says.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ..cuda import device_count
from ._rendezvous import PORTS

POLL_SECONDS = 0.05  # how often processes are looked at
PATIENCE = 5.0  # seconds that a process has to obey before it is killed
_TAKEN = """rdzv-backend rdzv-conf monitor-interval start-method event-log-handler local-ranks-filter duplicate-stdout-filters
duplicate-stderr-filters local-addr logs-specs numa-binding signals-to-handle shutdown-timeout""".split()  # noqa: SIM905 - names read better as text
_FLAGS = ("standalone", "run-path", "no-python", "virtual-local-rank")
_REFUSED = {
    "no_python": "retrograd runs programs that are written in Python",
    "tee": "what processes print goes to the terminal, or with --redirects to files",
}
_STARTERS = ("PMI_", "PMIX_", "OMPI_", "MPI_LOCAL")  # what mpiexec says of this process is not true of those it starts


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of torchrun's options, each of which may be written with either kind of dash."""
    parser = argparse.ArgumentParser(
        prog="torch.distributed.run",
        usage="torch.distributed.run [-h] [--nproc-per-node N] [option ...] (script.py | -m module) [argument ...]",
        description="Start a program in several processes, as torchrun does.",
    )

    def option(name: str, **how: object) -> None:
        spellings = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*spellings, **how)  # type: ignore[arg-type]

    option("nnodes", default="1:1", type=_machines, help="number of machines, on each of which this is called")
    option("node-rank", default=None, type=_whole, help="the number of this machine, from 0")
    option(
        "nproc-per-node", default="1", type=_processes, help="number of processes on this machine; or auto, cpu, gpu"
    )
    option("master-addr", default=None, help="the machine with number 0")
    option("master-port", default=None, type=_port, help="a free port of that machine")
    option("rdzv-endpoint", default="", help="the same two, as host:port")
    option("rdzv-id", default="none", help="what the program finds in TORCHELASTIC_RUN_ID")
    option("role", default="default", help="what the program finds in ROLE_NAME")
    option("max-restarts", default=0, type=_whole, help="how often all processes start again after one has failed")
    option("log-dir", default=None, help="folder for what processes print, with --redirects")
    for name in _TAKEN:
        option(name, help=argparse.SUPPRESS)
    for name in _FLAGS:
        option(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-m", "--module", action="store_true", help="run a module by its name")
    parser.add_argument(
        "-r",
        "--redirects",
        default="0",
        type=_redirects,
        help="write to files: 1 stdout, 2 stderr, 3 both; 0:3,1:1 says it for processes 0 and 1",
    )
    parser.add_argument("-t", "--tee", default="0", help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="the program, followed by its arguments")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


# ---- what options may be: argparse says the rest in one line ----
def _machines(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*(:[1-9]\d*)?", text):
        raise argparse.ArgumentTypeError(f"expected a number of machines, or least:most, but got {text!r}")
    return text


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r} (it is 0 or more)")
    return int(text)


def _port(text: str) -> str:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected the number of a port, 0 to 65535, but got {text!r}")
    return text


def _processes(text: str) -> int:
    counts = {"auto": device_count() or os.cpu_count(), "cpu": os.cpu_count(), "gpu": device_count()}
    if text == "gpu" and not counts["gpu"]:
        raise argparse.ArgumentTypeError("Cuda is not available.")
    if text in counts:
        return counts[text] or 1
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"Unsupported nproc_per_node value: {text} (it is 1 or more, or auto, cpu, gpu)"
        )
    return int(text)


def _redirects(text: str) -> str:
    if not re.fullmatch(r"[0123]|\d:[0123](,\d:[0123])*", text):
        raise argparse.ArgumentTypeError(rf"{text} does not match: <^[0123]$> or <^(\d:[0123],)*(\d:[0123])$>")
    return text


def main(args: Sequence[str] | None = None) -> None:
    """Read the command line, and run the program."""
    parser = get_args_parser()
    options = parser.parse_args(args)
    try:
        job = _job(options)
    except (ValueError, NotImplementedError) as error:
        parser.error(str(error))
    _run_job(options, job)


def run(options: argparse.Namespace) -> None:
    """Run the program: here if it is one process, else in as many new ones."""
    _run_job(options, _job(options))


def _run_job(options: argparse.Namespace, job: Job) -> None:
    if job.size > 1:
        sys.exit(_keep_running(options, job))
    os.environ.update(_variables(options, job, 0, 0))
    run_program(options.training_script, options.training_script_args, by_name=options.module)


def run_program(program: str, arguments: Sequence[str], by_name: bool) -> None:
    """Run a file, or a module by its name, in this process."""
    from ..cli import _run  # above this package

    start = _run.run_module if by_name else _run.run_script
    start(program, arguments)


@dataclass
class Job:
    """How many processes there are, here and everywhere, and where they meet."""

    machines: int
    machine: int
    local_size: int
    host: str
    port: str | None  # None: any that is free

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self.machines * self.local_size


def _job(options: argparse.Namespace) -> Job:
    for name, reason in _REFUSED.items():
        if getattr(options, name) not in (False, "0"):
            raise NotImplementedError(f"--{name.replace('_', '-')} is not implemented: {reason}")
    machines = int(options.nnodes.rpartition(":")[2])
    host, _, port = options.rdzv_endpoint.rpartition(":") if ":" in options.rdzv_endpoint else ("", "", "")
    host = options.master_addr or host or "localhost"
    job = Job(machines, 0, options.nproc_per_node, host, options.master_port or port or None)
    if machines > 1:
        number = options.node_rank
        if number is None:
            number = os.environ.get("SLURM_NODEID") or os.environ.get("GROUP_RANK")
        if number is None or job.host == "localhost" or not 0 <= int(number) < machines:
            raise ValueError(
                f"--nnodes {machines} needs --node-rank (0 to {machines - 1}) and --master-addr, the machine with number 0; under "
                "srun, SLURM_NODEID is the number"
            )
        job.machine, job.port = int(number), job.port or "29500"
    return job


def _variables(options: argparse.Namespace, job: Job, local_rank: int, restarts: int) -> dict[str, str]:
    rank = job.machine * job.local_size + local_rank
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": local_rank,
        "GROUP_RANK": job.machine,
        "ROLE_RANK": rank,
        "WORLD_SIZE": job.size,
        "LOCAL_WORLD_SIZE": job.local_size,
        "GROUP_WORLD_SIZE": job.machines,
        "ROLE_WORLD_SIZE": job.size,
        "TORCHELASTIC_RESTART_COUNT": restarts,
        "TORCHELASTIC_MAX_RESTARTS": options.max_restarts,
    }
    return {
        **{name: str(number) for name, number in numbers.items()},
        "ROLE_NAME": options.role,
        "MASTER_ADDR": job.host,
        "MASTER_PORT": job.port or str(free_port()),
        "TORCHELASTIC_RUN_ID": options.rdzv_id,
    }


def free_port() -> int:
    """Return a port that nobody has, and that systems give no connection by themselves before it is used."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("localhost", port))
            return port
    raise OSError("torch.distributed.run: found no free port\nHint: --master-port names one.")


# ---- several processes ----
def _keep_running(options: argparse.Namespace, job: Job) -> int:
    """Start the processes until they end well, or have failed too often; return what to exit with."""
    if not options.module and not os.path.exists(options.training_script):
        path = os.path.abspath(options.training_script)
        print(f"torch.distributed.run: can't open file {path!r}: [Errno 2] No such file or directory", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the processes are ended, too
    most: int = options.max_restarts
    for restarts in range(most + 1):
        try:
            failure = _run_once(options, job, restarts)
        except KeyboardInterrupt:  # the processes have been ended, and show where they were
            return 128 + signal.SIGINT
        if failure is None:
            return 0
        after = f"; starting again, restart {restarts + 1} of {most}" if restarts < most else ""
        hint = BELOW_PYTHON if failure.below_python else ""
        print(f"torch.distributed.run: {failure}{after}{hint}", file=sys.stderr, flush=True)
    assert failure is not None
    return failure.code


MPI_ABORTS = 1  # the exit code with which MPI ends a process
BELOW_PYTHON = (
    "\nHint: it showed no error of Python. MPI ends a process so, and says why above, if some call another collective than others, or with "
    "another size or dtype. TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment compares every call before it begins, and says which it is."
)


@dataclass
class Failure:
    """The first process that failed."""

    rank: int
    pid: int
    status: int  # an exit code, or less than 0: a signal
    stopped_by: str = ""  # what it said if the death of a process elsewhere has stopped it
    below_python: bool = False  # it has ended without a word from Python: MPI ends processes so

    @property
    def code(self) -> int:
        """The exit code, as shells count signals."""
        return 128 - self.status if self.status < 0 else self.status

    def __str__(self) -> str:
        if self.status < 0:
            how = f"was killed by {signal.Signals(-self.status).name}"
        else:
            how = f"failed with exit code {self.status}" + (f": {self.stopped_by}" if self.stopped_by else "")
        return f"rank {self.rank} (process {self.pid}) {how}"


def _run_once(options: argparse.Namespace, job: Job, restarts: int) -> Failure | None:
    """Start all processes of this machine, and watch them; end them if one fails, and return which."""
    common = {name: value for name, value in os.environ.items() if not name.startswith(_STARTERS)}
    common.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // job.local_size)))
    shared = _variables(options, job, 0, restarts)
    command = [sys.executable, "-m", "retrograd.distributed._worker", *(["-m"] if options.module else [])]
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="retrograd-run-") as folder, ExitStack() as files:
        common["RETROGRAD_ERROR_FILE"] = os.path.join(folder, "error")
        try:
            for local_rank in range(job.local_size):
                own = _variables(options, job, local_rank, restarts) | {"MASTER_PORT": shared["MASTER_PORT"]}
                started.append(
                    subprocess.Popen(
                        [*command, options.training_script, *options.training_script_args],
                        env=common | own,
                        **_outputs(options, local_rank, own["RANK"], files),
                    )
                )
            return _watch(started, job, common["RETROGRAD_ERROR_FILE"])
        finally:
            _end(started)


def _outputs(options: argparse.Namespace, local_rank: int, rank: str, files: ExitStack) -> dict[str, Any]:
    given = dict(part.split(":") for part in options.redirects.split(",")) if ":" in options.redirects else None
    bits = int(options.redirects) if given is None else int(given.get(str(local_rank), "0"))
    chosen = [name for bit, name in ((1, "stdout"), (2, "stderr")) if bits & bit]
    if chosen:
        folder = os.path.join(options.log_dir or tempfile.mkdtemp(prefix="retrograd-run-"), rank)
        os.makedirs(folder, exist_ok=True)
        return {name: files.enter_context(open(os.path.join(folder, f"{name}.log"), "ab")) for name in chosen}
    return {}


def _watch(started: list[subprocess.Popen[bytes]], job: Job, error_file: str) -> Failure | None:
    """Wait until all have ended well, or one has not: then return which, and that is the one whose traceback was shown.

    Processes that another's death has stopped leave a note. They are not the cause, unless it is on another machine.
    """
    while True:
        statuses = [process.poll() for process in started]
        if any(statuses):
            break
        if None not in statuses:
            return None
        time.sleep(POLL_SECONDS)
    statuses = [process.poll() for process in started]  # again: the cause ended before those that it has stopped
    failed = [local_rank for local_rank, status in enumerate(statuses) if status]
    notes = {one: _content(f"{error_file}.{one}.stopped") for one in failed}
    causes = [one for one in failed if not notes[one]]
    shown = _content(error_file)
    first = int(shown) if shown else (causes or failed)[0]
    status = started[first].wait()
    stopped_by = notes.get(first, "")
    below_python = status == MPI_ABORTS and not stopped_by and not _content(f"{error_file}.{first}.exit")
    return Failure(job.machine * job.local_size + first, started[first].pid, status, stopped_by, below_python)


def _content(file: str) -> str:
    if not os.path.exists(file):
        return ""
    with open(file, encoding="utf-8") as opened:
        return opened.read()


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for order in (signal.SIGTERM, signal.SIGKILL):
        alive = [process for process in started if process.poll() is None]
        for process in alive:
            process.send_signal(order)
        until = time.monotonic() + PATIENCE
        for process in alive:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue


if __name__ == "__main__":
    main()
