"""Linear and bilinear maps."""

from __future__ import annotations

import math
from typing import Any

from ..._dtypes import CPP_NAMES
from ..._errors import wrap_dim
from ..._modes import NO_GRAD, PLAIN, read_mode
from ..._ops import affine as a
from ...overrides import overridable, takes_out
from ...tensor import _base
from ...tensor._functions.matrix_checks import scalar_name
from ...tensor._functions.matrix_products import check_expands, check_mm, product
from ...tensor._functions.shape import t
from ...tensor._recording.flat import EXACT, recorder
from ...tensor._recording.record import record
from ...tensor._recording.refusals import refuse

# By whether there is a bias, and the number of dimensions of the input up to 3: the names of torch's outermost steps. It transposes
# the weights before the product; here the product takes them as they are, and `next_functions` shows the transposition.
# of the node, by whether there is a bias and by the dimensions of the input, of which NumPy allows 64
NAMES = {
    True: ("", "ViewBackward0", "AddmmBackward0", *["ViewBackward0"] * 62),
    False: ("", "SqueezeBackward4", "MmBackward0", *["UnsafeViewBackward0"] * 62),
}


@takes_out(lowered="cpu cuda", out_dtype="result")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Compute input @ weight.T + bias over the last dimension.

    Args:
        input: (..., in_features)
        weight: (out_features, in_features)
        bias: (out_features)

    Example:
        >>> F.linear(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 1.0], [0.0, 10.0]]), torch.tensor([0.5, 0.5]))
        tensor([ 3.5000, 20.5000])
    """
    mode = read_mode()
    if (mode is PLAIN or mode is NO_GRAD) and type(input) in EXACT:
        name = NAMES[bias is not None][input._array.ndim]
        operation = a.linear_map if bias is None else a.affine
        flat = operation.recorders.get(name) or recorder(operation, name)
        result = flat((input, weight) if bias is None else (bias, input, weight), {}, None, mode is PLAIN)
        if result is not None:
            return result
    return _checked_linear(input, weight, bias)


def dtype_hint(input: Any, weight: Any) -> str:
    """Say how an input and a layer come to one dtype."""
    wanted, given = _base.dtype_of(weight).name, _base.dtype_of(input)
    change_layer = f", or the layer by model.to(torch.{given.name})" if given.is_floating_point else ""
    return f"Hint: convert the input with x.to(torch.{wanted}){change_layer}."


def _checked_linear(input: Any, weight: Any, bias: Any) -> Any:
    x, y = input._array, weight._array
    if not x.ndim or not y.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {y.ndim}D")
    if y.ndim != 2 or (bias is None and x.ndim == 1):
        return _by_product(input, weight, bias)
    rows = math.prod(x.shape[:-1])
    if bias is not None and x.dtype != y.dtype:
        names = scalar_name(input), scalar_name(weight)
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {names[0]} and {names[1]}\n{dtype_hint(input, weight)}"
        )
    if x.shape[-1] != y.shape[1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {y.shape[1]}x{y.shape[0]})\n"
            f"Hint: the weights take inputs whose last dimension has size {y.shape[1]}, and the input has shape "
            f"{list(x.shape)}."
        )
    name = NAMES[bias is not None][x.ndim]
    if bias is None:
        if x.dtype != y.dtype:
            check_mm(input.reshape(rows, -1), t(weight))
        if x.size and y.size:
            refuse("mm", x.dtype)
        return record(a.linear_map, (input, weight), {}, name)
    if x.size and y.size:
        refuse("mm", x.dtype)
    if bias._array.dtype != y.dtype:
        names = scalar_name(bias), scalar_name(weight)
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {names[0]} and {names[1]}")
    check_expands(bias, (*x.shape[:-1], y.shape[0]))
    return record(a.affine, (bias, input, weight), {}, name)


def _by_product(input: Any, weight: Any, bias: Any) -> Any:
    """Multiply by weights that are one row."""
    if bias is not None and input._array.ndim == 2:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    out = product(input, t(weight))
    return out if bias is None else out + bias


@overridable
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Compute x1 @ weight[k] @ x2 + bias[k] for every k, over the last dimensions."""
    one, two, matrices = input1._array, input2._array, weight._array
    wrap_dim(2, matrices.ndim)
    if one.ndim != two.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {one.ndim} and {two.ndim}")
    for k in range(one.ndim - 1):
        if one.shape[k] != two.shape[k]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {k}: got {one.shape[k]} and {two.shape[k]}"
            )
    for name, array, axis in (("input1", one, 1), ("input2", two, 2)):
        if array.shape[-1] != matrices.shape[min(axis, matrices.ndim - 1)]:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {array.shape[-1]} but expected "
                f"{matrices.shape[min(axis, matrices.ndim - 1)]}"
            )
    if bias is not None and bias._array.ndim and bias._array.shape[0] != matrices.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias._array.shape[0]} but expected {matrices.shape[0]}"
        )
    given = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if not all(tensor._array.dtype == one.dtype for tensor in given.values()):
        names = [f"{name}: {CPP_NAMES[tensor._array.dtype.name]}" for name, tensor in given.items()]
        raise RuntimeError(f"All tensors must have the same dtype, got {', '.join(names)}")
    refuse("bmm", one.dtype)
    outputs, inner, last = matrices.shape
    rows = math.prod(one.shape[:-1])
    first = product(input1.reshape(rows, inner), weight.permute(1, 0, 2).reshape(inner, outputs * last))
    pairs = product(first.reshape(rows, outputs, last), input2.reshape(rows, last, 1))
    out = pairs.reshape(*one.shape[:-1], outputs)
    return out if bias is None else out + bias


__all__ = ["bilinear", "linear"]
