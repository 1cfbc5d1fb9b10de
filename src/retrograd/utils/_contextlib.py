"""torch.utils._contextlib: contexts that are decorators, too."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function run inside a context, which is made or copied for each call; a generator runs each of its steps there."""

    def fresh() -> Any:
        return ctx() if callable(ctx) and not hasattr(ctx, "__enter__") else copy.copy(ctx)

    if inspect.isgeneratorfunction(func):

        @functools.wraps(func)
        def stepping(*args: Any, **kwargs: Any) -> Any:
            steps = func(*args, **kwargs)
            send: Callable[[], Any] = functools.partial(next, steps)
            while True:
                try:
                    with fresh():
                        value = send()
                except StopIteration as end:
                    return end.value
                try:
                    sent = yield value
                    send = functools.partial(steps.send, sent)
                except GeneratorExit:
                    with fresh():
                        steps.close()
                    raise
                except BaseException as error:
                    send = functools.partial(steps.throw, error)

        return stepping

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with fresh():
            return func(*args, **kwargs)

    return inside


class _DecoratorContextManager:
    """A context that can stand above a function."""

    def __call__(self, orig_func: Any) -> Any:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Make another one of the kind."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without arguments, whose class can stand above a function, too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
