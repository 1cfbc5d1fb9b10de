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
hooked = set()


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


def record_and_hook(event, grad, tensor):
    """Body of a hook that registers another one, the first time."""
    log.append((event, show(grad)))
    if event not in hooked:
        hooked.add(event)
        hook_on(tensor, lambda grad: record(event + " added", grad))


def record_and_hook_node(event, grads, node):
    record_all(event, grads)
    if event not in hooked:
        hooked.add(event)
        node.register_prehook(lambda grads: record_all(event + " added before", grads))
        node.register_hook(lambda inputs, outputs: record_all(event + " added after", inputs, outputs))


def record_and_remove(event, grad, handle):
    log.append((event, show(grad)))
    handle.remove()


def record_and_queue(torch, event, grad):
    """Body of a hook that has something done after backward, and something more after that."""
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def later():
        log.append((event, "later"))
        queue(lambda: log.append((event, "last")))

    log.append((event, show(grad)))
    queue(later)


def record_and_retain(event, grad, tensor):
    log.append((event, show(grad)))
    tensor.retain_grad()


def custom(torch, event, kind, tensor):
    """Apply a custom Function that returns something of the named kind."""

    def forward(ctx, x):
        log.append((event, ctx.needs_input_grad))
        if kind == "none":
            ctx.set_materialize_grads(False)
        if kind in ("input", "view", "slice"):
            return {"input": x, "view": x.view_as(x), "slice": x[...]}[kind]
        if kind == "dirty":
            ctx.mark_dirty(x)
            return x.mul_(2)
        if kind == "two views":
            return x.view_as(x), x[...]
        y = x * 2
        if kind.startswith("saved"):
            ctx.save_for_backward(x if kind == "saved input" else y)
        if kind == "constant":
            ctx.mark_non_differentiable(y)
        return (x * 3, y) if kind in ("two", "constant") else y

    def backward(ctx, *grads):
        record_all(event, grads, ctx.saved_tensors)
        given = [grad for grad in grads if grad is not None]
        return None if not given or kind == "none" else sum(given) * 2

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Custom", (torch.autograd.Function,), body).apply(tensor)


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
