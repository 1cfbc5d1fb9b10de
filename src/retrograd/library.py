"""torch.library: operations that programs define themselves, with kernels, a derivative and rules for shapes and batches.

What is registered for an operation, and what a call makes of it, is in `_dispatch/programs.py`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, overload

from ._absent import finder
from ._device import device
from ._dispatch.programs import DEVICES, EVERYWHERE, Operation, defined, find, inferred
from ._dispatch.programs import forms_of as forms_of
from ._dispatch.schemas import parse
from ._modes import using
from ._places import user_place
from ._public import set_all
from ._tracebacks import guard_public as _guard_public
from ._warnings import warn
from .tensor import Tensor

__getattr__ = finder("torch.library")
_defined = defined
_log = logging.getLogger(__name__)
_namespaces: dict[str, str] = {}  # those that a Library of the kind DEF has taken, and where
_RESERVED = ("prim",)


class CustomOpDef(Operation):
    """An operation that a function defines."""

    of_function = True

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        full = f"{namespace}::{name}"
        super().__init__(full, parse(f"{full}{schema}"))
        self._init_fn = self.defining = fn
        self.tags = tuple(tags) if isinstance(tags, (list, tuple)) else () if tags is None else (tags,)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def without_fake(self) -> Exception:
        return RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. Please "
            f"use `{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    def register_kernel(self, device_types: Any, func: Callable[..., Any] | None = None, /) -> Any:
        """Say what computes the operation on a kind of device, or on every one (None)."""
        return register_kernel(self, device_types, func)

    def register_fake(self, func: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what gives a result of the right shape and dtype where tensors have no numbers."""
        return register_fake(self, func)  # type: ignore[no-any-return]

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Say how gradients of the results become gradients of the inputs, and what is kept for that."""
        self.set_autograd(backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Say how the operation runs on batches: `func(info, in_dims, *args)` returns the result and its `out_dims`."""
        return register_vmap(self, func)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Say what a mode or a class of tensors does with the operation, instead of its `__torch_dispatch__`."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Switch the kernel of a kind of device on or off for a block; the function that defines the operation stands in for it."""
        before, action = self.enabled.get(device_type, True), "enable" if enabled else "disable"
        if device_type not in self.kernels:
            _log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.", action, device_type
            )
        elif before is enabled:
            _log.warning("Attempted to %s kernel for %s but it was already %sd.", action, device_type, action)
        self.enabled[device_type] = enabled
        try:
            yield
        finally:
            self.enabled[device_type] = before

    def register_autocast(self, device_type: str, cast_inputs: Any) -> Any:
        """Cast the floating-point arguments of the operation under autocast."""
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        return register_autocast(self, device(device_type).type, cast_inputs)


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef: ...
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

    def made(function: Callable[..., Any]) -> CustomOpDef:
        namespace, _, own = name.partition("::")
        text = inferred(function, mutates_args) if schema is None else schema
        operation = CustomOpDef(namespace, own, text, function, tags)
        operation.register_kernel(device_types)(function)
        defined[name] = operation
        _forget_packet(name)
        return operation

    return made if fn is None else made(fn)


def _forget_packet(name: str) -> None:
    """Let `torch.ops` find an operation anew."""
    namespace, _, own = name.partition(".")[0].partition("::")
    space = vars(import_module(".ops", __package__)).get(namespace)
    if space is not None and namespace != "aten":
        packet = vars(space).get(own)
        if packet is not None:
            for key in [
                one for one in vars(packet) if one not in ("_namespace", "_qualified_op_name") and one[:2] != "__"
            ]:
                delattr(packet, key)


