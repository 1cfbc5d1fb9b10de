"""Layers and losses as torch makes them of operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._core.memory_order import dense_strides
from .composites import FOUND, REDUCTIONS, F, aten, composite, layer, torch
from .composites import pair as _pair


# ---- layers ----
def _softmax(packet: Any) -> Callable[..., Any]:
    def softmax(input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None) -> Any:
        if isinstance(_stacklevel, torch.dtype):  # which only the function of nn.functional takes in between
            dtype = _stacklevel
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return packet.default(input if dtype is None else input.to(dtype), dim, False)

    return softmax


FOUND["softmax"], FOUND["log_softmax"] = _softmax(aten._softmax), _softmax(aten._log_softmax)


@layer("cross_entropy")
def cross_entropy(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    if target.is_floating_point():
        return NotImplemented
    scores = F.log_softmax(input, 1 if input.dim() > 1 else 0)
    return F.nll_loss(scores, target, weight, ignore_index=ignore_index, reduction=reduction)


@layer("nll_loss")
def nll_loss(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    if input.dim() > 4 or input.dim() == 3:
        return NotImplemented
    op = aten.nll_loss2d_forward if input.dim() == 4 else aten.nll_loss_forward
    return op.default(input, target, weight, REDUCTIONS[reduction], ignore_index)[0]


def _loss(name: str, *options: str) -> None:
    def decomposed(input: Any, target: Any, reduction: str, **values: Any) -> Any:
        if input.shape != target.shape:
            input, target = torch.broadcast_tensors(input, target)
        return getattr(aten, name).default(input, target, REDUCTIONS[reduction], **values)

    layer(name, "input", "target", "reduction", *options)(decomposed)


_loss("mse_loss")
_loss("smooth_l1_loss", "beta")
_loss("huber_loss", "delta")
_loss("soft_margin_loss")


@layer("l1_loss")
def l1_loss(input: Any, target: Any, reduction: str) -> Any:
    return _reduced((input - target).abs(), reduction)


def _reduced(loss: Any, reduction: str) -> Any:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


@layer("kl_div")
def kl_div(input: Any, target: Any, reduction: str, log_target: bool) -> Any:
    if log_target:
        loss = target.exp() * (target - input)
    else:
        product = target * input
        loss = torch.xlogy(target, target) - product
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return _reduced(loss, reduction)


@layer("layer_norm")
def layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    return aten.native_layer_norm.default(input, shape, weight, bias, eps)[0]


@layer("group_norm")
def group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    n, c = input.shape[:2]
    last = [0, *range(2, input.dim()), 1]  # channels may lie last
    if tuple(input.stride(k) for k in last) != dense_strides([input.shape[k] for k in last]):
        input = input.contiguous()
    return aten.native_group_norm.default(input, weight, bias, n, c, math.prod(input.shape[2:]), num_groups, eps)[0]


@layer("batch_norm")
def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> Any:
    if training:
        # what torch keeps for other libraries' kernels
        aten.empty.memory_format([0], dtype=torch.uint8, layout=torch.strided, device=input.device)
    return aten.native_batch_norm.default(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@layer("instance_norm")
def instance_norm(input: Any, weight: Any, bias: Any, use_input_stats: bool, momentum: float, eps: float) -> Any:
    if not use_input_stats:
        return NotImplemented
    n, c = input.shape[:2]
    rows = input.reshape(1, n * c, *input.shape[2:])
    weight, bias = (None if one is None else one.repeat(n) for one in (weight, bias))
    return batch_norm(rows, weight, bias, None, None, True, momentum, eps).view(input.shape)


def _convolution(name: str, dims: int, transposed: bool) -> None:
    def convolution(
        input: Any,
        weight: Any,
        bias: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        output_padding: Any = 0,
    ) -> Any:
        if isinstance(padding, str):
            total = [d * (k - 1) for d, k in zip(_pair(dilation, dims), weight.shape[2:], strict=True)]
            total = [0] * dims if padding == "valid" else total
            if any(n % 2 for n in total):
                sides = [side for n in reversed(total) for side in (0, n % 2)]
                input = torch.constant_pad_nd(input, sides, 0)
            padding = [n // 2 for n in total]
        alone = input.dim() == dims + 1
        spread = [_pair(one, dims) for one in (stride, padding, dilation)]
        given = input.unsqueeze(0) if alone else input
        made = aten.convolution.default(given, weight, bias, *spread, transposed, _pair(output_padding, dims), groups)
        return made.squeeze(0) if alone else made

    own = ("output_padding",) if transposed else ()
    layer(name, "input", "weight", "bias", "stride", "padding", "dilation", "groups", *own)(convolution)


for _dims in (1, 2, 3):
    _convolution(f"conv{_dims}d", _dims, False)
    _convolution(f"conv_transpose{_dims}d", _dims, True)


@layer("max_pool2d")
def max_pool2d(
    input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, return_indices: bool
) -> Any:
    made = aten.max_pool2d_with_indices.default(
        input, _pair(kernel_size), [] if stride is None else _pair(stride), _pair(padding), _pair(dilation), ceil_mode
    )
    return made if return_indices else made[0]


@composite("adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    sizes = _pair(output_size)
    sizes = [own if one is None else one for one, own in zip(sizes, input.shape[-2:], strict=True)]
    if sizes == [1, 1]:
        return input.mean([-1, -2], keepdim=True)
    return aten._adaptive_avg_pool2d.default(input, sizes)


@layer("embedding")
def embedding(input: Any, weight: Any, padding_idx: Any, scale_grad_by_freq: bool) -> Any:
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return aten.embedding.default(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq)


@composite("dropout")
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or p == 0 or inplace:
        return input if not inplace else NotImplemented
    if p == 1:
        return input * torch.zeros_like(input)
    noise = aten.div_.Scalar(torch.empty_like(input).bernoulli_(1 - p), 1 - p)
    return input * noise


FOUND["relu6"] = lambda input, inplace=False: (aten.hardtanh_ if inplace else aten.hardtanh).default(input, 0.0, 6.0)
FOUND["det"] = FOUND["linalg_det"] = lambda A: aten._linalg_det.default(A)[0]  # noqa: N803 - torch's name


@composite("normalize")
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    length = torch.linalg.vector_norm(input, p, [dim], True).clamp_min(eps)
    return input / length.expand_as(input)


@composite("pad")
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    if mode != "constant":
        return NotImplemented
    return aten.constant_pad_nd.default(input, list(pad), 0.0 if value is None else value)


@composite("one_hot")
def one_hot(input: Any, num_classes: int = -1) -> Any:
    if not input.numel():
        return NotImplemented
    least, most = (one.item() for one in torch.aminmax(input))
    if least < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes < 0:
        num_classes = most + 1
    elif most >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return torch.zeros([*input.shape, num_classes], dtype=torch.int64).scatter_(-1, input.unsqueeze(-1), 1)


def _added(mask: Any, dtype: Any, left_out: Callable[[Any], Any] = lambda mask: mask.logical_not()) -> Any:
    """Return a mask as numbers that are added to scores."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(left_out(mask), -math.inf)


