"""Keeping gradients small."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._core.numpy_namespace import is_half
from ..._errors import all_of
from ..._modes import using
from ..._ops.norms import norm
from ..._tracebacks import guarded
from ..._warnings import warn
from ...overrides import unwatched
from ...tensor import _base
from ...tensor._aliasing.writers import memory_to_write
from ...tensor._functions.creation import tensor as make_tensor
from ...tensor._functions.joining import stack
from ...tensor._functions.norms import vector_norm
from ...tensor._tensor import Tensor

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


@guarded
def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """Return the norm of tensors as if they were one vector."""
    with using(grad=False):
        given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        norm_type = float(norm_type)
        if not given:
            return make_tensor(0.0)
        total = unwatched(_dense_norm, given) if norm_type == 2.0 else None
        if total is None:
            norms = [vector_norm(one, norm_type) for one in given]
            total = vector_norm(stack([norm.to(given[0].device) for norm in norms]), norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
                "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                "`error_if_nonfinite=False`"
            )
        return total


def _dense_norm(tensors: list[Any]) -> Any:
    """Return the 2-norm of floats of one dtype in dense memory, by one dot product each; None for others.

    In half precision the norm of each is rounded, as torch's.
    """
    arrays = [memory_to_write(one) for one in tensors]
    dtypes: set[Any] = {None if array is None else array.dtype for array in arrays}
    if len(dtypes) != 1 or None in dtypes:
        return None
    if is_half(arrays[0].dtype):
        norms = [_norm_of_half(array.reshape(-1)) for array in arrays]
        return _base.wrap(_norm_of_half(np.array(norms, arrays[0].dtype)))
    if not dtypes <= {F32, F64}:
        return None
    total = 0.0
    for array in arrays:
        flat = array.reshape(-1)
        total += float(flat.dot(flat))
    return _base.wrap(dtypes.pop().type(math.sqrt(total) if total >= 0 else math.nan))


def _norm_of_half(array: Any) -> Any:
    return norm.run((array,), {"p": 2.0, "axis": (0,), "keepdims": False})


@guarded
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale gradients so that their norm, which is given, becomes at most `max_norm`."""
    with using(grad=False):
        grads = _gradients(parameters)
        max_norm = float(max_norm)
        if not grads:
            return
        factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor if factor.device == grad.device else factor.to(grad.device))


def _gradients(parameters: Any) -> list[Any]:
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    return [grad for one in given if (grad := one.grad) is not None]


@guarded
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale the gradients of parameters so that the norm of all of them is at most `max_norm`; returns what it was.

    Args:
        parameters: a tensor, or several, with gradients
        max_norm: what the norm is brought to, if it is larger
        norm_type: the order of the norm
        error_if_nonfinite: raise an error if the norm is NaN or infinite
        foreach: for torch's sake

    Returns:
        The norm of all gradients before.

    Example:
        >>> p = torch.zeros(2, requires_grad=True)
        >>> p.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm_([p], max_norm=1.0), p.grad
        (tensor(5.), tensor([0.6000, 0.8000]))
    """
    if not isinstance(parameters, Tensor):
        generator = isinstance(parameters, types.GeneratorType)
        parameters = all_of(parameters)
        if generator and not parameters:
            warn("`parameters` is an empty generator, no gradient clipping will occur.")
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Iterable[Any] | Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Clip gradients: the old name of `clip_grad_norm_`."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@guarded
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of the gradients between minus and plus `clip_value`.

    Args:
        parameters: a tensor, or several, with gradients
        clip_value: the largest absolute value that stays
        foreach: for torch's sake

    Example:
        >>> p = torch.zeros(2, requires_grad=True)
        >>> p.grad = torch.tensor([3.0, -0.5])
        >>> nn.utils.clip_grad_value_([p], 1.0)
        >>> p.grad
        tensor([ 1.0000, -0.5000])
    """
    clip_value = float(clip_value)
    with using(grad=False):
        for grad in _gradients(parameters):
            grad.clamp_(min=-clip_value, max=clip_value)


__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]
