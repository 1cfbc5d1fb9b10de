"""Arguments by the names of a function's signature."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from .._dtypes import dtype
from .._warnings import warn
from ..tensor import Tensor


class ArgsKwargsPair(NamedTuple):
    """Positional arguments and those by keyword."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call with defaults filled in, by keyword if asked; None if the signature is not known."""
    if isinstance(target, types.BuiltinFunctionType):
        return None  # such as operator.add, whose arguments have no names
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of a submodule in the same way."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    return _normalized(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if only_kwargs:
        return ArgsKwargsPair((), dict(bound.arguments))
    split = len(args)
    names = list(bound.arguments)
    return ArgsKwargsPair(
        tuple(bound.arguments[name] for name in names[:split]), {name: bound.arguments[name] for name in names[split:]}
    )


def create_type_hint(x: Any) -> Any:
    """Return the type of nested values, tensors as such."""
    if isinstance(x, (list, tuple)) and x:
        inner = {create_type_hint(each) for each in x}
        kind = list if isinstance(x, list) else tuple
        element = inner.pop() if len(inner) == 1 else Any
        return kind[element] if kind is list else tuple[element, ...]  # type: ignore[valid-type]
    return Tensor if isinstance(x, Tensor) else type(x)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Tell whether an argument of one type can be given for another; an int for a list of ints, and a tuple for a list."""
    if signature_type is argument_type:
        return True
    origin, parts = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(each, argument_type) for each in parts)
    if origin is list:
        return _matches_list(signature_type, parts[0], argument_type)
    if signature_type is int and argument_type is dtype:  # schemas have numbers for dtypes
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return (
        inspect.isclass(argument_type) and inspect.isclass(signature_type) and issubclass(argument_type, signature_type)
    )


def _matches_list(signature_type: Any, element: Any, argument_type: Any) -> bool:
    if element is int and argument_type is int:
        return True
    if not inspect.isclass(element):
        warn(f"Does not support nested parametric types, got {signature_type}.")
        return False
    if typing.get_origin(argument_type) not in (list, tuple):
        return False
    return all(each is ... or issubclass(each, element) for each in typing.get_args(argument_type))


def check_for_mutable_operation(target: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Raise an error for an operation that writes into an argument."""
    name = getattr(target, "__name__", "")
    if name.endswith("_") and not name.endswith("__"):
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so operations that mutate operands "
            "in-place (e.g. via `out` arguments) are not supported"
        )


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of a function of torch, as far as they are known."""
    try:
        found = [inspect.signature(inspect.unwrap(op))]
    except (TypeError, ValueError):
        return (None, None) if return_schemas else None
    return (found, None) if return_schemas else found
