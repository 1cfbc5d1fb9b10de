"""Functions and classes as text, with what their names mean: a scripted program runs where its files are not.

A record is `("name", module, name)` for what every installation has, `("module", name)`, `("value", object)`, or `("source", number)`:
a place in a table of texts, each with the records of the names that it uses.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import pickle
import symtable
import sys
import textwrap
from importlib import import_module
from types import FunctionType, MethodType, ModuleType
from typing import Any

from .._generated import compiled

Record = tuple[Any, ...]
FUTURE_ANNOTATIONS = 0x1000000  # inspect has no name for CO_FUTURE_ANNOTATIONS
_numbers = itertools.count()
PACKAGE = __package__.partition(".")[0]


class Texts:
    """The table that a file gets."""

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}

    def record(self, obj: Any) -> Record:
        """Return how a function, a class or another value comes back."""
        from ._script import ScriptFunction

        if isinstance(obj, ScriptFunction) and obj._graph is None:
            obj = obj._function
        if isinstance(obj, ModuleType):
            return ("module", _torchs(obj.__name__))
        if isinstance(obj, (type, FunctionType)) and not _is_written_here(obj):
            named = ("name", _torchs(obj.__module__), obj.__qualname__)
            if not _is_found(named):
                raise RuntimeError(
                    f"a program uses '{obj.__qualname__}', which was made while it ran: no file can say where it is found\n"
                    "Hint: trace the program, and save the trace."
                )
            return named
        if isinstance(obj, (type, FunctionType)):
            return ("source", self._number(obj))
        if isinstance(obj, MethodType) and isinstance(obj.__self__, type):
            return ("attribute", self.record(obj.__self__), obj.__name__)
        if callable(obj) and getattr(obj, "__module__", None) and hasattr(obj, "__name__"):
            return ("name", _torchs(obj.__module__), getattr(obj, "__qualname__", obj.__name__))
        try:
            pickle.dumps(obj)
        except Exception as error:
            raise RuntimeError(f"a scripted program uses a value of {type(obj)} that no file can hold") from error
        return ("value", obj)

    def records(self, values: dict[str, Any]) -> dict[str, Record]:
        """Return how constants of a graph come back: functions as such, all else as it is."""
        return {name: self.record(one) if callable(one) else ("value", one) for name, one in values.items()}

    def _number(self, obj: Any) -> int:
        if id(obj) in self._numbers:
            return self._numbers[id(obj)]
        number = self._numbers[id(obj)] = len(self.table)
        text = _text(obj)
        functions = (
            [obj] if isinstance(obj, FunctionType) else [f for f in vars(obj).values() if isinstance(f, FunctionType)]
        )
        entry = {
            "text": text,
            "name": obj.__name__,
            "future": any(f.__code__.co_flags & FUTURE_ANNOTATIONS for f in functions),
        }
        self.table.append(entry)
        known = _known_names(obj, functions)
        used = _used_names(symtable.symtable(text, "<text>", "exec"))
        entry["names"] = {
            name: self.record(known[name]) for name in sorted(used & known.keys()) if known[name] is not obj
        }
        return number


def restored(record: Record, table: list[dict[str, Any]]) -> Any:
    """Return what a record stands for."""
    return _Restoring(table).value(record)


def _is_found(record: Record) -> bool:
    try:
        _Restoring([]).value(record)
    except (AttributeError, ImportError):
        return False
    return True


class _Restoring:
    def __init__(self, table: list[dict[str, Any]]) -> None:
        self.table = table
        self.made: dict[int, Any] = {}
        self.begun: set[int] = set()
        self.later: list[tuple[dict[str, Any], str, int]] = []

    def value(self, record: Record) -> Any:
        kind, *rest = record
        if kind == "module":
            return import_module(_ours(rest[0]))
        if kind == "name":
            found: Any = import_module(_ours(rest[0]))
            for part in rest[1].split("."):
                found = getattr(found, part)
            return found
        if kind == "attribute":
            return getattr(self.value(rest[0]), rest[1])
        if kind == "value":
            return rest[0]
        return self.source(rest[0])

    def source(self, number: int) -> Any:
        if number in self.made:
            return self.made[number]
        entry = self.table[number]
        self.begun.add(number)
        scope: dict[str, Any] = {"__name__": "__torch__"}
        for name, record in entry["names"].items():
            if record[0] == "source" and record[1] in self.begun and record[1] not in self.made:
                self.later.append((scope, name, record[1]))  # two that call each other
            else:
                scope[name] = self.value(record)
        flags = FUTURE_ANNOTATIONS if entry["future"] else 0
        text = entry["text"]
        file = f"<torch.jit.load: {entry['name']}, {next(_numbers)}>"
        exec(compiled(text, file, flags), scope)
        made = self.made[number] = scope[entry["name"]]
        function = getattr(made, "_function", made)
        function._source, function._source_names = text, scope
        for other, name, wanted in self.later:
            if wanted == number:
                other[name] = made
        return made


def _is_written_here(obj: Any) -> bool:
    """Whether something is of a program, and not of this package or of Python."""
    first = (obj.__module__ or "").partition(".")[0]
    return first not in (PACKAGE, "torch", "numpy") and (first not in sys.stdlib_module_names or first == "__main__")


def _text(obj: Any) -> str:
    written = vars(obj).get("_source")
    if written is not None:
        return str(written)
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(obj)))
        ast.parse(text)
    except (OSError, TypeError, SyntaxError) as error:
        raise RuntimeError(
            f"the source of '{obj.__qualname__}' is not available, and the file of a scripted program must contain it\n"
            "Hint: define it in a file, not at the prompt; or trace the program, and save the trace."
        ) from error
    return text


def _used_names(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a text has from elsewhere."""
    own = {
        one.get_name()
        for one in table.get_symbols()
        if one.is_referenced() and (one.is_global() or not one.is_assigned())
    }
    own -= {one.get_name() for one in table.get_symbols() if one.is_parameter() or one.is_free()}
    return own.union(*map(_used_names, table.get_children()))


def _known_names(obj: Any, functions: list[FunctionType]) -> dict[str, Any]:
    """Return what the names mean that a text may use."""
    known: dict[str, Any] = {}
    for function in map(inspect.unwrap, functions):
        known.update(function.__globals__)
        known.update(inspect.getclosurevars(function).nonlocals if function.__closure__ else {})
    known.update(vars(obj).get("_source_names") or {})
    if isinstance(obj, type):
        home = vars(sys.modules[obj.__module__]) if obj.__module__ in sys.modules else {}
        known = {**home, **{base.__name__: base for base in obj.__bases__}, **known}
    known.setdefault("torch", import_module(PACKAGE))
    return {name: value for name, value in known.items() if not hasattr(builtins, name) and not name.startswith("__")}


def _torchs(module: str) -> str:
    return "torch" + module.removeprefix(PACKAGE) if module.partition(".")[0] == PACKAGE else module


def _ours(module: str) -> str:
    return PACKAGE + module.removeprefix("torch") if module.partition(".")[0] == "torch" else module
