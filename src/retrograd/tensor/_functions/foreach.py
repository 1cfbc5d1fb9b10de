"""torch._foreach_*: one operation on every tensor of a list, as optimizers of users call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..._core.numpy_namespace import is_half
from ..._modes import current_mode, using
from .. import _base
from .._aliasing.entering import NO_WRITES
from .._names import FOREACH
from .norms import vector_norm

WITH_ALPHA = ("add", "sub")
BINARY = ("mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
TERNARY = ("addcmul", "addcdiv")
UNARY = [name for name in FOREACH.split() if name not in (*WITH_ALPHA, *BINARY, *TERNARY, "lerp")]


def _listed(name: str, tensors: Any) -> list[Any]:
    """Return the tensors that a function received; refuse what is no list of tensors."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(one, _base.Tensor) for one in tensors):
        kind = type(tensors).__name__
        raise TypeError(f"_foreach_{name}(): argument 'self' (position 1) must be tuple of Tensors, not {kind}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _beside(tensors: list[Any], other: Any) -> list[Any]:
    """Return an argument for every tensor: a list has one for each, anything else is for all."""
    if isinstance(other, (list, tuple)):
        if len(other) != len(tensors):
            if other and isinstance(other[0], _base.Tensor):
                raise RuntimeError(
                    f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
                )
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(other)
    if isinstance(other, _base.Tensor) and other.ndim:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements."
        )
    return [other] * len(tensors)


def _returned(name: str, given: Any, results: list[Any]) -> Any:
    """Return the results; a function that wrote in place returns what it was given."""
    return list(given) if name.endswith("_") else tuple(results)


def _method(name: str) -> Callable[..., Any]:
    """Return the method that does the work; `maximum` and `minimum` have none that writes, and know no numbers."""
    if name.rstrip("_") not in ("maximum", "minimum"):
        return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)
    bound = "clamp_min" if name.startswith("maximum") else "clamp_max"
    return lambda tensor, other: getattr(tensor, bound + "_" * name.endswith("_"))(other)


def _on_captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function write into tensors from outside of a transform, as torch does with lists of them."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not (transforms := current_mode().transforms):
            return function(*args, **kwargs)
        with using(transforms=tuple([one for one in transforms if one.kind not in NO_WRITES])):
            return function(*args, **kwargs)

    return call


def _unary(name: str) -> Callable[..., Any]:
    def function(self: Any) -> Any:
        return _returned(name, self, [getattr(one, name)() for one in _listed(name, self)])

    return function


def _binary(name: str) -> Callable[..., Any]:
    method = _method(name)

    def function(self: Any, other: Any = None, *, scalar: Any = None, scalars: Any = None) -> Any:
        second = next((one for one in (other, scalar, scalars) if one is not None), None)
        if name == "pow" and not isinstance(self, (list, tuple)):
            return tuple(one.__rpow__(self) for one in _listed(name, second))
        tensors = _listed(name, self)
        others = _beside(tensors, second)
        if name == "mul_":  # of halves: torch rounds the number first here, and nowhere else
            others = [_rounded_for(one, value) for one, value in zip(tensors, others, strict=True)]
        return _returned(name, self, [method(one, value) for one, value in zip(tensors, others, strict=True)])

    return function


def _rounded_for(tensor: Any, value: Any) -> Any:
    dtype = tensor._array.dtype
    return float(np.asarray(value, dtype)) if type(value) is float and is_half(dtype) else value


def _with_alpha(name: str) -> Callable[..., Any]:
    def function(self: Any, other: Any = None, *, scalar: Any = None, scalars: Any = None, alpha: Any = 1) -> Any:
        second = next((one for one in (other, scalar, scalars) if one is not None), None)
        tensors = _listed(name, self)
        pairs = zip(tensors, _beside(tensors, second), strict=True)
        return _returned(name, self, [getattr(one, name)(value, alpha=alpha) for one, value in pairs])

    return function


def _ternary(name: str) -> Callable[..., Any]:
    def function(
        self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None, tensor_scalars: Any = None
    ) -> Any:
        tensors = _listed(name, self)
        factors = next((one for one in (scalars, tensor_scalars) if one is not None), value)
        if isinstance(factors, _base.Tensor):
            factors = factors.tolist()
        columns = [_beside(tensors, one) for one in (tensor1, tensor2, factors)]
        rows = zip(tensors, *columns, strict=True)
        return _returned(name, self, [getattr(one, name)(a, b, value=factor) for one, a, b, factor in rows])

    return function


def _lerp(name: str) -> Callable[..., Any]:
    def function(self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None, scalars: Any = None) -> Any:
        tensors = _listed(name, self)
        given = next((one for one in (weight, weights, scalars) if one is not None), None)
        rows = zip(tensors, _beside(tensors, tensors1), _beside(tensors, given), strict=True)
        return _returned(name, self, [getattr(one, name)(end, w) for one, end, w in rows])

    return function


@_on_captured
def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy each tensor from another."""
    tensors = _listed("copy_", self)
    for one, other in zip(tensors, _beside(tensors, src), strict=True):
        one.copy_(other)
    return list(self)


@_on_captured
def _foreach_zero_(self: Any) -> Any:
    """Fill each tensor with zeros."""
    for one in _listed("zero_", self):
        one.zero_()
    return list(self)


def _foreach_clone(self: Any) -> tuple[Any, ...]:
    """Copy each tensor."""
    return tuple(one.clone() for one in _listed("clone", self))


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """Return the norm of each tensor."""
    return tuple(vector_norm(one, ord, dtype=dtype) for one in _listed("norm", self))


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """Return the sum of powers of each tensor."""
    return tuple(one.abs().pow(ord).sum(dtype=dtype) for one in _listed("powsum", self))


def _foreach_max(self: Any) -> tuple[Any, ...]:
    """Return the largest number of each tensor."""
    return tuple(one.max() for one in _listed("max", self))


def _foreach_mm(self: Any, mat2: Any) -> tuple[Any, ...]:
    """Multiply matrices in pairs."""
    tensors = _listed("mm", self)
    return tuple(one.mm(other) for one, other in zip(tensors, _beside(tensors, mat2), strict=True))


def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Any], found_inf: Any, inv_scale: Any) -> None:
    """Multiply each tensor by a number, and note in `found_inf` whether any had something infinite or NaN."""
    for one in self:
        if not one.isfinite().all():
            found_inf.fill_(1.0)
        one.mul_(inv_scale)


def _add_family(make: Callable[[str], Callable[..., Any]], names: Sequence[str]) -> None:
    for name in [*names, *(f"{one}_" for one in names)]:
        function = _on_captured(make(name)) if name.endswith("_") else make(name)
        function.__name__ = function.__qualname__ = f"_foreach_{name}"
        function.__doc__ = f"Call {name} on each tensor."
        globals()[function.__name__] = function


_add_family(_unary, UNARY)
_add_family(_binary, BINARY)
_add_family(_with_alpha, WITH_ALPHA)
_add_family(_ternary, TERNARY)
_add_family(_lerp, ["lerp"])
