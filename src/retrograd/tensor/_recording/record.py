"""Recording: how a call on Tensors becomes an array and a node.

`record` is the general way. `unary` and `binary` make the methods and functions of elementwise operations. The hot path of
both (plain mode, NumPy arrays, exact Tensors) is written as text in `flat.py`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LEVEL_TYPES, NO_LEVELS, levels_of
from ..._core.fused import Fused
from ..._core.levels import creation_numbers
from ..._core.numpy_namespace import is_half, numpy_namespace
from ..._core.primitive import ELEMENTWISE, Primitive
from ..._generated import emit, reading
from ..._graph import node as _node
from ..._graph.node import PYTHON_SCALARS, Guard, InputFacts, Meta, Node, Slot, node_class
from ..._modes import NO_GRAD, PLAIN, Mode, current_mode, read_mode
from ..._native.library import library
from ..._tracebacks import hide
from ...overrides import MISSING, NOTHING, arguments
from .. import _base
from .._base import edge_of, storage_of, wrap
from .._object.layout import packed
from . import descriptions
from .flat import EXACT, function_text, promoting_recorder, recorder
from .operands import is_operand, plain_scalar
from .promotion import cast, misfit, promoted
from .refusals import refuse, refuse_zero_divisor, refuses_floats
from .saved import note_origin, save_arrays
from .unusual_calls import dispatch_override, of_one_tensor, of_two_tensors, overridden, unusual_call

NDARRAY = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
get_frame = sys._getframe


def record(
    primitive: Primitive | Fused,
    args: Sequence[Any],
    params: dict[str, Any],
    name: str | None = None,
    shown: dict[str, Any] | None = None,
    run_on: Sequence[Any] | None = None,
) -> Any:
    """Run a primitive on Tensors and record it.

    `shown` is what the node's `_saved_*` names show that no rule reads. `run_on` are the tensors' arrays, cast.
    """
    mode = read_mode()
    if (mode is PLAIN or mode is NO_GRAD) and run_on is None:
        flat = primitive.recorders.get(name) or recorder(primitive, name)
        result = flat(args, params, shown, mode is PLAIN)
        if result is not None:
            return result
    if isinstance(primitive, Fused):
        from .fused import record_in_general

        return record_in_general(primitive, args, params)
    mode = current_mode()
    tensor_type = _base.Tensor
    arrays = [a._array if isinstance(a, tensor_type) else a for a in args]
    out = run_under(mode, primitive, name, args, arrays if run_on is None else run_on, params)
    if primitive.dense or (primitive.dense is None and mode.transforms and primitive.kind is not ELEMENTWISE):
        out = laid_out(out)
    if mode.saved_hooks:
        out = _base.memory_of(out)  # what a hook keeps of it shares its memory
    if mode.tracks and primitive.differentiable:
        edges = tuple([edge_of(a) if isinstance(a, tensor_type) else None for a in args])
        for edge in edges:
            if edge is not None:
                node = build_node(primitive, name, args, arrays, out, params, edges, mode, shown)
                return wrap_outputs(primitive, out, node, mode)
    return wrap_outputs(primitive, out, None, mode)


def run_under(
    mode: Mode,
    primitive: Primitive,
    name: str | None,
    args: Sequence[Any],
    arrays: Sequence[Any],
    params: dict[str, Any],
) -> Any:
    """Run a primitive, or let the mode's dispatch decide how its result is come by."""
    if mode.recording is not None:
        mode.recording.need_traced(args)
    if mode.dispatch is None:
        return primitive.bind(arrays, params)
    return mode.dispatch(primitive, name, args, lambda: primitive.bind(arrays, params))


def laid_out(out: Any) -> Any:
    """Give results dense memory. See Note [Results that share memory]."""
    if type(out) is tuple:
        return tuple(laid_out(part) for part in out)
    return packed(out)


