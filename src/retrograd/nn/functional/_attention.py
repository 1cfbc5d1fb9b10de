"""Scaled dot-product attention, over any leading dimensions; and attention of several heads with its projections."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ... import _dtypes, _errors, _random
from ..._dtypes import CPP_NAMES
from ..._ops.attention import attention, multi_head
from ..._size import Size
from ..._warnings import warn
from ...overrides import overridable
from ...tensor import _base
from ...tensor._functions.added_products import baddbmm
from ...tensor._functions.creation import ones, zeros, zeros_like
from ...tensor._functions.diagonals import tril
from ...tensor._functions.elementwise import where
from ...tensor._functions.generators import default_generator
from ...tensor._functions.joining import cat
from ...tensor._functions.matrix_products import bmm
from ...tensor._functions.random_tensors import drawn
from ...tensor._functions.rearrange import constant_pad_nd, repeat_interleave
from ...tensor._functions.reduce import softmax
from ...tensor._object.numbers import C_NAMES
from ...tensor._recording.record import record
from ...tensor._recording.refusals import refuse
from . import _dropout
from ._linear import linear
from ._public import public_names

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
    """Compute softmax(query @ key.T * scale + mask) @ value.

    Args:
        query: (..., L, E)
        key: (..., S, E)
        value: (..., S, Ev)
        attn_mask: (..., L, S): booleans, False where nothing is seen, or numbers that are added
        dropout_p: the share of weights that are dropped
        is_causal: let position i see the positions up to i
        scale: 1 / sqrt(E) if it is not given
        enable_gqa: let several heads of the query share one of key and value

    Returns:
        A tensor (..., L, Ev).

    Example:
        >>> q = torch.eye(2).reshape(1, 1, 2, 2)
        >>> F.scaled_dot_product_attention(q, q, torch.tensor([[[[1.0], [2.0]]]]), is_causal=True).flatten()
        tensor([1.0000, 1.6698])
    """
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
    return record(attention, (query, key, value, attn_mask, keep), params)


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


@overridable(lowered="cpu cuda")
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Attend with several heads to (time, batch, features); return the result and the weights, or None without `need_weights`."""
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    return run_heads(
        query,
        key,
        value,
        Heads(
            embed_dim_to_check,
            num_heads,
            in_proj_weight,
            in_proj_bias,
            separate,
            out_proj_weight,
            out_proj_bias,
            bias_k,
            bias_v,
            add_zero_attn,
            dropout_p if training else 0.0,
        ),
        Masks(key_padding_mask, attn_mask, is_causal),
        need_weights,
        average_attn_weights,
        (static_k, static_v),
    )


class Heads(NamedTuple):
    """What the heads of a layer are made of."""

    features: int
    number: int
    in_weight: Any
    in_bias: Any
    separate: tuple[Any, Any, Any] | None  # weights of three projections, instead of `in_weight`
    out_weight: Any
    out_bias: Any
    bias_k: Any
    bias_v: Any
    add_zero: bool
    dropout: float


class Masks(NamedTuple):
    """Which keys a query may look at."""

    padding: Any
    attention: Any
    causal: bool


def run_heads(
    query: Any,
    key: Any,
    value: Any,
    heads: Heads,
    masks: Masks,
    need_weights: bool,
    average: bool,
    static: tuple[Any, Any] = (None, None),
    time: int = 0,
) -> tuple[Any, Any]:
    """Attend with several heads; `time` is the dimension of the sequence: 1 if the batch comes first."""
    batched = _check_ranks(query, key, value, masks, heads.number)
    if not batched:
        time = 0
        same = key is value, query is key
        query, key, value = _with_sameness(same, [one.unsqueeze(1) for one in (query, key, value)])
        if masks.padding is not None:
            masks = masks._replace(padding=masks.padding.unsqueeze(0))
    masks = _canonical(masks, query.dtype, need_weights)
    _check_features(query, key, value, heads, time)
    projected = _project(query, key, value, heads)
    _check_attention_mask(masks.attention, query, key, heads.number, time)
    plain = heads.bias_k is None and heads.bias_v is None and not heads.add_zero and static == (None, None)
    if plain and not need_weights:
        out, weights = _attend(query, key, projected, heads, masks, time), None
    else:
        out, weights = _attend_step_by_step(projected, heads, masks, need_weights, average, static, time)
    out = linear(out, heads.out_weight, heads.out_bias)
    if time:
        return out.transpose(0, 1), weights  # so laid out in torch, too: dropout draws in the order of memory
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


