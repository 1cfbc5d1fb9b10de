"""Write the `.pyi` files, so that editors complete and type checkers know torch's names.

python tools/make_stubs.py           write them
python tools/make_stubs.py --check   fail if they are out of date

The functions and the methods of Tensor come from the table of operations and torch's signatures (`stub_signatures.py`). The
class Tensor itself is `tensor/_tensor.py`, which type checkers read with the methods of `tensor/_methods.pyi` as a base: there is
one class, for programs and for this package. `src/torch-stubs` says that torch's modules are this package's.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import stub_signatures
from stub_package import HEADER, PACKAGE, TORCH, has_source, is_name, torch_package, used_names
from stub_signatures import Overload

import retrograd
from retrograd import _dtypes, _elsewhere, _settings, return_types
from retrograd.tensor._names import LATER, NOW, Names

SUBMODULES = ("linalg", "fft", "special", "signal.windows", "masked", "nn.functional")
STUBBED = ("", "return_types", *SUBMODULES)  # modules whose names this tool writes
PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_", "nn.functional": "nn.functional."}
IMPORTS = """
import builtins
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias, overload

from numpy import ndarray as _ndarray

from {dots}_device import device as _device, layout as _layout, memory_format as _memory_format
from {dots}_dtypes import dtype as _dtype
from {dots}_size import Size as _Size
from {dots}tensor._functions.generators import Generator as _Generator
from {dots}tensor._tensor import Tensor as Tensor
from {here} import return_types as _results

_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_DeviceLike: TypeAlias = _device | builtins.str | builtins.int

