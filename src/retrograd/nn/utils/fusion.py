"""A batch normalisation taken into the weights of the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from ..._tracebacks import guarded
from ...tensor._functions.creation import ones_like, zeros_like
from ...tensor._functions.elementwise import rsqrt
from ..parameter import make_parameter


def _need_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


@guarded
def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that computes what the convolution and the normalisation after it do."""
    _need_eval(conv, bn)
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """Return the weights and the bias of a convolution with a normalisation taken into them."""
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * rsqrt(bn_rv + bn_eps)
    shift = zeros_like(bn_rm) if bn_b is None else bn_b
    channels = [1] * conv_w.dim()
    channels[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, scale, shift, channels)


def _fused(weight: Any, bias: Any, mean: Any, scale: Any, shift: Any, channels: list[int]) -> tuple[Any, Any]:
    """Scale and shift the outputs of a layer by its parameters; `channels` is the shape by which a scale meets the weight."""
    scaled = (weight * scale.reshape(channels)).to(weight.dtype)
    like = weight if bias is None else bias
    moved = (((zeros_like(mean) if bias is None else bias) - mean) * scale + shift).to(like.dtype)
    return make_parameter(scaled, weight.requires_grad), make_parameter(moved, like.requires_grad)


@guarded
def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer that computes what the layer and the normalisation after it do."""
    _need_eval(linear, bn)
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{linear.out_features} and bn.num_features={bn.num_features}"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Return the weights and the bias of a linear layer with a normalisation taken into them."""
    return _fused(linear_w, linear_b, bn_rm, bn_w * rsqrt(bn_rv + bn_eps), bn_b, [-1, 1])


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
