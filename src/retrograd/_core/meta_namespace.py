"""The vocabulary `xp` over arrays without elements, and how primitives and fused operations run on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from .meta_arrays import MetaArray, fresh, like, one_element, result_order
from .meta_functions import restrided
from .meta_shapes import shape_rules
from .numpy_namespace import ArrayNamespace, declared, is_half


class _Broadcast:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


class MetaModule:
    """NumPy, but what makes arrays makes them without elements. NumPy's other functions see to meta arrays by themselves."""

    lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=restrided))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any = float, *args: Any, **_: Any) -> MetaArray:
        return fresh(shape, dtype)

    zeros = ones = empty

    def full(self, shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **_: Any) -> MetaArray:
        return fresh(shape, np.asarray(one_element(fill_value)).dtype if dtype is None else dtype)

    def array(self, values: Any, dtype: Any = None, *args: Any, **_: Any) -> MetaArray:
        if type(values) is not MetaArray:
            if isinstance(values, (list, tuple)) and any(type(one) is MetaArray for one in values):
                values = np.stack(values)
            else:
                values = np.asarray(values, dtype)
                return fresh(values.shape, values.dtype)
        return values.astype(values.dtype if dtype is None else dtype)  # type: ignore[no-any-return]

    def asarray(self, values: Any, dtype: Any = None, *args: Any, **_: Any) -> MetaArray:
        if type(values) is MetaArray and (dtype is None or np.dtype(dtype) == values.dtype):
            return values
        return self.array(values, dtype)

    asanyarray = asarray

    def ascontiguousarray(self, values: Any, dtype: Any = None) -> MetaArray:
        array = self.asarray(values, dtype)
        return array if array.flags.c_contiguous else array.copy()

    def arange(self, *args: Any, dtype: Any = None, **_: Any) -> MetaArray:
        return fresh((len(range(*args)),), np.intp if dtype is None else dtype)

    def eye(self, n: int, m: int | None = None, k: int = 0, dtype: Any = float, **_: Any) -> MetaArray:
        return fresh((n, n if m is None else m), dtype)

    def tri(self, n: int, m: int | None = None, k: int = 0, dtype: Any = float) -> MetaArray:
        return fresh((n, n if m is None else m), dtype)

    def broadcast(self, *arrays: Any) -> _Broadcast:
        return _Broadcast(np.broadcast_shapes(*[np.shape(one) for one in arrays]))


