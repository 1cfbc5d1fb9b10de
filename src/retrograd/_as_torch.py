"""Make `import torch` mean retrograd, in this process only; an installed torch stays untouched and unread.

A program's `torch.xyz` and `retrograd.xyz` are one module object, not two copies: an `isinstance` check, a
registered class or a global seed works whichever name it was reached by.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import _absent
from ._missing import MissingNameError, explanation
from ._places import is_own
from ._tracebacks import guarded
from .torch_version import TORCH_VERSION, TorchVersion

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

SPAWN = "multiprocessing.spawn"
# What `import functorch` gives, and torch's module of operations, which shares its name with one of ours.
ELSEWHERE = {"functorch": "retrograd._functorch.deprecated", "torch._ops": "retrograd.ops"}
COMPAT = Path(__file__).parent / "_compat"
OURS = {"_ops"}  # private modules that only share their names with torch's
SHARED = {path.stem for path in COMPAT.iterdir()}  # private modules that are torch's, too


def as_torch() -> TorchAlias:
    """Let `import torch` and `import torch.xyz` give retrograd's modules from now on.

    A plain call stays in force; `with as_torch(): ...` ends with the block. A torch that was imported
    before is set aside, and put back at the end of the block. Inside, `torch.__version__` is "2.13.0", and
    so is `importlib.metadata.version("torch")`.
    """
    return TorchAlias()


def is_in_force() -> bool:
    """Whether `import torch` gives retrograd at present."""
    return any(isinstance(finder, TorchFinder) for finder in sys.meta_path)


class TorchAlias:
    """What `as_torch()` put in place, and the means to take it away again."""

    def __init__(self) -> None:
        self._finder: TorchFinder | None = None
        if is_in_force():
            return  # whoever installed it removes it
        retrograd = importlib.import_module("retrograd")
        self._names = vars(retrograd)
        self._own_version = self._names["__version__"]
        self._set_aside = _take_torch_modules()
        self._finder = TorchFinder()
        sys.meta_path.insert(0, self._finder)
        self._names["__version__"] = TorchVersion(TORCH_VERSION)
        self._names["torch"] = retrograd  # torch's module has its own name in it, and annotations use that
        _name_loaded("retrograd", "torch")
        if SPAWN in sys.modules:
            _carry_into_children(sys.modules[SPAWN])

    def uninstall(self) -> None:
        """Give the name `torch` back to whatever had it before."""
        if self._finder is None:
            return
        self._names["__version__"] = self._own_version
        del self._names["torch"]
        sys.meta_path.remove(self._finder)
        _name_loaded("torch", "retrograd")
        _take_torch_modules()
        sys.modules.update(self._set_aside)
        self._finder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.uninstall()


class TorchFinder(MetaPathFinder):
    """Finds `torch.xyz` where `retrograd.xyz` is, and nowhere else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == SPAWN:
            return _followed(SPAWN, path, _carry_into_children)
        if fullname.startswith("retrograd."):
            return _followed(fullname, path, lambda module: _name(module, "retrograd", "torch"))
        if not _is_torch_name(fullname):
            return None
        counterpart = ELSEWHERE.get(fullname) or "retrograd" + fullname.removeprefix("torch")
        own = None if _is_private(counterpart) else importlib.util.find_spec(counterpart)
        if own is None:
            if _is_asked_by_us() and importlib.util.find_spec(counterpart) is not None:
                # `from .. import _x` in a file of ours, which finds it as an attribute of the package
                setattr(sys.modules["retrograd"], fullname.partition(".")[2], importlib.import_module(counterpart))
            if _is_only_asked():
                return None
            # Raised here, not left to the finders after this one: they would say less, and load retrograd's
            # own _ops a second time under the name torch._ops.
            home, _, last = fullname.rpartition(".")
            raise ModuleNotFoundError(f"No module named {fullname!r}{explanation(home, last)}", name=fullname)
        return _TorchSpec(fullname, own, AliasLoader(counterpart))

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """Answer `importlib.metadata` for "torch": libraries read there which release they run on."""
        if context.name is None or context.name.lower() == "torch":
            yield _torch_distribution()