"""


def imports(dots: str) -> str:
    return IMPORTS.format(dots=dots, here=dots)


def function(name: str, value: Any, key: str, *, method: bool = False) -> str:
    """Write one function or method."""
    forms = stub_signatures.overloads(key, method=method)
    if forms is None:
        plain = stub_signatures.inspected(value, method=method)
        anything = Overload((*(["self"] if method else []), "*args: Any", "**kwargs: Any"), "Any")
        result = stub_signatures.returned(key, None)
        forms = [anything if plain is None else plain._replace(returned=result or plain.returned)]
    return stub_signatures.written(name, forms, value.__doc__, indent="    " if method else "")


PROPERTIES = {
    **dict.fromkeys(["T", "mT", "H", "mH", "real", "imag"], "Tensor"),
    "volatile": "builtins.bool",
    "name": "Any",
    "names": "Any",
}
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
COMPARED = "lt le gt ge eq ne"
WRITING = "add sub mul truediv floordiv mod pow and or xor lshift rshift"
OPERAND = "Tensor | _Number"
ITEMS = "Any"  # what indexes a tensor: numbers, slices, None, ..., tensors, sequences of them


def declared() -> set[str]:
    """Return the names that the class Tensor declares in its source."""
    tree = ast.parse((PACKAGE / "tensor" / "_tensor.py").read_text())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    for node in body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names


def methods() -> str:
    """Return the stub of the methods that the table gives Tensor."""
    lines = [HEADER, imports("..")]
    lines += ["from ._base import TensorBase\n\n", "class TensorMethods(TensorBase):\n"]
    done = declared()
    for name in sorted(n for n in dir(retrograd.Tensor) if not n.startswith("_") and n not in done):
        value = getattr(retrograd.Tensor, name)  # loads the family of a method
        if name in PROPERTIES:
            lines.append(f"    @property\n    def {name}(self) -> {PROPERTIES[name]}: ...\n")
        else:
            lines.append(function(name, value, f"Tensor.{name}", method=True))
    for name in OPERATORS.split():
        operand = "Tensor" if name == "matmul" else OPERAND
        lines.append(f"    def __{name}__(self, other: {operand}) -> Tensor: ...\n")
        lines.append(f"    def __r{name}__(self, other: {operand}) -> Tensor: ...\n")
    for name in WRITING.split():
        lines.append(f"    def __i{name}__(self, other: {OPERAND}) -> Self: ...\n")
    for name in COMPARED.split():
        given, note = ("Any", "  # type: ignore[override]") if name in ("eq", "ne") else (OPERAND, "")
        lines.append(f"    def __{name}__(self, other: {given}) -> Tensor: ...{note}\n")
    for name in ("neg", "pos", "abs", "invert"):
        lines.append(f"    def __{name}__(self) -> Tensor: ...\n")
    for name, kind in {"float": "float", "int": "int", "complex": "complex", "bool": "bool", "index": "int"}.items():
        lines.append(f"    def __{name}__(self) -> builtins.{kind}: ...\n")
    lines.append(f"    def __getitem__(self, index: {ITEMS}) -> Tensor: ...\n")
    lines.append(f"    def __setitem__(self, index: {ITEMS}, value: Tensor | _Number) -> None: ...\n")
    lines.append("    def __dlpack__(self, **options: Any) -> Any: ...\n")
    lines.append("    def __dlpack_device__(self) -> builtins.tuple[Any, builtins.int]: ...\n")
    lines.append("    def __hash__(self) -> builtins.int: ...\n")
    return "".join(lines)


def results() -> str:
    """Return the stub of the named results."""
    lines = [HEADER, "\nfrom collections.abc import Sequence\nfrom typing import Any, Self\n\n"]
    lines.append("from .tensor._object.return_types import NamedResult\nfrom .tensor._tensor import Tensor\n")
    for name, fields in return_types._FIELDS.items():
        count = len(fields.split())
        lines.append(f"\nclass {name}(tuple[{', '.join(['Tensor'] * count)}]):\n")
        lines.append("    def __new__(cls, sequence: Sequence[Tensor], fields: dict[str, Any] = ...) -> Self: ...\n")
        lines += [f"    @property\n    def {field}(self) -> Tensor: ...\n" for field in fields.split()]
    return "".join(lines).replace("from .tensor._object.return_types import NamedResult\n", "")


@cache
def owners() -> dict[str, str]:
    """Return the module of the package in which the table of names says that a function is written."""
    found = {}
    for module, names in (*NOW.items(), *LATER.items()):
        home = f".{module}" if module.startswith("nn.") else f".tensor.{module}"
        found.update(dict.fromkeys(public(names, "both", "functions"), home))
    return found


def public(names: Names, *kinds: str) -> list[str]:
    return [name for kind in kinds for name in getattr(names, kind).split()]


def classes(home: str) -> set[str]:
    """Return the classes that a file of the package declares."""
    path = PACKAGE.joinpath(*home.strip(".").split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return set(re.findall(r"^class (\w+)", source.read_text(), re.MULTILINE))


def package() -> str:
    """Return the stub of the package."""
    source = (PACKAGE / "__init__.py").read_text()
    reexported = re.findall(r"^from \.[\w.]+ import (?:\([^)]*\)|[^\n]*)", source, re.MULTILINE)
    kept = [text for text in reexported if ".tensor import" not in text]
    lines = [HEADER, imports("."), "from .tensor._tensor import Parameter as Parameter\n"]
    lines += [f"{_reexported(text)}\n" for text in kept]
    places = sorted(
        (name, home.partition(".")[2], other) for name, (home, other) in _elsewhere.table()["torch"].items()
    )
    found = [(name, home) for name, home, other in places if name == other and name[0] != "_" and has_source(home)]
    lines += [f"from .{home} import {name} as {name}\n" for name, home in sorted([("as_torch", "_as_torch"), *found])]
    lines.append(f"from . import {', '.join(f'{m} as {m}' for m in _present_submodules())}\n\n")
    lines.append("__version__: builtins.str\nnewaxis: None\n")
    lines += [f"{name}: builtins.float\n" for name in ("pi", "e", "inf", "nan")]
    lines += [f"{each.name}: _dtype\n" for each in (*_dtypes.IN_MEMORY, *_dtypes.NAMES_ONLY)]
    lines += [f"{name}: _dtype\n" for name in _dtypes.ALIASES]
    for name, home in owners().items():
        if not hasattr(retrograd, name):
            continue
        value = getattr(retrograd, name)
        if isinstance(value, type) and name in classes(home):
            lines.append(f"from {home} import {name} as {name}\n")
        elif isinstance(value, type):  # made in a loop
            lines.append(f"{name}: {'builtins.type[Tensor]' if name.endswith('Tensor') else 'Any'}\n")
        elif callable(value):
            lines.append(function(name, value, name))
        else:
            lines.append(f"{name}: {'Generator' if type(value) is retrograd.Generator else 'Any'}\n")
    in_place = sorted(name for names in (NOW | LATER).values() for name in names.writing.split())
    lines += [function(name, getattr(retrograd, name), name) for name in (*_settings.PUBLIC, *in_place)]
    known = set(re.findall(r"\w+", "".join(lines)))
    for name in sorted(used_names("") - known):  # which stand in other modules, and are found when asked for
        if not name.startswith("_") and is_name(retrograd, "", name):
            lines.append(function(name, getattr(retrograd, name), name))
    return "".join(lines)


def _reexported(text: str) -> str:
    names = re.sub(r"[()\n]", " ", text.split(" import ")[1]).replace(",", " ").split()
    return text.split(" import ")[0] + " import " + ", ".join(f"{n} as {n}" for n in names)


def _present_submodules() -> list[str]:
    return sorted(
        path.name if path.is_dir() else path.stem
        for path in PACKAGE.iterdir()
        if not path.name.startswith("_") and path.suffix in ("", ".py") and path.stem not in ("tensor", "py")
    )


def submodule(name: str) -> str:
    """Return the stub of a submodule of functions."""
    module = importlib.import_module(f"retrograd.{name}")
    package = hasattr(module, "__path__")
    lines = [HEADER, imports("." * (name.count(".") + 1 + package))]
    names = {name for name in {*dir(module), *used_names(name)} if not name.startswith("_") and hasattr(module, name)}
    for each in sorted(names - {"annotations", "Any", "finder"}):
        value = getattr(module, each)
        if isinstance(value, type) and issubclass(value, Exception):
            lines.append(f"class {each}(RuntimeError): ...\n")
        elif callable(value):
            key = PREFIXES.get(name, f"{name}.") + each
            known = stub_signatures.torch_signature(key) is not None
            lines.append(function(each, value, key if known or name != "nn.functional" else each))
    return "".join(lines)


def stubs() -> dict[Path, str]:
    """Return the text of every stub, by its path."""
    made = {
        PACKAGE / "__init__.pyi": package(),
        PACKAGE / "return_types.pyi": results(),
        PACKAGE / "tensor" / "_methods.pyi": methods(),
    }
    for name in SUBMODULES:
        path = PACKAGE.joinpath(*name.split("."))
        made[path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")] = submodule(name)
    return made | torch_package(STUBBED)


def stale_files(made: dict[Path, str]) -> list[Path]:
    """Return the files that do not say what they should, and those of the stub package that nobody asks for."""
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    return stale + [path for path in TORCH.rglob("*") if path.is_file() and path not in made]


def main() -> int:
    made = stubs()
    stale = stale_files(made)
    if "--check" in sys.argv:
        for path in stale:
            print(f"out of date: {path}; run python tools/make_stubs.py")
        return bool(stale)
    for path in stale:
        if path in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
