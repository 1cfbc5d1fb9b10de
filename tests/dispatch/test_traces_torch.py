"""What a mode sees of small programs and their backwards, compared with torch, operation by operation."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import retrograd
from tests.dispatch.programs import PROGRAMS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def trace(library: Any, name: str, with_arguments: bool = False) -> list[str]:
    modes = importlib.import_module(f"{library.__name__}.utils._python_dispatch")
    seen: list[str] = []

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

    library.manual_seed(0)
    run = PROGRAMS[name](library)
    with Seeing():
        run()
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_sees_the_operations_that_torch_shows(name: str) -> None:
    assert trace(retrograd, name) == trace(torch, name)


# Whole numbers among floats print otherwise, and so do a few that autograd hands on as tensors.
ARGUMENTS = [name for name in PROGRAMS if name not in ("powers", "embedding", "dropout")]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_operations_have_the_arguments_that_torch_hands_on(name: str) -> None:
    assert trace(retrograd, name, True) == trace(torch, name, True)
