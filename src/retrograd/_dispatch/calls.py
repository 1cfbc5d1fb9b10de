"""From a call of a public function to the operations that torch makes of it. See Note [Below autograd]."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import Any

from .._core.arrays import LevelArray
from .._modes import current_mode, using
from . import (
    classes_of,
    composites,
    composites_layers,
    composites_products,
    flat_tensors,
    functions,
    hidden,
    is_wanted,
    note_samples,
    recording,
    runs_unseen,
    samples_are_counted,
    schemas,
)

PACKAGE = __package__.partition(".")[0]
OPERATORS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "invert": "bitwise_not", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    "negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "absolute": "abs", "swapaxes": "transpose",
    "swapdims": "transpose", "clip": "clamp", "concat": "cat", "concatenate": "cat", "fix": "trunc", "arctan2": "atan2",
}  # fmt: skip
# Questions about a tensor, which are answered without any operation, and what is no operation.
ANSWERED = frozenset(
    """size dim numel stride is_contiguous storage_offset is_complex is_floating_point is_signed is_conj is_neg is_inference
    data_ptr backward register_hook retain_grad requires_grad_ ndimension nelement element_size get_device result_type
    is_same_size set_data is_leaf output_nr is_pinned can_cast promote_types sym_size sym_numel sym_stride is_distributed
    detach_ __repr__ __len__ save load set_ is_set_to grad""".split()  # noqa: SIM905
)
REDUCTIONS = composites.REDUCTIONS
# They change what a tensor looks like, not what is in it, or torch makes them of others in ways of its own: they run unseen.
UNSEEN = frozenset(
    """t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ resize_ resize_as_ set_""".split()  # noqa: SIM905
)
DECOMPOSED = (composites_layers, composites_products)  # which fill the table


@cache
def name_of(function: Any) -> str:
    """Return torch's name of the operation behind a public function or method."""
    name: str = getattr(function, "__name__", "")
    if name.startswith("__") and name.endswith("__") and name not in composites.FOUND:
        name = name.strip("_")
        if name[0] == "i" and name != "invert" and name[1:] in _BINARY:
            name = OPERATORS.get(name[1:], name[1:]) + "_"
    inner, in_place = name.removesuffix("_"), name.endswith("_")
    if inner in OPERATORS:
        name = OPERATORS[inner] + "_" * in_place
    of_family = _families().get(function) or _families().get(getattr(function, "__wrapped__", None))
    if of_family is not None and schemas.forms_of(of_family):
        return of_family
    return name


@cache
def _families() -> dict[Any, str]:
    """Return torch's names of the functions that stand in a module of a family, and not in the package itself."""
    package = import_module(PACKAGE)
    found = {}
    for family in ("linalg", "special", "fft"):
        module = import_module(f"{PACKAGE}.{family}")
        for name in getattr(module, "__all__", ()):
            function = getattr(module, name)
            own = (
                getattr(function, "__name__", "") == name
            )  # else it is another function of the package, under a second name
            if own and getattr(package, name, None) is not function:
                found[function] = f"{family}_{name}"
    return found


@cache
def is_operation(function: Any) -> bool:
    """Tell whether a public function is an operation of torch's, or made of some."""
    name = name_of(function)
    return name not in ANSWERED and (name in composites.FOUND or bool(schemas.forms_of(name)))


