"""The `retrograd` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

STARTERS = {
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
}  # variables of processes that mpiexec or srun has started

LAUNCHER_OPTIONS = (
    "--nproc",
    "--nnodes",
    "--node",
    "--standalone",
    "--master",
    "--max",
    "--rdzv",
    "--redirects",
    "--log",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the `retrograd` command with `argv`, by default the process's own arguments."""
    given = sys.argv[1:] if argv is None else list(argv)
    if _wants_processes(given):
        from retrograd.distributed.run import main as start_processes

        return start_processes(given[1:])
    own, program_arguments = _split_at_program(given)
    options = _parser().parse_args(own)
    if options.command == "coverage":
        from retrograd.cli import _coverage

        return _coverage.report(which=options.which, every=options.all)

    from retrograd.cli import _run  # after parsing: help and usage errors need none of it

    if not STARTERS.isdisjoint(os.environ):
        from retrograd.distributed._rendezvous import adopt_environment

        adopt_environment()
    if options.module is not None:
        _run.run_module(options.module, program_arguments)
    elif options.code is not None:
        _run.run_code(options.code, program_arguments)
    elif options.script == "-":
        _run.run_stdin(program_arguments)
    else:
        _run.run_script(options.script, program_arguments)


def _wants_processes(argv: list[str]) -> bool:
    """Tell whether options of torch.distributed.run stand before the program."""
    return argv[:1] == ["run"] and len(argv) > 1 and argv[1].startswith(LAUNCHER_OPTIONS)


def _split_at_program(argv: list[str]) -> tuple[list[str], list[str]]:
    """Cut after the program's name: what follows is the program's, even if it looks like our option."""
    if argv[:1] != ["run"]:
        return argv, []
    length = 3 if argv[:2] in (["run", "-m"], ["run", "-c"]) else 2
    return argv[:length], argv[length:]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="retrograd", description="Automatic differentiation with torch's API.")
    parser.add_argument("--version", action="version", version=f"retrograd {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="command", dest="command", required=True)
    coverage = commands.add_parser(
        "coverage",
        help="say which of torch's names retrograd has",
        description="Count torch's names that retrograd has, and list those that are missing.",
    )
    coverage.add_argument(
        "which",
        nargs="?",
        choices=["public", "used"],
        default="used",
        help="torch's public names, or the names that widely used libraries need (the default)",
    )
    coverage.add_argument("--all", action="store_true", help="list the missing names one by one")
    run = commands.add_parser(
        "run",
        help="run a program written for torch on retrograd",
        usage="retrograd run [-h] [--nproc-per-node N ...] (script.py | -m module | -c code | -) [argument ...]",
        description="Run a program as python would, with `import torch` giving retrograd.",
        epilog="All arguments after the script or module are the program's. Options of torchrun, such as --nproc-per-node 4, start "
        "it in several processes: see docs/distributed.md.",
    )
    program = run.add_mutually_exclusive_group(required=True)
    program.add_argument("-m", dest="module", metavar="module", help="run a module by its name")
    program.add_argument("-c", dest="code", metavar="code", help="run a program given as a string")
    program.add_argument(
        "script",
        nargs="?",
        metavar="script.py",
        help="a file, or a folder with __main__.py; - reads the program from stdin",
    )
    return parser


def _version() -> str:
    import retrograd

    return str(retrograd.__version__)
