"""torch.distributed.run: start a program as torchrun does, for one process: this one.

    retrograd run -m torch.distributed.run --nproc-per-node 1 script.py [argument ...]

The options are torchrun's. Those about how processes find each other and are watched have nothing to do.
"""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence

from ..cuda import device_count
from ._groups import SEVERAL

_TAKEN = """rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method event-log-handler log-dir
local-ranks-filter duplicate-stdout-filters duplicate-stderr-filters node-rank local-addr logs-specs numa-binding
signals-to-handle shutdown-timeout""".split()  # noqa: SIM905 - names read better as text
_FLAGS = ("standalone", "run-path", "no-python", "virtual-local-rank")


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of torchrun's options, each of which may be written with either kind of dash."""
    parser = argparse.ArgumentParser(
        prog="torch.distributed.run", description="Start a program as torchrun does, once."
    )

    def option(name: str, **how: object) -> None:
        spellings = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*spellings, **how)  # type: ignore[arg-type]

    option("nnodes", default="1:1", help="number of machines: 1")
    option("nproc-per-node", default="1", help="number of processes: 1, or auto, cpu, gpu where that makes one")
    option("master-addr", default=None, help="what the program finds in MASTER_ADDR")
    option("master-port", default=None, help="what the program finds in MASTER_PORT")
    option("role", default="default", help="what the program finds in ROLE_NAME")
    for name in _TAKEN:
        option(name, help=argparse.SUPPRESS)
    for name in _FLAGS:
        option(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-m", "--module", action="store_true", help="run a module by its name")
    parser.add_argument("-r", "--redirects", help=argparse.SUPPRESS)
    parser.add_argument("-t", "--tee", help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="the program, followed by its arguments")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def main(args: Sequence[str] | None = None) -> None:
    """Read the command line, and run the program."""
    run(get_args_parser().parse_args(args))


def run(options: argparse.Namespace) -> None:
    """Set what torchrun sets in the environment, and run the program."""
    from ..cli import _run  # above this package

    _need_one(options.nnodes, options.nproc_per_node)
    if options.no_python:
        raise NotImplementedError(
            "torch.distributed.run --no-python: retrograd runs programs that are written in Python"
        )
    os.environ.update(_variables(options))
    start = _run.run_module if options.module else _run.run_script
    start(options.training_script, options.training_script_args)


def _need_one(nodes: str, processes: str) -> None:
    counts = {"auto": device_count() or os.cpu_count(), "cpu": os.cpu_count(), "gpu": device_count()}
    try:
        size = int(nodes.rpartition(":")[2]) * int(counts.get(processes) or processes)
    except ValueError:
        if processes == "gpu":
            raise ValueError("Cuda is not available.") from None
        raise ValueError(f"Unsupported nproc_per_node value: {processes}") from None
    if size != 1:
        raise NotImplementedError(SEVERAL.format(size=size))


def _variables(options: argparse.Namespace) -> dict[str, str]:
    zeros = dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "TORCHELASTIC_RESTART_COUNT"), "0")
    ones = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"), "1")
    return {
        **zeros,
        **ones,
        "ROLE_NAME": options.role,
        "MASTER_ADDR": options.master_addr or "localhost",
        "MASTER_PORT": options.master_port or str(_free_port()),
        "TORCHELASTIC_RUN_ID": options.rdzv_id or "none",
        "TORCHELASTIC_MAX_RESTARTS": options.max_restarts or "0",
    }


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    main()
