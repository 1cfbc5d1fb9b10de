# ruff: noqa: N803 - torch's names of arguments
"""What computes the operations of layers and of their backwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .kernels import KERNELS, F, kernel, of_forward, torch


# ---- layers ----
@kernel("convolution", "_convolution", "convolution_overrideable")
def _convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *flags: Any,
) -> Any:
    dims = weight.dim() - 2
    if transposed:
        function = getattr(F, f"conv_transpose{dims}d")
        return function(
            input,
            weight,
            bias,
            _spread(stride, dims),
            _spread(padding, dims),
            _spread(output_padding, dims),
            groups,
            _spread(dilation, dims),
        )
    function = getattr(F, f"conv{dims}d")
    return function(input, weight, bias, _spread(stride, dims), _spread(padding, dims), _spread(dilation, dims), groups)


def _spread(value: Any, dims: int) -> Any:
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return tuple(value * dims if len(value) == 1 else value)


@kernel("convolution_backward")
def _convolution_backward(
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> Any:
    def forward(x: Any, w: Any, b: Any) -> Any:
        x, w = input if x is None else x, weight if w is None else w
        return _convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups)

    bias = torch.zeros(bias_sizes, dtype=weight.dtype, device=weight.device) if output_mask[2] else None
    return of_forward(
        forward, [input if output_mask[0] else None, weight if output_mask[1] else None, bias], grad_output
    )


def _in_single(x: Any) -> Any:
    """Return a tensor of halves as one in which sums are precise."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _moments(x: Any, weight: Any, dims: Any, keepdim: bool, eps: float) -> tuple[Any, Any]:
    """Return the means and the inverse deviations that a layer keeps: in single precision where its parameters are."""
    wide = _in_single(x)
    found = wide.mean(dims, keepdim), (wide.var(dims, correction=0, keepdim=keepdim) + eps).rsqrt()
    kind = x.dtype if weight is None else weight.dtype
    return found[0].to(kind), found[1].to(kind)


def _normalised(x: Any, input: Any, rstd: Any, dims: Any) -> Any:
    """Return `x` with mean 0 and deviation 1. What was added to the variance of `input`, its value, is known by `rstd` alone."""
    x, rstd = _in_single(x), _in_single(rstd)
    before = _in_single(input).var(dims, correction=0, keepdim=True).detach()
    variance = x.var(dims, correction=0, keepdim=True) - before + rstd.detach().pow(-2)
    return (x - x.mean(dims, keepdim=True)) * variance.rsqrt()


@kernel("native_layer_norm")
def _native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = [*range(input.dim() - len(normalized_shape), input.dim())]
    return F.layer_norm(input, normalized_shape, weight, bias, eps), *_moments(input, weight, dims, True, eps)


@kernel("native_layer_norm_backward")
def _native_layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:
    def forward(x: Any, w: Any, b: Any) -> Any:
        dims = [*range(input.dim() - len(normalized_shape), input.dim())]
        out = _normalised(input if x is None else x, input, rstd, dims)
        w, b = weight if w is None else w, bias if b is None else b
        out = out if w is None else out * w
        return out if b is None else out + b

    inputs = [one if is_needed else None for one, is_needed in zip((input, weight, bias), output_mask, strict=True)]
    return of_forward(forward, inputs, grad_out)


@kernel("native_group_norm")
def _native_group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    out = F.group_norm(input, group, weight, bias, eps)
    return out, *_moments(input.reshape(N, group, -1), weight, 2, False, eps)


def _bias_beside(input: Any, weight: Any, size: int) -> Any:
    """Return a bias, of which only the gradient counts, in the dtype of the other parameter."""
    return (input if weight is None else weight).new_zeros(size)


@kernel("native_group_norm_backward")
def _native_group_norm_backward(
    grad_out: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Any,
) -> Any:
    shape = (1, C, *(1,) * (input.dim() - 2))

    def forward(x: Any, w: Any, b: Any) -> Any:
        own, given = (one.reshape(N, group, -1) for one in (input if x is None else x, input))
        out = _normalised(own, given, rstd.reshape(N, group, 1), 2).reshape(input.shape)
        w = weight if w is None else w
        out = out if w is None else out * w.reshape(shape)
        return out if b is None else out + b.reshape(shape)

    bias = _bias_beside(input, weight, C) if output_mask[2] else None
    return of_forward(forward, [input if output_mask[0] else None, weight if output_mask[1] else None, bias], grad_out)


