"""How the proof of purity follows functions that the library calls for the user: transforms, `functional_call`, `checkpoint`, trees.

A transform calls its function with tensors of its own in the place of those that it is given, in containers of its own: `shown` says what
may arrive. What comes out is again tensors, in the structure that the transform makes of the function's results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from .. import func
from ..autograd import functional
from ..nn.modules import container
from ..nn.modules.module import Module
from ..utils import _pytree, checkpoint
from ._values import (
    LIB,
    NONE,
    NOTHING,
    Applied,
    Args,
    Const,
    Known,
    Lib,
    Local,
    Many,
    Of,
    Tup,
    Value,
    const,
    join,
)

FALSE = const(False)


def shown(calls: Any, value: Value) -> Value:
    """Return what may stand for a value inside a transform: other tensors, in other containers."""
    found: list[Value] = []
    for one in value:
        kind = type(one)
        if calls.is_tensor(one):
            found.append(frozenset({one, Lib()}))
        elif kind is Tup:
            found.append(frozenset({Tup(tuple(shown(calls, item) for item in one.items))}))
        elif kind is Many:
            found.append(frozenset({Many(shown(calls, one.item))}))
        elif kind is Local and one.kind in (list, dict):
            heap = calls.heap[one.site]
            copy = calls.local(one.kind, ("shown", one.site), shown(calls, heap.items), heap.keys)
            found.append(join(frozenset({one}), copy))
        elif kind is Known and type(one.value) in (list, dict, OrderedDict):
            entries = calls.items(one)
            items = shown(calls, join(NOTHING, *(item for _, item in entries)))
            made = list if type(one.value) is list else dict
            keys = NOTHING if made is list else join(NOTHING, *(const(key) for key, _ in entries))
            found.append(calls.local(made, ("shown", id(one.source)), items, keys))
        else:
            found.append(frozenset({one}))
    return join(NOTHING, *found)


def shown_arguments(calls: Any, args: Args) -> Args:
    """Return the arguments with which a transform may call its function."""
    return Args(
        tuple(shown(calls, value) for value in args.positional),
        tuple((name, shown(calls, value)) for name, value in args.keywords),
        shown(calls, args.more),
        shown(calls, args.more_keywords),
    )


def split(calls: Any, returned: Value, aux: Value) -> list[tuple[Value, Value | None]]:
    """Return the ways in which a function may have returned its result, and something besides it."""
    truths = calls.truth(aux)
    ways: list[tuple[Value, Value | None]] = []
    if any(type(one) is not Const or not one.value for one in truths):
        ways.append((returned, None))
    if any(type(one) is not Const or one.value for one in truths):
        parts = [
            one.items if type(one) is Tup and len(one.items) == 2 else (calls.elements(frozenset({one})),) * 2
            for one in returned
        ]
        ways.append((join(NOTHING, *(a for a, _ in parts)), join(NOTHING, *(b for _, b in parts))))
    return ways


def tuples(*parts: Value | None) -> Value:
    """Return a tuple of what there is; one thing alone is no tuple."""
    there = tuple(part for part in parts if part is not None)
    return there[0] if len(there) == 1 else frozenset({Tup(there)})


# What functions that a transform has made return, of what the user's function returned and what it returned besides.
RESULTS: dict[str, Callable[[Value, Value | None], Value]] = {
    "grad": lambda out, aux: tuples(LIB, aux),
    "grad_and_value": lambda out, aux: tuples(LIB, LIB if aux is None else tuples(LIB, aux)),
    "vmap": lambda out, aux: out,
    "jacrev": lambda out, aux: tuples(LIB, aux),
    "jacfwd": lambda out, aux: tuples(LIB, aux),
}
TANGENTS = (
    "tangents of those that have left a level"  # arguments of functions below a level, which do not reach the user's
)


def apply(calls: Any, one: Applied, args: Args, site: Any) -> Value:
    """Follow a call of a function that a transform has made."""
    calls.check_given(args.all(), "a function made by the library", [])
    if one.kind == "pull_back":
        return LIB
    if one.kind == "below":
        keywords = tuple(one for one in args.keywords if not one[0].startswith(TANGENTS))
        given = shown_arguments(calls, Args(args.positional, keywords, args.more, args.more_keywords))
        returned = calls.call(one.function, given, site)
        return frozenset({Tup((join(returned, shown(calls, returned)), LIB, LIB))})  # see `_inside.py`
    returned = shown(calls, calls.call(one.function, shown_arguments(calls, args), site))
    return join(NOTHING, *(RESULTS[one.kind](out, aux) for out, aux in split(calls, returned, one.aux)))


def _codes() -> dict[CodeType, str]:
    made: dict[str, Any] = {
        name: getattr(func, name) for name in ("grad", "grad_and_value", "vmap", "jacrev", "jacfwd")
    }
    return {transform(len).__code__: name for name, transform in made.items()}


CODES = _codes()  # of the functions that transforms make


def made_before(calls: Any, known: Known) -> Applied | None:
    """Return a function as a transform's that has made it before the call; None for others."""
    function: FunctionType = known.value
    kind = CODES.get(function.__code__)
    if kind is None:
        return None
    inside = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    held = {name: cell.cell_contents for name, cell in inside.items()}
    if kind == "grad":  # it calls what `grad_and_value` has made
        (both,) = calls.hold(held["both"], known.source)
        return Applied("grad", made_before(calls, both).function, const(held["has_aux"]))  # type: ignore[union-attr]
    return Applied(kind, calls.hold(held["func"], known.source), const(held.get("has_aux", False)))


