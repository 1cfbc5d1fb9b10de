"""Write `src/retrograd/_signatures.txt`, the signatures by which torch refuses arguments, from an installed torch.

python tools/make_signatures.py           write the file
python tools/make_signatures.py --check   fail if it is out of date

torch's parser of arguments reads its signatures as text, which its library holds. Functions that torch writes in Python
have the signatures Python knows. Only the names that this package has are kept.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

import retrograd

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.arguments.calls import BY_KIND, BY_NAME, scope  # arguments that most functions take

TARGET = Path(retrograd.__file__).parent / "_signatures.txt"
SPACES = {"": "", "linalg": "linalg_", "fft": "fft_", "special": "special_", "nn.functional": "", "Tensor": ""}
# What torch's parser calls a type, and what the table does; `?` (None is taken) and `[n]` (one is taken for n) stay.
TYPES = {
    "SymIntArrayRef": "ints", "IntArrayRef": "ints", "SymInt": "int", "int64_t": "int", "DeviceIndex": "int", "double": "float",
    "ArrayRef<double>": "floats", "Scalar": "Number", "ScalarList": "Numbers", "TensorList": "Tensors", "ScalarType": "dtype",
    "c10::string_view": "str", "std::string_view": "str", "std::string": "str", "PyObject*": "object", "MemoryFormat":
    "memory_format", "Layout": "layout", "Device": "device", "c10::List<::std::optional<Tensor>>": "Tensors_or_Nones",
}  # fmt: skip
PARSED_AS = {"logsigmoid": "log_sigmoid"}  # where torch's message has another name
HEADER = """\
# The signatures by which torch refuses arguments: written by tools/make_signatures.py, do not edit.
#
# Each entry is the names of functions, methods after `Tensor.`, and the forms they take, in the order torch tries them.
# `?` after a type: None is taken; `[n]`: a number is taken for n of them. A first line `python`: Python binds the arguments,
# and nothing looks at types; `nothing`: a method that takes no arguments. `old`: a form torch takes but does not name.
# `<f.name.3` after a parameter that Python binds: it is handed to the parser of f, under this name and in this place (0: by the
# name); f and the name are left out where they are the same. `<<`: as a tuple, if it is no sequence.
"""


def library_texts() -> list[str]:
    """Return the signatures in torch's library, in the order in which they lie there."""
    data = (Path(torch.__file__).parent / "lib" / "libtorch_python.so").read_bytes()
    found = re.findall(rb"\w+\((?:[\w:<>*]+(?:\[\d\])?\?? \w+[^()]*|\*, [^()]*)?\)(?:\|deprecated)?(?=\x00)", data)
    return [text.decode() for text in found]


def compact(parameters: str) -> str:
    """Write the parameters of a form in the table's words."""
    parts = []
    for part in re.split(r", (?![^\[]*\])", parameters) if parameters else []:
        if part != "*":
            kind, _, name = part.partition(" ")
            base, size, optional = re.fullmatch(r"(.*?)(\[\d+\])?(\?)?", kind).groups()  # type: ignore[union-attr]
            part = f"{TYPES.get(base, base)}{size or ''}{optional or ''} {name}"
        parts.append(part)
    return ", ".join(parts)


def public() -> Iterator[tuple[str, str, Any]]:
    """Yield the namespace, the name and torch's object of every public function that this package has as well."""
    for space in SPACES:
        ours: Any = retrograd.Tensor if space == "Tensor" else import_module(f"retrograd.{space}".rstrip("."))
        theirs: Any = torch.Tensor if space == "Tensor" else import_module(f"torch.{space}".rstrip("."))
        for name in sorted(dir(theirs)):
            value = getattr(theirs, name, None)
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            if getattr(value, "__module__", None) in (
                "typing",
                "typing_extensions",
                "warnings",
                "importlib",
            ) or not hasattr(ours, name):
                continue
            own = getattr(ours, name)
            if getattr(own, "__globals__", {}).get("__name__") == "retrograd._absent" or name.startswith("sym_"):
                continue  # a name that only says what it needs, or one that looks at no tensors
            yield space, name, value


