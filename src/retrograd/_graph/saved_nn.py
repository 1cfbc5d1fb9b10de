"""What torch shows of the nodes of fused operations: see `saved_names.py`.

Fused operation -> {torch's name: name of an input, or a function of the node}. What torch keeps and we do not, such as the
log-probabilities of a cross entropy, is computed when somebody asks. What cannot be known from the node is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import node as _node
from .saved_names import unsigned


def param(name: str) -> Callable[[Any], Any]:
    """Read a parameter of the operation."""
    return lambda node: unsigned(node.params[name])


def _array(node: Any, name: str) -> Any:
    """Read an input as an array."""
    node.check_freed()
    tensor = node.saved_tensor(name)
    return None if tensor is None else tensor._array


def _tensor(array: Any) -> Any:
    return _node.wrap(_memory(array))


def _memory(value: Any) -> Any:
    """Make an array of a number."""
    return value if hasattr(value, "reshape") and not isinstance(value, np.generic) else np.asarray(value)


def residual(at: int, shape: Callable[[Any], tuple[int, ...]]) -> Callable[[Any], Any]:
    """Read what the forward has left for the backward, in torch's shape and in float32 at least."""

    def read(node: Any) -> Any:
        node.check_freed()
        kept = _memory(node._kept()[at])
        dtype = _array(node, node.array_names[0]).dtype
        if dtype.itemsize < 4:
            dtype = np.dtype(np.float32)
        return _tensor(kept.reshape(shape(node)).astype(dtype))

    return read


# ---- convolution ----
def _bias_sizes(node: Any) -> tuple[int, ...]:
    bias = _array(node, "bias")
    return (0,) if bias is None else tuple(bias.shape)


def _output_padding(node: Any) -> tuple[int, ...]:
    """Return how much longer the result of a transposed convolution is than it need be."""
    params, shape, kernel = node.params, _array(node, "input").shape[2:], _array(node, "weight").shape[2:]
    if node.operation.name == "convolution":
        return (0,) * len(shape)
    lengths = zip(params["size"], shape, kernel, params["stride"], params["padding"], params["dilation"], strict=True)
    return tuple(m - ((n - 1) * step - 2 * pad + gap * (k - 1) + 1) for m, n, k, step, pad, gap in lengths)


CONVOLUTION = {
    "bias_sym_sizes_opt": _bias_sizes,
    "dilation": param("dilation"),
    "groups": param("groups"),
    "input": "input",
    "output_padding": _output_padding,
    "padding": param("padding"),
    "stride": param("stride"),
    "transposed": lambda node: node.operation.name != "convolution",
    "weight": "weight",
}


# ---- normalisation ----
def _inner_shape(node: Any) -> tuple[int, ...]:
    shape = tuple(_array(node, "x").shape)
    return shape[len(shape) - node.params["ndim"] :]


def _of_rows(node: Any) -> tuple[int, ...]:
    shape, ndim = tuple(_array(node, "x").shape), node.params["ndim"]
    return (*shape[: len(shape) - ndim], *(1,) * ndim)


def _of_channels(node: Any) -> tuple[int, ...]:
    return (_array(node, "x").shape[1],)


def _of_groups(node: Any) -> tuple[int, ...]:
    return _array(node, "x").shape[0], node.params["groups"]


def _scaled_rows(node: Any) -> Any:
    return _tensor(_array(node, "x") * _memory(node._kept()[1]).reshape(_of_rows(node)))


def _nothing(node: Any) -> Any:
    return _tensor(np.empty(0, np.float32))


_BATCH = {"eps": param("eps"), "input": "x", "weight": "weight"}


# ---- losses ----
def _log_probabilities(node: Any) -> Any:
    x = _array(node, "x")
    axis = 1 if x.ndim > 1 else 0
    away = x - x.max(axis, keepdims=True)
    return _tensor(away - np.log(np.exp(away).sum(axis, keepdims=True)))


def _total_weight(node: Any) -> Any:
    x, target, weight = (_array(node, name) for name in ("x", "target", "weight"))
    counted = target[target != node.params["ignore_index"]]
    return _tensor(x.dtype.type(counted.size) if weight is None else weight[counted].sum())


