"""Scaled dot-product attention, over any leading dimensions."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

import numpy as np

from ... import _dtypes, _errors, _random
from ..._ops.attention import attention
from ...overrides import overridable
from ...tensor import _base
from ...tensor._functions.creation import ones, zeros
from ...tensor._functions.diagonals import tril
from ...tensor._functions.elementwise import where
from ...tensor._functions.generators import default_generator
from ...tensor._functions.random_tensors import drawn
from ...tensor._functions.rearrange import repeat_interleave
from ...tensor._object.numbers import C_NAMES
from ...tensor._recording.fused import record_fused
from ...tensor._recording.operands import not_a_tensor
from ...tensor._recording.out_dtypes import CPP_NAMES
from ...tensor._recording.refusals import refuse

SINGLE = np.dtype(np.float32)
# Names of torch's kernels that a call may use; None: all. See `nn.attention.sdpa_kernel`.
allowed: ContextVar[frozenset[str] | None] = ContextVar("allowed", default=None)


@overridable(lowered="cpu cuda")
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Compute softmax(query keyᵀ scale + attn_mask) value: for each query the values, weighted by how well the keys fit it."""
    _check_arguments(query, key, value, attn_mask)
    if 0 in (*query.shape[:-1], *key.shape[:-1], *value.shape[:-1]):
        return _of_nothing(query, key, value)
    groups = 1
    if enable_gqa:
        key, value, groups = _grouped(query, key, value)
    lead = _leading_shape(query, key, value, attn_mask, groups)
    if not query.dtype.is_floating_point:
        refuse_dtype(query.dtype, len(value.shape) > 2, attn_mask)
    fits_flash = _is_for_flash(query, key, value, attn_mask, dropout_p)
    if (names := allowed.get()) is not None:
        _check_kernels(names, fits_flash)
    if is_causal:
        attn_mask = _causal(query, key, attn_mask, fits_flash)
    if dropout_p < 0 and fits_flash:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    keep, kept = kept_weights((*lead, query.shape[-2], key.shape[-2]), dropout_p, query)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1] or 1)
    params = {"scale": float(scale), "kept": kept, "groups": groups}
    return record_fused(attention, (query, key, value, attn_mask, keep), params)


def kept_weights(shape: tuple[int, ...], dropout_p: float, like: Any) -> tuple[Any, float]:
    """Draw which weights dropout keeps: ones and zeros, or None for all; and the part it keeps."""
    if dropout_p <= 0:
        return None, 1.0
    if dropout_p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    dtype = like.dtype.numpy if like.dtype.itemsize > 2 else SINGLE
    if dropout_p == 1:
        return _base.wrap(np.zeros(shape, dtype)).to(like.device), 1.0
    array = drawn(shape, lambda wanted: _random.bernoulli(default_generator, 1 - dropout_p, wanted, dtype))
    return _base.wrap(array).to(like.device), 1 - dropout_p


def causal_mask(rows: int, columns: int, device: Any) -> Any:
    """Return a mask that lets every query look at keys up to its own position."""
    return tril(ones(rows, columns, dtype=_dtypes.bool_, device=device))


def _check_arguments(query: Any, key: Any, value: Any, mask: Any) -> None:
    given = {"query": query, "key": key, "value": value, "attn_mask": mask}
    for position, (name, one) in enumerate(given.items(), 1):
        if not isinstance(one, _base.Tensor) and (one is not None or position < 4):
            raise TypeError(not_a_tensor("scaled_dot_product_attention", position, one, name))
    if not query.dtype is key.dtype is value.dtype:
        q, k, v = (CPP_NAMES[one.dtype.name] for one in (query, key, value))
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {q} key.dtype: {k} and "
            f"value.dtype: {v} instead."
        )
    ranks = [len(one.shape) for one in (query, key, value)]
    if min(ranks) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {ranks[0]} key.dim: "
            f"{ranks[1]} and value.dim: {ranks[2]} instead."
        )
    check_mask_dtype(mask, query)


def check_mask_dtype(mask: Any, query: Any) -> None:
    """Refuse a mask of a dtype that is not added to weights of the query's."""
    if mask is not None and mask.dtype.name not in ("bool", "float32", query.dtype.name):
        m, q = (CPP_NAMES[one.dtype.name] for one in (mask, query))
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {m} and  "
            f"query.dtype: {q} instead."
        )


def _of_nothing(query: Any, key: Any, value: Any) -> Any:
    """Return the zeros that no keys, or no queries, give; their gradients are zeros, too."""
    nothing = sum(one.narrow(-1, 0, 0).sum() for one in (query, key, value))
    return zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device) + nothing


