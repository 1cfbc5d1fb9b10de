"""What docstrings promise: their examples, and which of the names that programs use most have none.

`torch`, `nn` and `F` are defined in every example, as in most programs. `python -m tests.docs.docstrings retrograd` runs them all, in a
process of its own: it imports every public module, which other tests must not notice. `torch` runs them on torch.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import sys
import warnings
from collections.abc import Iterator
from enum import EnumType
from functools import cache
from typing import Any

from retrograd.cli import _coverage

from .pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import reference

PARSER = doctest.DocTestParser()
OWN = ("retrograd.", "torch.autograd.explain")  # which torch does not have


def public() -> Iterator[tuple[str, Any]]:
    """Yield every public object with its name: functions, classes, their methods, attributes of Tensor."""
    for entry in [*reference.entries(), *reference.tensor_members()]:
        yield entry.path, entry.value
        if isinstance(entry.value, type) and entry.path != "torch.Tensor":
            for name, value in vars(entry.value).items():
                if not name.startswith("_"):
                    yield f"{entry.path}.{name}", getattr(value, "__func__", value)


@cache
def examples() -> dict[str, str]:
    """Return the docstrings that have examples, each under the first name of what it describes."""
    found: dict[str, str] = {}
    for name, value in public():
        doc = reference.own_doc(value)
        if doc is not None and ">>>" in doc and value.__class__.__module__ != "typing":
            found.setdefault(inspect.cleandoc(doc), name)
    return {name: doc for doc, name in found.items()}


def failures(name: str, library: Any) -> str:
    """Run the examples of a docstring, and return what went wrong."""
    said: list[str] = []
    globs = {"torch": library, "nn": library.nn, "F": importlib.import_module(f"{library.__name__}.nn.functional")}
    test = PARSER.get_doctest(examples()[name], globs, name, None, 0)
    with warnings.catch_warnings(action="ignore"):
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return "".join(said)


# Names that at least this many of the libraries use which `retrograd coverage` asks about.
OFTEN = 10
# Names without an example, and why.
ELSEWHERE = (
    *("torch.xpu", "torch.onnx", "torch.ops"),  # what is not there
    "torch.version",  # words
    *("torch.distributions.constraints", "torch.distributed.group"),  # objects, not functions
    "torch.distributed.ProcessGroup",  # `new_group` makes them
    "torch.multiprocessing",  # Python's own
)


def used_often() -> list[str]:
    """Return the functions and classes that many libraries use."""
    names = [name for name, count in _coverage.used_names().items() if count >= OFTEN]
    return [
        name
        for name in sorted(names)
        if callable(_coverage.found(name))
        and "._" not in name
        and not f"{name}.".startswith(tuple(f"{area}." for area in ELSEWHERE))
    ]


def lacking(name: str) -> str:
    """Return what the docstring of a name lacks."""
    value = _coverage.found(name)
    doc = inspect.cleandoc(value.__doc__ or "")
    if ">>> " not in doc:
        return "an example"
    return "" if "Args:\n" in doc or not takes_arguments(value) else "Args:"


def takes_arguments(value: Any) -> bool:
    """Whether a function or class can be called with arguments that have names; an enumeration is not called."""
    if isinstance(value, EnumType):
        return False
    try:
        kinds = [parameter.kind for parameter in inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):
        return False
    return any(kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for kind in kinds)


def main(library: str) -> None:
    """Print what is found, as JSON."""
    module = importlib.import_module(library)
    assert module.__name__ == library, "something has made torch mean retrograd"
    names = [name for name in examples() if library == "retrograd" or not name.startswith(OWN)]
    found = {
        "examples": len(names),
        "failures": {name: said for name in names if (said := failures(name, module))},
        "lacking": {name: what for name in used_often() if (what := lacking(name))},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
