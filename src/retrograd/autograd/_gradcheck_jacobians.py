"""Jacobians for gradcheck: by finite differences, by backward and by forward mode; whole or in a direction.

Note [Jacobians of complex functions]
Outputs are always real here: gradcheck takes complex ones apart. With respect to a complex input x + iy the
gradient of a real s is ds/dx + i ds/dy, which is torch's convention. A Jacobian has a row for each element of
the input, a column for each of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tensor import _base
from ..tensor._base import wrap
from ..tensor._tensor import Tensor
from . import forward_ad
from ._gradcheck_texts import NOT_REENTRANT


class GradcheckError(RuntimeError):
    """A gradient is not what it should be."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return outputs or inputs as a tuple."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def is_differentiable(value: Any) -> bool:
    """Tell whether a value is a tensor of floating point or complex numbers."""
    return isinstance(value, Tensor) and value._array.dtype.kind in "fcV"


def checked_inputs(inputs: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the inputs that require grad, with their positions."""
    return [(i, one) for i, one in enumerate(inputs) if isinstance(one, Tensor) and one.requires_grad]


# ---- finite differences ----
def _difference(
    func: Callable[..., Any], inputs: Sequence[Any], memory: Any, at: Any, step: Any, eps: float, where: str
) -> list[Any]:
    """Move a part of an input's memory by -step and +step; return the slope of every output, flat."""
    before = memory[at].copy()
    try:
        memory[at] = before - step
        low = [one.clone() for one in as_tuple(func(*inputs))]
        memory[at] = before + step
        high = [one.clone() for one in as_tuple(func(*inputs))]
    finally:
        memory[at] = before
    slopes = []
    for a, b in zip(low, high, strict=True):
        for what, x, y in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if x != y:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                    f"{where}by {eps}, but got: {what}s {x} and {y}."
                )
        slopes.append(((b - a) / (2 * eps)).detach().reshape(-1))
    return slopes


def numerical_jacobian(
    func: Callable[..., Any], inputs: Sequence[Any], tensor: Any, chosen: Sequence[int], eps: float
) -> list[Any]:
    """Return the Jacobians of chosen outputs with respect to one of the inputs, element by element."""
    memory = _base.materialise(tensor)
    rows: list[list[Any]] = [[] for _ in chosen]
    for index in np.ndindex(*memory.shape):
        where = f"on index {index} "
        slopes = _difference(func, inputs, memory, index, memory.dtype.type(eps), eps, where)
        if memory.dtype.kind == "c":
            turned = _difference(func, inputs, memory, index, memory.dtype.type(eps * 1j), eps, where)
            slopes = [dx + dy * 1j for dx, dy in zip(slopes, turned, strict=True)]
        for row, k in zip(rows, chosen, strict=True):
            row.append(slopes[k])
    return [_matrix(row, tensor) for row in rows]


def _matrix(rows: list[Any], tensor: Any) -> Any:
    from ..tensor._functions.creation import zeros
    from ..tensor._functions.joining import stack

    return stack(rows, 0) if rows else zeros((0, 0), dtype=tensor.dtype)


def numerical_directional(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    tensor: Any,
    direction: Any,
    chosen: Sequence[int],
    eps: float,
) -> list[tuple[Any, Any]]:
    """Return slopes of chosen outputs along a direction in one input: of its real and its imaginary part."""
    memory = _base.materialise(tensor)
    real, imaginary = direction if isinstance(direction, tuple) else (direction, None)
    step = _shaped(real, memory) * eps
    slopes: list[Any] = _difference(func, inputs, memory, ..., step.astype(memory.dtype), eps, "")
    turned: list[Any] = [None] * len(slopes)
    if imaginary is not None:
        step = _shaped(imaginary, memory) * (eps * 1j)
        turned = _difference(func, inputs, memory, ..., step.astype(memory.dtype), eps, "")
    return [(slopes[k], turned[k]) for k in chosen]


def _shaped(vector: Any, memory: Any) -> Any:
    return vector._array.reshape(memory.shape)


# ---- backward ----
def _pulled(output: Any, inputs: list[Any], v: Any) -> list[Any]:
    from . import grad

    return list(grad(output, inputs, v, retain_graph=True, allow_unused=True))


class Columns(NamedTuple):
    """Jacobians found by backward, and what a second run said of them."""

    matrices: list[Any]
    equal: bool
    sizes_fit: bool
    dtypes_fit: bool

    def accepted(self, nondet_tol: float, check_dtypes: bool) -> list[Any]:
        """Return the matrices, or raise if they are not to be trusted."""
        if check_dtypes and not self.dtypes_fit:
            raise GradcheckError("Gradient has dtype mismatch")
        if not self.sizes_fit:
            raise GradcheckError("Analytical gradient has incorrect size")
        if not self.equal:
            raise GradcheckError(NOT_REENTRANT.format(nondet_tol))
        return self.matrices


def columns_of(inputs: Sequence[Any], output: Any, nondet_tol: float) -> Columns:
    """Return the Jacobians of one output by backward, element by element, two times."""
    tensors = [t for _, t in checked_inputs(inputs)]
    basis = np.zeros(int(np.prod(output.shape, dtype=int)), output._array.dtype)

    def columns() -> list[list[Any]]:
        found = []
        for j in range(basis.size):
            basis[j] = 1
            found.append(_pulled(output, tensors, wrap(basis.reshape(output.shape).copy()).to(output.device)))
            basis[j] = 0
        return [[column[i] for column in found] for i in range(len(tensors))]

    return _twice(columns, tensors, nondet_tol)


