"""torch.jit.fork and wait, without a second thread: eager torch too runs the function before `fork` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Future:
    """What a function has computed, or will have."""

    __module__ = "torch"

    def __init__(self, *, devices: Any = None) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Tell whether there is a value, or an error."""
        return self._done

    def value(self) -> Any:
        """Return the value, or raise the error; there has to be one."""
        if not self._done:
            raise RuntimeError("value() called on a Future that is not complete.")
        if self._error is not None:
            raise self._error
        return self._value

    def wait(self) -> Any:
        """Return the value; nobody else could set it while this waits."""
        if not self._done:
            raise RuntimeError("wait() on a Future that nothing has completed would never return.")
        return self.value()

    def set_result(self, result: Any) -> None:
        """Give the value, and tell those who asked for it."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an error in place of a value."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        if self._done:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed "
                "once."
            )
        self._value, self._error, self._done = value, error, True
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call a function with this Future once it is complete."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the Future of what a function makes of this one."""
        following = Future()

        def go_on(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(go_on)
        return following


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call a function; return its result as a Future."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """Return what a forked function has computed."""
    if not isinstance(future, Future):
        raise TypeError(
            "wait(): incompatible function arguments. The following argument types are supported:\n    1. (arg0: "
            f"torch._C.Future) -> object\n\nInvoked with: {future!r}"
        )
    return future.wait()