def printed_forms(space: str, name: str) -> list[str] | None:
    """Ask torch which forms a function has, by a call that none of them takes; None if it does not name them."""
    owner: Any = torch.ones(1) if space == "Tensor" else import_module(f"torch.{space}".rstrip("."))
    try:
        getattr(owner, name)(no_such_keyword=1, **{f"nor_this_{k}": 1 for k in range(30)})
    except Exception as error:
        forms = re.findall(r"^ \* \((.*)\)$", str(error), re.MULTILINE)
        return forms or None
    return None


SHOWN = {
    "ints": "tuple of ints", "floats": "tuple of floats", "Numbers": "tuple of Scalars", "Tensors": "tuple of Tensors",
    "Tensors_or_Nones": "tuple of Tensors", "dtype": "torch.dtype", "layout": "torch.layout", "device": "torch.device",
    "memory_format": "torch.memory_format", "Generator": "torch.Generator", "Storage": "torch.Storage",
}  # fmt: skip


def as_printed(form: str) -> str:
    """Write a form of the table as torch's messages do."""
    parts = []
    for part in re.split(r", (?![^\[{]*[\]}])", form[1:-1]):
        if part and part != "*":
            kind, _, name = part.partition(" ")
            base = kind.partition("[")[0].rstrip("?")
            part = f"{SHOWN.get(base, base)} {name.replace('=', ' = ')}"
        parts.append(part)
    return ", ".join(parts)


def takes_nothing(name: str) -> bool:
    """Tell whether a method of torch takes no arguments at all."""
    try:
        getattr(torch.ones(1), name)(*[None] * 9)
    except Exception as error:
        return "takes no arguments" in str(error)
    return False


def forms_of(space: str, name: str, texts: dict[str, list[str]]) -> list[str]:
    """Return the forms of a function that torch's parser binds."""
    key = PARSED_AS.get(name, SPACES[space] + name)
    found = texts.get(key, [])
    # the linker lets a text be the end of a longer one
    inside = re.compile(rf"\w{key}(\(.*)")
    found = found + sorted({key + m[1] for many in texts.values() for text in many if (m := inside.match(text))})
    forms = []
    for text in found:
        form = "(" + compact(text[text.index("(") + 1 : text.rindex(")")]) + ")"
        forms.append("old " + form if text.endswith("|deprecated") else form)
    forms = list(dict.fromkeys(forms))
    printed = printed_forms(space, name)
    own = [
        form
        for form in forms
        if (space == "Tensor")
        != bool(re.search(r"\b(Tensor|Number) (input|self)\b|\bTensors? (tensors|sorted_sequence)\b", form))
    ]
    if printed is None:
        whole = [form for form, text in zip(forms, found, strict=False) if text in texts.get(key, [])]
        choice = [form for form in whole if form in own] or [form for form in own if form not in whole] or whole
        kept = [form for form in choice if not form.startswith("old")]
        if len(kept) != 1:
            print(f"{space}.{name}: torch names no forms, the library holds {forms}", file=sys.stderr)
        return [form for form in choice if form.startswith("old")] + kept[:1]
    shown = {as_printed(form): form for form in forms if not form.startswith("old")}
    if missing := [form for form in printed if form not in shown]:
        print(f"{space}.{name}: torch names {missing}, the library holds {list(shown)}", file=sys.stderr)
    old = [form for form in own if form.startswith("old")]
    return old + [shown[form] for form in printed if form in shown]


ANNOTATED = {"Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str", "Optional[Tensor]": "Tensor?",
             "Tensor | None": "Tensor?", "int | None": "int?", "float | None": "float?", "bool | None": "bool?",
             "BroadcastingList1[int]": "ints[1]", "BroadcastingList2[int]": "ints[2]", "BroadcastingList3[int]": "ints[3]",
             "list[int]": "ints", "str | None": "str?"}  # fmt: skip


