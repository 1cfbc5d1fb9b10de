"""The API reference: a page for each public package, in reStructuredText, written from the live objects and the stubs.

`pages()` returns them by name; `make_site.py` puts them into the documentation site. Many public functions are generated as text
(docs/adr/0006-public-forms-as-text.md), so nothing is read from the sources: signatures come from the stubs, where type checkers find them,
or from the object itself, descriptions from `__doc__`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import typing
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import GenericAlias, ModuleType, UnionType
from typing import Any, NamedTuple

from retrograd._missing import torch_names

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "retrograd"
OWN_MODULES = ("debug",)  # which torch does not have; `pytest_torch` must not be imported outside of pytest
OWN_NAMES = {"torch.nn": ("Summary", "summary")}  # in modules that torch has
OPTIONAL_MODULES = {
    "torch.utils.tensorboard": "tensorboard"
}  # which are imported only where a further package is installed

# The pages of torch's own functions: files of `tensor/` by subject. Files that stand in no list are on the page of the last.
SUBJECTS = {
    "Creating tensors": "creation ranges windows complex_views saving loading exchange",
    "Random numbers": "generators random_tensors random_distributions random_fills",
    "Elementwise functions": "elementwise elementwise_unary elementwise_pairs special",
    "Reductions and statistics": "reduce variance statistics cumulative counting order unique norms differences",
    "Shapes": "shape rearrange joining stacking splitting sections strided view_copies",
    "Indexing and selecting": "index gathering masks scattering selecting positions segments diagonals",
    "Linear algebra": """matrix_products added_products products einsum cholesky eigen least_squares lobpcg lu matrix_functions qr solving
    svd""",
    "Layers as functions of torch": "nn",
    "Everything else": "",
}


class Entry(NamedTuple):
    """One documented object: where programs find it, and what it is called elsewhere."""

    path: str  # with the name that programs use: torch.nn.Linear
    value: Any
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


# ---- what is public ----
def public_modules() -> list[str]:
    """Return the modules of the package that programs import, by torch's names, parents first."""
    stubs = ROOT / "src" / "torch-stubs"
    found = set()
    for path in stubs.rglob("*.pyi"):
        parts = path.relative_to(stubs).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            found.add(".".join(("torch", *parts)))
    found |= {f"retrograd.{name}" for name in OWN_MODULES}
    found = {name for name in found if not any(f"{name}.".startswith(f"{other}.") for other in OPTIONAL_MODULES)}
    return sorted(found, key=lambda name: (name.count("."), name))


def module_of(name: str) -> ModuleType:
    with warnings.catch_warnings(action="ignore"):  # modules that torch has deprecated
        return importlib.import_module("retrograd" + name.removeprefix("torch").removeprefix("retrograd"))


@cache
def used_names() -> dict[str, set[str]]:
    """Return the names that libraries use, by module: some are public by use alone."""
    names: dict[str, set[str]] = {}
    for line in (PACKAGE / "_compat" / "used_names.txt").read_text().splitlines():
        home, _, name = line.split()[0].rpartition(".")
        names.setdefault(home, set()).add(name)
    return names