def analytical_jacobian(inputs: Sequence[Any], output: Any, nondet_tol: float, check_dtypes: bool) -> list[Any]:
    """Return the Jacobians of one output by backward; a second run must agree."""
    return columns_of(inputs, output, nondet_tol).accepted(nondet_tol, check_dtypes)


def analytical_products(inputs: Sequence[Any], output: Any, v: Any, nondet_tol: float, check_dtypes: bool) -> list[Any]:
    """Return the products of a vector with the Jacobians of one output, checking that a second run agrees."""
    tensors = [t for _, t in checked_inputs(inputs)]
    seed = v.reshape(output.shape).to(output.dtype)
    found = _twice(lambda: [[one] for one in _pulled(output, tensors, seed)], tensors, nondet_tol)
    return [one.reshape(-1) for one in found.accepted(nondet_tol, check_dtypes)]


def _twice(compute: Callable[[], list[list[Any]]], tensors: list[Any], nondet_tol: float) -> Columns:
    """Compute columns of gradients two times; see whether dtypes and sizes fit and both are equal."""
    first, second = compute(), compute()
    dtypes_fit = sizes_fit = equal = True
    matrices = []
    for tensor, columns, again in zip(tensors, first, second, strict=True):
        array = np.zeros((int(np.prod(tensor.shape, dtype=int)), len(columns)), tensor._array.dtype)
        other = array.copy()
        for j, (one, two) in enumerate(zip(columns, again, strict=True)):
            for target, gradient in ((array, one), (other, two)):
                if gradient is None:
                    continue
                dtypes_fit = dtypes_fit and gradient.dtype == tensor.dtype
                if gradient.shape != tensor.shape:
                    sizes_fit = False
                else:
                    target[:, j] = gradient.detach().numpy(force=True).reshape(-1)
        if array.size and np.abs(array - other).max() > nondet_tol:
            equal = False
        matrices.append(wrap(array).to(tensor.device))
    return Columns(matrices, equal, sizes_fit, dtypes_fit)


# ---- forward mode ----
def tangents_of(func: Callable[..., Any], inputs: Sequence[Any], tangents: dict[int, Any]) -> list[tuple[Any, Any]]:
    """Run a function on dual inputs; return value and tangent (or None) of its differentiable outputs."""
    with forward_ad.dual_level():
        plain = [one.detach() if isinstance(one, Tensor) else one for one in inputs]
        duals = [forward_ad.make_dual(one, tangents[i]) if i in tangents else one for i, one in enumerate(plain)]
        outputs = [out for out in as_tuple(func(*duals)) if is_differentiable(out)]
        unpacked = [forward_ad.unpack_dual(out) for out in outputs]
        return [(u.primal, u.tangent) for u in unpacked]


def forward_column(
    func: Callable[..., Any], inputs: Sequence[Any], at: int, direction: Any, check_dtypes: bool
) -> list[Any]:
    """Return the tangents of all differentiable outputs, flat, for a direction in one input."""
    from ..tensor._functions.creation import zeros_like

    tangents = {i: zeros_like(one).detach() for i, one in checked_inputs(inputs)}
    tangents[at] = direction.reshape(inputs[at].shape)
    columns = []
    for value, tangent in tangents_of(func, inputs, tangents):
        if tangent is None:
            tangent = zeros_like(value)
        elif check_dtypes and tangent.dtype != value.dtype:
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        columns.append(tangent.detach().reshape(-1))
    return columns


def forward_jacobian(
    func: Callable[..., Any], inputs: Sequence[Any], at: int, count: int, check_dtypes: bool
) -> list[Any]:
    """Return the Jacobians of the differentiable outputs with respect to one input, by forward mode."""
    tensor = inputs[at]
    size = int(np.prod(tensor.shape, dtype=int))
    rows: list[list[Any]] = [[] for _ in range(count)]
    for i in range(size):
        basis = np.zeros(size, tensor._array.dtype)
        basis[i] = 1
        for row, one in zip(
            rows, forward_column(func, inputs, at, wrap(basis).to(tensor.device), check_dtypes), strict=True
        ):
            row.append(one)
    return [_matrix(row, tensor) for row in rows]


# ---- comparing ----
def close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    """Compare two tensors up to tolerances, whatever their dtypes."""
    x, y = a.detach().numpy(force=True), b.detach().numpy(force=True)
    return x.size == 0 or bool(np.allclose(x, y, rtol, atol))


# ---- random directions of fast mode ----
class Directions:
    """The vectors that fast mode multiplies with, from a stream of its own."""

    def __init__(self) -> None:
        from ..tensor._functions.generators import Generator

        self._generator = Generator()

    def _vector(self, tensor: Any) -> Any:
        from ..tensor._functions.random_tensors import rand

        drawn = rand(int(np.prod(tensor.shape, dtype=int)), generator=self._generator)._array
        dtype = np.zeros(0, tensor._array.dtype).real.dtype
        vector = drawn.astype(dtype)
        return wrap(vector / np.sqrt(np.square(vector).sum())).to(tensor.device)

    def of_input(self, tensor: Any) -> Any:
        """Return a unit vector; for complex inputs one for each of the two parts."""
        vector = self._vector(tensor)
        return (vector, self._vector(tensor)) if tensor.is_complex() else vector

    of_output = _vector


def sum_of(vector: Any) -> float:
    """Return the sum of a direction's elements."""
    parts = vector if isinstance(vector, tuple) else (vector,)
    return float(sum(part._array.sum() for part in parts))