# ---- functions that make or apply transforms ----
def option(args: Args, name: str, place: int, default: Value) -> Value:
    """Return an argument that is given by its name, or by its place."""
    keywords = dict(args.keywords)
    return keywords.get(name, args.positional[place] if len(args.positional) > place else default)


def first(calls: Any, args: Args, name: str) -> tuple[Value, Args]:
    """Return the function that is given, and the other arguments."""
    if args.positional:
        return args.positional[0], Args(args.positional[1:], args.keywords, args.more, args.more_keywords)
    keywords = dict(args.keywords)
    if name not in keywords:
        calls.refuse("it calls a transform with arguments that are unpacked")
    function = keywords.pop(name)
    return function, Args((), tuple(keywords.items()), args.more, args.more_keywords)


def making(kind: str) -> Any:
    """Follow `grad(f)` and its like: nothing happens until the result is called."""

    def follow(calls: Any, args: Args, site: Any) -> Value:
        function, rest = first(calls, args, "func")
        calls.check_given(rest.all(), f"torch.func.{kind}")
        if kind == "hessian":
            return frozenset({Applied("jacfwd", frozenset({Applied("jacrev", function, FALSE)}), FALSE)})
        return frozenset({Applied(kind, function, FALSE if kind == "vmap" else option(args, "has_aux", 2, FALSE))})

    return follow


def vjp(calls: Any, args: Args, site: Any) -> Value:
    function, rest = first(calls, Args(args.positional, (), args.more), "func")
    calls.check_given(rest.all(), "torch.func.vjp", [])
    returned = shown(calls, calls.call(function, shown_arguments(calls, rest), site))
    pull_back = frozenset({Applied("pull_back", NOTHING, FALSE)})
    ways = split(calls, returned, dict(args.keywords).get("has_aux", FALSE))
    return join(NOTHING, *(tuples(out, pull_back, aux) for out, aux in ways))


def spread(calls: Any, value: Value) -> Args:
    """Return the arguments of `f(*value)`."""
    if len(value) == 1 and type(one := next(iter(value))) is Tup:
        return Args(one.items)
    return Args(more=calls.elements(value))


def jvp(calls: Any, args: Args, site: Any) -> Value:
    primals, tangents = option(args, "primals", 1, NOTHING), option(args, "tangents", 2, NOTHING)
    calls.check_given([primals, tangents], "torch.func.jvp", [])
    function, _ = first(calls, args, "func")
    returned = shown(calls, calls.call(function, shown_arguments(calls, spread(calls, primals)), site))
    ways = split(calls, returned, dict(args.keywords).get("has_aux", FALSE))
    return join(NOTHING, *(tuples(out, out, aux) for out, aux in ways))


def of_inputs(calls: Any, args: Args, site: Any) -> Value:
    """Follow torch.autograd.functional: its functions are called with the inputs, one by one where they are a tuple."""
    inputs = option(args, "inputs", 1, option(args, "primals", 1, NOTHING))
    function, rest = first(calls, args, "func")
    calls.check_given(rest.all(), "torch.autograd.functional", [])
    for one in inputs:
        given = spread(calls, frozenset({one})) if type(one) in (Tup, Many) else Args((frozenset({one}),))
        calls.call(function, shown_arguments(calls, given), site)
    return LIB


