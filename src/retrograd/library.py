"""torch.library: operations that programs define themselves, with a derivative and a rule for tensors without numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ._absent import finder
from ._modes import using
from .autograd import Function
from .tensor import Tensor

__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel"]

__getattr__ = finder("torch.library")
_defined: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operation of a program: what computes it on each device, its derivative, and its shape rule."""

    def __init__(self, name: str, function: Callable[..., Any], devices: Any, mutates: Iterable[str] | str) -> None:
        self._namespace, _, self._name = name.partition("::")
        self._qualname = name
        self._mutates = mutates if isinstance(mutates, str) else tuple(mutates)
        self._signature = inspect.signature(function)
        self._kernels: dict[str | None, Callable[..., Any]] = {}
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self.register_kernel(devices)(function)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, func: Callable[..., Any] | None = None, /) -> Any:
        """Say what computes the operation on a kind of device, or on every one (None)."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types
            self._kernels.update(dict.fromkeys(kinds, function))
            return function

        return register if func is None else register(func)

    def register_fake(self, func: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what gives a result of the right shape and dtype where tensors have no numbers."""
        self._fake = func
        return func

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Say how gradients of the results become gradients of the inputs, and what is kept for that."""
        if self._mutates:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._qualname}{self._signature}. Please create a functional operator and register an autograd formula for that."
            )
        self._backward, self._setup_context = backward, setup_context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the operation; tensors that require grad keep its derivative."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = [*bound.args, *bound.kwargs.values()]
        if self._mutates:
            with using(grad=False):
                return self._computed(values)
        return _OfLibrary.apply(self, *values)

    def _computed(self, values: list[Any]) -> Any:
        tensors = [one for value in values for one in (value if isinstance(value, (list, tuple)) else [value])]
        kinds = {one.device.type for one in tensors if isinstance(one, Tensor)}
        kind = "meta" if "meta" in kinds else next(iter(kinds - {"cpu"}), "cpu")
        by_position = [one.kind is not one.KEYWORD_ONLY for one in self._signature.parameters.values()]
        names = list(self._signature.parameters)
        positional = [value for value, is_so in zip(values, by_position, strict=True) if is_so]
        named = {name: value for name, value, is_so in zip(names, values, by_position, strict=True) if not is_so}
        compute = self._fake if kind == "meta" else self._kernels.get(kind) or self._kernels.get(None)
        if compute is None:
            what = (
                "fake impl (register_fake)" if kind == "meta" else f"kernel for the device {kind!r} (register_kernel)"
            )
            raise NotImplementedError(f"{self._qualname}: no {what} has been registered")
        return compute(*positional, **named)


class _OfLibrary(Function):
    """A call of an operation of a program, in the graph."""

    @staticmethod
    def forward(ctx: Any, operation: CustomOpDef, *values: Any) -> Any:
        output = operation._computed(list(values))
        if operation._setup_context is not None:
            operation._setup_context(ctx, values, output)
        ctx.operation = operation
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        operation = ctx.operation
        if operation._backward is None:
            raise RuntimeError(
                f"Trying to backward through {operation._namespace}.{operation._name}.default but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        found = operation._backward(_without_operation(ctx), *grads)
        return (None, *found) if isinstance(found, tuple) else (None, found)


class _without_operation:  # noqa: N801 - a view of the context
    """The context of a call as the program sees it: what it needs is told of its own inputs alone."""

    def __init__(self, ctx: Any) -> None:
        object.__setattr__(self, "_ctx", ctx)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        needs: tuple[bool, ...] = self._ctx.needs_input_grad[1:]
        return needs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Define an operation "namespace::name" by a function; it is also `torch.ops.namespace.name`."""
    if "::" not in name:
        raise ValueError(f'custom_op(name="{name}"): expected the name to be "namespace::operation"')

    def define(function: Callable[..., Any]) -> CustomOpDef:
        made = _defined[name] = CustomOpDef(name, function, device_types, mutates_args)
        return made

    return define if fn is None else define(fn)


def find(name: str) -> CustomOpDef:
    """Return the operation of a name."""
    if name not in _defined:
        raise RuntimeError(f"The operator {name} does not exist: define it by torch.library.custom_op")
    return _defined[name]


def _operation(op: Any) -> CustomOpDef:
    return op if isinstance(op, CustomOpDef) else find(str(getattr(op, "_qualified_op_name", op)))


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Say what gives an operation's result where tensors have no numbers."""
    found = _operation(op)
    return found.register_fake if func is None else found.register_fake(func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Say how gradients pass through an operation."""
    _operation(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Say what computes an operation on a kind of device."""
    return _operation(op).register_kernel(device_types, func)
