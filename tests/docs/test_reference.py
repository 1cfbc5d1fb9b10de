"""The API reference has every public name, with its signature, and says the same as the live objects."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from .pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import reference

# Run in a process of its own: it imports every public module, which other tests must not notice.
PROGRAM = """
import json
import re
import reference
from retrograd import Tensor
from retrograd.cli import _coverage

homes = reference.public_modules()
used = [name for name in _coverage.used_names() if _coverage.exists(name) and _coverage._module(name) is None]
print(json.dumps({
    "text": "\\n".join(reference.pages().values()),
    "public": [f"{home}.{name}" for home in homes for name, _ in reference.members(home)],
    "used": [name for name in used if name.rpartition(".")[0] in {*homes, "torch.Tensor"}],
    "bare": [
        entry.path
        for entry in [*reference.entries(), *reference.tensor_members()]
        if not reference.is_absent(entry.value) and callable(entry.value) and not reference.is_a_type_expression(entry.value)
        and not (reference.signatures(entry) not in ([], ["(...)"]) and reference.description(entry))
    ],
    "methods": [f"torch.Tensor.{name}" for name in vars(Tensor) if not name.startswith("_")],
}))
"""


@pytest.fixture(scope="module")
def facts():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def named(facts):
    """Return every name that stands in the reference: described, or called the second name of something, or only importable."""
    text = facts["text"]
    described = re.findall(r"(?:\.\. py:\w+:: |^ {6,})((?:torch|retrograd)(?:\.\w+)+)", text, re.MULTILINE)
    return {*described, *re.findall(r"``((?:torch|retrograd)(?:\.\w+)+)``", text)}


# `used` was made by reading libraries (`retrograd coverage`), not by looking at the package.
@pytest.mark.parametrize(("names", "least"), [("used", 1500), ("public", 3000), ("methods", 500)])
def test_names_that_are_public(facts, named, names, least):
    private = re.compile(r"\._|^torch\.torch$|^torch\.ops\.")
    assert [name for name in facts[names] if name not in named and not private.search(name)] == []
    assert len(facts[names]) > least


def test_names_that_torch_does_not_have(facts, named):
    assert {"torch.nn.summary", "torch.nn.Summary", "torch.autograd.explain", "retrograd.debug.gradient_flow"} <= named
    assert ".. py:function:: torch.nn.summary(model: Any, *inputs: Any, input_size: Any = None" in facts["text"]


# Classes of Python's and their kin, which do not say how they are called: str, int, dict, type.
OF_PYTHON = {
    "torch.autograd.profiler_util.StringTable",
    "torch.autograd.variable.VariableMeta",
    "torch.backends.cuda.cuBLASModule",
    "torch.distributed.GroupName",
    "torch.fx.immutable_dict",
    "torch.torch_version.TorchVersion",
    "torch.types.BoolLikeType",
    "torch.types.IntLikeType",
}


def test_everything_that_is_called_has_a_signature_and_a_description(facts):
    assert set(facts["bare"]) <= OF_PYTHON  # newer versions say of more of them how they are called


def test_signatures_are_those_of_the_stubs(facts):
    text = facts["text"]
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
