"""`retrograd run`: run a program as the interpreter itself would, with retrograd under the name torch.

What the program can see of its surroundings (argv, path, `__main__`, exit status, traceback) is what `python`
would have given it. See https://docs.python.org/3/using/cmdline.html#interface-options.
"""

from __future__ import annotations

import builtins
import codecs
import importlib.util
import linecache
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from retrograd._as_torch import as_torch

command = "run"  # which was called: the name in messages

# What to execute, and the names that `__main__` has before its first line.
Program = tuple[CodeType, dict[str, Any]]

_DECLARATION = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")  # of an encoding, as PEP 263 has it


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run a file as `python path arguments...` would."""
    sys.argv = [path, *arguments]
    full_path = os.path.abspath(path)
    if pkgutil.get_importer(full_path) is not None:  # a folder or a zip file
        _set_first_path(full_path)
        _run_as_main(lambda: _load_main_of_folder(full_path))
    else:
        _set_first_path(os.path.dirname(os.path.realpath(path)))
        _run_as_main(lambda: _load_script(full_path))


def run_module(name: str, arguments: Sequence[str]) -> None:
    """Run a module as `python -m name arguments...` would."""
    sys.argv = ["-m", *arguments]  # until the module is found
    _set_first_path(os.getcwd())
    _run_as_main(lambda: _load_module(name))


def run_code(code: str, arguments: Sequence[str]) -> None:
    """Run code as `python -c code arguments...` would."""
    sys.argv = ["-c", *arguments]
    _set_first_path("")
    if sys.version_info >= (3, 13):  # whose tracebacks show the lines of such code
        linecache.cache["<string>"] = (len(code), None, code.splitlines(keepends=True), "<string>")
    _run_as_main(lambda: _load_text(code, "<string>"))


def run_stdin(arguments: Sequence[str]) -> None:
    """Run standard input as `python - arguments...` would."""
    sys.argv = ["-", *arguments]
    _set_first_path("")
    _run_as_main(lambda: _load_text(sys.stdin.read(), "<stdin>"))


def _set_first_path(entry: str) -> None:
    if not sys.flags.safe_path:  # with python -P there is no such entry to replace
        sys.path[0] = entry


def _run_as_main(load: Callable[[], Program]) -> None:
    as_torch()
    try:
        code, names = load()
        main = ModuleType("__main__")
        main.__dict__.update(names, __builtins__=builtins)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        _hide_runner_frames(error)
        raise  # to the interpreter: it knows best how to end, e.g. by SIGINT after a KeyboardInterrupt


def _hide_runner_frames(error: BaseException) -> None:
    """Let the traceback of `error` begin in the program, whichever excepthook comes to print it."""
    shown = error.__traceback__
    while shown is not None and _is_runner_frame(shown):
        shown = shown.tb_next
    program_excepthook = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        if value is error:
            value, traceback = error.with_traceback(shown), shown
        program_excepthook(kind, value, traceback)

    sys.excepthook = excepthook


def _is_runner_frame(traceback: TracebackType) -> bool:
    file = traceback.tb_frame.f_code.co_filename
    return file == __file__ or file.startswith("<frozen importlib")


def _load_text(source: str, name: str) -> Program:
    names = {"__loader__": BuiltinImporter, "__spec__": None, "__package__": None}
    return compile(source, name, "exec"), names


def _load_script(path: str) -> Program:
    loader = SourceFileLoader("__main__", path)
    try:
        source = loader.get_data(path)
    except OSError as error:
        _fail(f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}", status=2)
    names = {
        "__file__": path,
        "__loader__": loader,
        "__spec__": None,
        "__package__": None,
        "__cached__": None,
    }
    try:
        return loader.source_to_code(source, path), names
    except SyntaxError:
        if (problem := _encoding_problem(source, path)) is not None:
            raise SyntaxError(problem) from None
        raise


def _encoding_problem(source: bytes, path: str) -> str | None:
    """Say what the interpreter says of a file that is not in its encoding; `compile` has other words for bytes."""
    declared = [found[1].decode() for line in source.split(b"\n", 2)[:2] if (found := _DECLARATION.match(line))][:1]
    if source.startswith(codecs.BOM_UTF8):
        return None
    try:
        source.decode(*declared)
    except UnicodeDecodeError as error:
        if not declared:
            line = source.count(b"\n", 0, error.start) + 1
            return (
                f"Non-UTF-8 code starting with '\\x{source[error.start]:02x}' in file {path} on line {line}, but no "
                "encoding declared; see https://peps.python.org/pep-0263/ for details"
            )
    except LookupError:
        pass
    else:
        return None
    return f"encoding problem: {declared[0]}"


def _load_main_of_folder(path: str) -> Program:
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None:
        _fail(f"can't find '__main__' module in {path!r}", status=1)
    return _load_spec(spec)


def _load_module(name: str) -> Program:
    spec = _find_module(name)
    if spec is None:
        _fail(f"No module named {name}", status=1)
    if spec.submodule_search_locations is not None:
        spec = _find_module(f"{name}.__main__")
        if spec is None:
            _fail(
                f"No module named {name}.__main__; {name!r} is a package and cannot be directly executed",
                status=1,
            )
    program = _load_spec(spec)
    sys.argv[0] = spec.origin or "-m"
    return program


def _find_module(name: str) -> ModuleSpec | None:
    """Find a module after importing its parents; None if it, or a parent, does not exist."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise  # a parent exists, but what it imports does not


def _load_spec(spec: ModuleSpec) -> Program:
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if code is None:
        _fail(f"No code object available for {spec.name}", status=1)
    names = {
        "__file__": spec.origin,
        "__loader__": spec.loader,
        "__spec__": spec,
        "__package__": spec.parent,
        "__cached__": spec.cached,
    }
    return code, names


def _fail(message: str, *, status: int) -> NoReturn:
    print(f"retrograd {command}: {message}", file=sys.stderr)
    raise SystemExit(status)
