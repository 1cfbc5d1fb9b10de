"""The API reference has every public name, with its signature, and says the same as the live objects."""

from __future__ import annotations

import re
import sys

import pytest

import retrograd as torch
from retrograd.cli import _coverage

from .pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import reference


@pytest.fixture(scope="module")
def text():
    return "\n".join(reference.pages().values())


@pytest.fixture(scope="module")
def named(text):
    """Return every name that stands in the reference: described, or called the second name of something, or only importable."""
    described = re.findall(r"(?:\.\. py:\w+:: |^ {6,})((?:torch|retrograd)(?:\.\w+)+)", text, re.MULTILINE)
    return {*described, *re.findall(r"``((?:torch|retrograd)(?:\.\w+)+)``", text)}


def test_names_that_libraries_use(named):
    """The list was made by reading libraries (`retrograd coverage`), not by looking at the package."""
    used = [name for name in _coverage.used_names() if _coverage.exists(name)]
    modules = {name for name in used if _coverage._module(name) is not None}
    public = [
        name
        for name in used
        if not re.search(r"\._|\.ops\.|\.classes\.", name) and name not in {*modules, "torch.torch"}
    ]
    homes = set(reference.public_modules()) | {"torch.Tensor"}
    missing = [name for name in public if name.rpartition(".")[0] in homes and name not in named]
    assert missing == []
    assert len(public) > 1500


def test_public_names_of_torch(named):
    homes = [home for home in reference.public_modules() if home.startswith("torch")]
    names = [f"{home}.{name}" for home in homes for name, _ in reference.members(home)]
    assert [name for name in names if name not in named] == []
    assert len(names) > 3000


def test_methods_of_tensor(named):
    methods = [name for name in vars(torch.Tensor) if not name.startswith("_")]
    assert [name for name in methods if f"torch.Tensor.{name}" not in named] == []


def test_signatures_are_those_of_the_stubs(text):
    assert ".. py:function:: torch.exp(input: Tensor, *, out: Tensor | None = None) -> Tensor\n" in text
    assert ".. py:method:: torch.Tensor.exp() -> Tensor\n" in text
    assert re.search(r"py:class:: torch\.nn\.Linear\(in_features: int, out_features: int, bias: bool = True, ", text)
    overloads = re.search(r"py:function:: torch\.max\(.*\n( +torch\.max\(.*\n)+", text)
    assert overloads[0].count("torch.max(") == 3


def test_descriptions():
    lines = reference.text_of(
        """Do it: `x` to *y*.

        Args:
            x: a tensor
                of any shape
            *sizes: integers

        Example:
            >>> f(x)
            1
        """
    )
    assert lines == [
        "Do it: ``x`` to \\*y\\*.",
        "",
        "",
        ":param x: a tensor",
        "   of any shape",
        ":param \\*sizes: integers",
        "",
        "",
        "**Example**",
        "",
        ">>> f(x)",
        "1",
    ]
