"""Matrix products added to something, besides `addmm`: addmv, addr, addbmm, baddbmm; and all of them in place."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.numpy_namespace import is_half
from ..._dtypes import CPP_NAMES
from ..._ops import matrix_products as la
from ...overrides import called, takes_old_forms
from .._aliasing.inplace import inplace
from .._recording.old_forms import present_form
from .._recording.record import promoted, record
from .._recording.refusals import kernel, refuse, refused
from .matrix_checks import scalar_name
from .matrix_products import addmm, check_expands, weights
from .shape import permute, reshape


@takes_old_forms(lowered="cuda")
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Add a vector and the product of a matrix and a vector."""
    bias, x, y = input._array, mat._array, vec._array
    if bias.ndim > 1 or x.ndim != 2 or y.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {bias.ndim}, {x.ndim}, {y.ndim}")
    dtype = x.dtype
    if dtype is not y.dtype or dtype is not bias.dtype or dtype.kind == "b":
        names = [scalar_name(one) for one in (input, mat, vec)]
        if len(set(names)) > 1:
            raise RuntimeError(
                f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
            )
        refuse("mv", dtype)
    rows, columns = x.shape
    if columns != y.shape[0] or bias.size not in (1, rows):
        raise RuntimeError(f"size mismatch, got input ({bias.size}), mat ({rows}x{columns}), vec ({y.shape[0]})")
    return record(la.addmm, (input, mat, vec), weights(beta, alpha, x), "AddmvBackward0")


refused("baddbmm", b=kernel("baddbmm"))


@takes_old_forms(lowered="cpu cuda", out_dtype="result")
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Add a batch of matrices and the products of two batches of matrices.

    Args:
        input: (b, n, m), or what broadcasts to it
        batch1: (b, n, k)
        batch2: (b, k, m)
        beta: a factor of `input`
        alpha: a factor of the products

    Example:
        >>> torch.baddbmm(torch.zeros(1), torch.ones(1, 1, 2), torch.ones(1, 2, 1))
        tensor([[[2.]]])
    """
    bias, x, y = input._array, batch1._array, batch2._array
    dtype = x.dtype
    if (
        x.ndim != 3
        or y.ndim != 3
        or bias.ndim != 3
        or dtype is not y.dtype
        or dtype is not bias.dtype
        or dtype.kind == "b"
    ):
        check_expands(input, (_size(x, 0), _size(x, 1), _size(y, 2)))
        _batches(batch1, batch2)
        if not bias.dtype == dtype == y.dtype:
            names = [CPP_NAMES[one.dtype.name] for one in (bias, x, y)]
            raise RuntimeError(
                f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
            )
        refuse("baddbmm", dtype)
    (batch, rows, inner), (other, depth, columns) = x.shape, y.shape
    if bias.shape != (batch, rows, columns):
        check_expands(input, (batch, rows, columns))
    if batch != other or inner != depth:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {inner}] but got: "
            f"[{other}, {depth}]."
        )
    return record(la.addmm, (input, batch1, batch2), weights(beta, alpha, x), "BaddbmmBackward0")


def _size(array: Any, dim: int) -> int:
    """Return the size of a dimension, of which there may be too few."""
    return array.shape[_errors.wrap_dim(dim, array.ndim)]  # type: ignore[no-any-return]


def _batches(first: Any, second: Any) -> None:
    for name, tensor in (("batch1", first), ("batch2", second)):
        if tensor._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")


@takes_old_forms(lowered="cpu cuda")
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Add a matrix and the sum of the products of two batches of matrices."""
    x, y = batch1._array, batch2._array
    check_expands(input, (_size(x, 1), _size(y, 2)))
    _batches(batch1, batch2)
    (batch, rows, inner), (other, depth, columns) = x.shape, y.shape
    if batch != other:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {batch} and {other}")
    if inner != depth:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({rows}x{inner} and {depth}x{columns})")
    if is_half(x.dtype) and batch > 1:  # torch rounds after every matrix
        for k in range(batch):
            input, beta = addmm(input, batch1[k], batch2[k], beta=beta, alpha=alpha), 1
        return input
    # the sum over the batch is one product of a wide and a tall matrix
    wide = reshape(permute(batch1, (1, 0, 2)), (rows, batch * inner))
    return addmm(input, wide, reshape(batch2, (batch * inner, columns)), beta=beta, alpha=alpha)