# ---- checks ----
def _check_ranks(query: Any, key: Any, value: Any, masks: Masks, heads: int) -> bool:
    """Tell whether the inputs have a batch dimension; complain about ranks that do not fit."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    batched = bool(rank == 3)
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D "
            "tensors respectively"
        )
    if masks.padding is not None and masks.padding.dim() != rank - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{masks.padding.dim()}-D tensor instead"
        )
    mask = masks.attention
    if mask is None:
        return batched
    if mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
        )
    wanted = (heads, query.shape[0], key.shape[0])
    if not batched and mask.dim() == 3 and mask.shape != wanted:
        raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.shape}")
    return batched


def _with_sameness(same: tuple[bool, bool], tensors: list[Any]) -> list[Any]:
    """Let what was one tensor before a step be one after it."""
    query, key, value = tensors
    if same[0]:
        value = key
        if same[1]:
            query = key = value
    return [query, key, value]


def canonical_mask(mask: Any, name: str, other: Any, other_name: str, dtype: Any, *, compare: bool = True) -> Any:
    """Return a mask that is added to scores: -inf where a boolean one is True."""
    if mask is None:
        return None
    if mask.dtype is not _dtypes.bool_ and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if compare and other is not None and mask.dtype is not other.dtype:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.dtype.is_floating_point:
        return mask
    return zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _canonical(masks: Masks, dtype: Any, need_weights: bool) -> Masks:
    padding = canonical_mask(masks.padding, "key_padding_mask", masks.attention, "attn_mask", dtype)
    if masks.causal and masks.attention is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if masks.causal and padding is None and not need_weights:
        return Masks(None, None, True)
    return Masks(padding, canonical_mask(masks.attention, "attn_mask", None, "", dtype, compare=False), False)


def _in_time_order(shape: Any, time: int) -> Any:
    """Return a shape as (time, batch, features)."""
    return Size((shape[1], shape[0], *shape[2:])) if time else shape


def _check_features(query: Any, key: Any, value: Any, heads: Heads, time: int) -> None:
    features = query.shape[2]
    if features != heads.features:
        raise AssertionError(f"was expecting embedding dimension of {heads.features}, but got {features}")
    if features % heads.number:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {heads.number}")
    k, v = (_in_time_order(one.shape, time) for one in (key, value))
    if heads.separate is None and k != v:
        raise AssertionError(f"key shape {k} does not match value shape {v}")
    if k[:2] != v[:2]:
        raise AssertionError(f"key's sequence and batch dims {k[:2]} do not match value's {v[:2]}")


def _check_attention_mask(mask: Any, query: Any, key: Any, heads: int, time: int) -> None:
    if mask is None:
        return
    sizes = (query.shape[time], key.shape[time])
    if mask.dim() == 3:
        sizes = (query.shape[1 - time] * heads, *sizes)  # type: ignore[assignment]
    if mask.shape != sizes:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {sizes}.")


def _check_padding(mask: Any, batch: int, keys: int) -> None:
    for at, wanted in enumerate((batch, keys)):
        if mask.shape[at] != wanted:
            raise AssertionError(f"Expected key_padded_mask.shape[{at}] to be {wanted}, but got {mask.shape[at]}")


# ---- projections ----
def _project(query: Any, key: Any, value: Any, heads: Heads) -> list[Any]:
    """Project queries, keys and values: three tensors, or fewer in which they lie side by side."""
    width, bias = heads.features, heads.in_bias
    if heads.separate is not None:
        return _project_separately((query, key, value), heads)
    weight = heads.in_weight
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key is value:
        return [linear(query, weight, bias)]
    if key is value:
        weights = weight.split([width, 2 * width])
        biases = (None, None) if bias is None else bias.split([width, 2 * width])
        return [linear(x, w, b) for x, w, b in zip((query, key), weights, biases, strict=True)]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases, strict=True)]


def _project_separately(inputs: tuple[Any, ...], heads: Heads) -> list[Any]:
    for name, weight in zip("qkv", heads.separate or (), strict=False):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None,) * 3 if heads.in_bias is None else heads.in_bias.chunk(3)
    width = inputs[0].shape[-1]
    names = ("query", "key", "value")
    for name, x, weight in zip(names, inputs, heads.separate or (), strict=True):
        if weight.shape != (width, x.shape[-1]):
            raise AssertionError(f"expecting {name} weights shape of {(width, x.shape[-1])}, but got {weight.shape}")
    for name, bias in zip(names, biases, strict=True):
        if bias is not None and bias.shape != (width,):
            raise AssertionError(f"expecting {name} bias shape of {(width,)}, but got {bias.shape}")
    return [linear(x, w, b) for x, w, b in zip(inputs, heads.separate or (), biases, strict=True)]


# ---- attention ----
def _attend(query: Any, key: Any, projected: list[Any], heads: Heads, masks: Masks, time: int) -> Any:
    """Attend in one step."""
    length, batch, keys = query.shape[time], query.shape[1 - time], key.shape[time]
    if (others := key.shape[1 - time]) != batch:
        width = query.shape[2]
        wanted = [keys, batch * heads.number, width // heads.number]
        raise RuntimeError(
            f"shape '{wanted}' is invalid for input of size {keys * others * width}\n"
            f"Hint: query has a batch of {batch}, and key one of {others}."
        )
    mask = causal_mask(length, keys, query.device) if masks.causal else masks.attention
    if mask is not None and mask.dim() == 3:
        mask = mask.view(batch, heads.number, length, keys)
    if masks.padding is not None:
        _check_padding(masks.padding, batch, keys)
        padding = masks.padding.view(batch, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    check_mask_dtype(mask, query)
    if not query.dtype.is_floating_point:
        refuse_dtype(query.dtype, True, mask)
    keep, kept = kept_weights((batch, heads.number, length, keys), heads.dropout, query)
    scale = 1 / math.sqrt(heads.features // heads.number)
    params = {"heads": heads.number, "scale": scale, "kept": kept, "time": time}
    return record(multi_head, (*projected, *[None] * (3 - len(projected)), mask, keep), params)


def _attend_step_by_step(
    projected: list[Any],
    heads: Heads,
    masks: Masks,
    need_weights: bool,
    average: bool,
    static: tuple[Any, Any],
    time: int,
) -> tuple[Any, Any]:
    """Attend by the steps torch takes, where keys are added or weights asked for."""
    q, k, v = _apart(projected, heads.features)
    if time:
        q, k, v = (one.transpose(0, 1) for one in (q, k, v))
    length, batch, width = q.shape
    padding, mask = masks.padding, masks.attention
    if mask is not None and mask.dim() == 2:
        mask = mask.unsqueeze(0)
    if heads.bias_k is not None and heads.bias_v is not None:
        for name, one in zip(("key", "value"), static, strict=True):
            if one is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k = cat([k, heads.bias_k.repeat(1, batch, 1)])
        v = cat([v, heads.bias_v.repeat(1, batch, 1)])
        mask, padding = _padded(mask), _padded(padding)
    elif heads.bias_k is not None:
        raise AssertionError("bias_k is set but bias_v is None")
    elif heads.bias_v is not None:
        raise AssertionError("bias_v is set but bias_k is None")
    rows, narrow = batch * heads.number, width // heads.number
    q = _by_head(q, rows, narrow)
    k = _by_head(k, rows, narrow) if static[0] is None else _checked_static("static_k", static[0], rows, narrow)
    v = _by_head(v, rows, narrow) if static[1] is None else _checked_static("static_v", static[1], rows, narrow)
    if heads.add_zero:
        zero = zeros(rows, 1, narrow, dtype=k.dtype, device=k.device)
        k, v = cat([k, zero], 1), cat([v, zero], 1)
        mask, padding = _padded(mask), _padded(padding)
    keys = k.shape[1]
    if padding is not None:
        _check_padding(padding, batch, keys)
        wide = padding.view(batch, 1, 1, keys).expand(-1, heads.number, -1, -1).reshape(rows, 1, keys)
        mask = wide if mask is None else mask + wide
    if not need_weights:
        found = _by_dot_products(q, k, v, mask, masks.causal, heads, batch)
        weights = None
    else:
        found, weights = _with_weights(q, k, v, mask, heads.dropout)
        weights = weights.view(batch, heads.number, length, keys)
        weights = weights.mean(1) if average else weights
    return found.transpose(0, 1).reshape(length, batch, width), weights


def _apart(projected: list[Any], width: int) -> list[Any]:
    """Return queries, keys and values apart."""
    return [part for one in projected for part in one.split(width, -1)]


def _by_head(x: Any, rows: int, width: int) -> Any:
    """Bring (time, batch, features) to (batch times heads, time, width)."""
    return x.reshape(x.shape[0], rows, width).transpose(0, 1)


def _checked_static(name: str, x: Any, rows: int, width: int) -> Any:
    for at, wanted in ((0, rows), (2, width)):
        if x.size(at) != wanted:
            raise AssertionError(f"expecting {name}.size({at}) of {wanted}, but got {x.size(at)}")
    return x


def _padded(mask: Any) -> Any:
    """Let every query look at a key that was added."""
    return None if mask is None else constant_pad_nd(mask, (0, 1))


def _with_weights(q: Any, k: Any, v: Any, mask: Any, dropout_p: float) -> tuple[Any, Any]:
    scaled = q * math.sqrt(1 / q.shape[-1])
    scores = bmm(scaled, k.mT) if mask is None else baddbmm(mask, scaled, k.mT)
    weights = softmax(scores, -1)
    if dropout_p > 0:
        weights = _dropout.dropout(weights, dropout_p)
    return bmm(weights, v), weights


def _by_dot_products(q: Any, k: Any, v: Any, mask: Any, causal: bool, heads: Heads, batch: int) -> Any:
    four = [one.view(batch, heads.number, *one.shape[1:]) for one in (q, k, v)]
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, -1, *mask.shape[1:])
    found = scaled_dot_product_attention(*four, mask, heads.dropout, causal)
    return found.flatten(0, 1)


__all__ = public_names(globals())