def wrap_outputs(primitive: Primitive, out: Any, node: Node | None, mode: Mode) -> Any:
    """Make Tensors of a primitive's outputs; integer outputs are never differentiable."""
    if primitive.outputs == 1:
        result = wrap(out, node, None)
        if mode.inference:
            mark_inference(result)
        if mode.dispatch is not None:
            mode.dispatch.made((result,))
        return result
    results = []
    for i, part in enumerate(out):
        differentiable = node is not None and part.dtype.kind in "fcV"
        results.append(wrap(part, Slot(node, i) if differentiable else None, None))  # type: ignore[arg-type]
        if mode.inference:
            mark_inference(results[-1])
    if node is not None and "out" in node.array_names and not mode.saved_hooks:
        # indices are saved: a write into them must be noticed
        guard = node.guard = node.guard or Guard()
        guard.versions["out"] = [(None, 0) if one._edge is not None else (storage_of(one), 0) for one in results]
    if mode.dispatch is not None:
        mode.dispatch.made(results)
    return tuple(results)


def mark_inference(tensor: Any) -> None:
    """Make a tensor an inference tensor: it can never be saved for backward."""
    storage_of(tensor).inference = creation_numbers()


def build_node(
    primitive: Primitive,
    name: str | None,
    args: Sequence[Any],
    arrays: Sequence[Any],
    out: Any,
    params: dict[str, Any],
    edges: tuple[Any, ...],
    mode: Mode,
    shown: dict[str, Any] | None = None,
) -> Node:
    """Make the node of a call: its edges, what its rules read, and the facts its edges need."""
    cls = node_class(primitive, name)
    node = cls().begin(edges)
    node.meta = make_meta(primitive, arrays, out, edges, params.get("level"))
    values = primitive.named(arrays)
    if primitive.variadic:
        values[f"{primitive.inputs[0]}_shape"] = tuple(tuple(a.shape) for a in arrays)
    for attribute in cls.static_names:
        if attribute in params:
            setattr(node, attribute, params[attribute])
        elif attribute in values:
            setattr(node, attribute, values[attribute])
        else:
            base, _, fact = attribute.rpartition("_")
            if fact == "shape":
                setattr(
                    node,
                    attribute,
                    tuple(np.shape(values[base]) if not hasattr(values[base], "shape") else values[base].shape),
                )
            else:
                setattr(node, attribute, values[base].dtype)
    if primitive.outputs != 1:
        node.num_outputs = primitive.outputs
    if shown is not None:
        node.shown = shown
        if "indices" in shown:  # torch saves index tensors as they were given: a mask, not the arrays made of it
            given = [t for t in shown["indices"] if t is not None]
            args = (*args[: primitive.inputs.index("indices")], *given)
    save_arrays(node, cls, args, values, out, edges, mode)
    if mode.anomaly:
        note_origin(node, out, arrays, mode)
    return node


def make_meta(
    primitive: Primitive, arrays: Sequence[Any], out: Any, edges: tuple[Any, ...], own_level: Any = None
) -> Meta | None:
    """Collect what the edges need to know, or None where gradients already have the inputs' shapes and dtypes."""
    first = out[0] if primitive.outputs != 1 else out
    dtype, shape = first.dtype, first.shape
    elementwise = primitive.kind == ELEMENTWISE
    complex_ = dtype.kind == "c"
    plain = not complex_ and not is_half(dtype)  # a rule's Python numbers turn bfloat16 into float32
    leveled = own_level is not None
    for array, edge in zip(arrays, edges):  # noqa: B905 - the keyword costs 100 ns
        if type(array) in LEVEL_TYPES:
            leveled = True
        own = getattr(array, "dtype", None)
        if own is None:
            continue
        if own.kind == "c":
            complex_ = True
            plain = False
        if own is not dtype and own != dtype:
            # a rule that multiplies by a constant of another dtype may return that dtype
            if edge is not None or (elementwise and own.kind != "b"):
                plain = False
        elif elementwise and edge is not None and array.shape != shape:
            plain = False
    if plain and not leveled:
        return None
    out_levels = levels_of(first) if leveled else NO_LEVELS
    inputs = tuple(
        [
            None
            if edge is None
            else InputFacts(tuple(array.shape), array.dtype, levels_of(array) if leveled else NO_LEVELS)
            for array, edge in zip(arrays, edges, strict=True)
        ]
    )
    meta = Meta(inputs, out_levels, complex_)
    if leveled and own_level is None:
        meta.ended = frozenset([one for a in arrays for one in levels_of(a) if not one.alive]) - out_levels
        if meta.ended:
            meta.rule_levels = out_levels | meta.ended
            meta.special = True
    if own_level is not None:
        # the rule of an operation that enters a level leaves it; that of one that leaves hands back a gradient inside
        enters = primitive.enters  # type: ignore[attr-defined]
        meta.rule_levels = out_levels - {own_level} if enters else out_levels | {own_level}
        meta.loses_levels = not enters and any(f is not None and not f.levels <= meta.rule_levels for f in inputs)
    return meta