@layer("scaled_dot_product_attention")
def attention(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None
) -> Any:
    if query.dim() == 4 and not dropout_p and not (attn_mask is not None and attn_mask.requires_grad):
        attn_mask = _added(attn_mask, query.dtype)
        return aten._scaled_dot_product_flash_attention_for_cpu.default(
            query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
        )[0]
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = (query * factor) @ (key.transpose(-2, -1) * factor)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        scores = scores + _added(attn_mask, query.dtype)
    weights = aten._safe_softmax.default(scores, -1)
    return (F.dropout(weights, dropout_p) if dropout_p else weights) @ value


@layer("multi_head_attention_forward")
def multi_head_attention(
    query: Any, key: Any, value: Any, num_heads: int, in_proj_weight: Any, in_proj_bias: Any, dropout_p: float, out_proj_weight: Any,
    out_proj_bias: Any, training: bool, need_weights: bool, attn_mask: Any, use_separate_proj_weight: bool, q_proj_weight: Any,
    k_proj_weight: Any, v_proj_weight: Any, average_attn_weights: bool, is_causal: bool, embed_dim_to_check: int, bias_k: Any,
    bias_v: Any, add_zero_attn: bool,
) -> Any:  # fmt: skip
    if bias_k is not None or bias_v is not None or add_zero_attn or query.dim() != 3:
        return NotImplemented
    length, batch, width = query.shape
    head = width // num_heads
    if not use_separate_proj_weight and query is key and key is value:
        made = F.linear(query, in_proj_weight, in_proj_bias)
        made = made.unflatten(-1, (3, width)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        q, k, v = made[0], made[1], made[2]
    else:
        own = (q_proj_weight, k_proj_weight, v_proj_weight)
        weights = own if use_separate_proj_weight else in_proj_weight.chunk(3)
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    source = k.shape[0]
    q, k, v = (x.view(x.shape[0], batch * num_heads, head).transpose(0, 1) for x in (q, k, v))
    attn_mask = _added(attn_mask, q.dtype, lambda mask: mask)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scaled = q * math.sqrt(1.0 / head)
        if attn_mask is None:
            scores = torch.bmm(scaled, k.transpose(-2, -1))
        else:
            mask = attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask
            scores = torch.baddbmm(mask, scaled, k.transpose(-2, -1))
        weights = F.softmax(scores, -1)
        if dropout_p:
            weights = F.dropout(weights, dropout_p)
        out = torch.bmm(weights, v).transpose(0, 1).contiguous().view(length * batch, width)
        out = F.linear(out, out_proj_weight, out_proj_bias).view(length, batch, width)
        shown = weights.view(batch, num_heads, length, source)
        return out, shown.mean(1) if average_attn_weights else shown
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.view(batch, num_heads, length, source)
    q, k, v = (x.view(batch, num_heads, x.shape[1], head) for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal and attn_mask is None)
    out = out.permute(2, 0, 1, 3).contiguous().view(batch * length, width)
    return F.linear(out, out_proj_weight, out_proj_bias).view(length, batch, width), None


@layer("interpolate")
def interpolate(input: Any, size: Any, scale_factor: Any, mode: str, align_corners: Any) -> Any:
    dims = input.dim() - 2
    packet = getattr(aten, f"upsample_{mode}{dims}d", None)
    if packet is None:
        return NotImplemented
    scales = [None] * dims if scale_factor is None else [float(one) for one in _pair(scale_factor, dims)]
    sizes = (
        _pair(size, dims)
        if size is not None
        else [math.floor(n * s) for n, s in zip(input.shape[2:], scales, strict=True)]
    )
    flags = [] if mode == "nearest" else [bool(align_corners)]
    return packet.default(input, sizes, *flags, *(scales if scale_factor is not None else []))
