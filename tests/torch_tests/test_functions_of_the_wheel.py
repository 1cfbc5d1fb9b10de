"""The custom Functions that torch ships for its own tests: the same source in both libraries gives the same answers."""

from __future__ import annotations

import importlib.util
import math
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import Raised, no_words, outcome
from tests.torch_tests.suite import near

pytestmark = pytest.mark.oracle
FOUND = importlib.util.find_spec("torch")
PATH = (
    None
    if FOUND is None or FOUND.origin is None
    else Path(FOUND.origin).parent / "testing/_internal/autograd_function_db.py"
)


class Sample:
    def __init__(self, input: Any, args: Any = (), kwargs: Any = None) -> None:
        self.args, self.kwargs = (input, *args), kwargs or {}


@cache
def functions(library: Any) -> dict[str, Any]:
    """Run the text of torch's table of custom Functions, all but its imports, with a library in the place of `torch`."""
    assert PATH is not None
    source = PATH.read_text()
    scope: dict[str, Any] = {
        "torch": library,
        "np": np,
        "partial": partial,
        "make_tensor": partial(make, library),
        "OpInfo": lambda name, **more: SimpleNamespace(name=name, **more),
        "SampleInput": Sample,
        "all_types_and": lambda *dtypes: dtypes,
        "__name__": "autograd_function_db",
    }
    exec(compile(source[source.index("def to_numpy") :], str(PATH), "exec"), scope)
    return {one.name: one for one in scope["autograd_function_db"]}


def make(library: Any, *shape: int, low: float = -2.0, high: float = 2.0, requires_grad: bool = False, **_: Any) -> Any:
    values = (np.arange(math.prod(shape)) * 0.61803398875 % 1.0) * (high - low) + low
    return library.tensor(values.reshape(shape), requires_grad=requires_grad)


def answers(library: Any, name: str, reading: str) -> list[Any]:
    """Ask a Function for values, gradients, gradients of gradients, tangents, or a batch."""
    entry = functions(library)[name]
    found = []
    for sample in entry.sample_inputs_func(entry, "cpu", library.float64, True):
        leaves = [one for one in sample.args if isinstance(one, library.Tensor) and one.requires_grad]

        def run(*args: Any, sample: Any = sample) -> Any:
            out = entry.op(*args, **sample.kwargs)
            many = out if isinstance(out, tuple) else (out,)
            return tuple([one for one in many if isinstance(one, library.Tensor) and one.dtype.is_floating_point])

        def total(sample: Any = sample, run: Any = run) -> Any:
            return sum((one * one).sum() for one in run(*sample.args) if one.requires_grad)

        def twice(leaves: Any = leaves, total: Any = total) -> Any:
            first = library.autograd.grad(total(), leaves, create_graph=True, allow_unused=True)
            second = sum((g * g).sum() for g in first if g is not None)
            return library.autograd.grad(second, leaves, allow_unused=True)

        def along(sample: Any = sample, run: Any = run) -> Any:
            first, *rest = sample.args
            return library.func.jvp(lambda x: run(x, *rest), (first.detach(),), (library.ones_like(first),))

        def batch(sample: Any = sample, run: Any = run) -> Any:
            first, *rest = [one.detach() if isinstance(one, library.Tensor) else one for one in sample.args]
            return library.vmap(lambda x: run(x, *rest))(library.stack([first, first * 0.9]))

        asked = {
            "values": lambda run=run, sample=sample: run(*sample.args),
            "gradients": lambda leaves=leaves, total=total: library.autograd.grad(total(), leaves, allow_unused=True),
            "second": twice,
            "tangents": along,
            "batch": batch,
        }
        found.append(outcome(asked[reading], words=no_words, ignore_warnings=False))
    return found


@pytest.mark.parametrize("reading", ["values", "gradients", "second", "tangents", "batch"])
@pytest.mark.parametrize("name", [] if PATH is None else list(functions(retrograd)))
def test_as_in_torch(name: str, reading: str) -> None:
    torch = pytest.importorskip("torch")
    ours, expected = answers(retrograd, name, reading), answers(torch, name, reading)
    assert ours == expected if any(isinstance(one, Raised) for one in (*ours, *expected)) else near(ours, expected), (
        f"{ours}\nin torch {expected}"
    )
