"""The positional forms torch has deprecated and still takes: `p.add_(-lr, grad)`, `torch.addmm(beta, m, alpha, a, b)`.

They have more positional arguments than the present form, which is how they are told apart: nothing else pays for them.
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from ... import _warnings
from ...overrides import parameters_of
from .. import _base

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Form(NamedTuple):
    """What a function takes: numbers, which came first and are keywords today, and tensors besides the first."""

    numbers: tuple[str, ...]
    tensors: tuple[str, ...]


def form_of(function: Any) -> Form | None:
    """Return what a public function takes; None if it never had an old form."""
    written = getattr(function, "__wrapped__", function)
    if not getattr(function, "takes_old_forms", False):
        return None
    positional, keywords, _ = parameters_of(written)
    return Form(keywords, positional[1:])


_warned = False


def _number(value: Any) -> Any:
    """Return what torch reads as a number, also from a tensor of no dimensions; None if it is none."""
    if isinstance(value, _base.Tensor):
        return value.item() if not value._array.ndim and not value.requires_grad else None
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (int, float, builtins.complex)) else None


def present_form(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Return the arguments of a call with too many by position, the tensor first, as today's form takes them.

    `name` is the one that was called; `function` the public function of which that may be the method in place.
    """
    form = form_of(function) or Form((), ("other",))
    count = len(args) - 1 - len(form.tensors)
    if 0 < count <= len(form.numbers) and not set(form.numbers) & set(kwargs):
        found = _ordered(args, count, tensor_second=len(form.numbers) > 1)
        if found is not None:
            numbers, tensors = found
            _warn(name, form, count, tensor_second=tensors[0] is not args[0])
            return tensors, {**kwargs, **dict(zip(form.numbers, numbers, strict=False))}
        if form.tensors == ("other",) and _number(args[1]) is not None and _number(args[2]) is not None:
            return args[:2], {**kwargs, "alpha": _number(args[2])}  # of two numbers the second is alpha, even today
    own = name.endswith("_")  # torch does not count the tensor that is written
    takes = 1 + len(form.tensors) - own
    plural = "" if takes == 1 else "s"
    raise TypeError(f"{name}() takes {takes} positional argument{plural} but {len(args) - own} were given")


def _ordered(args: tuple[Any, ...], count: int, *, tensor_second: bool) -> tuple[list[Any], tuple[Any, ...]] | None:
    """Return the numbers and the tensors of an old form; None if the arguments are none."""
    orders = [args]
    if tensor_second:  # functions have the tensor after beta, methods before it
        orders.insert(0, (args[1], args[0], *args[2:]))
    for order in orders:
        numbers = [_number(value) for value in order[1 : 1 + count]]
        tensors = (order[0], *order[1 + count :])
        if None not in numbers and all(isinstance(value, _base.Tensor) for value in tensors):
            return numbers, tensors
    return None


def _warn(name: str, form: Form, count: int, *, tensor_second: bool) -> None:
    """Say once in a process, as torch does, that such forms are old."""
    global _warned
    if _warned and not _warnings.always:
        return
    _warned = True
    numbers = [f"Number {number}" for number in form.numbers]
    tensors = [f"Tensor {tensor}" for tensor in form.tensors]
    old, now = numbers[:count] + tensors, [*tensors, "*", *(f"{number} = 1" for number in numbers)]
    if tensor_second:  # a function, not a method
        old.insert(1, "Tensor input")
        now.insert(0, "Tensor input")
        if not name.endswith("_"):
            old += ["*", "Tensor out = None"]
            now += ["Tensor out = None"]
    _warnings.warn(
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(old)})\nConsider using one of the following "
        f"signatures instead:\n\t{name}({', '.join(now)})"
    )
