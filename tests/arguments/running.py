"""Running bad calls in both libraries, each function in a process of its own: some crash torch, and some would never end."""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import signal
import traceback
import warnings
from typing import Any, NamedTuple

from retrograd._places import is_own
from retrograd._tracebacks import is_internal
from tests.arguments.calls import calls, scope

LIMIT_S = 30  # far more than any call takes, on a busy machine too
MEMORY = 12 << 30


class Answer(NamedTuple):
    """What a call answers: the class of its error and the words, "" if there is none; whether it comes from inside.

    `frames`: how many lines of the traceback are retrograd's.
    """

    error: str
    words: str
    internal: bool = False
    frames: int = 0


class Slow(BaseException):
    """Raised in a call that takes too long."""


def _stop(*_: Any) -> None:
    raise Slow


def answer(library: Any, program: str) -> Answer:
    """Run a program in a library."""
    names = scope(library)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(program, names)
    except Slow:
        return Answer("hang", "", True)
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        internal = library.__name__ == "retrograd" and is_internal(error)
        frames = sum(is_own(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__))
        return Answer(type(error).__name__, str(error).split("\nHint")[0], internal, frames)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Answer("", "")


def run(
    libraries: dict[str, Any], written: str, key: str, count: int, seed: int = 0
) -> list[tuple[str, dict[str, Answer]]]:
    """Return the answers of each library to the bad calls of a function; a call that ends the process has "crash"."""
    programs = calls(written, key, count, seed)
    found: list[tuple[str, dict[str, Answer]]] = [(program, {}) for program in programs]
    for name, library in libraries.items():
        done = 0
        while done < len(programs):
            for program, said in zip(programs[done:], _in_a_child(library, programs[done:]), strict=False):
                found[done][1][name] = said
                assert program == found[done][0]
                done += 1
            if done < len(programs):
                found[done][1][name] = Answer("crash", "", True)
                done += 1
    return found


def _in_a_child(library: Any, programs: list[str]) -> list[Answer]:
    """Return the answers to as many programs as a child process survives."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            if library.__name__ == "torch":
                library.set_num_threads(1)  # its threads are not in a child, which would wait for them
                os.environ["TORCH_DISABLE_ADDR2LINE"] = "1"  # nor are the processes that name lines of its errors
            with os.fdopen(writer, "wb") as pipe:
                for program in programs:
                    faulthandler.dump_traceback_later(LIMIT_S + 5, exit=True)  # ends compiled code, too
                    pickle.dump(answer(library, program), pipe)
                    pipe.flush()
        finally:
            os._exit(0)
    os.close(writer)
    found = []
    with os.fdopen(reader, "rb") as pipe:
        try:
            while True:
                found.append(pickle.load(pipe))
        except (EOFError, pickle.UnpicklingError):
            pass
    os.waitpid(child, 0)
    return found
