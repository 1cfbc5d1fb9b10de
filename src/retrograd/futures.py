"""Values that another thread computes: `Future`, and waiting for several."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ._device import device as _device

T = TypeVar("T")


class Future(Generic[T]):
    """What a function has computed, or will have. One thread sets it, others wait for it or leave a callback."""

    def __init__(self, *, devices: Iterable[Any] | None = None) -> None:
        for each in devices or ():
            if _device(each).index is None:
                raise ValueError(f"Expected devices to have indices, got {each}")
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Tell whether there is a value, or an error."""
        return self._done

    def wait(self) -> T:
        """Wait until there is a value, and return it; raise the error if there is one instead."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self._result()

    def value(self) -> T:
        """Return the value of a Future that has one."""
        if not self._done:
            raise RuntimeError("value() needs a Future that is complete.\nHint: wait() waits until it is.")
        return self._result()

    def _result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def set_result(self, result: T) -> None:
        """Give the value, and call those who asked for it."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an error in place of a value."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: Exception | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed "
                    "once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return the Future of what a function makes of this one, once it is complete."""
        if not callable(callback):
            raise TypeError(
                "then(): incompatible function arguments. The following argument types are supported:\n    1. (self: "
                f"torch._C.Future, arg0: collections.abc.Callable) -> torch._C.Future\n\nInvoked with: {self!r}, {callback!r}"
            )
        following: Future[Any] = Future()

        def go_on() -> None:
            try:
                result = callback(self)
            except Exception as error:
                following.set_exception(_of_callback(error))
            else:
                following.set_result(result)

        self._when_done(go_on)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this Future once it is complete; what it raises is only printed."""

        def call() -> None:
            try:
                callback(self)
            except Exception as error:
                print(_of_callback(error), file=sys.stderr)

        self._when_done(call)

    def _when_done(self, call: Callable[[], None]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(call)
                return
        call()


def _of_callback(error: Exception) -> RuntimeError:
    wrapped = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a Future of all the given ones, complete when they are; it has the first error among them."""
    together: Future[list[Future[Any]]] = Future()
    futures = list(futures)
    lock, left = threading.Lock(), len(futures)

    def one_more() -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        failed = next((each._error for each in futures if each._error is not None), None)
        if failed is None:
            together.set_result(futures)
        else:
            together.set_exception(failed)

    for each in futures:
        each._when_done(one_more)
    if not futures:
        together.set_result([])
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all, and return their values; raise the first error among them."""
    return [each.wait() for each in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
