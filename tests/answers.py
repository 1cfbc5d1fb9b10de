"""What a call or a one-line program answers in a library: its value, or the error it raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


def outcome(work: Callable[..., Any], *args: Any) -> Any:
    """Return what a call gives, or the class and the words of its error; warnings are not looked at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return work(*args)
        except Exception as error:
            return type(error).__name__, str(error).replace("retrograd", "torch")


def told(work: Callable[..., Any], *args: Any) -> Any:
    """Do the same, and say "value" of a value, so that it cannot be taken for an error."""
    return outcome(lambda: ("value", work(*args)))


def typed(value: Any) -> tuple[str, str]:
    """Return the type and the text of a value."""
    return type(value).__name__, repr(value)


def described(value: Any) -> Any:
    """Return what a user sees of a value: of a tensor its dtype, shape, strides, numbers and node."""
    if isinstance(value, (tuple, list)):
        return [described(one) for one in value]
    if hasattr(value, "stride") and hasattr(value, "dtype"):
        node = None if value.grad_fn is None else value.grad_fn.name()
        return str(value.dtype), tuple(value.shape), value.stride(), str(value.tolist()), value.requires_grad, node
    return str(value).replace("retrograd", "torch")


def answer(library: Any, program: str, **scope: Any) -> Any:
    """Evaluate a program in which `torch` is the library; an error is its class and its first words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(eval(program, {"torch": library, **scope}))
        except Exception as error:
            return type(error).__name__, str(error).split("\nHint")[0].split("but expected one of")[0]
