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
    "--role",
    "--tee",
    "--no-python",
    "-r",
    "-t",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the `retrograd` command with `argv`, by default the process's own arguments."""
    given = sys.argv[1:] if argv is None else list(argv)
    if _wants_processes(given):
        from retrograd.distributed.run import main as start_processes

        return start_processes(given[1:])
    own, program_arguments = _split_at_program(given)
    parser = _parser()
    if given[:1] == ["view"] and any(one.startswith(LAUNCHER_OPTIONS) for one in own):
        parser.error(
            f"view records one process, and knows no {own[-1]}: start several with `retrograd run`, and record in one with debug.record()"
        )
    options = parser.parse_args(own)
    if options.command == "coverage":
        from retrograd.cli import _coverage

        return _coverage.report(which=options.which, every=options.all)

    if options.command == "view":
        from retrograd.cli import _view

        return _view.run_recorded(lambda: _run_program(options, program_arguments), options)
    _run_program(options, program_arguments)


def _run_program(options: argparse.Namespace, arguments: list[str]) -> None:
    from retrograd.cli import _run  # after parsing: help and usage errors need none of it

    _run.command = options.command
    if not STARTERS.isdisjoint(os.environ):
        from retrograd.distributed._rendezvous import adopt_environment

        adopt_environment()
    if options.module is not None:
        _run.run_module(options.module, arguments)
    elif options.code is not None:
        _run.run_code(options.code, arguments)
    elif options.script == "-":
        _run.run_stdin(arguments)
    else:
        _run.run_script(options.script, arguments)


def _wants_processes(argv: list[str]) -> bool:
    """Tell whether options of torch.distributed.run stand before the program."""
    return argv[:1] == ["run"] and len(argv) > 1 and argv[1].startswith(LAUNCHER_OPTIONS)


def _split_at_program(argv: list[str]) -> tuple[list[str], list[str]]:
    """Cut after the program's name: what follows is the program's, even if it looks like our option."""
    if argv[:1] not in (["run"], ["view"]):
        return argv, []
    at = 1
    while argv[0] == "view" and at < len(argv) and argv[at] in _VIEW_OPTIONS:
        at += _VIEW_OPTIONS[argv[at]]
    length = at + (2 if argv[at : at + 1] in (["-m"], ["-c"]) else 1)
    return argv[:length], argv[length:]


_VIEW_OPTIONS = {"-o": 2, "--output": 2, "--steps": 2, "--all": 1, "--open": 1}  # each with the words it takes


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
    _add_program(run)
    view = commands.add_parser(
        "view",
        help="run a program and write a page that shows what it computes",
        usage="retrograd view [-h] [-o file.html] [--steps N | --all] [--open] (script.py | -m module | -c code | -) [argument ...]",
        description="Run a program as `retrograd run` does, record it up to its first optimizer step, and write one HTML file with its "
        "graph, memory and gradients. The program goes on after that.",
        epilog="All arguments after the script or module are the program's.",
    )
    view.add_argument(
        "-o",
        "--output",
        type=_in_a_folder,
        metavar="file.html",
        default="retrograd-view.html",
        help="default: %(default)s",
    )
    extent = view.add_mutually_exclusive_group()
    extent.add_argument("--steps", type=_positive, metavar="N", default=1, help="record N optimizer steps (default: 1)")
    extent.add_argument("--all", dest="steps", action="store_const", const=None, help="record the whole program")
    view.add_argument("--open", action="store_true", help="open the file in the browser")
    _add_program(view)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, but got {text!r}")
    return int(text)


def _in_a_folder(path: str) -> str:
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder!r}")
    return path


def _add_program(command: argparse.ArgumentParser) -> None:
    program = command.add_mutually_exclusive_group(required=True)
    program.add_argument("-m", dest="module", metavar="module", help="run a module by its name")
    program.add_argument("-c", dest="code", metavar="code", help="run a program given as a string")
    program.add_argument(
        "script",
        nargs="?",
        metavar="script.py",
        help="a file, or a folder with __main__.py; - reads the program from stdin",
    )


def _version() -> str:
    import retrograd

    return str(retrograd.__version__)