def _grouped(query: Any, key: Any, value: Any) -> tuple[Any, Any, int]:
    """Return keys and values, and how many heads of queries share each of their heads."""
    heads = [one.size(-3) for one in (query, key, value)]
    if any(not count or heads[0] % count for count in heads[1:]):
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    if heads[1] == heads[2]:
        return key, value, heads[0] // heads[1]
    key, value = (
        repeat_interleave(one, heads[0] // count, -3) for one, count in zip((key, value), heads[1:], strict=True)
    )
    return key, value, 1


def _leading_shape(query: Any, key: Any, value: Any, mask: Any, groups: int) -> tuple[int, ...]:
    """Return the leading dimensions of the result, or raise what torch's step that fails raises."""
    q, k, v = (tuple(one.shape) for one in (query, key, value))
    if groups > 1:
        k, v = ((*one[:-3], one[-3] * groups, *one[-2:]) for one in (k, v))
    if mask is not None and len(mask.shape) < 2 and len(q) == len(k) == len(v) == 4:
        mask.size(-2)  # raises, as in torch, which looks whether its kernel takes the mask
    lead = q[:-2] if q[:-2] == k[:-2] == v[:-2] else _broadcast(_broadcast(q[:-2], k[:-2]), v[:-2])
    if q[-1] != k[-1]:
        raise _no_product(q, (*k[:-2], k[-1], k[-2]), lead)
    if mask is not None:
        _check_mask_shape(tuple(mask.shape), (*lead, q[-2], k[-2]))
    if k[-2] != v[-2]:
        raise _no_product((*lead, q[-2], k[-2]), v, lead)
    return lead


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise _errors.broadcast_error(a, b) from None


def _no_product(a: tuple[int, ...], b: tuple[int, ...], lead: tuple[int, ...]) -> RuntimeError:
    if len(b) == 2:
        return RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({math.prod(a[:-1])}x{a[-1]} and {b[0]}x{b[1]})"
        )
    count = math.prod(lead)
    return RuntimeError(
        f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {a[-1]}] but got: [{count}, {b[-2]}]."
    )


def _check_mask_shape(own: tuple[int, ...], scores: tuple[int, ...]) -> None:
    wide = _broadcast(scores, own)
    if wide != scores:
        raise RuntimeError(
            f"output with shape {_errors.sizes(scores)} doesn't match the broadcast shape {_errors.sizes(wide)}"
        )


def refuse_dtype(dtype: Any, batched: bool, mask: Any) -> None:
    """Raise what torch's softmax of complex numbers raises, or its products of weights and integers."""
    if dtype.is_complex:
        refuse("softmax_lastdim", dtype.numpy)
    if mask is not None and mask.dtype is _dtypes.bool_ and dtype is not _dtypes.bool_:
        raise RuntimeError(f"value cannot be converted to type {C_NAMES[dtype.name]} without overflow")
    if batched:
        raise RuntimeError(f"expected scalar type Float but found {dtype._scalar_name}")
    raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: float != {CPP_NAMES[dtype.name]}")


def _is_for_flash(query: Any, key: Any, value: Any, mask: Any, dropout_p: float) -> bool:
    """Tell whether torch would take the kernel that allows a mask beside `is_causal`, but no dropout at all."""
    return (
        len(query.shape) == len(key.shape) == len(value.shape) == 4
        and dropout_p <= 0
        and query.shape[-1] > 0
        and query.shape[-1] == value.shape[-1]
        and query.shape[0] == key.shape[0]
        and (mask is None or (len(mask.shape) in (2, 4) and not mask.requires_grad))
    )


def _check_kernels(names: frozenset[str], fits_flash: bool) -> None:
    """Raise what torch raises if none of its kernels that are allowed fits."""
    if not names & {"MATH", "FLASH_ATTENTION"}:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels."
        )
    if "MATH" not in names and not fits_flash:
        raise RuntimeError("No available kernel.  Aborting execution.")


def _causal(query: Any, key: Any, mask: Any, fits_flash: bool) -> Any:
    """Return a mask that forbids later keys, besides what another forbids."""
    causal = causal_mask(query.shape[-2], key.shape[-2], query.device)
    if mask is None:
        return causal
    if not fits_flash:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    return causal & mask if mask.dtype is causal.dtype else where(causal, mask, -math.inf)


__all__ = ["scaled_dot_product_attention"]