def parameter_kind(parameter: inspect.Parameter) -> str:
    """Write the annotation of a parameter in the table's words."""
    note = parameter.annotation
    text = note if isinstance(note, str) else getattr(note, "__name__", str(note))
    text = str(note).replace("torch.", "") if "[" in str(note) or "|" in str(note) else text
    return ANNOTATED.get(text.replace("typing.", ""), "object?")


# Torch's complaint about an argument, by whose parser it is made.
COMPLAINT = re.compile(r"(\w+)\(\): argument '(\w+)'(?: \(position (\d+)\))? must be ([\w. ]+?), (not|but)")


def complaint(function: Any, name: str, value: Any) -> re.Match[str] | None:
    """Return torch's complaint about one argument of a function whose others are such as most functions take."""
    samples = scope(torch)
    given = {}
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty:
            kind = re.sub(r"\W.*", "", parameter_kind(one))
            given[one.name] = eval(
                "s" if not given and one.name not in BY_NAME else BY_NAME.get(one.name) or BY_KIND.get(kind, "None"),
                samples,
            )
    try:
        function(**{**given, name: value})
    except Exception as error:
        return COMPLAINT.match(str(error))
    return None


def checked_inside(function: Any, called: str, name: str) -> tuple[str, str] | None:
    """Return the kind of a parameter that Python hands to one of torch's parsers, and to which; None if it does not."""
    found = complaint(function, name, object())
    if found is None or found[4] not in ("bool", "int", "float", "tuple of ints") or found[2] == "input":
        return None
    kind, as_tuple = "ints" if found[4] == "tuple of ints" else found[4], found[5] == "but"
    kind += "[1]" if kind == "ints" and complaint(function, name, 1) is None else ""
    kind += "?" if complaint(function, name, None) is None else ""
    words = [found[1], found[2]] if found[1] != called else [found[2]] if found[2] != name else []
    return kind, f"{'<<' if as_tuple else '<'}{'.'.join([*words, found[3] or '0'])}"


def python_form(function: Any, name: str) -> str:
    """Write the signature of a function that torch writes in Python."""
    parts, star = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}")
            star = True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        kind, inner = checked_inside(function, name, parameter.name) or (parameter_kind(parameter), "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        if default and not re.fullmatch(r"=(None|True|False|-?[\d.e-]+|'\w*')", default):
            default = "=..."
        parts.append(f"{kind} {parameter.name}{default}{inner}")
    return "(" + ", ".join(parts) + ")"


def entries() -> dict[tuple[str, ...], list[str]]:
    """Return the names of functions by what they take."""
    texts: dict[str, list[str]] = defaultdict(list)
    for text in library_texts():
        texts[text.partition("(")[0]].append(text)
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for space, name, value in public():
        key = f"Tensor.{name}" if space == "Tensor" else SPACES[space] + name
        if space == "nn.functional" and isinstance(value, FunctionType):
            key = f"nn.functional.{name}"
        if isinstance(value, FunctionType):
            # some choose between two functions of one signature
            known = getattr(torch.functional, f"_{name}_impl", getattr(torch.nn.functional, f"_{name}", value))
            known = value if space == "Tensor" else known
            found["python", python_form(known, name)].append(key)
        elif space == "Tensor" and takes_nothing(name):
            found["nothing",].append(key)
        elif forms := forms_of(space, name, texts):
            if not any(key in names for names in found.values()):
                found[tuple(forms)].append(f"{key}={PARSED_AS[name]}" if name in PARSED_AS else key)
        else:
            print(f"nothing known of {key}", file=sys.stderr)
    return found


def written() -> str:
    """Return the text of the file."""
    lines = []
    for forms, names in sorted(entries().items(), key=lambda entry: (-len(entry[1]), entry[1])):
        lines.append(" ".join(names))
        lines += [f"  {form}" for form in forms]
    return HEADER + "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = written()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() != text:
            sys.exit(f"{TARGET} is out of date: run tools/make_signatures.py")
    else:
        TARGET.write_text(text)
