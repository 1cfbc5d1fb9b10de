"""What `checkpoint(..., debug=True)` writes when recomputation goes another way than the first run."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ..overrides import TorchFunctionMode
from ._dtype_abbrs import dtype_abbrs

_TEMPLATE = """ \
An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for guidance on how to navigate these logs.

+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|        1. Stack traces of the operators that ran in the original forward     |
+------------------------------------------------------------------------------+

{forward_traces}
+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|        2. Stack traces of the operators that ran during recomputation        |
+------------------------------------------------------------------------------+

{recompute_traces}
+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|       3. Log of operators in the original forward and recomputation          |
+------------------------------------------------------------------------------+
(Scroll up to correlate stack traces with each operation listed below. This
 helps identify their source in the code.)

IMPORTANT: Differences in "detach" calls between the original forward and the
           recomputation are expected. They are introduced by the checkpointing
           mechanism and can be ignored.

Operations executed during the original forward:

{forward_ops}

Operations executed during recomputation:

{recompute_ops}

+------------------------------------------------------------------------------+
 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.

 To identify where the mismatch may be coming from, you can do the following:

 1) Compare the operators ran during original forward and recomputation to
    see where they differ. These operators are printed above in the order they
    were executed.

 2) Review the stack trace for each operator to locate its invocation source.
    Each operator's stack trace is printed in their execution order.

 Note that the logs can be quite long. Here's how they are structured:
 (Tip: you can Ctrl-f for these headers)

 1. Stack traces of the operators that ran in the original forward
 2. Stack traces of the operators that ran during recomputation
 3. Log of operators in the original forward and recomputation
 4. Error message                                             <--- You are here
--------------------------------------------------------------------------------
"""


class _Log(TorchFunctionMode):
    """Writes down every function called in a block; a new block starts anew."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.lines: list[str] = []
        self.stacks: list[str] = []
        self._names: dict[int, str] = {}
        self._seen: list[Any] = []  # keeps tensors alive, for their ids are their names

    def __enter__(self) -> _Log:
        self._forget()  # only the latest computation is shown
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._names, self._seen = {}, []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [self._text(one) for one in args] + [f"{key}={self._text(one)}" for key, one in kwargs.items()]
        self.stacks.append("".join(traceback.format_stack()[:-1]))
        self.lines.append(f"{_name(func)}({', '.join(given)})")
        at = len(self.lines) - 1
        result = func(*args, **kwargs)
        results = result if isinstance(result, (tuple, list)) else (result,)
        left = ", ".join(self._typed(one) for one in results if hasattr(one, "_array"))
        self.lines[at] = f"{left} = {self.lines[at]}" if left else self.lines[at]
        return result

    def _text(self, value: Any) -> str:
        if hasattr(value, "_array"):
            return self._number(value)
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self._text(one) for one in value) + "]"
        return repr(value)

    def _number(self, tensor: Any) -> str:
        name = self._names.get(id(tensor))
        if name is None:
            name = self._names[id(tensor)] = f"${len(self._names)}"
            self._seen.append(tensor)
        return name

    def _typed(self, tensor: Any) -> str:
        kind = dtype_abbrs.get(tensor.dtype, str(tensor.dtype))
        return f"{self._number(tensor)}: {kind}{list(tensor.shape)}"

    def traces(self, which: str) -> str:
        total = len(self.lines)
        return "".join(
            f"{line}   ({i + 1} of {total} in {which})\n\n{stack}\n\n"
            for i, (line, stack) in enumerate(zip(self.lines, self.stacks, strict=True))
        )


def _name(func: Any) -> str:
    return f"torch.{getattr(func, '__name__', str(func))}"


def debug_contexts() -> tuple[
    Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]], Callable[[], str]
]:
    """Return a `context_fn` that writes down what both runs call, and what makes the error's text."""
    first, second = _Log(), _Log()

    def text() -> str:
        return _TEMPLATE.format(
            forward_traces=first.traces("original"),
            recompute_traces=second.traces("recompute"),
            forward_ops="\n".join(first.lines),
            recompute_ops="\n".join(second.lines),
        )

    return (lambda: (first, second)), text
