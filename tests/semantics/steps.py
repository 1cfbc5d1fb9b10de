"""What a program is made of, and how one step of it runs.

A program is a list of source lines that use the name ``torch``. The same lines run in both libraries (with
``torch`` bound to one or the other), so the program is at the same time its own readable, runnable script.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

# Helpers that the lines of a program may call. Scripts printed for a failure carry a copy of this text.
PRELUDE = '''
log = []


def show(tensor):
    if tensor is None:
        return None
    return (str(tensor.dtype).split(".")[-1], tuple(tensor.shape), tensor.requires_grad, tensor.tolist())


def record(event, grad, result=None):
    """Body of a hook: note the call, give back the result."""
    log.append((event, show(grad)))
    return result


def record_all(event, *groups):
    log.append((event, *(tuple(show(grad) for grad in group) for group in groups)))


def record_tripled(event, grads):
    record_all(event, grads)
    return tuple(None if grad is None else grad * 3 for grad in grads)


def record_and_clear(event, leaf):
    log.append((event, show(leaf.grad)))
    leaf.grad = None


def hook_on(tensor, hook):
    """register_hook; torch 2.13 crashes on a view whose base was modified unless grad_fn was read first."""
    tensor.grad_fn
    return tensor.register_hook(hook)


def pack(tensor):
    log.append(("pack", show(tensor)))
    return ["packed", tensor]


def unpack(packed):
    log.append(("unpack", show(packed[1])))
    return packed[1]


def pack_doubled(tensor):
    log.append(("pack", show(tensor)))
    return tensor.detach() * 2


def unpack_halved(packed):
    log.append(("unpack", show(packed)))
    return packed / 2
'''

NAMES_IN_SOURCE = re.compile(r"\b(?:t|handle|guard)\d+\b")
ASSIGNED_NAMES = re.compile(r"(?:(?:t|handle)\d+(?:, |,)?)+")


@dataclass(frozen=True)
class Step:
    """One line of a program. ``enters`` and ``exits`` name the context manager the line opens or closes."""

    operation: str
    source: str
    enters: str | None = None
    exits: str | None = None

    @functools.cached_property
    def defines(self) -> frozenset[str]:
        if self.enters:
            return frozenset({self.enters})
        target, equals, _ = self.source.partition(" = ")
        if not equals or not ASSIGNED_NAMES.fullmatch(target):
            return frozenset()
        return frozenset(NAMES_IN_SOURCE.findall(target))

    @functools.cached_property
    def uses(self) -> frozenset[str]:
        if self.exits:
            return frozenset({self.exits})
        return frozenset(NAMES_IN_SOURCE.findall(self.source)) - self.defines


@dataclass(frozen=True)
class Program:
    """``watch_every_step``: look at all tensors after each step, or only after the last one.

    Looking is itself an event (reading ``grad_fn`` of a view rebuilds it when its base was modified), so some
    programs must run unwatched to reach the states that looking would tidy up.
    """

    steps: tuple[Step, ...]
    watch_every_step: bool = True
    seed: str = field(default="", compare=False)


_PRELUDE_CODE = compile(PRELUDE, "<prelude>", "exec")


def fresh_namespace(library: Any) -> dict[str, Any]:
    namespace: dict[str, Any] = {"torch": library, "__name__": "program"}
    exec(_PRELUDE_CODE, namespace)
    return namespace


@functools.lru_cache(maxsize=4096)
def _compiled(source: str) -> CodeType:
    return compile(source, "<step>", "exec")


@functools.lru_cache(maxsize=4096)
def _compiled_expression(source: str) -> CodeType:
    return compile(source, "<step>", "eval")


def execute(step: Step, namespace: dict[str, Any], guards: list[Any]) -> Exception | None:
    """Run one step; give back what it raised. ``guards`` are the open context managers, innermost last."""
    try:
        if step.enters:
            guard = eval(_compiled_expression(step.source), namespace)
            guard.__enter__()
            guards.append(guard)
        elif step.exits:
            if guards:  # a program under reduction, or a library that failed to enter, may have none open
                guards.pop().__exit__(None, None, None)
        else:
            exec(_compiled(step.source), namespace)
    except Exception as error:
        # Frames would keep tensors alive, and with them parts of graphs that should be gone.
        return error.with_traceback(None)
    return None


def close(guards: list[Any]) -> None:
    while guards:
        guards.pop().__exit__(None, None, None)
