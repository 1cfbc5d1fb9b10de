"""Programs with hooks, branches on data and modes: what jit.trace, export and make_fx make of them computes what torch's does."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd

theirs: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def traced(torch: Any, module: Any, *args: Any) -> Any:
    return torch.jit.trace(module, args)


def exported(torch: Any, module: Any, *args: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.export").export(module, args).module()


def made_fx(torch: Any, module: Any, *args: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx(module)(*args)


def same(shown: Callable[[Any], Any]) -> None:
    """Let a program show in both libraries what it computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert shown(retrograd) == shown(theirs)


def of(torch: Any, forward: Callable[..., Any]) -> Any:
    """Return a module with a parameter `w` and this forward."""

    class Made(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            return forward(self, x)

    return Made()


# ---- hooks ----
def hooked(torch: Any) -> Any:
    module = of(torch, lambda self, x: x + self.w)
    module.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    module.register_forward_hook(lambda module, args, out: out * 2)
    return module


@pytest.mark.parametrize("record", [traced, exported])
def test_hooks_of_the_whole_run_once(record: Any) -> None:
    same(lambda torch: record(torch, hooked(torch), torch.ones(2))(torch.ones(2)).tolist())


def test_a_hook_of_the_trace_runs_after_those_in_it() -> None:
    def shown(torch: Any) -> Any:
        made = traced(torch, hooked(torch), torch.ones(2))
        made.register_forward_hook(lambda module, args, out: out * 5)
        return made(torch.ones(2)).tolist()

    same(shown)


def test_a_hook_of_the_backward_cannot_be_traced() -> None:
    def shown(torch: Any) -> Any:
        module = torch.nn.Sequential(torch.nn.Linear(2, 2))
        module[0].register_full_backward_hook(lambda module, inputs, outputs: None)
        with pytest.raises(ValueError, match="backward hooks") as found:
            traced(torch, module, torch.ones(2))
        return str(found.value)

    same(shown)


# ---- branches on data ----
def branching(torch: Any) -> Any:
    return of(torch, lambda self, x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)))


def looping(torch: Any) -> Any:
    return of(torch, lambda self, x: torch.while_loop(lambda x: x.sum() < 9, lambda x: (x + 1,), (x,)))


@pytest.mark.parametrize("program", [branching, looping])
def test_a_trace_refuses_branches_on_data(program: Any) -> None:
    def shown(torch: Any) -> Any:
        with pytest.raises(RuntimeError) as found:
            traced(torch, program(torch), torch.ones(2))
        return str(found.value).split("\n")[0]

    same(shown)


@pytest.mark.parametrize("program", [branching, looping])
def test_export_refuses_branches_on_data(program: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"torch\.export"):
        exported(retrograd, program(retrograd), retrograd.ones(2))