def _is_target(node: Any) -> Any:
    """Mark the classes that a row of targets names before its first -1."""
    x, target = _array(node, "x"), _array(node, "target")
    marks = np.zeros(target.shape, x.dtype).reshape(-1, target.shape[-1] if target.ndim else 1)
    for row, named in zip(marks, target.reshape(marks.shape), strict=True):
        ends = np.flatnonzero(named < 0)
        row[named[: ends[0] if ends.size else None]] = 1
    return _tensor(marks.reshape(target.shape))


_LOSS = {"reduction": param("reduction"), "self": "x"}
_OF_TWO = {**_LOSS, "target": "y"}
_OF_CLASSES = {**_LOSS, "target": "target", "weight": "weight"}
_LIKELIHOOD = {**_OF_CLASSES, "ignore_index": param("ignore_index"), "total_weight": _total_weight}
_ENTROPY = {**_LIKELIHOOD, "self": _log_probabilities}


# ---- sampling and attention ----
def _position(names: tuple[str, ...], name: str) -> Callable[[Any], int]:
    return lambda node: names.index(node.params[name])


_GRID = {
    "align_corners": param("align"),
    "grid": "grid",
    "input": "x",
    "interpolation_mode": _position(("bilinear", "nearest", "bicubic"), "mode"),
    "padding_mode": _position(("zeros", "border", "reflection"), "padding"),
}

# Those whose backward reads nothing that the forward has made.
READ_INPUTS_ONLY = frozenset({
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "convolution", "glu", "grid_sample_2d", "grid_sample_3d",
    "huber_loss", "mse_loss", "multi_margin_loss", "smooth_l1_loss", "soft_margin_loss", "transposed_convolution",
})  # fmt: skip

FUSED_NAMES: dict[str, dict[str, Any]] = {
    "convolution": CONVOLUTION,
    "transposed_convolution": CONVOLUTION,
    "layer_norm": {
        "bias": "bias",
        "input": "x",
        "normalized_shape": _inner_shape,
        "result1": residual(0, _of_rows),
        "result2": residual(1, _of_rows),
        "weight": "weight",
    },
    "rms_norm": {"other": "weight", "self": _scaled_rows},
    "batch_norm": {
        **_BATCH,
        "result1": residual(0, _of_channels),
        "result2": residual(1, _of_channels),
        "training": lambda node: True,
    },
    "batch_norm_fixed": {
        **_BATCH,
        "result1": _nothing,
        "result2": _nothing,
        "running_mean": "mean",
        "running_var": "variance",
        "training": lambda node: False,
    },
    "group_norm": {
        **_BATCH,
        "C": lambda node: _array(node, "x").shape[1],
        "HxW": lambda node: math.prod(_array(node, "x").shape[2:]),
        "N": lambda node: _array(node, "x").shape[0],
        "group": param("groups"),
        "result1": residual(0, _of_groups),
        "result2": residual(1, _of_groups),
    },
    "nll_loss": _LIKELIHOOD,
    "nll_loss2d": _LIKELIHOOD,
    "cross_entropy": _ENTROPY,
    "cross_entropy2d": _ENTROPY,
    "smoothed_cross_entropy": {"alpha": lambda node: 1},  # torch adds two losses
    "mse_loss": _OF_TWO,
    "smooth_l1_loss": {**_OF_TWO, "beta": param("bound")},
    "huber_loss": {**_OF_TWO, "delta": param("bound")},
    "soft_margin_loss": _OF_TWO,
    "binary_cross_entropy": {**_OF_TWO, "weight": "weight"},
    "binary_cross_entropy_with_logits": {**_OF_TWO, "pos_weight": "pos_weight", "weight": "weight"},
    "multi_margin_loss": {**_OF_CLASSES, "margin": param("margin"), "p": param("p")},
    "multilabel_margin_loss": {**_LOSS, "is_target": _is_target, "target": "target"},
    "glu": {"dim": param("axis"), "self": "x"},
    "weight_norm": {"dim": param("axis"), "g": "g", "v": "v"},
    "grid_sample_2d": _GRID,
    "grid_sample_3d": _GRID,
    "attention": {"attn_mask": "mask", "key": "k", "query": "q", "value": "v"},
}