class MetaNamespace(ArrayNamespace):
    """The vocabulary over meta arrays: words by their shapes. What they have in NumPy's does the rest."""

    is_meta = runs_operations = True

    def __init__(self) -> None:
        super().__init__(MetaModule())
        for name in ("sigmoid", "log_sigmoid", "softplus", "reciprocal", "rsqrt", "erf"):
            setattr(self, name, _floating)

    def __getattr__(self, name: str) -> Any:
        """Find a primitive's shape rule, or its own implementation."""
        primitive = declared.get(name)
        if primitive is None:
            raise AttributeError(f"xp has no {name!r}: a rule may use the closed vocabulary only")
        function = self.of_library(primitive) or partial(self._call, primitive)
        setattr(self, name, function)
        return function

    def _call(self, primitive: Any, *args: Any, **params: Any) -> Any:
        return self.run(primitive, args, params)

    # ---- operations ----
    def run(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run a primitive: by its shape rule, by its word, or by its implementation over meta arrays."""
        args = _beside_meta(args, primitive)
        rule = shape_rules.get(primitive.name)
        try:
            if rule is not None:
                return rule(*args, **params)
            if primitive.implementation is None:
                return getattr(self, primitive.name)(*args, **params)
            if primitive.kind == "elementwise":
                return _by_one_element(primitive, args, params)
            if primitive.widens and is_half(args[0].dtype):
                half = args[0].dtype
                return primitive.implementation(self, args[0].astype(np.float32), *args[1:], **params).astype(half)
            return primitive.implementation(self, *args, **params)
        except NotImplementedError as error:
            raise _refusal(primitive.torch, error) from None

    def run_fused(self, operation: Any, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        """Run a fused operation by its decomposition, whose results have the shapes of the kernel's; backward needs nothing."""
        if any(type(one) is np.ndarray and one.ndim for one in arrays):
            raise _of_two_devices(arrays)
        rule = shape_rules.get(operation.name)
        half = next((a.dtype for a in arrays if a is not None and is_half(a.dtype)), None) if operation.widens else None
        try:
            if rule is not None:
                return rule(*arrays, **params), None
            out = operation.parts(self, *arrays, **params)
        except NotImplementedError as error:
            raise _refusal(operation.name, error) from None
        outs = tuple([_settled(one, half) for one in (out if isinstance(out, tuple) else (out,))])
        return (outs if isinstance(out, tuple) else outs[0]), None

    def pull_back_fused(
        self, operation: Any, g: Any, needed: Sequence[bool], residuals: Any, arrays: Sequence[Any], params: Any
    ) -> list[Any]:
        """Return the gradients of a fused operation: each has the shape and the dtype of its input."""
        return [fresh(a.shape, a.dtype) if wanted else None for wanted, a in zip(needed, arrays, strict=True)]

    # Words whose NumPy text looks at sizes in order to choose a kernel, or reads elements.
    def remainder_of(self, x: Any, y: Any) -> Any:
        return np.remainder(x, y)

    def remainder_towards_zero(self, x: Any, y: Any) -> Any:
        return np.fmod(x, y)

    def floor_divide(self, x: Any, y: Any) -> Any:
        return np.floor_divide(x, y)

    def power_by(self, x: Any, exponent: Any) -> Any:
        return like(x) if x.dtype.kind in "fc" and type(exponent) is not complex else self.power(x, exponent)

    def _matmul(self, x: Any, y: Any) -> Any:
        return np.matmul(x, y)

    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype if dtype is None else dtype)

    def prod(self, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return x.prod(axis=axis, keepdims=keepdims, dtype=x.dtype if dtype is None else dtype)

    def cumsum(self, x: Any, *, axis: int, dtype: Any = None) -> Any:
        return x.cumsum(axis=axis, dtype=x.dtype if dtype is None else dtype)

    def astype(self, x: Any, *, dtype: Any) -> Any:
        return x.astype(getattr(dtype, "numpy", dtype))

    def triangle(self, x: Any, *, upper: bool, k: int) -> Any:
        return fresh(x.shape, x.dtype)

    def sgn(self, x: Any) -> Any:
        return like(x)

    def restrided(self, x: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Any:
        first = x.reshape(-1)[offset // x.itemsize :] if offset else x
        return restrided(first, shape, strides)

    def zeros_like(self, x: Any) -> Any:
        return like(x)


def _floating(x: Any) -> Any:
    return like(x)


def _by_one_element(primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> MetaArray:
    """Give an elementwise operation its shape by broadcasting, and its dtype by running it on one element."""
    shape = np.broadcast_shapes(*[a.shape if hasattr(a, "shape") else () for a in args])
    made = primitive.run([one_element(a) for a in args], params)
    return fresh(shape, made.dtype, result_order(shape, args))


def _settled(array: Any, half: Any) -> Any:
    """Give a result dense memory; and half precision, if that was given and computed with in float32."""
    dtype = array.dtype if half is None or array.dtype.kind not in "fV" else half
    return array if array.flags.c_contiguous and dtype == array.dtype else fresh(array.shape, dtype)


def _refusal(name: str, error: Exception) -> Exception:
    """Name the operation that has no shape rule, the innermost."""
    named = str(error).startswith("aten::")
    return error if named else NotImplementedError(f"aten::{name}: no shape rule for the meta device ({error})")


def _beside_meta(args: Sequence[Any], primitive: Any) -> list[Any]:
    """Let numbers of the CPU join meta arrays; refuse whole arrays beside them, element by element, as torch does."""
    settled: list[Any] = []
    for arg in args:
        if type(arg) is np.ndarray:
            if not arg.ndim:
                arg = arg[()]
            elif primitive.kind == "elementwise" or primitive.variadic:
                raise _of_two_devices(args)
            elif primitive.rest is None:
                arg = fresh(arg.shape, arg.dtype)
            elif not settled:  # numbers at places that are not known
                raise _of_two_devices(args)
        settled.append(arg)
    return settled


def _of_two_devices(args: Sequence[Any]) -> RuntimeError:
    first = next(one for one in args if isinstance(one, np.ndarray) and one.ndim)
    here, there = ("cpu", "meta") if type(first) is not np.ndarray else ("meta", "cpu")
    return RuntimeError(f"Tensor on device {here} is not on the expected device {there}!")


meta_namespace = MetaNamespace()
