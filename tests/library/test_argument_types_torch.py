"""Custom operations take and return what torch's take and return, and refuse the rest in the same words."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.oracle import Raised, in_torchs_name, outcome

_numbers = itertools.count()

TYPES = {
    "int": ["2", "2.5", "True", "'s'", "None", "3j", "[1]", "torch.tensor(2)", "torch.tensor(2.5)", "x", "np.int64(3)"],
    "float": ["2", "2.5", "True", "'s'", "3j", "torch.tensor([2])", "x", "np.float32(3)", "torch.float32"],
    "bool": ["2", "0.0", "None", "'s'", "[1]", "{}", "torch.tensor(0)", "x"],
    "str": ["'s'", "3", "None", "x"],
    "list[int]": [
        "[1, 2]",
        "(1, 2)",
        "[]",
        "['a']",
        "'a'",
        "2",
        "[1.5]",
        "x",
        "torch.tensor([1, 2])",
        "torch.Size([2])",
    ],
    "list[float]": ["[1, 2.5]", "range(2)", "2", "['a']", "torch.tensor([1.0])"],
    "list[bool]": ["[1, False]", "['a']", "True"],
    "Optional[int]": ["None", "2", "2.5"],
    "Optional[list[int]]": ["None", "[1]", "[None]", "2"],
    "Union[int, float, bool]": ["2", "2.5", "3j", "'s'", "None", "x", "[1]", "torch.tensor(2)"],
    "torch.dtype": ["torch.float32", "2.5", "'float32'"],
    "torch.device": ["torch.device('cpu')", "'cpu'", "3"],
    "list[torch.Tensor]": ["[x]", "(x, x)", "[x, 1]", "x", "3"],
    "Optional[torch.Tensor]": ["None", "x", "3", "[x]"],
}
CALLS = [(kind, value) for kind, values in TYPES.items() for value in values]


def answers(library: Any, signature: str, body: str, *values: Any) -> Any:
    """Define an operation and call it; return what its kernel got and gave, or the error."""
    name = f"argument_types::o{next(_numbers)}"
    got: list[Any] = []
    scope: dict[str, Any] = {"torch": library, "np": np, "x": library.ones(2), "got": got}
    exec(f"from typing import *\ndef f{signature}: return {body}", scope)
    operation = library.library.custom_op(name, scope["f"], mutates_args=())
    made = outcome(
        lambda: repr(operation(scope["x"], *(eval(one, scope) for one in values))),
        words=lambda error: in_torchs_name(error).replace(name, "o"),
        ignore_warnings=False,
    )
    return made if isinstance(made, Raised) else (repr(got), made)


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "value"), CALLS)
def test_arguments(kind: str, value: str) -> None:
    torch = pytest.importorskip("torch")
    signature, body = f"(x: torch.Tensor, n: {kind}) -> torch.Tensor", "(got.append(n), x.clone())[1]"
    assert answers(rg, signature, body, value) == answers(torch, signature, body, value)


RESULTS = [
    ("torch.Tensor", "3"),
    ("torch.Tensor", "'a'"),
    ("torch.Tensor", "[x.clone()]"),
    ("tuple[torch.Tensor, torch.Tensor]", "x.clone()"),
    ("tuple[torch.Tensor, torch.Tensor]", "[x.clone(), x + 1]"),
    ("tuple[torch.Tensor, torch.Tensor]", "(x.clone(), 3)"),
    ("list[torch.Tensor]", "(x.clone(),)"),
    ("list[torch.Tensor]", "[3]"),
    ("list[torch.Tensor]", "x.clone()"),
    ("int", "2.5"),
    ("int", "x.sum()"),
    ("float", "3"),
    ("float", "'a'"),
    ("bool", "1"),
    ("None", "3"),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "body"), RESULTS)
def test_results(kind: str, body: str) -> None:
    torch = pytest.importorskip("torch")
    signature = f"(x: torch.Tensor) -> {kind}"
    assert answers(rg, signature, body) == answers(torch, signature, body)


@pytest.mark.oracle
def test_a_kernel_is_switched_off_for_a_block(caplog: pytest.LogCaptureFixture) -> None:
    torch = pytest.importorskip("torch")

    def told(library: Any) -> list[Any]:
        def plain(x: Any) -> Any:
            return x + 1

        plain.__annotations__ = {"x": library.Tensor, "return": library.Tensor}
        operation = library.library.custom_op("argument_types::switched", plain, mutates_args=())
        operation.register_kernel("cpu")(lambda x: x + 5)
        x, found = library.zeros(()), []
        operation.set_kernel_enabled("cpu", enabled=False)  # which is a block, and not entered
        found.append(operation(x).item())
        with operation.set_kernel_enabled("cpu", enabled=False):
            found.append(operation(x).item())
            with operation.set_kernel_enabled("cpu", enabled=True):
                found.append(operation(x).item())
            with operation.set_kernel_enabled("cuda", enabled=False):
                found.append(operation(x).item())
        return [*found, operation(x).item()]

    with caplog.at_level(logging.WARNING):
        found = told(rg)
        words = [one.getMessage() for one in caplog.records]
        caplog.clear()
        assert (found, words) == (told(torch), [one.getMessage() for one in caplog.records])


@pytest.mark.oracle
def test_arguments_are_cast_under_autocast() -> None:
    torch = pytest.importorskip("torch")

    def told(library: Any) -> Any:
        def product(x: Any, y: Any) -> Any:
            return x @ y

        product.__annotations__ = {"x": library.Tensor, "y": library.Tensor, "return": library.Tensor}
        operation = library.library.custom_op("argument_types::product", product, mutates_args=())
        operation.register_autocast("cpu", library.bfloat16)
        x = library.ones(2, 2)
        with library.autocast("cpu", dtype=library.bfloat16):
            inside = operation(x, x)
        try:
            operation.register_autocast(3, library.bfloat16)
        except ValueError as error:
            return str(inside.dtype), str(operation(x, x).dtype), str(error)

    assert told(rg) == told(torch)
