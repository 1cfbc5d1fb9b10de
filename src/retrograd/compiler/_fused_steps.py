"""Fused operations as steps of a program: functions of arrays alone, one for each set of parameters; some in words.

An operation that `in_words` knows is recorded as what it computes, forward and backward: so kernels take it in, and it joins what
stands around it. The others are steps as a whole. Those in words give the same numbers, to rounding, laid out in memory in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.fused import Fused, _half_of
from .._core.numpy_namespace import numpy_namespace
from .._native import machine
from .._ops.attention import SPLIT
from .._ops.losses import MEAN, NONE

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
LARGEST = 1 << 20  # elements: larger arrays are left to the operation's own kernels, which go over memory once


def forward_of(operation: Fused, params: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """Return the forward: its results, and behind them what the backward reads."""
    several, takes_halves, implementation = operation.outputs != 1, operation.takes_halves, operation.implementation

    def forward(*arrays: Any) -> tuple[Any, ...]:
        if takes_halves or _half_of(arrays) is None:
            out, residuals = implementation(numpy_namespace, *arrays, **params)
        else:
            out, residuals = operation.run(arrays, params)
        return (*out, residuals) if several else (out, residuals)

    return forward


def backward_of(operation: Fused, needed: tuple[bool, ...], params: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """Return the backward: a gradient for each array, None where none is needed."""

    def backward(g: Any, residuals: Any, *arrays: Any) -> tuple[Any, ...]:
        return tuple(operation.pull_back(g, needed, residuals, arrays, params, numpy_namespace))

    return backward


# ---- in words ----
class Words(NamedTuple):
    """What an operation that was recorded in words keeps for its backward."""

    residuals: Any


def in_words(xp: Any, operation: Fused, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Words] | None:
    """Record an operation in words; None if it is not known, or not for such arrays."""
    rule = WORDS.get(operation.name)
    if rule is None or not machine.is_available():
        return None
    given = [a for a in arrays if a is not None and a.dtype.kind != "i"]
    if any(a.dtype not in FLOATS or a.dtype != given[0].dtype or not 0 < a.size <= LARGEST for a in given):
        return None
    found = rule[0](xp, *arrays, **params)
    return None if found is None else (found[0], Words(found[1]))


def backward_in_words(
    xp: Any, operation: Fused, g: Any, needed: Any, words: Words, arrays: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Record the backward of what was recorded in words."""
    return list(WORDS[operation.name][1](xp, g, needed, words.residuals, *arrays, **params))


def _dense(x: Any) -> Any:
    """Return an array in the order of its axes."""
    return x if x.flags.c_contiguous else x.copy("C")


def _number(value: float, like: Any) -> Any:
    return like.dtype.type(value)


# cross entropy: see Note [Cross entropy from the largest logit] in `_ops/cross_entropy.py`
def _cross_entropy(
    xp: Any, x: Any, target: Any, weight: Any, *, reduction: int, ignore_index: int, smoothing: float
) -> Any:
    if x.ndim != 2 or weight is not None or smoothing or target.dtype != np.int64 or target.ndim != 1:
        return None
    rows, classes = x.shape
    if 0 <= ignore_index < classes or not x.flags.c_contiguous or target.value.buffer.written:
        return None
    inside = xp.all(xp.logical_and(target >= 0, target < classes), axis=(0,), keepdims=False)
    if not inside:  # a check: targets that are ignored, or wrong, are left to the operation
        return None
    named = xp.equal(target[:, None], np.arange(classes))
    away = x - xp.max(x, axis=(1,), keepdims=True)
    powers = xp.exp(away)
    sums = xp.sum(powers, axis=(1,), keepdims=True)
    picked = xp.sum(xp.where(named, away, _number(0, x)), axis=(1,), keepdims=True)
    losses = (xp.log(sums) - picked)[:, 0]
    if reduction != NONE:
        losses = xp.sum(losses, axis=(0,), keepdims=False)
        if reduction == MEAN:
            losses = losses / _number(rows, x)
    return losses, (powers, sums, named)


def _cross_entropy_back(
    xp: Any, g: Any, needed: Any, residuals: Any, x: Any, target: Any, weight: Any, *, reduction: int, **params: Any
) -> Any:
    powers, sums, named = residuals
    scale = g[:, None] if reduction == NONE else g / _number(x.shape[0], x) if reduction == MEAN else g
    return powers * (scale / sums) - xp.where(named, scale, _number(0, x)), None, None


# layer norm: see `_ops/normalization.py`
def _layer_norm(xp: Any, x: Any, weight: Any, bias: Any, *, ndim: int, eps: float) -> Any:
    if not x.flags.c_contiguous:
        return None
    axes = tuple(range(x.ndim - ndim, x.ndim))
    mean = xp.mean(x, axis=axes, keepdims=True)
    away = x - mean
    wrong = xp.mean(away, axis=axes, keepdims=True)  # what is left of a mean that was rounded
    variance = xp.mean(away * away, axis=axes, keepdims=True) - wrong * wrong
    scale = _number(1, x) / xp.sqrt(variance + _number(eps, x))
    out = (away - wrong) * scale
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, (mean + wrong, scale)