class AliasLoader(Loader):
    """Loads a module by handing out another one."""

    def __init__(self, counterpart: str) -> None:
        self._counterpart = counterpart

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._made = importlib.import_module(self._counterpart)
        self._spec = self._made.__spec__
        return self._made

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the module behind the name, for `-m`."""
        own = importlib.util.find_spec(self._counterpart)
        code: CodeType | None = own.loader.get_code(self._counterpart)  # type: ignore[union-attr]
        return code

    def exec_module(self, module: ModuleType) -> None:
        if getattr(self, "_made", None) is module:
            # It has run under its own name. Between create_module and here the import system wrote the alias's spec
            # into it; left there, relative imports would go astray.
            module.__spec__ = self._spec
        else:  # importlib.reload
            own = SourceFileLoader(self._counterpart, str(module.__file__))
            module.__name__, module.__spec__ = self._counterpart, spec_from_loader(self._counterpart, own)
            own.exec_module(module)
            _name(module, "retrograd", "torch")


# Note [Children]
# multiprocessing starts a process anew (methods spawn and forkserver) by sending it a table, which it unpickles before it
# imports the program. A value in that table which unpickles by calling `as_torch` puts retrograd in place there in time. The
# table is made by `multiprocessing.spawn`, which most programs never import: it is changed when they do.


def _followed(name: str, path: Sequence[str] | None, after: Callable[[ModuleType], None]) -> ModuleSpec | None:
    """Find a module of others so that `after` is called with it once it has run."""
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        execute: Callable[[ModuleType], None] = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            after(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def _carry_into_children(spawn: ModuleType) -> None:
    table_for_child = spawn.get_preparation_data
    if getattr(table_for_child, "carries_torch", False):
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        table: dict[str, Any] = table_for_child(name)
        if is_in_force():
            table["torch"] = _AsTorchWhenUnpickled()
            if (
                name == "ignore"
            ):  # for the server that forks: it must not import the program itself, it has the other torch
                table = {key: value for key, value in table.items() if "main" not in key}
        return table

    get_preparation_data.carries_torch = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]


# Note [Names of classes]
# Libraries choose by `type(x).__module__` what they do with a value: opt_einsum its backend, thop and fx what a layer is. So
# public classes say "torch..." as long as the alias is in force; those of modules that are loaded later, when they are.
# Pickles find classes and functions by that name, so those that are written in a private file say they are of the innermost
# public module that hands them on, as torch's do.
# The modules themselves say so, too, and stand in `sys.modules` by both names: `inspect` and `typing` look up there what a
# class says it is of. `__package__` stays, by which relative imports go.
_written_in: dict[Any, tuple[str, str]] = {}  # private files of classes and functions, and their names there


class _TorchSpec(ModuleSpec):
    """The spec of one of our modules by its name in torch."""

    def __init__(self, name: str, own: ModuleSpec, loader: Loader | None = None) -> None:
        super().__init__(name, loader or SourceFileLoader(name, str(own.origin)), origin=own.origin)
        self.submodule_search_locations, self.has_location = own.submodule_search_locations, True
        self.own = own

    @property
    def parent(self) -> str | None:
        """Return where relative imports begin."""
        return self.own.parent


def _name_loaded(before: str, after: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "retrograd"]:
        _name(sys.modules[name], before, after)


def _name(module: ModuleType, before: str, after: str) -> None:
    """Let a module, and what it has under public names, say that they are of another package."""
    _rename_in(module, before, after)
    spec, own_name = module.__spec__, _own_name(module)
    if isinstance(spec, _TorchSpec):
        module.__name__, module.__spec__ = own_name, spec.own
    elif after == "torch" and spec is not None and not _is_private(own_name):
        module.__name__ = "torch" + own_name.removeprefix("retrograd")
        module.__spec__ = _TorchSpec(module.__name__, spec)
        sys.modules[module.__name__] = module  # an import would put it over a function of its name, too


def _own_name(module: ModuleType) -> str:
    first, dot, rest = module.__name__.partition(".")
    return f"retrograd{dot}{rest}" if first == "torch" else module.__name__


def _rename_in(module: ModuleType, before: str, after: str) -> None:
    """Let the classes and functions that a module has under public names say that they are of another package."""
    home = module.__name__.replace("retrograd", "torch", 1)
    handed_on = set() if "._" in home or home == "torch.tensor" else _handed_on(module)
    written_here = before + home.removeprefix("torch")
    if after == "torch":
        vars(module).setdefault("__getattr__", _NothingElse(home))
    elif isinstance(vars(module).get("__getattr__"), _NothingElse):
        del vars(module)["__getattr__"]
    for name, value in list(vars(module).items()):
        if isinstance(value, type) or (
            type(value) is FunctionType and (name in handed_on or value.__module__ in (before, written_here))
        ):
            _rename(value, name, home if name in handed_on else None, before, after)
    if home == "torch":
        for name, value in vars(module.Tensor).items():
            if type(value) is FunctionType:
                _rename(value, f"Tensor.{name}", home, before, after)


def _rename(value: Any, name: str, home: str | None, before: str, after: str) -> None:
    """Let a class or function say that it is of another package; what has no public name yet gets one, if it has a home."""
    first, _, rest = value.__module__.partition(".")
    if first == before and value in _written_in and after == "retrograd":
        module, value.__qualname__ = _written_in.pop(value)
        _move(value, module)
    elif first == before and ("._" not in f".{rest}" or rest in SHARED):
        _move(value, f"{after}.{rest}" if rest else after)
    elif after == "torch" and home and _is_further_in(home, value):
        _written_in.setdefault(value, (value.__module__, value.__qualname__))
        _move(value, home)
        if isinstance(value, FunctionType):
            value.__qualname__ = name


def _move(value: Any, module: str) -> None:
    """Let a class or function say which module it is of. A class of Python 3.13 then forgets its line, which `inspect` asks for."""
    line = vars(value).get("__firstlineno__")
    value.__module__ = module
    if line is not None:
        value.__firstlineno__ = line


class _NothingElse:
    """The `__getattr__` of a module that has none: it says what is missing by the name under which it was asked for."""

    def __init__(self, home: str) -> None:
        self._home = home

    @guarded
    def __call__(self, name: str) -> Any:
        raise MissingNameError(self._home, name)


def _handed_on(module: ModuleType) -> set[str]:
    """Return the names that a module hands on: those it lists, else what is written in its own private files."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return set(listed)
    inside, names = f"{_own_name(module)}._", [name for name in vars(module) if name[0] != "_"]
    return {name for name in names if str(getattr(vars(module)[name], "__module__", "")).startswith(inside)}


