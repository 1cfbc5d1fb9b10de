"""The examples in docstrings print what they say, here and on torch; the names that programs use most have some.

`torch`, `nn` and `F` are defined in every example, as in most programs.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import retrograd
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


@pytest.mark.parametrize("name", examples())
def test_an_example(name):
    assert failures(name, retrograd) == ""


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in examples() if not name.startswith(OWN)])
def test_torch_prints_the_same(name):
    assert failures(name, importlib.import_module("torch")) == ""


# Names that at least this many of the libraries use which `retrograd coverage` asks about.
OFTEN = 10
# Areas whose names describe devices, processes and tools: the guide has pages for them, an example would need them.
ELSEWHERE = (
    *(
        "torch.cuda",
        "torch.xpu",
        "torch.mps",
        "torch.backends",
        "torch.distributed",
        "torch.multiprocessing",
        "torch.version",
    ),
    *(
        "torch.jit",
        "torch.onnx",
        "torch.fx",
        "torch.profiler",
        "torch.compiler",
        "torch.hub",
        "torch.serialization",
        "torch.ops",
    ),
    "torch.compile",  # docs/compile.md, where it exists
    *("torch.nn.parallel", "torch.nn.DataParallel", "torch.nn.SyncBatchNorm", "torch.amp.GradScaler"),
    *("torch.FloatTensor", "torch.IntTensor", "torch.LongTensor", "torch.BoolTensor"),  # old names of dtypes
    *("torch.autograd.Variable", "torch.utils.hooks", "torch.is_autocast_enabled", "torch.distributions.constraints"),
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


@pytest.mark.parametrize("name", used_often())
def test_what_programs_use_most_has_an_example(name):
    doc = inspect.cleandoc(_coverage.found(name).__doc__ or "")
    assert ">>> " in doc
    assert "Args:\n" in doc or not takes_arguments(_coverage.found(name))


def takes_arguments(value: Any) -> bool:
    """Whether a function or class can be called with arguments that have names."""
    try:
        kinds = [parameter.kind for parameter in inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):
        return False
    return any(kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for kind in kinds)


def test_three_hundred_names_have_an_example():
    assert len(examples()) >= 300
