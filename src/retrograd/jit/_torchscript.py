"""Files that torch.jit.save has written: the code in them is a subset of Python, which runs on our operations.

A file has classes and functions as text (`code/`), their constants, and the objects with their tensors. The text calls operations of
aten as `torch.name`, those of the interpreter as `ops.prim.name`, and other code of the file as `__torch__.path.name`.
"""

from __future__ import annotations

import pickle
import re
from typing import Any, Final, NamedTuple, Optional, Union

from .. import nn
from .._generated import compiled
from ..tensor._files.archives import ArchiveReader
from ..tensor._files.loading import _trusting_class, read_pickle
from ._script import RecursiveScriptModule
from ._sources import FUTURE_ANNOTATIONS
from ._torchscript_operations import Interpreter, Operations

# Names with two underscores before them would be private to the class in which Python reads them.
PRIVATE = re.compile(r"\.(___torch_mangle_\d+|__range_length|__derive_index)\b")
HOME = "__torchscript__"  # the module of what the text defines


def program_of(archive: ArchiveReader, restore: Any) -> Any:
    """Return the module of an archive."""
    return _File(archive, restore).program()


class _File:
    def __init__(self, archive: ArchiveReader, restore: Any) -> None:
        self.archive, self.restore = archive, restore
        self.namespaces: dict[str, dict[str, Any]] = {}
        constants = read_pickle(archive, "constants", self._unpickler, restore)
        self.names = {
            "torch": Operations(),
            "ops": Interpreter(),
            "__torch__": _Package(self, "__torch__"),
            "CONSTANTS": _Constants(constants),
            "Module": nn.Module,
            "NamedTuple": NamedTuple,
            "annotate": lambda kind, value: value,
            "unchecked_cast": lambda kind, value: value,
            "uninitialized": lambda kind: None,
            "inf": float("inf"),
            "nan": float("nan"),
            "NoneType": type(None),
            "number": float,
            "Device": str,
            "Any": Any,
            "Dict": dict,
            "Final": Final,
            "List": list,
            "Optional": Optional,
            "Tensor": Any,
            "Tuple": tuple,
            "Union": Union,
        }

    def _unpickler(self, file: Any) -> Any:
        made = _unpickler_class()(file)
        made.program = self
        return made

    def namespace(self, path: str) -> dict[str, Any]:
        """Return what the text at a path defines."""
        if path not in self.namespaces:
            entry = f"code/{path.replace('.', '/')}.py"
            scope = self.namespaces[path] = {**self.names, "__name__": HOME}
            if self.archive.has(entry):
                text = PRIVATE.sub(r".private_\1", self.archive.read(entry).decode())
                exec(compiled(text, f"<TorchScript: {path}>", FUTURE_ANNOTATIONS), scope)
        return self.namespaces[path]

    def defines(self, path: str, name: str) -> bool:
        """Tell whether the text at a path defines a name."""
        return name in self.namespace(path) and name not in self.names

    def program(self) -> Any:
        found = read_pickle(self.archive, "data", self._unpickler, self.restore)
        return _Building().value(found)


class _Package:
    """A path in the file, from which text reads what others define."""

    def __init__(self, file: _File, path: str) -> None:
        self._file, self._path = file, path

    def __getattr__(self, name: str) -> Any:
        name = name.removeprefix("private_")
        if self._file.defines(self._path, name):
            return self._file.namespace(self._path)[name]
        return _Package(self._file, f"{self._path}.{name}")


class _Constants:
    def __init__(self, values: Any) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return self._values[int(name.removeprefix("c"))]


# ---- objects ----
class _Object:
    """An object of a file before it is built: what it is of, and its attributes."""

    kind: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _unpickler_class() -> Any:
    class Unpickler(_trusting_class(pickle)):  # type: ignore[misc]
        program: _File

        def find_class(self, module: str, name: str) -> Any:
            if module == "__torch__" or module.startswith("__torch__."):
                return type(name, (_Object,), {"kind": self.program.namespace(module)[name]})
            if module == "torch.jit._pickle":
                return _restored
            return super().find_class(module, name)

    return Unpickler


def _restored(value: Any, *type_name: Any) -> Any:
    """Return a list or dictionary, of which the file says the type besides."""
    return value


class _Building:
    def __init__(self) -> None:
        self.made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return a value in which objects are built."""
        if isinstance(value, _Object):
            if id(value) not in self.made:
                self._build(value)
            return self.made[id(value)]
        if isinstance(value, tuple):
            return tuple(map(self.value, value))
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {key: self.value(each) for key, each in value.items()}
        return value

    def _build(self, record: _Object) -> None:
        kind = record.kind
        if not issubclass(kind, nn.Module):
            made = self.made[id(record)] = object.__new__(kind)
            if hasattr(kind, "__setstate__") and "__setstate__" in vars(kind):
                made.__setstate__(self.value(record.state))
            else:
                made.__dict__.update({name: self.value(each) for name, each in record.state.items()})
            return
        made = self.made[id(record)] = object.__new__(RecursiveScriptModule)
        nn.Module.__init__(made)
        made.__dict__.update(_python_class=kind, _graphs={}, _original_name=kind.__name__)
        state = record.state
        if not isinstance(state, dict):  # of the module's own `__getstate__`
            made._face().__setstate__(self.value(state))
            return
        for name, each in state.items():
            found = self.value(each)
            if name in getattr(kind, "__parameters__", ()):
                made._parameters[name] = found if found is None else nn.Parameter(found, found.requires_grad)
            elif name in getattr(kind, "__buffers__", ()):
                made._buffers[name] = found
            elif isinstance(found, nn.Module):
                made._modules[name] = found
            else:
                made.__dict__[name] = found