# ---- Library ----
class Library:
    """A collection of operations under one namespace: new ones ("DEF", "FRAGMENT"), or kernels for others' ("IMPL")."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        place = user_place()
        where = "unknown" if place is None else str(place)
        if kind == "DEF":
            if ns in _namespaces:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your definitions "
                    "in a single TORCH_LIBRARY block.  If you were trying to specify implementations, consider using "
                    "TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define operators for a single "
                    "namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to explicitly indicate this.  Previous "
                    f"registration of TORCH_LIBRARY was registered at {_namespaces[ns]}; latest registration was registered at {where}"
                )
            _namespaces[ns] = where
        self.ns, self.kind, self.dispatch_key, self._where = ns, kind, dispatch_key, where
        self._op_defs: set[str] = set()
        self._undo: list[Callable[[], Any]] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operation by its schema, "name(Tensor x, int n=2) -> Tensor"; return its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                "Cannot define operators in a Library of the kind IMPL\nHint: make it of the kind FRAGMENT."
            )
        found = parse(schema if "::" in schema.partition("(")[0] else f"{self.ns}::{schema}")
        full = found.name + (f".{found.overload_name}" if found.overload_name else "")
        if full in defined:
            raise RuntimeError(
                f"Tried to register an operator ({found}) with the same name and overload name multiple times. Each overload's "
                f"schema should only be registered with a single call to def(). Duplicate registration: {self._where}"
            )
        operation = Operation(full, found)
        operation.tags = tuple(tags) if isinstance(tags, (list, tuple)) else (tags,)
        defined[full] = operation
        _forget_packet(full)
        self._op_defs.add(full)
        self._undo.append(lambda: defined.pop(full, None))
        return full.partition("::")[2]

    def _operation(self, op_name: Any) -> Operation:
        name = op_name if isinstance(op_name, str) else _qualified(op_name)
        full = name if "::" in name else f"{self.ns}::{name}"
        if full.startswith("aten::"):
            raise NotImplementedError(
                f"Library.impl: retrograd cannot replace a kernel of {full}\nHint: take the operation over by a TorchDispatchMode."
            )
        return find(full)

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Say what computes an operation for one of torch's dispatch keys: a device, "CompositeImplicitAutograd", "Autograd"."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        operation = self._operation(op_name)
        if with_keyset:
            inner = fn

            def fn(*args: Any, **kwargs: Any) -> Any:
                return inner(None, *args, **kwargs)

        _set_kernel(operation, key, fn, self._undo)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Refuse a kernel for all operations: there is no dispatcher under ours that would ask for it."""
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f'Fallback can only be registered using library fragment on the global namespace "_" but it is {self.ns}'
            )
        if not key:
            raise RuntimeError("A dispatch key must be given for a fallback")
        if fn is fallthrough_kernel:
            return
        raise NotImplementedError(
            f"Library.fallback for {key}: retrograd has no dispatch keys that all operations pass\nHint: see every operation by a "
            "torch.utils._python_dispatch.TorchDispatchMode."
        )

    def _register_fake(
        self, op_name: Any, fn: Callable[..., Any], _stacklevel: int = 1, *, allow_override: bool = False
    ) -> None:
        operation = self._operation(op_name)
        operation.fake = fn
        self._undo.append(lambda: setattr(operation, "fake", None))

    def _register_torch_dispatch_rule(self, op_name: Any, torch_dispatch_class: Any, fn: Callable[..., Any]) -> None:
        self._operation(op_name).by_dispatch[torch_dispatch_class] = fn

    def _destroy(self) -> None:
        """Take back all that was registered here."""
        while self._undo:
            self._undo.pop()()
        if self.kind == "DEF":
            _namespaces.pop(self.ns, None)
        for name in self._op_defs:
            _forget_packet(name)
        self._op_defs.clear()

    def _impl_with_aoti_compile(self, op_name: Any, dispatch_key: str = "") -> None:
        raise NotImplementedError("Library._impl_with_aoti_compile: retrograd does not compile kernels ahead of time")


def _set_kernel(operation: Operation, key: str, fn: Callable[..., Any], undo: list[Any]) -> None:
    """Say what computes an operation for a key; `undo` gets what takes that back."""
    if fn is fallthrough_kernel:
        return
    if key.startswith("Autograd"):
        operation.by_autograd = fn
        undo.append(lambda: setattr(operation, "by_autograd", None))
        return
    if key.startswith("Autocast"):  # the kernel ends in the operation itself, with autocast off
        kind = key.removeprefix("Autocast")
        operation.by_autocast[DEVICES.get(kind, kind.lower())] = fn
        undo.append(operation.by_autocast.clear)
        return
    if key in EVERYWHERE:
        device = None
        operation.sees_through = key in ("CompositeImplicitAutograd", "")
    elif key in DEVICES or key.lower() in DEVICES.values():
        device = DEVICES.get(key, key.lower())
    else:
        raise NotImplementedError(
            f"torch.library: retrograd has no dispatch key {key!r}\nHint: it has {', '.join([*DEVICES][:3])}, "
            "CompositeImplicitAutograd, CompositeExplicitAutograd and Autograd."
        )
    if device in operation.kernels:
        warn(
            "Overriding a previously registered kernel for the same operator and the same dispatch key\n  operator: "
            f"{operation._schema}\n  dispatch key: {key}"
        )
    operation.set_kernel(device, fn)
    undo.append(lambda: operation.kernels.pop(device, None))


