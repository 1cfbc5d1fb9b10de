"""What a mode sees of small programs and their backwards, compared with torch, operation by operation."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import retrograd
from tests.dispatch.programs import PROGRAMS
from tests.dispatch.test_all_operations import chosen, tensors_of
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, arrays_of, is_float

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def seeing(library: Any, seen: list[str], with_arguments: bool = False) -> Any:
    """Return a mode that takes down what it sees."""
    modes = importlib.import_module(f"{library.__name__}.utils._python_dispatch")

    class Seeing(modes.TorchDispatchMode):  # type: ignore[name-defined,misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            out = func(*args, **kwargs)
            seen.append(f"{func}({shown(args)}, {shown(kwargs)})" if with_arguments else str(func))
            return out

    def shown(value: Any) -> Any:
        if isinstance(value, library.Tensor):
            return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return [shown(one) for one in value]
        if isinstance(value, dict):
            return {key: shown(one) for key, one in sorted(value.items())}
        return str(value)

    return Seeing()


def trace(library: Any, name: str, with_arguments: bool = False) -> list[str]:
    seen: list[str] = []
    library.manual_seed(0)
    run = PROGRAMS[name](library)
    with seeing(library, seen, with_arguments):
        run()
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_sees_the_operations_that_torch_shows(name: str) -> None:
    assert trace(retrograd, name) == trace(torch, name)


# Whole numbers among floats print otherwise, and so do a few that autograd hands on as tensors. torch's softmax converts to a device, too.
ARGUMENTS = [name for name in PROGRAMS if name not in ("powers", "embedding", "dropout", "softmax in another dtype")]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_operations_have_the_arguments_that_torch_hands_on(name: str) -> None:
    assert trace(retrograd, name, True) == trace(torch, name, True)


def passes(library: Any, op: Op) -> tuple[list[str], list[str]]:
    """Return what a mode sees of an operation of our table, and of its backward."""
    sample = chosen(op, 1)[0]
    forward: list[str] = []
    backward: list[str] = []
    library.manual_seed(0)
    given = [library.tensor(one) for one in arrays_of(op, sample)]
    given = [one.requires_grad_() if differs else one for one, differs in zip(given, is_float(sample), strict=True)]
    with seeing(library, forward):
        results = tensors_of(op.function(library, sample, given))
    results = [one for one in results if isinstance(one, library.Tensor) and one.requires_grad]
    seeds = [library.ones(one.shape, dtype=one.dtype) for one in results]
    with seeing(library, backward):
        library.autograd.grad(results, [one for one in given if one.requires_grad], seeds, allow_unused=True)
    return forward, backward


# torch writes conjugates of real numbers out, and makes the zeros of an empty view in another way.
KNOWN = {"to_complex", "mixed_real_and_complex", "as_strided", "linalg_vecdot"}


@pytest.mark.filterwarnings("ignore")
def test_an_operation_with_a_formula_shows_the_backward_that_torch_shows() -> None:
    different, count = set(), 0
    for op in DIFFERENTIABLE:
        forward, backward = passes(retrograd, op)
        if op.name.startswith("xp_") or any(one.startswith("retrograd.") for one in backward):
            continue
        try:
            theirs = passes(torch, op)
        except RuntimeError:  # some backwards refuse empty tensors
            continue
        if theirs[0] == forward:
            count += 1
            if theirs[1] != backward:
                different.add(op.name)
    assert different == KNOWN
    assert count > 300
