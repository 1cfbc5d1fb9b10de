"""Public functions that are no operation of torch's, or take arguments that none of its operations takes.

torch writes them in Python, of operations. Where `composites*.py` does not do the same, each is one operation, `retrograd::<name>`: so a
mode sees all that is computed, and a trace computes it again. Its arguments are those of the public function, in its order.
"""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Any

from ..ops import OpOverloadPacket
from ..overrides import ALIASES, _together
from . import flat_tensors, schemas
from .composites import REDUCTIONS

PACKAGE = __package__.partition(".")[0]
OF_PYTHON = frozenset(
    {"stft", "unique", "unique_consecutive"}
)  # in torch functions of Python, with other defaults or results than the operations
IN_FUNCTIONAL = (
    "nn_functional_"  # before the name of a function of nn.functional, if the package has another of that name
)


@cache
def signature_of(function: Any) -> inspect.Signature | None:
    """Return the signature of a public function or method."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def bound(function: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return all arguments of a call by the names of a public function's parameters; None if it does not take them."""
    signature = signature_of(function)
    if signature is None:
        return None
    if getattr(function, "is_method", False):
        args = (*args[:1], *_together(tuple(args[1:])))
    names = signature.parameters
    kwargs = {name if name in names else ALIASES.get(name, name): value for name, value in kwargs.items()}
    try:
        found = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    found.apply_defaults()
    return found.arguments


# Public functions that are written in public functions, as torch's are: a mode sees these.
AS_WRITTEN = frozenset(
    """affine_grid chain_matmul corrcoef cross diagflat dstack fft_fftshift fft_ifftshift fliplr flipud float_power
    float_power_ hstack linalg_diagonal linalg_multi_dot linalg_tensorsolve linalg_vander linalg_vecdot linear_cross_entropy
    local_response_norm lp_pool2d lp_pool3d margin_ranking_loss multilabel_soft_margin_loss norm_except_dim orgqr
    pca_lowrank poisson_nll_loss softmin softsign svd_lowrank tanhshrink triplet_margin_loss
    triplet_margin_with_distance_loss""".split()  # noqa: SIM905
)


def written(function: Any) -> Any:
    """Return a public function without what looks for modes and classes."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def decomposed(made: Any, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a decomposition of a public function, or of an operation; NotImplemented if it does not take these arguments."""
    names = getattr(made, "reads", None)
    if names is None:
        return made(*args, **kwargs)
    schema = getattr(function, "_schema", None)
    if schema is not None:
        given = schemas.bind(schema, args, kwargs) or {}
        defaults = {_plain(one.name): one.default_value for one in schema.arguments}
        values: Any = defaults | {_plain(name): value for name, value in given.items()}
    else:
        values, signature = bound(function, args, kwargs), signature_of(function)
        defaults = {} if signature is None else {name: one.default for name, one in signature.parameters.items()}
    if values is None or not {name for name in values if not schemas._same(values[name], defaults[name])} <= set(names):
        return NotImplemented
    return made(**{name: values[name] for name in names}) if set(names) <= set(values) else NotImplemented


def _plain(name: str) -> str:
    return "input" if name == "self" else name


def resolve(function: Any, name: str, args: Any, kwargs: dict[str, Any]) -> tuple[str, str, dict[str, Any]] | None:
    """Return the name, the form and the arguments of torch's operation for a call, bound by the public function's own parameters."""
    values = bound(function, args, kwargs)
    signature = signature_of(function)
    if values is None or signature is None or name in OF_PYTHON:
        return None
    if values.pop("inplace", False):
        name = f"{name}_"
    known = {one.name: one for schema in schemas.forms_of(name).values() for one in schema.arguments}
    if not known or ("return_indices" in values and "return_indices" not in known):
        return None
    given = {}
    for key, value in values.items():
        argument = known.get(key) or known.get(schemas.WORDS.get(key, key))
        is_default = schemas._same(value, signature.parameters[key].default)
        if argument is None or (value is None and is_default):
            if not is_default:
                return None  # what no operation of torch's takes
            continue
        if key == "reduction":
            value = REDUCTIONS.get(value, value)
        listed = argument.type in ("int[]", "SymInt[]") and getattr(function, "is_method", False)
        given[argument.name] = [value] if listed and isinstance(value, int) else value
    found = schemas.resolve(name, (), given)
    return None if found is None else (name, *found)


class WholeFunction(OpOverloadPacket):
    """A public function as an operation."""

    def __init__(self, function: Any, name: str) -> None:
        super().__init__("retrograd", name)
        self.function = function
        signature = signature_of(function)
        assert signature is not None
        self.parameters = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        self.writes = name.endswith("_") and not name.endswith("__")
        arguments = [
            schemas.Argument(
                one.name,
                "Tensor?",
                None if one.default is one.empty else one.default,
                False,
                schemas.AliasInfo(frozenset("a"), True, frozenset("a")) if self.writes and not at else None,
                one.default is one.empty and one.kind is not one.VAR_POSITIONAL,
            )
            for at, one in enumerate(self.parameters)
        ]
        text = f"{self._qualified_op_name}({', '.join(one.name for one in arguments)}) -> ..."
        self.schema = schemas.FunctionSchema(self._qualified_op_name, "", arguments, [], text)

    def _forms(self) -> dict[str, Any]:
        return {"default": self.schema}

    def _computes(self, op: Any) -> Any:
        def compute(*args: Any) -> Any:
            given: list[Any] = []
            named = {}
            for one, value in zip(self.parameters, args, strict=False):
                if one.kind is one.VAR_POSITIONAL:
                    given += value
                elif one.kind is one.KEYWORD_ONLY:
                    named[one.name] = value
                else:
                    given.append(value)
            return self.function(*given, **named)

        return compute


@cache
def find(name: str) -> WholeFunction:
    """Return the operation of a public function, by the operation's name: that of the function, with "_" for `inplace=True`."""
    functional = import_module(f"{PACKAGE}.nn.functional")
    inner = name.removeprefix(IN_FUNCTIONAL)
    if inner != name:
        plain = inner if hasattr(functional, inner) else inner.removesuffix("_")
        return WholeFunction(getattr(functional, plain), name)
    return WholeFunction(import_module(f"{PACKAGE}.ops")._function(name), name)


def operation(function: Any, name: str, args: Any, kwargs: dict[str, Any]) -> tuple[Any, list[Any]] | None:
    """Return a call of a public function as one of an operation, and its arguments; None for one that is none."""
    values = bound(function, args, kwargs)
    if values is None or not flat_tensors(values.values()):
        return None
    in_place = values.get("inplace") is True
    functional = import_module(f"{PACKAGE}.nn.functional")
    if in_place or getattr(functional, name, None) is function:
        name = f"{IN_FUNCTIONAL}{name}{'_' * in_place}"
    try:
        packet = find(name)
    except AttributeError:
        return None
    names = [one.name for one in packet.schema.arguments]
    if set(values) != set(names):  # it is found under another signature
        return None
    values = {
        key: list(value) if isinstance(value, tuple) and key == _rest(packet) else value
        for key, value in values.items()
    }
    return packet.default, schemas.given(packet.schema, values)[0]


def _rest(packet: WholeFunction) -> str | None:
    return next((one.name for one in packet.parameters if one.kind is one.VAR_POSITIONAL), None)


__all__ = ["WholeFunction", "bound", "find", "operation", "signature_of"]