@takes_old_forms(lowered="cuda")
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Add a matrix and the outer product of two vectors."""
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector._array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector._array.ndim}-D")
    bias, x, y = input._array, vec1._array, vec2._array
    alike = bias.dtype is x.dtype is y.dtype and bias.shape == (*x.shape, *y.shape)
    if alike and x.dtype.kind == "f" and type(beta) is not bool and type(alpha) is not bool:
        return record(la.addr, (input, vec1, vec2), weights(beta, alpha, x), "AddrBackward0")
    arrays, dtype = promoted([bias, x, y], expanded=True)
    for name, number in (("beta", beta), ("alpha", alpha)):
        if isinstance(number, bool) and dtype.kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(number, (float, complex)) and dtype.kind in "biu":
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    check_expands(input, (arrays[1].shape[0], arrays[2].shape[0]))
    same = arrays[0] is input._array and arrays[1] is vec1._array and arrays[2] is vec2._array
    params = weights(beta, alpha, arrays[1])
    return record(la.addr, (input, vec1, vec2), params, "AddrBackward0", None, None if same else arrays)


def _in_place(name: str, function: Any) -> Any:
    """Make an in-place variant, whose tensor has the shape of the result already."""
    write = inplace(name, function)

    names = function.__wrapped__.__code__.co_varnames[1:3]

    def method(self: Any, *operands: Any, beta: Any = 1, alpha: Any = 1, **named: Any) -> Any:
        if len(operands) > 2:
            given = {n: value for n, value in (("beta", beta), ("alpha", alpha)) if value != 1}
            args, kwargs = present_form(method.__name__, function, (self, *operands), named | given)
            return method(*args, **kwargs)
        operands = (*operands, *(named.pop(n) for n in names[len(operands) :] if n in named))
        if len(operands) < 2:
            raise TypeError(f"{name}_(): {names[0]} or {names[1]} is missing")
        first, second = operands
        if named:
            raise TypeError(f"{name}_() got an unexpected keyword argument '{next(iter(named))}'")
        own, x, y = tuple(self._array.shape), tuple(first._array.shape), tuple(second._array.shape)
        if name == "addr":
            if len(own) != 2:
                raise RuntimeError(f"2D tensor expected, got {len(own)}D tensor for input")
        else:
            shape = (*x[:-1], *y[len(x) - 1 :])
            if own != shape:
                raise RuntimeError(
                    f"Bad in-place call: input tensor size {_errors.sizes(own)} and output tensor size "
                    f"{_errors.sizes(shape)} should match"
                )
        return write(self, first, second, beta=beta, alpha=alpha)

    return called(method, f"{name}_", f"Compute {name} in place.")


addmm_, addmv_ = _in_place("addmm", addmm), _in_place("addmv", addmv)
addr_, baddbmm_ = _in_place("addr", addr), _in_place("baddbmm", baddbmm)
_add_in_place = inplace("addbmm", addbmm)


def addbmm_(self: Any, batch1: Any, batch2: Any, *more: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """Compute addbmm in place; a tensor of another shape gets that of the result, as in torch."""
    if more:
        given = {n: value for n, value in (("beta", beta), ("alpha", alpha)) if value != 1}
        args, kwargs = present_form("addbmm_", addbmm, (self, batch1, batch2, *more), given)
        return addbmm_(*args, **kwargs)
    shape = (batch1._array.shape[1], batch2._array.shape[-1])
    if tuple(self._array.shape) != shape:
        result = addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
        return self.resize_(shape).copy_(result)
    return _add_in_place(self, batch1, batch2, beta=beta, alpha=alpha)
