"""Operations that are the backwards of others: `gelu_backward`, `nll_loss_backward`, `_softmax_backward_data`.

torch names their arguments after those of the forward, and after its results. So their schemas say what a formula hands to them
(`recording.py`), and how they are computed: as the derivative of the forward, which is computed again (`kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

from ..ops import OpOverload, aten
from . import schemas

OTHER_NAMES = {"self_or_result": "self", "train": "training"}  # of the forward's arguments
RESULTS = {"output": 0, "out": 0, "mean": 1, "rstd": 2, "save_mean": 1, "save_invstd": 2, "indices": 1, "total_weight": 1,
           "logsumexp": 1, "buffer": 1}  # fmt: skip


def backward_of(name: str) -> OpOverload | None:
    """Return the backward of one of torch's operations, if that is an operation, too."""
    inner = name.removesuffix("_forward")
    found = [one for one in (f"{inner}_backward", f"{inner}_backward_data") if "default" in schemas.forms_of(one)]
    return getattr(aten, found[0]).default if found and not schemas.is_composite(found[0], "default") else None


def forward_of(name: str) -> OpOverload | None:
    """Return the operation of which another is the backward."""
    inner = name.removesuffix("_data").removesuffix("_backward")
    if inner == name:
        return None
    forms = [(one, *schemas.forms_of(one)) for one in (f"{inner}_forward", inner)]
    return next((getattr(getattr(aten, one), overloads[0]) for one, *overloads in forms if overloads), None)


def differentiated(forward: OpOverload, backward: OpOverload) -> list[str]:
    """Return the arguments of the forward for which the backward gives gradients."""
    names = [one.name for one in forward._schema.arguments if one.type in ("Tensor", "Tensor?")]
    return names[: len(backward._schema.returns)]


def _same(value: Any) -> Any:
    return value


def _source(name: str, names: list[str], results: int) -> tuple[str, Callable[[Any], Any]] | None:
    """Return what a formula reads for an argument of a backward, and what it makes of that."""
    name = OTHER_NAMES.get(name, name)
    base, _, last = name.rpartition("_")
    if name.startswith("grad"):
        return "grads", itemgetter(0)
    if name in names:
        return name, _same
    if name == "output_mask":
        return "needed", list
    if last == "result":  # whether the result is given for the argument
        return "grads", lambda _: False
    if last == "dtype":
        return f"{names[0]}_options", itemgetter("dtype")
    if last in ("size", "sizes"):
        return f"{base if base in names else names[0]}_sizes", _same
    if RESULTS.get(name, results) >= results:
        return None
    return f"result{RESULTS[name]}" if results > 1 else "result", _same


@cache
def formula_of(op: OpOverload, name: str) -> tuple[tuple[str, ...], Callable[..., Any], tuple[str, ...]] | None:
    """Return the arguments that a backward is for, the formula that calls it, and what that reads."""
    backward = backward_of(name)
    if backward is None:
        return None
    arguments, names = backward._schema.arguments, [one.name for one in op._schema.arguments]
    sources = [_source(one.name, names, len(op._schema.returns)) for one in arguments]
    known = [one for one in sources if one is not None]
    if len(known) < len(sources) or not arguments[0].name.startswith("grad"):
        return None

    def formula(*values: Any) -> Any:
        given = {one.name: make(value) for one, (_, make), value in zip(arguments, known, values, strict=True)}
        positional, named = schemas.given(backward._schema, given)
        return backward(*positional, **named)

    return tuple(differentiated(op, backward)), formula, tuple(source for source, _ in known)


def values_of_forward(
    forward: OpOverload, backward: OpOverload, args: Any, kwargs: Any
) -> tuple[dict[str, Any], list[bool]]:
    """Return the arguments of the forward, as those of its backward say, and which of them want a gradient.

    Of one whose size alone is told the values do not count, so they are zeros.
    """
    names = [one.name for one in backward._schema.arguments]
    values = dict(zip(names, args, strict=False)) | kwargs
    wanted = differentiated(forward, backward)
    mask = list(values.get("output_mask", [True] * len(wanted)))
    own = {one.name: one.default_value for one in forward._schema.arguments}
    for name, value in values.items():
        name = OTHER_NAMES.get(name, name)
        base, _, last = name.rpartition("_")
        if name in own:
            own[name] = value
        elif last in ("size", "sizes"):
            of = base if base in own else wanted[0]
            own[of] = args[0].new_zeros(value) if mask[wanted.index(of)] else None
    for one in forward._schema.arguments:
        if one.name == "output_size" and own[one.name] is None:
            own[one.name] = list(args[0].shape[-one.N :])
    return own, mask
