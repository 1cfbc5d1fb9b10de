"""Grad modes as context managers and decorators."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from .._graph.cuts import note_block
from .._modes import (
    NO_GRAD,
    PLAIN,
    Block,
    change_mode,
    current_mode,
    is_in_with,
    push,
    read_mode,
    setting,
    unique,
    with_grad,
    write,
)
from .._tracebacks import hide
from .._warnings import warn
from ..tensor import _base

Decorated = TypeVar("Decorated")


def _is_generator(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)  # inspect.CO_GENERATOR


class _Decorating:
    """The part of a context manager that decorates functions and generators."""

    def clone(self) -> Any:
        return type(self)()

    def __call__(self, function: Decorated) -> Decorated:
        if isinstance(function, type):
            warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
            )
            decorated_class: Any = function
            decorated_class.__init__ = self(decorated_class.__init__)
            return decorated_class  # type: ignore[no-any-return]
        if _is_generator(function):
            return self._wrap_generator(function)  # type: ignore[no-any-return]

        @functools.wraps(function)  # type: ignore[arg-type]
        def decorated(*args: Any, **kwargs: Any) -> Any:
            try:
                with self.clone():
                    return function(*args, **kwargs)  # type: ignore[operator]
            except Exception as error:
                hide(error)
                raise

        return decorated  # type: ignore[return-value]

    def _wrap_generator(self, function: Any) -> Any:
        """Switch the mode around every step, so that it holds inside the generator and nowhere else."""

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    response = next(generator)
                while True:
                    try:
                        request = yield response
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            response = generator.throw(error)
                    else:
                        with self.clone():
                            response = generator.send(request)
            except StopIteration as stop:
                return stop.value

        return decorated


class _NoArguments(_Decorating, Block):
    """Also decorates without parentheses: `@torch.no_grad`."""

    _block_fields = ("grad",)

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: None = None) -> Self: ...

        @overload
        def __new__(cls, function: Decorated) -> Decorated: ...  # type: ignore[misc]

        def __new__(cls, function: Any = None) -> Any: ...

    else:

        def __new__(cls, function=None):
            if function is None:
                return object.__new__(cls)  # half the time of super()
            return cls()(function)


class no_grad(_NoArguments):  # noqa: N801 - torch's name
    """Switch gradients off, in a block or a decorated function.

    Args:
        function: the function, if this is a decorator

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __enter__(self) -> None:
        before = read_mode() or current_mode()
        if before is PLAIN:
            entered = NO_GRAD
            note_block("no_grad()")
        else:
            entered = with_grad(before, False)
            if before.grad:
                note_block("no_grad()")
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]


class enable_grad(_NoArguments):  # noqa: N801
    """Switch gradients on, in a block or a decorated function.

    Args:
        function: the function, if this is a decorator

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    def __enter__(self) -> None:
        before = current_mode()
        entered = with_grad(before, True)
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]


class set_grad_enabled(_Decorating, Block):  # noqa: N801
    """Switch gradients on or off, at once or for a block.

    Args:
        mode: whether operations are recorded

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    _block_fields = ("grad",)

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        self.prev = current_mode().grad
        if not is_in_with():
            change_mode(grad=self.mode)
        if self.prev and not self.mode:
            note_block("set_grad_enabled(False)")

    def clone(self) -> Any:
        made = object.__new__(set_grad_enabled)  # which switches nothing yet
        made.mode, made.prev = self.mode, current_mode().grad
        return made

    def __enter__(self) -> None:
        mode = current_mode()
        entered = with_grad(mode, self.mode)
        entry = self._block_entry(with_grad(mode, self.prev), entered)
        write[entered]
        push[entry]

    def __call__(self, function: Decorated) -> Decorated:
        change_mode(grad=self.prev)
        return super().__call__(function)


class _Switch(_Decorating, setting):
    """A setting of torch's engine, set at once or for a block. See `_running.py`."""

    _name = ""  # of the variable in `_running.py`

    def __init__(self, mode: bool) -> None:
        self._begin(bool(mode))

    def _begin(self, mode: bool) -> None:
        self._make(mode)
        if not is_in_with(3):
            self._variable.set(mode)

    def _make(self, mode: bool) -> None:
        from . import _running

        super().__init__(getattr(_running, self._name), mode)
        self.mode, self.prev = mode, self._variable.get()

    def _previous(self) -> Any:
        return self.prev

    def clone(self) -> Any:
        made = object.__new__(type(self))  # which sets nothing yet
        made._make(self.mode)
        return made

    def __call__(self, function: Decorated) -> Decorated:
        self._variable.set(self.prev)
        return super().__call__(function)


class set_multithreading_enabled(_Switch):  # noqa: N801
    """Accept torch's switch: a backward here runs in the thread that called it, in either case."""

    _name = "_multithreading"


class enforce_grad_layout_policy(_Switch):  # noqa: N801
    """Accept torch's switch: it allows the engine to keep a gradient's own strides, which this one never does."""

    _name = "_layout_enforced"

    def __init__(self, enable: bool = True) -> None:
        self._begin(bool(enable))


class _force_original_view_tracking(_Switch):  # noqa: N801
    """Accept torch's switch: how it makes the nodes of views whose base was written, which have one form here."""

    _name = "_view_replay"


class _unsafe_preserve_version_counter(_Decorating):  # noqa: N801
    """Hide writes into tensors from the check of saved values: at the end their versions are what they were."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, _base.Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.prev_versions = tuple([one._version for one in self.tensors])

    def clone(self) -> Any:
        return type(self)(self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        for tensor, version in zip(self.tensors, self.prev_versions, strict=True):
            _base.storage_of(tensor).version = version


class inference_mode(_Decorating, Block):  # noqa: N801
    """Switch gradients, versions and view tracking off; tensors made here never take part in autograd.

    Args:
        mode: False changes nothing; a function is decorated

    Example:
        >>> with torch.inference_mode():
        ...     y = torch.ones(2)
        >>> y.is_inference()
        True
    """

    _block_fields = ("inference", "grad")

    if TYPE_CHECKING:

        @overload
        def __new__(cls, mode: bool = True) -> Self: ...

        @overload
        def __new__(cls, mode: Decorated) -> Decorated: ...  # type: ignore[misc]

        def __new__(cls, mode: Any = True) -> Any: ...

    else:

        def __new__(cls, mode=True):
            if isinstance(mode, bool):
                return super().__new__(cls)
            return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> Any:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        before = current_mode()
        entered = unique(before._replace(inference=self.mode, grad=not self.mode))
        if self.mode:
            note_block("inference_mode()")
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]


def is_grad_enabled() -> bool:
    """Tell whether operations are recorded.

    Example:
        >>> torch.is_grad_enabled()
        True
    """
    return current_mode().grad


def is_inference_mode_enabled() -> bool:
    """Tell whether inference mode is on."""
    return current_mode().inference


__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