# what rounds numbers next to halves to half precision
ROUNDED = frozenset({"add", "sub", "rsub", "pow", "eq", "ne", "lt", "le", "gt", "ge", "clamp"})
DIVISIONS = frozenset({"floor_divide", "remainder", "fmod", "div_floor", "div_trunc"})  # which integers refuse by zero


def _numbers_next_to_halves(
    name: str, arrays: Sequence[Any], cast_arrays: Sequence[Any], params: dict[str, Any], dtype: np.dtype[Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Round numbers as torch does: what it adds or compares is of half precision like the tensor, what it multiplies by is a float32."""
    rounded = name in ROUNDED
    if not rounded and name not in ("mul", "div", "lerp_scalar"):
        return cast_arrays, params

    def as_there(given: Any, made: Any) -> Any:
        if type(made) is float or (type(made) is int and name != "pow"):
            nearest = float(np.asarray(float(made), dtype))
            return nearest if rounded else made if type(made) is int and nearest == made else F32.type(made)
        if name in ("mul", "div") and isinstance(given, (np.ndarray, np.generic)) and not given.ndim:
            return given.astype(F32) if given.dtype.kind in "fiu" else made
        return made

    params = {key: as_there(None, value) for key, value in params.items()}
    return [as_there(*pair) for pair in zip(arrays, cast_arrays, strict=True)], params


class Elementwise:
    """The torch side of an elementwise primitive: how its operands are promoted and what its node is called."""

    __slots__ = ("allowed", "flat", "function", "integers_to_float", "name", "node_name", "numbers", "primitive")

    def __init__(
        self,
        primitive: Primitive,
        name: str,
        node_name: str | None,
        integers_to_float: bool,
        numbers: str | None = None,
    ) -> None:
        self.primitive = primitive
        self.name = name
        self.node_name = node_name
        self.integers_to_float = integers_to_float
        self.numbers = numbers  # see `binary`
        self.function = _OPERATORS.get(primitive.name)
        self.allowed: dict[int, frozenset[type]] = {}  # dtypes that passed all checks: see `promoting_recorder`
        self.flat: Any = None

    def slow(self, args: Sequence[Any], params: dict[str, Any] | None = None) -> Any:
        """Run on tensors of any dtypes and numbers; flat where all checks were passed before."""
        mode = read_mode()
        params = params or {}
        if mode is PLAIN or mode is NO_GRAD:
            if self.flat is None:
                self.flat = promoting_recorder(self.primitive, self.node_name, self.allowed, self.name in DIVISIONS)
            result = self.flat(args, params, None, mode is PLAIN)
            if result is not None:
                return result
        return self.checked(args, params, current_mode())

    def allow(self, dtype: np.dtype[Any]) -> None:
        """Note that a dtype needs no more checks, and which Python numbers leave it as it is."""
        if dtype.kind == "f" and dtype.itemsize > 2:
            # torch subtracts no truth values
            self.allowed[dtype.num] = frozenset({int, float} if self.name in ("sub", "rsub") else {bool, int, float})
        elif dtype.kind in "iu" and not self.integers_to_float:
            self.allowed[dtype.num] = frozenset({int} if dtype.itemsize == 8 else ())  # others wrap what they lack
        elif dtype.kind == "b" and not self.integers_to_float:
            self.allowed[dtype.num] = frozenset()

    def _known(self, arrays: Sequence[Any]) -> np.dtype[Any] | None:
        """Return the dtype of floats that need no promotion, and have passed all checks before; None for others."""
        dtype = None
        for array in arrays:
            if type(array) is float:
                continue
            d = getattr(array, "dtype", None)
            if (d is not F32 and d is not F64) or (dtype is not None and d is not dtype):
                return None
            dtype = d
        return dtype if dtype is not None and dtype.num in self.allowed else None

    def checked(self, args: Sequence[Any], params: dict[str, Any], mode: Mode) -> Any:
        """Run with every check on: promotion, devices, modes."""
        tensor_type = _base.Tensor
        arrays = [a._array if isinstance(a, tensor_type) else a for a in args]
        dtype = self._known(arrays)
        cast_arrays: Sequence[Any] = arrays
        if dtype is None:
            cast_arrays, dtype = promoted(arrays, self.integers_to_float)
            if self.name in ("sub", "rsub"):
                _errors.refuse_bool(arrays)
            refuse(self.name, dtype)
            refuse_zero_divisor(self.name, cast_arrays, dtype)
            self.allow(dtype)
            if is_half(dtype):
                cast_arrays, params = _numbers_next_to_halves(self.name, arrays, cast_arrays, params, dtype)
                # rules multiply by them, too
                arrays = [c if type(c) is F32.type else a for a, c in zip(arrays, cast_arrays, strict=True)]
        try:
            out = run_under(mode, self.primitive, self.node_name, args, cast_arrays, params)
        except ValueError as error:
            if "negative integer powers" in str(error):
                raise RuntimeError("Integers to negative integer powers are not allowed.") from None
            shapes = [a.shape for a in arrays if hasattr(a, "shape")]
            if len(shapes) < 2 or "broadcast" not in str(error):
                raise
            raise misfit(shapes) from None
        if is_half(dtype) and out.dtype == F32:
            out = cast(out, dtype)  # NumPy takes a Python number next to bfloat16 for float32; torch rounds once, too
        if mode.saved_hooks:
            out = _base.memory_of(out)
        if mode.tracks and self.primitive.differentiable:
            edges = tuple([edge_of(a) if isinstance(a, tensor_type) else None for a in args])
            for edge in edges:
                if edge is not None:
                    if out.dtype.kind in "biu":
                        break
                    node = build_node(self.primitive, self.node_name, args, arrays, out, params, edges, mode)
                    return wrap_outputs(self.primitive, out, node, mode)
        return wrap_outputs(self.primitive, out, None, mode)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
}


def on_plain_arrays(primitive: Primitive) -> Any:
    """Return what runs an operation on NumPy arrays of float32 or float64 and on nothing else."""
    plain = getattr(primitive.implementation, "plain", None)
    return getattr(numpy_namespace, primitive.name) if plain is None else partial(plain, numpy_namespace)


def unary(primitive: Primitive, name: str, node_name: str | None = None, *, integers_to_float: bool = False) -> Any:
    """Make the function (and method) of an elementwise operation of one tensor."""
    call = _written_later(Elementwise(primitive, name, node_name, integers_to_float), of_one_tensor)
    call.__doc__ = descriptions.of_one(name, integers_to_float)
    ufunc = getattr(np, primitive.name, None) if primitive.implementation is None else None
    call.ufunc = ufunc if isinstance(ufunc, np.ufunc) else None  # for in-place methods
    return call


def binary(
    primitive: Primitive,
    name: str,
    node_name: str | None = None,
    *,
    integers_to_float: bool = False,
    numbers: str = "operator",
) -> Any:
    """Make the function of an elementwise operation of two tensors; `numbers` says which of them may be numbers.

    That is "both", "other", "none", or "operator": both, and else NotImplemented; "self": so, but the first is a tensor.
    """
    call = _written_later(Elementwise(primitive, name, node_name, integers_to_float, numbers), of_two_tensors)
    call.__doc__ = descriptions.of_two(name, numbers != "none")
    return call


def _written_later(recipe: Elementwise, signature: Any) -> Any:
    """Make a function that is written as text at its first call, so that importing stays quick."""
    names = {"recipe": recipe, "write": _write, "hide": hide}
    call = reading(names, _at_first.__code__, recipe.name)
    names["call"] = call
    call.__qualname__ = recipe.name
    call.__wrapped__, call.refuses = signature, True
    call.__module__ = get_frame(2).f_globals["__name__"]  # which has it under that name
    return call


def _at_first(*args: Any, **kwargs: Any) -> Any:
    try:
        return write(call, recipe)(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821 - its globals are others
    except Exception as error:
        hide(error)
        raise


_codes: dict[str, CodeType] = {}  # by text, of which there are few


def _write(call: Any, recipe: Elementwise) -> Any:
    """Give a public function its code."""
    primitive, name = recipe.primitive, recipe.name
    ufunc = getattr(np, primitive.name, None) if primitive.implementation is None else None
    plain = on_plain_arrays(primitive) if ufunc is None else ufunc
    text, names = function_text(
        primitive,
        recipe.node_name,
        floats=not refuses_floats(name),
        integers=ufunc is not None and not recipe.integers_to_float,
        divides=name in DIVISIONS,
        numbers=recipe.numbers != "none",
    )
    code = _codes.get(text)
    if code is None:
        count = "one tensor" if len(primitive.inputs) == 1 else "two tensors"
        code = _codes[text] = emit(f"an elementwise function of {count}", text, names)["call"].__code__
    own = plain if len(primitive.inputs) == 1 or ufunc is not None else getattr(numpy_namespace, primitive.name)
    function = recipe.function or own
    kernels = library(primitive.name, plain) if isinstance(plain, np.ufunc) else None
    names |= {"allowed": recipe.allowed, "function": function, "ufunc": plain, "name": name}
    names |= {"off_path": off_path, "unusual_call": unusual_call, "wide": plain, "wide_with_number": function}
    if kernels is not None:
        names |= {"wide": kernels.large, "wide_with_number": kernels.large, "WIDE": kernels.start}
    call.__globals__.update(names)
    words = code.co_argcount - len(primitive.inputs) - 2
    call.__defaults__ = (*(MISSING,) * len(primitive.inputs), NOTHING, *(None,) * (words + 1))
    call.__code__ = code.replace(
        co_name=name
    )  # a copy, of which the interpreter takes notes that hold for this function
    return call


def off_path(call: Any, recipe: Elementwise, *values: Any) -> Any:
    """Do what an elementwise function does off its hot path."""
    mode, numbers = current_mode(), recipe.numbers
    first, last = values[0], values[-1]
    is_plain = mode is PLAIN or mode is NO_GRAD
    with_number = numbers is not None and numbers != "none" and type(last) in PYTHON_SCALARS
    if is_plain and type(first) in EXACT and (type(last) in EXACT or with_number):
        return recipe.checked(values, {}, mode)
    if overridden(first) or (numbers is not None and overridden(last)):
        return dispatch_override(call, values, {})
    if last is MISSING or first is MISSING or (numbers is None and not isinstance(first, _base.Tensor)):
        return unusual_call(call, values, NOTHING, None, {})
    if mode.autocast is not None:
        from .autocast import cast_arguments

        values = cast_arguments(call, mode.autocast, values, {})[0]
    if numbers is None:
        return recipe.checked(values, {}, mode)
    if numbers == "self" and not isinstance(first, _base.Tensor):
        raise _errors.not_of_tensors(f"__r{recipe.name}__", first)
    if numbers in ("operator", "self"):
        if not (is_operand(first) and is_operand(last)):
            return NotImplemented
    elif not isinstance(first, _base.Tensor) or not isinstance(last, _base.Tensor):
        arguments().check(call, values, {})
    return recipe.checked((plain_scalar(first), plain_scalar(last)), {}, mode)


_node.install(wrap=wrap, wrap_leaf_alias=_base.wrap_leaf_alias, new_storage=_base.Storage, storage_of=storage_of)