def _is_further_in(home: str, value: Any) -> bool:
    """Whether a class or function of a private file has no public home yet, or only one around this."""
    first, _, rest = value.__module__.partition(".")
    is_private = first == "retrograd" and "._" in f".{rest}"
    return is_private or (value in _written_in and home.startswith(f"{value.__module__}."))


class _AsTorchWhenUnpickled:
    def __reduce__(self) -> tuple[Callable[[], TorchAlias], tuple[()]]:
        return _in_child, ()


def _in_child() -> TorchAlias:
    """Do what `as_torch` does. The name of that one says that it is of torch, which a child does not know yet."""
    return TorchAlias()


def _torch_distribution() -> Distribution:
    """Return what `importlib.metadata` shall know of torch."""
    from importlib.metadata import Distribution  # slow to import, and few programs ask

    files = {"METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {TORCH_VERSION}\n", "top_level.txt": "torch\n"}

    class TorchDistribution(Distribution):
        def read_text(self, filename: str) -> str | None:
            return files.get(filename)

        def locate_file(self, path: str | os.PathLike[str]) -> Path:
            return Path(__file__).parent.parent / path

    return TorchDistribution()


def _is_only_asked() -> bool:
    """Whether `importlib.util.find_spec` wants to know if a module exists: it answers None, an import raises."""
    asker = sys._getframe(3)  # above it: this function, the finder, importlib's loop over finders
    return asker.f_code is importlib.util.find_spec.__code__


def _is_asked_by_us() -> bool:
    """Whether the import that is going on stands in a file of this package."""
    asker = sys._getframe(1)
    while asker.f_back is not None and (
        asker.f_code.co_filename == __file__ or asker.f_code.co_filename.startswith("<frozen importlib")
    ):
        asker = asker.f_back
    return is_own(asker.f_code.co_filename)


def _is_torch_name(name: str) -> bool:
    return name in ("torch", "functorch") or name.startswith("torch.")


def _is_private(counterpart: str) -> bool:
    """Whether a retrograd module only shares its name with one of torch's, as `_ops` does."""
    top = counterpart.split(".")[1:2]
    return top in (["cli"], ["pytest_torch"], ["tensor"]) or (
        bool(top) and top[0].startswith("_") and top[0] not in SHARED and not _is_absent(top[0])
    )


def _is_absent(top: str) -> bool:
    """Whether a module of torch is made of absent names, or of names that stand elsewhere, and is not one of ours by chance."""
    return _absent.is_made(f"torch.{top}") and top not in OURS


def _take_torch_modules() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_torch_name(name)}