def functional_call(calls: Any, args: Args, site: Any) -> Value:
    """Follow a call of a module with other tensors: which ones take the place of which depends on its whole tree."""
    module = option(args, "module", 0, NOTHING)
    tensors = option(args, "parameter_and_buffer_dicts", 1, NOTHING)
    given, keywords = option(args, "args", 2, NONE), option(args, "kwargs", 3, NONE)
    named = dict(args.keywords)
    calls.check_given(
        [tensors, *(named.get(name, NOTHING) for name in ("tie_weights", "strict"))], "torch.func.functional_call"
    )
    results: list[Value] = []
    for one in module:
        if type(one) is not Known or not isinstance(one.value, Module):
            calls.refuse("torch.func.functional_call receives what is no module that exists before the call")
        for inner in calls.tree(one):
            calls.check_plain(type(inner.value))
            for special in ("__getattr__", "__setattr__", "__delattr__"):
                if calls.has_user_method(type(inner.value), special):
                    calls.refuse(f"{type(inner.value).__qualname__} defines {special}, which functional_call may run")
        for way in given:
            if type(way) is Const and way.value is None:
                call = Args()
            else:
                call = spread(calls, frozenset({way})) if type(way) in (Tup, Many) else Args((frozenset({way}),))
            if keywords != NONE:
                call = Args(call.positional, (), call.more, frozenset(k for k in keywords if k not in NONE))
            results.append(calls.call(frozenset({one}), call, site))
    return join(NOTHING, *results)


def checkpointed(calls: Any, args: Args, site: Any) -> Value:
    """Follow a checkpoint: it calls the function, now and in the backward."""
    own = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop")
    calls.check_given([value for name, value in args.keywords if name in own], "checkpoint")
    if "context_fn" in dict(args.keywords):
        calls.refuse("checkpoint receives a function that makes contexts")
    keywords = tuple((name, value) for name, value in args.keywords if name not in own)
    function, rest = first(calls, Args(args.positional, keywords, args.more, args.more_keywords), "function")
    calls.check_given(rest.all(), "checkpoint", [])
    return shown(calls, calls.call(function, shown_arguments(calls, rest), site))


def checkpointed_in_segments(calls: Any, args: Args, site: Any) -> Value:
    functions, value = option(args, "functions", 0, NOTHING), option(args, "input", 2, NOTHING)
    calls.check_given([value], "checkpoint_sequential", [])
    (only,) = functions if len(functions) == 1 else (None,)
    if type(only) is Known and isinstance(only.value, container.Sequential):
        steps = [child for _, child in calls.children(only)]
    elif type(only) is Known and type(only.value) is list:
        steps = [step for _, step in calls.items(only)]
    else:
        calls.refuse("checkpoint_sequential receives functions that are made in the call")
    for step in steps:
        value = calls.call(step, Args((shown(calls, value),)), site)
    return shown(calls, value)


def of_leaves(calls: Any, args: Args, site: Any) -> Value:
    """Follow functions of trees: what they call gets the leaves, and what they return holds leaves or results."""
    callables: list[Any] = []
    given = calls.check_given(args.all(), "a function of trees", callables)
    return held(join(frozenset(callables), calls.call_back(callables, given)))


def held(results: Value) -> Value:
    """Return what a function of the library may return that calls others: tensors, or anything that holds what these return."""
    results = join(LIB, results)
    plain = all(type(one) in (Lib, Const, Of) for one in results)
    return LIB if plain else join(results, frozenset({Many(results)}))


def stack_module_state(calls: Any, args: Args, site: Any) -> Value:
    """Follow the reading of modules, which are not called."""
    for one in calls.elements(option(args, "models", 0, NOTHING)):
        if type(one) is not Known or not isinstance(one.value, Module):
            calls.refuse("torch.func.stack_module_state receives what is no module that exists before the call")
        calls.tree(one)
    return frozenset({Tup((LIB, LIB))})


FOLLOWED: dict[Any, Callable[[Any, Args, Any], Value]] = {
    **{getattr(func, name): making(name) for name in (*RESULTS, "hessian")},
    func.vjp: vjp,
    func.jvp: jvp,
    func.hvp: of_inputs,
    **{getattr(functional, name): of_inputs for name in functional.__all__},
    func.functional_call: functional_call,
    func.stack_module_state: stack_module_state,
    checkpoint.checkpoint: checkpointed,
    checkpoint.checkpoint_sequential: checkpointed_in_segments,
    **{getattr(_pytree, name): of_leaves for name in ("tree_map", "tree_map_only", "tree_leaves", "tree_flatten")},
}