def members(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a module, with their values."""
    module = module_of(name)
    used = used_names().get(name, set())
    names = {*torch_names().get(name, ()), *getattr(module, "__all__", ()), *used, *OWN_NAMES.get(name, ())}
    for one in sorted(names):
        if one.startswith("_"):
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                value = getattr(module, one)
        except AttributeError:
            continue
        if not isinstance(value, ModuleType) and (value is not getattr(typing, one, None) or one in used):
            yield one, value


@cache
def entries() -> tuple[Entry, ...]:
    """Return every public object once, under its shortest name."""
    places: dict[Any, list[tuple[str, Any]]] = {}
    for module in public_modules():
        for name, value in members(module):
            shared = callable(value) and not isinstance(value, ModuleType)
            key = id(value) if shared else f"{module}.{name}"  # numbers and words may be equal by chance
            places.setdefault(key, []).append((f"{module}.{name}", value))
    found = [Entry("retrograd.as_torch", module_of("retrograd").as_torch)]
    for same in places.values():
        (path, value), *others = same
        found.append(Entry(path, value, tuple(other for other, _ in others)))
    return tuple(sorted(found, key=lambda entry: entry.path.lower()))


def is_absent(value: Any) -> bool:
    """Whether a name can only be imported, and says what it would need when it is used."""
    return bool(getattr(value, "__dict__", {}).get("is_absent", False))


# ---- signatures ----
OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@cache
def stub(path: Path) -> dict[str, list[str]]:
    """Return the signatures in a stub, one for each overload, by name; those of a class as its members."""
    signatures: dict[str, list[str]] = {}

    def read(body: Iterable[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                read(node.body)
            elif isinstance(node, ast.FunctionDef):
                if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list):
                    continue
                if node.args.args and node.args.args[0].arg == "self":
                    del node.args.args[0]
                result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                signatures.setdefault(node.name, []).append(tidy(f"({ast.unparse(node.args)}){result}"))

    read(ast.parse(path.read_text()).body)
    return signatures


def tidy(signature: str) -> str:
    """Write types as people do: without the names by which stubs keep them apart."""
    signature = re.sub(r"\bbuiltins\.|\b_results\.", "", signature)
    signature = re.sub(
        r"\b_(Number|DeviceLike|dtype|device|layout|memory_format|Size|Generator|ndarray)\b", r"\1", signature
    )
    signature = re.sub(r" object at 0x[0-9a-f]+", "", signature)
    signature = re.sub(r"(?<=[\w\])])=(?=[^=])", " = ", signature)
    return (
        signature.replace("'Any'", "Any")
        .replace("DeviceLike", "device | str | int")
        .replace("Number", "int | float | complex")
    )


def signatures(entry: Entry) -> list[str]:
    """Return how an object is called, one line for each overload; nothing if it is not called."""
    home = entry.path.rpartition(".")[0]
    if home == "torch.Tensor":
        known = stub(PACKAGE / "tensor" / "_methods.pyi").get(entry.name)
    else:
        path = PACKAGE.joinpath(*home.split(".")[1:], "__init__.pyi")
        known = stub(path).get(entry.name) if path.exists() else None
    if known and not isinstance(entry.value, type):
        return known
    if not callable(entry.value) or is_a_type_expression(entry.value):
        return []
    if isinstance(entry.value, type) and issubclass(entry.value, BaseException):
        return ["(*args: object)"]  # an error's words
    try:
        with warnings.catch_warnings(action="ignore"):
            made = inspect.signature(entry.value)
    except (ValueError, TypeError):
        return ["(...)"]
    if isinstance(entry.value, type) and all(one.kind in OPEN for one in made.parameters.values()):
        made = inspect.signature(entry.value.__init__)  # `__new__` takes anything, and hands it on
    parameters = [one.replace(annotation=unquoted(one.annotation)) for one in made.parameters.values()]
    if parameters and parameters[0].name in ("self", "cls"):
        parameters.pop(0)
    result = (
        ""
        if isinstance(entry.value, type) or made.return_annotation is made.empty
        else unquoted(made.return_annotation)
    )
    text = re.sub(
        r"'([^',()]*)'(?=[,)=]| =)", r"\1", str(made.replace(parameters=parameters, return_annotation=made.empty))
    )
    return [tidy(text + (f" -> {result}" if result else ""))]


def is_a_type_expression(value: Any) -> bool:
    """Whether a name stands for a type in annotations, such as `int | str`, and cannot be called to any purpose."""
    return isinstance(value, (UnionType, GenericAlias)) or type(value).__module__ == "typing"


def unquoted(annotation: Any) -> Any:
    return Written(annotation) if isinstance(annotation, str) else annotation


class Written(str):
    """An annotation that `inspect` prints as it was written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# ---- text ----
LISTS = {"Args": "param", "Raises": "raises", "Attributes": "ivar"}  # sections whose lines begin with a name
SECTIONS = (*LISTS, "Returns", "Shape", "Note", "Example")


def text_of(doc: str) -> list[str]:
    """Return a docstring as reStructuredText: code in backticks, its sections as fields, its sessions as they are."""
    out: list[str] = []
    section = ""
    in_session = False
    for line in inspect.cleandoc(doc).splitlines():
        word = line.rstrip(":")
        in_session = line.lstrip().startswith(">>>") or (in_session and bool(line.strip()))
        if line.endswith(":") and word in SECTIONS:
            section = word
            out += [""] if word in LISTS else ["", f"**{word}**", ""]
        elif in_session:
            out.append(line.removeprefix("    ") if section else line)
        elif section and line.startswith("    "):
            out.append(item(line.removeprefix("    "), section))
        else:
            section = section if not line.strip() else ""
            out += plain(line, out[-1] if out else "")
    return out


def plain(line: str, before: str) -> list[str]:
    """Return a line outside of sections: a list begins after an empty line, an indented paragraph is code."""
    if line.startswith("- "):
        return [escaped(line)] if before.startswith(("- ", "  ")) or not before else ["", escaped(line)]
    if not line.startswith(" "):
        return [escaped(line)] if not before.startswith(("   ", "- ")) or not line else ["", escaped(line)]
    if before.startswith("- ") or (before.startswith("  ") and not before.startswith("   ")):
        return [f"  {escaped(line.strip())}"]
    return [f"   {line.strip()}"] if before.startswith("   ") else ["", "::", "", f"   {line.strip()}"]


def item(text: str, section: str) -> str:
    """Return a line of a section; in lists a name begins a new entry, and what is indented goes on with the last."""
    named = re.match(r"(\*{0,2}[\w.]+(?:, \*{0,2}\w+)*): (.*)", text)
    if section in LISTS and named:
        return f":{LISTS[section]} {escaped(named[1])}: {escaped(named[2])}"
    return f"   {escaped(text.strip())}" if section in LISTS else escaped(text)


def escaped(line: str) -> str:
    """Keep what reStructuredText would read as markup as it is, and make code of what stands in backticks."""
    parts = re.split(r"`([^`]*)`", re.sub("::$", ":", line))
    made = ""
    for i, part in enumerate(parts):
        if i % 2 and part and part.strip() == part:
            ends = i + 1 < len(parts) and re.match(
                r"\w", parts[i + 1]
            )  # markup ends at a space, or at one that is not shown
            made += f"``{part}``" + ("\\ " if ends else "")
        else:
            made += re.sub(r"([*|\\`]|_(?!\w))", r"\\\1", part)
    return made


def described(entry: Entry) -> list[str]:
    """Return an object: its name, how it is called, what its docstring says, and for a class its methods."""
    called = signatures(entry)
    kind = "class" if isinstance(entry.value, type) else "function" if called else "data"
    if entry.path.startswith("torch.Tensor.") and kind != "class":
        kind = "method" if called else "attribute"
    body = text_of(description(entry) or "")
    if kind == "data":
        body += [f"``{type(entry.value).__name__}``: ``{shown(entry.value)}``"]
    if entry.others:
        body += ["", "Also " + ", ".join(f"``{one}``" for one in entry.others) + "."]
    if kind == "class" and entry.path != "torch.Tensor":
        body += methods(entry)
    return directive(kind, [f"{entry.path}{one}" for one in called] or [entry.path], body)


def directive(kind: str, called: list[str], body: list[str]) -> list[str]:
    head = f".. py:{kind}:: "
    first, *rest = called
    lines = [head + first, *(" " * len(head) + one for one in rest), "   :no-index-entry:" if kind == "data" else ""]
    return [*lines, "", *(f"   {line}".rstrip() for line in body), ""]


def shown(value: Any) -> str:
    text = tidy(repr(value)).replace("`", "'").replace("\n", " ")
    return text if len(text) < 200 else f"{text[:200]} ..."


def description(entry: Entry) -> str | None:
    """Return what is said of an object: its own docstring, or what follows from its family."""
    value = entry.value
    if is_a_type_expression(value):
        return None  # its docstring would be that of `dict`
    if (doc := own_doc(value)) is not None or not callable(value):
        return doc
    fields, members = getattr(value, "_fields", ()), getattr(value, "__members__", ())
    if entry.path.startswith("torch.return_types."):
        return f"A named result: a tuple with the parts {', '.join(f'`{name}`' for name in fields)}."
    if members:
        return f"One of {', '.join(f'`{name}`' for name in [*members][:12])}{', ...' * (len(members) > 12)}."
    if entry.name.endswith(("Storage", "Tensor")):
        kind = "a storage" if entry.name.endswith("Storage") else "a tensor"
        return f"Old name of {kind} of one dtype. New programs write `dtype=` and `device=`."
    home = getattr(value, "__module__", None) or getattr(type(value), "__module__", "")
    if home.partition(".")[0] in sys.stdlib_module_names:
        return f"Python's own: see `{home}`."
    return own_doc(type(value))


def own_doc(value: Any) -> str | None:
    """Return an object's own description, not that of its class."""
    doc = getattr(value, "__doc__", None)
    if not isinstance(doc, str) or (not isinstance(value, type) and doc == getattr(type(value), "__doc__", None)):
        return None
    if isinstance(value, type) and "__doc__" not in vars(value):
        return None
    return doc


def methods(entry: Entry) -> list[str]:
    """Return the public methods and properties that a class defines itself."""
    lines: list[str] = []
    for name, value in sorted(vars(entry.value).items()):
        if name.startswith("_") or isinstance(value, type):
            continue
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        body = text_of(value.__doc__) if isinstance(value.__doc__, str) else []
        if isinstance(value, property):
            lines += ["", *directive("attribute", [f"{entry.path}.{name}"], body)]
        elif inspect.isroutine(value):
            method = Entry(f"{entry.path}.{name}", value)
            lines += ["", *directive("method", [method.path + (signatures(method) or ["()"])[0]], body)]
    return lines


# ---- pages ----
@cache
def pages() -> dict[str, str]:
    """Return the pages of the reference by file name, the index first."""
    made: dict[str, str] = {"index": ""}
    homes: dict[str, list[Entry]] = {}
    for entry in entries():
        homes.setdefault(entry.path.rpartition(".")[0], []).append(entry)
    titles: dict[str, tuple[str, int]] = {}
    for subject, found in by_subject(homes.pop("torch")).items():
        file = f"torch-{subject.lower().replace(' ', '-')}"
        made[file] = page(f"torch: {subject.lower()}", {"torch": found})
        titles[file] = (f"torch: {subject.lower()}", len(found))
    tensor = tensor_members()
    made["tensor"] = page("torch.Tensor", {"torch.Tensor": tensor})
    titles["tensor"] = ("torch.Tensor", len(tensor))
    for area in sorted({area_of(home) for home in homes}):
        modules = {home: homes[home] for home in sorted(homes) if area_of(home) == area}
        made[area] = page(area, modules)
        titles[area] = (area, sum(map(len, modules.values())))
    made["index"] = index(titles)
    return made


def area_of(module: str) -> str:
    """Return the module on whose page a module stands: that of its package, with a page for each package of nn and utils."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] in (["nn"], ["utils"]) else 2])


def by_subject(found: list[Entry]) -> dict[str, list[Entry]]:
    """Sort the functions of the package by the file that holds them."""
    from retrograd._layer_names import LAYERS
    from retrograd.tensor._names import LATER, NOW

    homes = {word: subject for subject, words in SUBJECTS.items() for word in words.split()}
    subjects: dict[str, str] = {}
    for module, names in (NOW | LATER).items():
        for name in f"{names.both} {names.functions} {names.writing}".split():
            subjects[name] = homes.get(module.rpartition(".")[2], "")
    for names in LAYERS.values():
        subjects |= dict.fromkeys(f"{names.both} {names.functions} {names.writing}".split(), homes["nn"])
    sorted_out: dict[str, list[Entry]] = {subject: [] for subject in SUBJECTS}
    for entry in found:
        sorted_out[subjects.get(entry.name) or "Everything else"].append(entry)
    return sorted_out


def tensor_members() -> list[Entry]:
    """Return the public methods and attributes of Tensor."""
    tensor = module_of("torch").Tensor
    names = {name for name in dir(tensor) if not name.startswith("_")}
    return [Entry(f"torch.Tensor.{name}", getattr(tensor, name)) for name in sorted(names, key=str.lower)]


def page(title: str, modules: dict[str, list[Entry]]) -> str:
    """Write a page: what each of its modules has, and at the end what can only be imported."""
    lines = heading(title, "=")
    absent = []
    for module, found in modules.items():
        if module != title and len(modules) > 1:
            lines += heading(module, "-")
        if module not in ("torch", "torch.Tensor"):
            lines += [*text_of(inspect.cleandoc(module_of(module).__doc__ or "").partition("\n\n")[0]), ""]
        for entry in found:
            if not is_absent(entry.value):
                lines += described(entry)
        absent += [f"- ``{entry.path}``" for entry in found if is_absent(entry.value)]
    if absent:
        lines += heading("Names that say what they would need", "-")
        lines += ["Programs can import these. When they are used, an error says why they do not work.", "", *absent]
    return "\n".join(lines) + "\n"


def heading(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def index(titles: dict[str, tuple[str, int]]) -> str:
    """Write the first page: all others, with the number of names on each."""
    lines = heading("API reference", "=")
    lines += [
        "Every public name, with its signature. The names are torch's: ``torch`` stands for the package, whether you say",
        "``import retrograd as torch`` or run a program with ``retrograd run``. The search finds all of them.",
        "",
        ".. toctree::",
        "   :maxdepth: 1",
        "",
        *(f"   {title} ({count}) <{file}>" for file, (title, count) in titles.items()),
        "",
        *(
            f"``{name}`` needs the package {package} and is not listed here."
            for name, package in OPTIONAL_MODULES.items()
        ),
    ]
    return "\n".join(lines) + "\n"
