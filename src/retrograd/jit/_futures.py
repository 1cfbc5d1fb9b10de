"""torch.jit.fork and wait, without a second thread: eager torch too runs the function before `fork` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tracebacks import guard_public
from ..futures import Future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function; return its result as a Future."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Return what a forked function has computed."""
    if not isinstance(future, Future):
        raise TypeError(
            "wait(): incompatible function arguments. The following argument types are supported:\n    1. (arg0: "
            f"torch._C.Future) -> object\n\nInvoked with: {future!r}"
        )
    return future.wait()


guard_public(globals())