@kernel("native_batch_norm")
def _native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> Any:
    out = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training or not input.numel():
        return out, input.new_zeros(0), input.new_zeros(0)
    dims = [k for k in range(input.dim()) if k != 1]
    return out, input.mean(dims), (input.var(dims, correction=0) + eps).rsqrt()


@kernel("native_batch_norm_backward")
def _native_batch_norm_backward(
    grad_out: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Any,
) -> Any:
    def forward(x: Any, w: Any, b: Any) -> Any:
        w = weight if w is None else w
        means = (None, None) if train else (running_mean, running_var)
        return F.batch_norm(input if x is None else x, *means, w, b, train, 0.0, eps)

    bias = _bias_beside(input, weight, input.shape[1]) if output_mask[2] else None
    weights = weight if output_mask[1] else None
    return of_forward(forward, [input if output_mask[0] else None, weights, bias], grad_out)


@kernel("embedding")
def _embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    return F.embedding(indices, weight, None if padding_idx < 0 else padding_idx, scale_grad_by_freq=scale_grad_by_freq)


@kernel("embedding_dense_backward")
def _embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    weight = torch.zeros(num_weights, grad_output.shape[-1], dtype=grad_output.dtype, device=grad_output.device)
    return of_forward(lambda w: _embedding(w, indices, padding_idx, scale_grad_by_freq), [weight], grad_output)[0]


@kernel("max_pool2d_with_indices")
def _max_pool2d_with_indices(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    return F.max_pool2d(self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


@kernel("max_pool2d_with_indices_backward")
def _max_pool2d_with_indices_backward(
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    flat = torch.zeros(*self.shape[:-2], math.prod(self.shape[-2:]), dtype=grad_output.dtype, device=grad_output.device)
    return flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(self.shape)


@kernel("avg_pool2d")
def _avg_pool2d(self: Any, kernel_size: Any, stride: Any = (), *more: Any) -> Any:
    return F.avg_pool2d(self, kernel_size, stride or None, *more)


@kernel("avg_pool2d_backward")
def _avg_pool2d_backward(grad_output: Any, self: Any, *options: Any) -> Any:
    return of_forward(lambda x: _avg_pool2d(x, *options), [self], grad_output)[0]


def _upsampled(mode: str, has_corners: bool) -> Callable[..., Any]:
    def upsample(self: Any, output_size: Any, *more: Any) -> Any:
        corners = more[0] if has_corners else None
        scales = [one for one in more[int(has_corners) :] if one is not None]
        if scales and not corners:  # which the scale decides, not the sizes that it gave
            return F.interpolate(self, scale_factor=scales, mode=mode, align_corners=corners)
        return F.interpolate(self, tuple(output_size), mode=mode, align_corners=corners)

    return upsample


for _dims in (1, 2, 3):
    KERNELS[f"upsample_nearest{_dims}d"] = _upsampled("nearest", False)


def _upsampled_back(name: str) -> Callable[..., Any]:
    def backward(grad_output: Any, output_size: Any, input_size: Any, *more: Any) -> Any:
        x = torch.zeros(input_size, dtype=grad_output.dtype, device=grad_output.device)
        return of_forward(lambda x: KERNELS[name](x, output_size, *more), [x], grad_output)[0]

    return backward


KERNELS["upsample_linear1d"] = _upsampled("linear", True)
KERNELS["upsample_bilinear2d"] = _upsampled("bilinear", True)
KERNELS["upsample_bicubic2d"] = _upsampled("bicubic", True)
KERNELS["upsample_trilinear3d"] = _upsampled("trilinear", True)

for _name in [one for one in KERNELS if one.startswith("upsample_")]:
    KERNELS[f"{_name}_backward"] = _upsampled_back(_name)


KERNELS["block_diag"] = lambda tensors: torch.block_diag(*tensors)
KERNELS["meshgrid"] = lambda tensors, *, indexing=None: torch.meshgrid(*tensors, indexing=indexing)


@kernel("_linalg_det")
def _linalg_det(A: Any) -> Any:
    return (torch.linalg.det(A), *torch.linalg.lu_factor_ex(A)[:2])


@kernel("_scaled_dot_product_flash_attention_for_cpu")
def _attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: Any = None,
) -> Any:
    out = F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not(), -math.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return out, scores.logsumexp(-1)


@kernel("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Any = None,
    scale: Any = None,
) -> Any:
    def forward(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale)

    return of_forward(forward, [query, key, value], grad_out)
