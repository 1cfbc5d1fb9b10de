"""Write the lists of torch's names that the package ships: what torch has, and what libraries use of it.

    python tools/list_torch_names.py public             # needs torch 2.13.0
    python tools/list_torch_names.py used FOLDER ...    # unpacked wheels, a folder for each package; needs torch 2.13.0

They are text files in `src/retrograd/_compat/`, a name in each line. The last says behind each name how many packages use it.
`retrograd coverage` prints how many of them retrograd has; `tests/names` holds that number.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent.parent / "src/retrograd/_compat"
# Modules that only make sense where torch's own compiler, or hardware that it drives, is there.
SKIPPED = ("torch.testing._internal", "torch._inductor", "torch._dynamo.backends", "torch.utils.benchmark.examples")


def main() -> None:
    """Write the list that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("public")
    commands.add_parser("used").add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.command == "public":
        lines = sorted(set(public_names()))
        (HERE / "torch_names.txt").write_text(grouped(lines))
    else:
        counts: Counter[str] = Counter()
        for folder in options.folders:
            counts.update(set(names_used_in(folder)))
        lines = [f"{name} {count}" for name, count in sorted(counts.items())]
        (HERE / "used_names.txt").write_text("\n".join(lines) + "\n")
    print(len(lines), "names")


def grouped(names: list[str]) -> str:
    """Write names in lines that begin with what they have in common: `torch.nn: Conv2d Linear`."""
    homes: dict[str, list[str]] = {}
    for name in names:
        home, _, last = name.rpartition(".")
        homes.setdefault(home, []).append(last)
    return "".join(f"{home}: {' '.join(lasts)}\n" for home, lasts in homes.items() if home)


def public_names() -> Iterator[str]:
    """Find each public name of torch: modules without an underscore, what they list, and Tensor's attributes."""
    import torch

    for module in public_modules(torch):
        yield module.__name__
        listed = getattr(module, "__all__", None)
        names = listed if listed is not None else [name for name in vars(module) if is_written_in(module, name)]
        for name in names:
            if not name.startswith("_") and hasattr(module, name):
                yield f"{module.__name__}.{name}"
    for name in dir(torch.Tensor):
        if not name.startswith("_"):
            yield f"torch.Tensor.{name}"


def public_modules(torch: ModuleType) -> Iterator[ModuleType]:
    yield torch
    for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        if "._" in info.name or info.name.startswith(SKIPPED):
            continue
        try:
            yield importlib.import_module(info.name)
        except BaseException as error:  # a module that needs what is not installed
            print(f"{info.name}: {type(error).__name__}", file=sys.stderr)


def is_written_in(module: ModuleType, name: str) -> bool:
    """Whether a module without `__all__` has a name of its own, rather than something that it imported for itself."""
    value = vars(module)[name]
    return not isinstance(value, ModuleType) and getattr(value, "__module__", module.__name__).startswith("torch")


def names_used_in(folder: Path) -> Iterator[str]:
    """Find the names of torch that the files below a folder import or read as attributes of its modules."""
    for file in folder.rglob("*.py"):
        if {"test", "tests", "testing"} & set(file.relative_to(folder).parts[:-1]):
            continue
        try:
            tree = ast.parse(file.read_text(errors="replace"))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for name in set(names_in(tree)):
            known = longest_known(name)
            if known is not None and known != "torch":
                yield known


def names_in(tree: ast.Module) -> Iterator[str]:
    """Read imports of torch and chains of attributes that begin at a name which such an import binds."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_torchs(alias.name):
                    yield alias.name
                    bound[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and not node.level and is_torchs(node.module or ""):
            for alias in node.names:
                yield f"{node.module}.{alias.name}" if alias.name != "*" else str(node.module)
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        chain = attribute_chain(node)
        if chain is not None and chain[0] in bound:
            yield ".".join([bound[chain[0]], *chain[1:]])


def attribute_chain(node: ast.AST) -> list[str] | None:
    """Return ["torch", "nn", "Linear"] for `torch.nn.Linear`, None for what is no such chain."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not names or not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(names)]


def is_torchs(module: str) -> bool:
    return module == "torch" or module.startswith("torch.")


_known: dict[str, str | None] = {}


def longest_known(name: str) -> str | None:
    """Return the part of a dotted name that torch 2.13.0 has, down to the first that is no module; None if it lacks the name."""
    if name not in _known:
        _known[name] = _look_up(name)
    return _known[name]


def _look_up(name: str) -> str | None:
    value: object = importlib.import_module("torch")
    found = "torch"
    for part in name.split(".")[1:]:
        if not isinstance(value, ModuleType):
            # One step into a class: `Tensor.add`, `autograd.Function.apply`. What instances have nobody can look up here.
            return f"{found}.{part}" if isinstance(value, type) and hasattr(value, part) else found
        found = f"{found}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(found)
            except BaseException:
                return None
        except BaseException:
            return None
    return found


if __name__ == "__main__":
    main()