def fallthrough_kernel() -> None:
    """Stand for the next kernel, where a kernel is registered."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


# ---- functions ----
def _qualified(op: Any) -> str:
    return str(
        getattr(op, "_qualname", None)
        or getattr(op, "_qualified_op_name", None)
        or (op.name() if hasattr(op, "name") else op)
    )


def _operation(op: Any) -> Operation:
    return op if isinstance(op, Operation) else find(_qualified(op))


def _check_qualname(qualname: str) -> None:
    if qualname.count("::") != 1:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )


def define(qualname: str, schema: Any, *, lib: Any = None, tags: Any = ()) -> Any:
    """Define an operation: define("ns::name", "(Tensor x) -> Tensor")."""
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    _check_qualname(qualname)
    if not re.fullmatch(r"\s*\(.*\)\s*->.*", schema, re.DOTALL):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    namespace, _, name = qualname.partition("::")
    (Library(namespace, "FRAGMENT") if lib is None else lib).define(name + schema, tags=tags)


def impl(qualname: Any, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Say what computes an operation on devices, "cpu" or "default"; also `@impl(library, name, key)`, an old form."""
    if isinstance(qualname, Library):
        library, name, key = qualname, types, str(func or "")
        return _returning(lambda function: library.impl(name, function, key))
    kinds = [types] if isinstance(types, str) else list(types)

    def register(function: Callable[..., Any]) -> None:
        _check_qualname(qualname)
        operation = find(qualname)
        for kind in kinds:
            key = "CompositeExplicitAutograd" if kind == "default" else kind
            _set_kernel(operation, key, function, [])

    return _returning(register) if func is None else register(func)


def _returning(register: Callable[[Any], Any], func: Any = None) -> Any:
    """Return a decorator that registers functions; if one is given, register it at once."""

    def decorate(function: Any) -> Any:
        register(function)
        return function

    return decorate if func is None else decorate(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Say what gives an operation's result where tensors have no numbers."""
    found = _operation(op)
    return _returning(lambda function: setattr(found, "fake", function), func)


def impl_abstract(
    qualname: Any, func: Callable[..., Any] | None = None, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """Do what `register_fake` does, under its old name."""
    warn("torch.library.impl_abstract was renamed to torch.library.register_fake.", DeprecationWarning)
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Say how gradients pass through an operation."""
    _operation(op).set_autograd(backward, setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Say what computes an operation on a kind of device."""
    found = _operation(op)
    kinds = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)

    def register(function: Callable[..., Any]) -> None:
        for kind in kinds:
            found.set_kernel(None if kind == "default" else kind, function)

    return _returning(register, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Say how an operation runs on batches: `func(info, in_dims, *args)` returns the result and its `out_dims`."""
    found = _operation(op)
    return _returning(lambda function: setattr(found, "by_vmap", function), func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Say what a mode, `func(mode, func, types, args, kwargs)`, or a class of tensors does with an operation."""
    rules = _operation(op).by_dispatch
    return _returning(lambda function: rules.__setitem__(torch_dispatch_class, function), func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> Any:
    """Cast the floating-point arguments of an operation under autocast."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    found = _operation(op)

    def cast(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [cast(one) for one in value]
        small = isinstance(value, Tensor) and value.is_floating_point() and value.element_size() < 8
        return value.to(cast_inputs) if small and value.device.type == device_type else value

    def casting(*args: Any, **kwargs: Any) -> Any:
        with using(autocast=None):
            return found(*map(cast, args), **{name: cast(value) for name, value in kwargs.items()})

    found.by_autocast[device_type] = casting
    return casting


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """Write the schema of a function by its annotations: "(Tensor x, float y=1.0) -> Tensor"."""
    return inferred(prototype_function, mutates_args, op_name)


class _ShapeContext:
    """What a fake implementation can ask for: sizes that depend on values."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """Return the least size: without numbers none is known, and nothing here computes with symbols."""
        if not isinstance(min, int) or (max is not None and not isinstance(max, int)):
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, max={max}): expected min and max to be statically known ints but got "
                "SymInt. This is not supported."
            )
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal to 0: this API can only create "
                "non-negative sizes."
            )
        return min

    new_unbacked_symint = new_dynamic_size
    create_unbacked_symint = new_dynamic_size


def get_ctx() -> Any:
    """Return what a fake implementation asks for sizes that depend on values."""
    return _ShapeContext()


def opcheck(
    op: Any,
    args: Any,
    kwargs: Any = None,
    *,
    test_utils: Any = (),
    raise_exception: bool = True,
    atol: Any = None,
    rtol: Any = None,
) -> dict[str, Any]:
    """Check what is registered for an operation on examples: its schema, derivative and shape rule."""
    from ._dispatch.checking import ALL, check

    return check(op, args, kwargs or {}, test_utils or ALL, raise_exception, atol, rtol)


def triton_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, schema: str | None = None
) -> Any:
    """Refuse an operation of Triton's kernels."""
    raise NotImplementedError(
        f"torch.library.triton_op({name!r}): retrograd runs no Triton kernels\nHint: use torch.library.custom_op."
    )


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Refuse a kernel of Triton's."""
    raise NotImplementedError("torch.library.wrap_triton: retrograd runs no Triton kernels")


set_all(globals())


_guard_public(globals())