def _has_its_tensors(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    """Tell whether a call gives tensors where every form of a function takes one: decompositions ask them at once."""
    names = _leading_tensors(name)
    given = (*args[: len(names)], *(kwargs[one] for one in names if one in kwargs))
    return all(isinstance(one, composites.Tensor) for one in given)


@cache
def _leading_tensors(name: str) -> tuple[str, ...]:
    """Return the names of the arguments at the front that are tensors in every form of a function."""
    fronts = [
        tuple(one.name for one in takewhile(lambda one: one.real_type == "Tensor", form.arguments))
        for form in schemas.forms_of(name).values()
    ]
    return min(fronts, key=len) if fronts else ()


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")


def call(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a public function as operations."""
    name = name_of(function)
    if runs_unseen(args, kwargs):
        if name in composites_products.PRODUCTS and samples_are_counted():
            result = functions.decomposed(composites.FOUND[name], function, args, kwargs)
            if result is not NotImplemented:
                return result
        with hidden():
            out = function(*args, **kwargs)
        note_samples(name, args, kwargs, out)
        return out
    if name in ANSWERED:
        with hidden(), using(torch_function=False):
            return getattr(function, "__wrapped__", function)(*args, **kwargs)
    if "out" in kwargs:
        target = kwargs["out"]
        rest = {key: value for key, value in kwargs.items() if key != "out"}
        result = call(function, args, rest)
        return result if target is None else _into(target, result)
    if (autocast := current_mode().autocast) is not None:
        casting = import_module(f"{PACKAGE}.tensor._recording.autocast")
        args, kwargs = casting.cast_arguments(function, autocast, args, kwargs)
    made = composites.FOUND.get(name)
    if made is not None and _has_its_tensors(name, args, kwargs):
        result = functions.decomposed(made, function, args, kwargs)
        if result is not NotImplemented:
            return result
    elif name in functions.AS_WRITTEN:
        return functions.written(function)(*args, **kwargs)
    given = args, kwargs
    recorders = [one for one in current_mode().dispatch_modes if getattr(one, "sees_samples", False)]
    tensors = flat_tensors((*args, *kwargs.values()))
    if name in UNSEEN and not classes_of(tensors) and not (recorders and not any(map(_is_followed, tensors))):
        with hidden():
            return _for_recorders(recorders, name, args, kwargs, function(*args, **kwargs))
    if type(kwargs.get("reduction")) is str and kwargs["reduction"] in REDUCTIONS:
        kwargs = {key: value for key, value in kwargs.items() if key not in ("size_average", "reduce")}
        kwargs["reduction"] = REDUCTIONS[kwargs["reduction"]]
    requires_grad = bool(kwargs.get("requires_grad"))
    if "requires_grad" in kwargs:
        kwargs = {key: value for key, value in kwargs.items() if key != "requires_grad"}
    found = None if name in functions.OF_PYTHON else schemas.resolve(name, args, kwargs)
    if found is None and (by_name := functions.resolve(function, name, *given)) is not None:
        name, found = by_name[0], by_name[1:]
    whole = functions.operation(function, name, *given) if found is None else None
    if whole is not None:
        return recording.run(*whole, {})
    if found is None:
        with hidden():  # it refuses its arguments, or is no operation
            args, kwargs = given
            if not is_wanted(args, kwargs):
                return _for_recorders(recorders, name, args, kwargs, function(*args, **kwargs))
            if schemas.forms_of(name) or not hasattr(function, "raw"):
                kinds = ", ".join(sorted({type(one).__name__ for one in flat_tensors((*args, *kwargs.values()))}))
                raise NotImplementedError(
                    f"torch.{name}: retrograd knows no operation of torch's for these arguments ({kinds})"
                )
            return function.raw(*args, **kwargs)
    overload, values = found
    op = getattr(getattr(_aten(), name), overload)
    names = {one.name for one in op._schema.arguments}
    if {"pin_memory", "device"} <= names:  # a function that makes a tensor; torch's parser says where
        values.setdefault("pin_memory", False)
        if not any("Tensor" in one.type for one in op._schema.arguments) and values.get("device") is None:
            values["device"] = _get_default_device()
    made = recording.run(op, *schemas.given(op._schema, values))
    if isinstance(made, list):  # of a class or mode, which may return a list
        return tuple(made)
    return made.requires_grad_() if requires_grad else made


def _is_followed(tensor: Any) -> bool:
    """Tell whether a tensor is more than its values: a gradient is wanted, or it has a level."""
    return bool(tensor.requires_grad) or isinstance(tensor._array, LevelArray)


def _for_recorders(recorders: Any, name: str, args: Any, kwargs: Any, result: Any) -> Any:
    """Return a result that no mode has seen; refuse it where it would be recorded as a constant."""
    if recorders and flat_tensors((*args, *kwargs.values())) and flat_tensors((result,)):
        raise NotImplementedError(
            f"make_fx: retrograd knows no operation of torch's for torch.{name} with these arguments, so it cannot be recorded"
        )
    return result


def _get_default_device() -> Any:
    return import_module(PACKAGE).get_default_device()


def _into(target: Any, result: Any) -> Any:
    targets, results = (one if isinstance(one, (tuple, list)) else (one,) for one in (target, result))
    for one, made in zip(targets, results, strict=True):
        if one.shape != made.shape:
            one.resize_(made.shape)
        one.copy_(made)
    return target


@cache
def _aten() -> Any:
    return import_module(f"{PACKAGE}.ops").aten
