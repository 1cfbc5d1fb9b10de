"""One of the processes that `torch.distributed.run` starts: it runs the program, and says once what went wrong.

python -m retrograd.distributed._worker [-m] program [argument ...]
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from typing import Any

from . import _mpi
from ._farewell import is_joined, is_stopped
from ._rendezvous import left_note
from .run import run_program


def main() -> None:
    """Run the program."""
    _end_with_parent()
    sys.excepthook = _show_once
    by_name = sys.argv[1] == "-m"
    program, *arguments = sys.argv[2:] if by_name else sys.argv[1:]
    try:
        run_program(program, arguments, by_name)
    except SystemExit as end:
        if end.code not in (None, 0):
            _mpi.note_failure()
            _leave_note("exit")  # so that the launcher can tell it from an end below Python
        else:
            _note_end()
        raise
    _note_end()


def _note_end() -> None:
    """Tell processes that still wait for this one in `init_process_group` that it has ended."""
    if not is_joined():
        with open(left_note(os.environ["RANK"]), "w", encoding="ascii"):
            pass


def _show_once(kind: Any, error: Any, trace: Any) -> None:
    """Print a traceback, with the number of the process, unless another one has printed one: all may fail of the same.

    A process that another's death has stopped leaves a note instead: `torch.distributed.run` names the one that died.
    """
    if is_stopped():
        _leave_note("stopped", str(error).partition("\n")[0])
        return
    _leave_note("exit")
    with contextlib.suppress(FileExistsError, KeyError):
        with open(os.environ["RETROGRAD_ERROR_FILE"], "x", encoding="ascii") as file:
            file.write(os.environ["LOCAL_RANK"])
        text = "".join(traceback.format_exception(kind, error, trace))
        prefix = f"[rank{os.environ['RANK']}]: "
        sys.stderr.write("".join(f"{prefix}{line}\n" for line in text.splitlines()))
        sys.stderr.flush()


def _leave_note(kind: str, text: str = "noted") -> None:
    """Tell the launcher how this process ends."""
    with contextlib.suppress(KeyError):
        name = f"{os.environ['RETROGRAD_ERROR_FILE']}.{os.environ['LOCAL_RANK']}.{kind}"
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)


def _end_with_parent() -> None:
    """Let Linux end this process when the one that started it dies, however that dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    main()
