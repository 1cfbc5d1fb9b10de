"""What distributions share: parameters of one shape, probabilities and log-odds, triangles and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from operator import attrgetter
from typing import Any

import retrograd as rg

from .._modes import using
from .._public import set_all

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> Any:
    """Return tensors of one shape; numbers take the dtype and device of the first tensor."""
    beside: Any = None
    plain = True
    for value in values:
        if isinstance(value, rg.Tensor):
            beside = value if beside is None else beside
        elif isinstance(value, Number):
            plain = False
        elif not hasattr(value, "__torch_function__"):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                "__torch_function__."
            )
    if plain:
        return rg.broadcast_tensors(*values)
    options = {} if beside is None else {"dtype": beside.dtype, "device": beside.device}
    options.setdefault("dtype", rg.get_default_dtype())
    made = [rg.tensor(value, **options) if isinstance(value, Number) else value for value in values]
    return rg.broadcast_tensors(*made) if len(made) > 1 else made


def is_number(value: Any) -> bool:
    """Tell whether a parameter is a plain number, for which no batch is known."""
    return isinstance(value, Number)


def read(path: str, meaning: str = "") -> Any:
    """Return a property that reads an attribute, or an attribute of an attribute."""
    return property(attrgetter(path), doc=f"Return {meaning}." if meaning else None)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Draw normal numbers."""
    return rg.randn(shape, dtype=dtype, device=device)


def uniform(shape: Any, beside: Any) -> Any:
    """Draw uniform numbers in the dtype and on the device of a tensor."""
    return rg.rand(shape, dtype=beside.dtype, device=beside.device)


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Sum the last dimensions."""
    if dim == 0:
        return value
    return value.reshape(*value.shape[:-dim], -1).sum(-1)


def clamp_probs(probs: Any) -> Any:
    """Keep probabilities away from 0 and 1, by the dtype's precision."""
    eps = rg.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Return log-odds of binary probabilities, else logarithms."""
    safe = clamp_probs(probs)
    return safe.log() - rg.log1p(-safe) if is_binary else safe.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Return the probabilities of log-odds, or of unnormalised logarithms along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def binary_entropy(logits: Any, target: Any) -> Any:
    """Return the cross entropy of chances and logits, elementwise."""
    return rg.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")


class lazy_property:  # noqa: N801 - torch's name
    """A property that is computed once, with gradients, and then stays."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with using(grad=True):
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Return the entries of lower triangles, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = rg.tril_indices(n, n, offset=diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Return lower triangles of entries given row by row."""
    shift = 1 + 2 * diag
    n = (-shift + math.sqrt(shift**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1))) / 2
    if abs(round(n) - n) > rg.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    n = round(n)
    rows, columns = rg.tril_indices(n, n, offset=diag, device=vec.device)
    flat = vec.new_zeros((*vec.shape[:-1], n * n))
    places = (rows * n + columns).expand(vec.shape)
    return flat.scatter(-1, places, vec).reshape(*vec.shape[:-1], n, n)


def the_given(probs: Any, logits: Any) -> tuple[str, Any]:
    """Return the name and the value of the one of two parameters that is given; raise torch's error unless one is."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


def given_parameter(distribution: Any) -> Any:
    """Return the one of two parameters that is known; the other is made when asked for."""
    return distribution.probs if "probs" in distribution.__dict__ else distribution.logits


where: Any = rg.where  # of tensors and numbers


def every(values: Any, distribution: Any, expand: bool) -> Any:
    """Put all events of a distribution in front of its batch."""
    batch = distribution._batch_shape
    values = values.view((-1,) + (1,) * len(batch))
    return values.expand((-1, *batch)) if expand else values


set_all(globals(), but="binary_entropy every given_parameter is_number read the_given uniform")
