"""Operations that programs define by `torch.library`: what is registered for each, and what a call makes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from .._modes import current_mode, using
from ..autograd import Function
from ..tensor import Tensor
from . import flat_tensors, is_wanted, redispatch, schemas
from .argument_types import cast_argument, cast_result

PACKAGE = __package__.partition(".")[0]
defined: dict[str, Operation] = {}
# Keys of torch's dispatcher that stand for a kind of device, and for every one.
DEVICES = {"CPU": "cpu", "CUDA": "cuda", "Meta": "meta", "PrivateUse1": "privateuseone", "XPU": "xpu", "MPS": "mps"}
EVERYWHERE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "CompositeExplicitAutogradNonFunctional", "")
NO_FAKE = (
    "{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. You may "
    "have run into this message while using an operator with PT2 compilation APIs (torch.compile/torch.export); in order to use "
    "this operator with those APIs you'll need to add a fake impl. Please see the following for next steps:  "
    "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)


class Operation:
    """An operation of a program: what computes it on each device, its derivative, its rule for shapes and for batches."""

    of_function = False  # defined by `custom_op`
    defining: Callable[..., Any] | None = None  # the function that does, which stands in for kernels switched off

    def __init__(self, name: str, schema: Any) -> None:
        full, _, self.overload = name.partition(".")
        self._namespace, _, self._name = full.partition("::")
        self._qualname, self._schema = full, schema
        self.kernels: dict[str | None, Callable[..., Any]] = {}
        self.by_autograd: Callable[..., Any] | None = None  # registered for the key Autograd
        self.sees_through = False  # autograd records what the kernel does
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.by_vmap: Callable[..., Any] | None = None
        self.by_dispatch: dict[type, Callable[..., Any]] = {}
        self.by_autocast: dict[
            str, Callable[..., Any]
        ] = {}  # what runs instead while autocast is on for a kind of device
        self.enabled: dict[str, bool] = {}
        self.tags: tuple[Any, ...] = ()
        self.takes_lists = any(one.type.startswith("Tensor") and "[" in one.type for one in schema.arguments)
        self.function: Any = _function_of(self)

    @property
    def _opoverload(self) -> Any:
        packet = getattr(getattr(import_module(f"{PACKAGE}.ops"), self._namespace), self._name)
        return getattr(packet, self.overload or "default")

    @property
    def mutates(self) -> bool:
        return bool(self._schema.is_mutable)

    def bound(self, args: Any, kwargs: Any) -> list[Any]:
        """Return the values of all arguments, in the order of the schema."""
        values = _values(self._schema, args, kwargs)
        return [values[one.name] for one in self._schema.arguments]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the operation; tensors that require grad keep its derivative."""
        if self.by_autocast and (on := current_mode().autocast) is not None and on[0] in self.by_autocast:
            return self.by_autocast[on[0]](*args, **kwargs)
        values = self.bound(args, kwargs)
        if is_wanted(args, kwargs):
            from . import recording

            op = self._opoverload
            given = schemas.given(
                self._schema, dict(zip((a.name for a in self._schema.arguments), values, strict=True))
            )
            if self.backward is None and (self.sees_through or self.by_autograd):
                return (self.by_autograd or self.below_autograd)(*given[0], **given[1])
            return recording.run(op, *given)
        if self.by_autograd is not None and current_mode().tracks:
            return self.by_autograd(*args, **kwargs)
        if self.sees_through or (not self.of_function and self.backward is None):
            return self.computed(values)
        if self.mutates:
            with using(grad=False):
                return self.computed(values)
        return self.recorded(values)

    def recorded(self, values: list[Any]) -> Any:
        """Compute the operation, with a node. Tensors in lists are given one by one, and how many there are in each, last."""
        if not self.takes_lists:
            return self.as_returned(self.function.apply(*values))
        flat: list[Any] = []
        counts: list[int | None] = []
        for value, one in zip(values, self._schema.arguments, strict=True):
            is_list = one.type.startswith("Tensor") and isinstance(value, (list, tuple))
            flat += value if is_list else [value]
            counts.append(len(value) if is_list else None)
        return self.as_returned(self.function.apply(*flat, tuple(counts)))

    @property
    def returns_list(self) -> bool:
        return bool(self._schema.returns) and bool(self._schema.returns[0].type == "Tensor[]")

    def as_returned(self, result: Any) -> Any:
        """Return a list where the schema says so; a node's results are a tuple."""
        return list(result) if self.returns_list else result

    def below_autograd(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the operation."""
        return self.computed(self.bound(args, kwargs))

    def computed(self, values: list[Any]) -> Any:
        """Run the kernel for where the tensors are."""
        tensors = flat_tensors(values)
        kinds = {one.device.type for one in tensors}
        kind = "meta" if "meta" in kinds else next(iter(kinds - {"cpu"}), "cpu")
        positional = [v for v, one in zip(values, self._schema.arguments, strict=True) if not one.kwarg_only]
        named = {one.name: v for v, one in zip(values, self._schema.arguments, strict=True) if one.kwarg_only}
        if kind == "meta":
            compute = self.fake or self.kernels.get("meta")
            compute = compute or (self.kernels.get(None) if self.sees_through else None)
            if compute is None and self.of_function and not self._schema.returns:
                return None  # it only writes, so that there is no shape to be known
            if compute is None:
                raise self.without_fake()
        else:
            found = self.kernels.get(kind) if self.enabled.get(kind, True) else self.defining
            compute = found or self.kernels.get(None)
        if compute is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the '{kind.upper()}' backend.\nHint: no kernel is "
                f"registered for it; add one by Library.impl or torch.library.register_kernel({self._qualname!r}, {kind!r})."
            )
        result = cast_result(self._schema, compute(*positional, **named))
        if self.of_function and kind != "meta":
            self._check_fresh(result, tensors)
        return result

    def without_fake(self) -> Exception:
        """Return the error for tensors without numbers."""
        return NotImplementedError(NO_FAKE.format(name=self._qualname))

    def _check_fresh(self, result: Any, tensors: list[Any]) -> None:
        """Refuse results that share memory with arguments, as torch does."""
        seen = {id(one._storage) for one in tensors if one._storage is not None} | {id(one) for one in tensors}
        for one in flat_tensors((result,)):
            if id(one) in seen or (one._storage is not None and id(one._storage) in seen):
                raise RuntimeError(
                    f"{self._name}: The output of this custom operator (1) must not also be an input to this custom operator "
                    "and (2) may not alias any inputs to this custom operator or other returns. The most common way to trigger "
                    "this error is if we have y = custom_op(x) and y and x are the same Tensor. Please instead return a clone "
                    "of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
                )
            seen.add(id(one))

    def set_kernel(self, device: str | None, function: Callable[..., Any]) -> None:
        """Say what computes the operation on a kind of device, or on every one (None)."""
        self.kernels[device] = function

    def set_autograd(self, backward: Any, setup_context: Any) -> None:
        """Say how gradients of the results become gradients of the inputs."""
        if self.mutates:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._schema}. Please create a functional operator and register an autograd formula for that."
            )
        self.backward, self.setup_context = backward, setup_context


def _values(schema: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    arguments = schema.arguments
    by_position = [one for one in arguments if not one.kwarg_only]
    name = schema.name
    if len(args) > len(by_position):
        raise RuntimeError(
            f"{name}() expected at most {len(by_position)} argument(s) but received {len(args)} argument(s). Declaration: {schema}"
        )
    values = dict(zip((one.name for one in by_position), args, strict=False))
    for word, value in kwargs.items():
        if word not in {one.name for one in arguments}:
            raise RuntimeError(f"Unknown keyword argument '{word}' for operator '{name}'. Schema: {schema}")
        if word in values:
            raise RuntimeError(f"{name}() got multiple values for argument '{word}'. Declaration: {schema}")
        values[word] = value
    for at, one in enumerate(arguments):
        if one.name not in values:
            if one.required:
                raise RuntimeError(f"{name}() is missing value for argument '{one.name}'. Declaration: {schema}")
            values[one.name] = one.default_value
        else:
            values[one.name] = cast_argument(schema, at, values[one.name])
    return values


def _function_of(operation: Operation) -> type[Function]:
    """Make the class of an operation's calls in the graph."""
    schema = operation._schema
    arguments = schema.arguments

    def taken_apart(values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        named = {one.name: v for v, one in zip(values, arguments, strict=True) if one.kwarg_only}
        return tuple(v for v, one in zip(values, arguments, strict=True) if not one.kwarg_only), named

    keyword_only = sum(one.kwarg_only for one in arguments)

    def together(given: Any) -> list[Any]:
        if not operation.takes_lists:
            return list(given)
        *flat, counts = given
        parts = iter(flat)
        return [next(parts) if count is None else [next(parts) for _ in range(count)] for count in counts]

    def forward(*given: Any) -> Any:
        values = together(given)
        if is_wanted(values, {}):
            names = [one.name for one in arguments]
            made = redispatch(operation._opoverload, *schemas.given(schema, dict(zip(names, values, strict=True))))
        else:
            made = operation.computed(values)
        return tuple(made) if operation.returns_list else made

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx._counts = inputs[-1] if operation.takes_lists else ()
        inputs = together(inputs)
        if operation.setup_context is not None:
            positional, named = taken_apart(inputs)
            operation.setup_context(ctx, positional, *((named,) if named else ()), operation.as_returned(output))

    def backward(ctx: Any, *grads: Any) -> Any:
        if operation.backward is None:
            raise RuntimeError(
                f"Trying to backward through {operation._namespace}.{operation._name}.default but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        found = operation.backward(ctx, *([list(grads)] if operation.returns_list else grads))
        found = (*(found if isinstance(found, tuple) else (found,)), *(None,) * keyword_only)
        if not operation.takes_lists:
            return found
        flat: list[Any] = []
        for one, count in zip(found, ctx._counts, strict=True):
            flat += [one] if count is None else [None] * count if one is None else one
        return (*flat, None)

    def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
        values = together(given)
        in_dims = together((*in_dims[:-1], given[-1])) if operation.takes_lists else in_dims
        if operation.by_vmap is not None:
            positional, named = taken_apart(values)
            return operation.by_vmap(info, tuple(in_dims[: len(positional)]), *positional, **named)
        return _sample_by_sample(info.batch_size, in_dims, operation, values)

    name = f"GeneratedBackwardFor_{operation._namespace}_{operation._name}_{operation.overload or 'default'}"
    methods = {one.__name__: staticmethod(one) for one in (forward, setup_context, backward, vmap)}
    return type(name, (Function,), {**methods, "__module__": __name__})


def _sample_by_sample(size: int, in_dims: Any, operation: Operation, values: Any) -> Any:
    """Run an operation without a rule for batches on each sample."""
    from ..tensor._functions.stacking import stack

    rows = []
    for at in range(size):
        sample = [v if d is None else v.select(d, at) for v, d in zip(values, in_dims, strict=True)]
        rows.append(operation(*sample))
    if not isinstance(rows[0], (tuple, list)):
        return stack(rows, 0), 0
    made = tuple(stack([row[k] for row in rows], 0) for k in range(len(rows[0])))
    return made, (0,) * len(made)


def find(name: str) -> Operation:
    """Return the operation of a name."""
    found = defined.get(name) or defined.get(name.removesuffix(".default"))
    if found is None:
        raise RuntimeError(f"The operator {name} does not exist: define it by torch.library.custom_op")
    return found


def forms_of(qualified: str) -> dict[str, Any]:
    """Return the forms of an operation of a program, by their names."""
    found = {}
    for name, one in defined.items():
        full, _, overload = name.partition(".")
        if full == qualified:
            found[overload or "default"] = one._schema
    return found


# ---- schemas of functions ----
def inferred(function: Callable[..., Any], mutates: Iterable[str] | str, op_name: str | None = None) -> str:
    """Write the schema of a function by its annotations, as torch does."""
    signature = inspect.signature(function)
    try:
        hints = _hints(function)
    except NameError:
        hints = {}

    def refuse(what: str) -> Any:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {_shown(signature, hints)})")

    mutates_all = mutates == "unknown"
    names = set() if mutates_all else set(mutates)
    parts, keyword_only = [], False
    for at, (name, one) in enumerate(signature.parameters.items()):
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        if one.annotation is one.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = _type_text(hints.get(name, one.annotation))
        if kind is None:
            refuse(f"Parameter {name} has unsupported type {hints.get(name, one.annotation)}.")
        if (name in names or mutates_all) and str(kind).startswith("Tensor"):
            kind = f"Tensor(a{at}!){str(kind).removeprefix('Tensor')}"
        elif name in names:
            refuse(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated.")
        default = "" if one.default is one.empty else f"={_default_text(one.default)}"
        parts.append(f"{kind} {name}{default}")
        names.discard(name)
    if names:
        refuse(
            f"{names} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all "
            "args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    made = _return_text(hints.get("return", signature.return_annotation))
    if made is None:
        refuse(f"Return has unsupported type {signature.return_annotation}.")
    return f"{op_name or ''}({', '.join(parts)}) -> {made}"


def _shown(signature: inspect.Signature, hints: dict[str, Any]) -> inspect.Signature:
    parameters = [one.replace(annotation=hints.get(name, one.annotation)) for name, one in signature.parameters.items()]
    returned = hints.get("return", signature.return_annotation)
    return signature.replace(parameters=parameters, return_annotation=returned)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    import typing

    return typing.get_type_hints(function)


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).removeprefix("torch.")


def _type_text(kind: Any) -> str | None:
    import types as python_types
    import typing
    from collections import abc

    package = import_module(PACKAGE)
    plain = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", package.dtype: "ScalarType",
             package.device: "Device", complex: "complex"}  # fmt: skip
    if kind in plain:
        return plain[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, python_types.UnionType):
        if set(args) == {int, float, bool}:
            return "Scalar"
        rest = [one for one in args if one is not type(None)]
        if len(rest) == 3 and set(rest) == {int, float, bool}:
            return "Scalar?"
        inner = _type_text(rest[0]) if len(rest) == 1 else None
        return None if inner is None else f"{inner}?"
    if origin in (list, abc.Sequence):
        inner = _type_text(args[0])
        return None if inner is None else f"{inner}[]"
    return None


def _return_text(kind: Any) -> str | None:
    import typing

    if kind is None or kind is type(None):
        return "()"
    if typing.get_origin(kind) is tuple:
        parts = [_type_text(one) for one in typing.get_args(kind)]
        return None if None in parts else f"({', '.join(map(str, parts))})"
    return _type_text(kind)
