"""torch._jit_internal: the marks of torch.jit, by the names that libraries import from here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograd._absent import finder

__getattr__ = finder("torch._jit_internal")
boolean_dispatched: dict[Callable[..., Any], dict[str, Any]] = {}


class BroadcastingListCls:
    """An annotation: one value, or a list of as many as the number says."""

    def __getitem__(self, types: Any) -> None:
        """Take the type of the values."""


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Callable[..., Any]:
    """Return a function that calls one of two, by an argument that is true or false."""

    @functools.wraps(if_true)
    def function(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    function.__module__, function.__name__ = module_name, func_name or function.__name__
    boolean_dispatched[function] = {"if_true": if_true, "if_false": if_false, "index": arg_index, "default": default}
    return function