def _layer_norm_back(
    xp: Any, g: Any, needed: Any, residuals: Any, x: Any, weight: Any, bias: Any, *, ndim: int, eps: float
) -> Any:
    mean, scale = residuals
    g = _dense(g)
    axes, rows = tuple(range(x.ndim - ndim, x.ndim)), tuple(range(x.ndim - ndim))
    normal = (x - mean) * scale
    dx = None
    if needed[0]:
        own = g if weight is None else g * weight
        level = xp.mean(own, axis=axes, keepdims=True)
        slope = xp.mean(own * normal, axis=axes, keepdims=True)
        dx = (own - level - normal * slope) * scale
    dweight = xp.sum(g * normal, axis=rows, keepdims=False) if needed[1] else None
    return dx, dweight, xp.sum(g, axis=rows, keepdims=False) if needed[2] else None


# attention: see `_ops/attention.py`
def _weights(xp: Any, q: Any, k: Any, mask: Any, scale: float) -> Any:
    """Return softmax(q kᵀ scale + mask); a query that may look at no key gets zeros."""
    scores = xp.matmul(q, k.swapaxes(-1, -2)) * _number(scale, q)
    last = (scores.ndim - 1,)
    if mask is None:
        powers = xp.exp(scores - xp.max(scores, axis=last, keepdims=True))
        return powers / xp.sum(powers, axis=last, keepdims=True)
    scores = xp.where(mask, scores, _number(-np.inf, q)) if mask.dtype.kind == "b" else scores + mask
    top = xp.max(scores, axis=last, keepdims=True)
    powers = xp.exp(scores - xp.where(xp.equal(top, -np.inf), _number(0, q), top))
    sums = xp.sum(powers, axis=last, keepdims=True)
    return powers / xp.where(xp.equal(sums, 0), _number(1, q), sums)


def _dropped(weights: Any, keep: Any, kept: float) -> Any:
    return weights if keep is None else weights * keep * _number(1 / kept, weights)


def _attend_back(
    xp: Any, g: Any, needed: Any, weights: Any, q: Any, k: Any, v: Any, keep: Any, scale: float, kept: float
) -> Any:
    """Return the gradients of queries, keys and values, and of the scores."""
    dropped = _dropped(weights, keep, kept)
    dv = xp.matmul(dropped.swapaxes(-1, -2), g) if needed[2] else None
    moved = xp.matmul(g, v.swapaxes(-1, -2))
    moved = _dropped(moved, keep, kept)
    total = xp.sum(moved * weights, axis=(weights.ndim - 1,), keepdims=True)
    scores = weights * (moved - total)
    turned = scores * _number(scale, q)
    dq = xp.matmul(turned, k) if needed[0] else None
    dk = xp.matmul(turned.swapaxes(-1, -2), q) if needed[1] else None
    return dq, dk, dv, scores


def _attention(xp: Any, q: Any, k: Any, v: Any, mask: Any, keep: Any, *, scale: float, kept: float, groups: int) -> Any:
    lead = {tuple(x.shape[:-2]) for x in (q, k, v)}
    if groups > 1 or len(lead) != 1 or not _fits(q, k, mask):
        return None
    if q.ndim == 4 and keep is None and not q.flags.c_contiguous:  # whose result is laid out as the queries are
        return None
    weights = _weights(xp, q, k, mask, scale)
    return xp.matmul(_dropped(weights, keep, kept), v), weights


def _attention_back(
    xp: Any,
    g: Any,
    needed: Any,
    residuals: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    keep: Any,
    *,
    scale: float,
    kept: float,
    groups: int,
) -> Any:
    dq, dk, dv, scores = _attend_back(xp, g, needed, residuals, q, k, v, keep, scale, kept)
    return dq, dk, dv, xp.sum_to(scores, shape=mask.shape) if needed[3] else None, None


def _fits(q: Any, k: Any, mask: Any) -> bool:
    """Tell whether scores are few enough, and a mask is one that kernels know."""
    scores = q.size // q.shape[-1] * k.shape[-2]
    return scores <= LARGEST and (mask is None or mask.dtype.kind == "b" or mask.dtype == q.dtype)


def _multi_head(
    xp: Any, q: Any, k: Any, v: Any, mask: Any, keep: Any, *, heads: int, scale: float, kept: float, time: int
) -> Any:
    if k is not None or not q.flags.c_contiguous:
        return None
    first, second, features = q.shape
    parts = q.reshape(first, second, 3, heads, features // (3 * heads)).transpose(SPLIT[time])
    queries, keys, values = parts[0], parts[1], parts[2]
    if not _fits(queries, keys, mask):
        return None
    weights = _weights(xp, queries, keys, mask, scale)
    found = xp.matmul(_dropped(weights, keep, kept), values)
    batch, _, length, width = found.shape
    return found.transpose(2, 0, 1, 3).reshape(length, batch, heads * width), (weights, queries, keys, values)


def _multi_head_back(
    xp: Any,
    g: Any,
    needed: Any,
    residuals: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    keep: Any,
    *,
    heads: int,
    time: int,
    **params: Any,
) -> Any:
    weights, *parts = residuals
    batch, _, length, width = parts[2].shape
    above = _dense(g).reshape(length, batch, heads, width).transpose(1, 2, 0, 3)
    *grads, scores = _attend_back(xp, above, (True, True, True), weights, parts[0], parts[1], parts[2], keep, **params)
    back = np.argsort(SPLIT[time])
    dq = xp.stack(*grads, axis=0).transpose(back).reshape(q.shape) if needed[0] else None
    return dq, None, None, xp.sum_to(scores, shape=mask.shape) if needed[3] else None, None


WORDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cross_entropy": (_cross_entropy, _cross_entropy_back),
    "layer_norm": (_layer_norm, _layer_norm_back),
    "attention": (_attention, _attention_back),
    "multi_head": (_multi_head, _multi_head_back),
}
