"""Code that is written as text: it is compiled in one place, tracebacks show its lines, and it can be written out."""

from __future__ import annotations

import ast
import linecache
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import retrograd
from retrograd._generated import emit

PACKAGE = Path(retrograd.__file__).parent
COMPILERS = {"eval", "compile"}
ALLOWED = {"_generated.py", "compiler/__init__.py"}  # the latter has a `compile` of its own
ALLOWED |= {"cli/_run.py"}  # runs a user's script
ALLOWED |= {"compiler/_syntax.py"}  # compiles the text of a user's file to compare it, and runs nothing
ALLOWED |= {"compiler/_splitting.py"}  # compiles trees of a user's file, whose lines tracebacks show


def test_text_is_compiled_in_one_place() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name, text = str(path.relative_to(PACKAGE)), path.read_text()
        if name not in ALLOWED and any(f"{one}(" in text for one in COMPILERS):
            calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            names = {one.id for one in calls if isinstance(one, ast.Name)} & COMPILERS
            found |= {name: names} if names else {}
    assert not found, "use _generated.emit"


def test_lines_are_shown_and_names_differ() -> None:
    made = [emit("a test", f"def fails():\n    raise ValueError({k})  # here {k}", {})["fails"] for k in range(2)]
    files = [one.__code__.co_filename for one in made]
    assert files[0] != files[1]
    assert (
        emit("a test", "def fails():\n    raise ValueError(0)  # here 0", {})["fails"].__code__.co_filename == files[0]
    )
    for k, one in enumerate(made):
        with pytest.raises(ValueError, match=str(k)) as caught:
            one()
        linecache.checkcache()
        assert f"# here {k}" in "".join(traceback.format_exception(caught.value))


def test_a_traceback_shows_the_line_of_a_public_function() -> None:
    """In a process of its own: once a mode was entered, a public function's general form answers, which is no text."""
    program = (
        "import retrograd as t, traceback\n"
        "t.softmax(t.ones(2), 0)  # the first call writes the text\n"
        "try:\n"
        "    t.softmax(t.ones(2), 5)\n"
        "except IndexError:\n"
        "    traceback.print_exc()  # not Python's own printer: before 3.13 it knows files only"
    )
    full = {**os.environ, "RETROGRAD_TRACEBACK": "full"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=full)
    lines = run.stderr.splitlines()
    texts = [k for k, line in enumerate(lines) if 'File "<retrograd: ' in line]
    assert texts, run.stderr
    assert not any(lines[k + 1].lstrip().startswith("File ") for k in texts), run.stderr


def test_nodes_made_in_a_text_report_the_users_line() -> None:
    """The backward of `tanh` and of `*` is a text, and records under `create_graph`."""
    w = retrograd.ones(3, requires_grad=True)
    g = retrograd.autograd.grad((w * w).tanh().sum(), w, create_graph=True)[0]
    pending, files = [g.grad_fn], set()
    while pending:
        node = pending.pop()
        if node is None or not hasattr(node, "code"):
            continue
        if node.code is not None:  # AccumulateGrad has none
            files.add(node.code.co_filename)
        pending.extend(one for one, _ in node.next_functions)
    assert files == {__file__}


def test_texts_are_written_out(tmp_path: Path) -> None:
    program = (
        "import retrograd as t; w = t.nn.Parameter(t.ones(3)); (w * w).tanh().sum().backward()\n"
        "t.optim.Adam([w]).step(); t.nn.functional.layer_norm(w, (3,)).sum().backward()"
    )
    folder = tmp_path / "texts"
    environment = os.environ | {"RETROGRAD_DUMP": str(folder)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert any(name.startswith("retrograd_backward_of_multiply") for name in written), sorted(written)
    assert any(name.startswith("retrograd_the_plan_of") for name in written), sorted(written)
    for text in written.values():
        ast.parse(text)


def test_functions_find_the_names_of_python() -> None:
    """NumPy imports a part of itself at the first overflow, and asks the function that runs for `__import__`."""
    x = retrograd.ones(2, requires_grad=True)
    y = (x.exp() + x).sum()
    y.backward()
    functions = [retrograd.exp, retrograd.add, retrograd.sum, type(y.grad_fn).straight, retrograd.nn.functional.relu]
    assert [one.__name__ for one in functions if "__builtins__" not in one.__globals__] == []
