"""Layers and losses as torch makes them of operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .composites import FOUND, REDUCTIONS, F, Tensor, aten, composite, torch
from .composites import pair as _pair


# ---- layers ----
@composite("softmax")
def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return _softmax(aten._softmax, input, dim, dtype)


@composite("log_softmax")
def log_softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return _softmax(aten._log_softmax, input, dim, dtype)


def _softmax(packet: Any, input: Any, dim: Any, dtype: Any) -> Any:
    if isinstance(dtype, int):
        dtype = None
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return packet.default(input if dtype is None else input.to(dtype), dim, False)


@composite("cross_entropy")
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if label_smoothing or target.is_floating_point() or size_average is not None or reduce is not None:
        return NotImplemented
    scores = F.log_softmax(input, 1 if input.dim() > 1 else 0)
    return F.nll_loss(scores, target, weight, ignore_index=ignore_index, reduction=reduction)


@composite("nll_loss")
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    if size_average is not None or reduce is not None:
        return NotImplemented
    if input.dim() > 4 or input.dim() == 3:
        return NotImplemented
    op = aten.nll_loss2d_forward if input.dim() == 4 else aten.nll_loss_forward
    return op.default(input, target, weight, REDUCTIONS[reduction], ignore_index)[0]


def _loss(name: str, *options: str) -> Callable[..., Any]:
    def decomposed(
        input: Any,
        target: Any,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if size_average is not None or reduce is not None or kwargs.pop("weight", None) is not None:
            return NotImplemented
        values = [*args, *(kwargs[one] for one in options if one in kwargs)]
        if input.shape != target.shape:
            input, target = torch.broadcast_tensors(input, target)
        number = REDUCTIONS[reduction]
        return getattr(aten, name).default(input, target, *([number, *values] if number != 1 or values else []))

    return decomposed


FOUND["mse_loss"] = _loss("mse_loss")
FOUND["smooth_l1_loss"] = _loss("smooth_l1_loss", "beta")
FOUND["huber_loss"] = _loss("huber_loss", "delta")
FOUND["soft_margin_loss"] = _loss("soft_margin_loss")


@composite("l1_loss")
def l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    if weight is not None:
        return NotImplemented
    return _reduced((input - target).abs(), reduction)


def _reduced(loss: Any, reduction: str) -> Any:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


@composite("binary_cross_entropy_with_logits")
def bce_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    more = [weight, pos_weight, REDUCTIONS[reduction]]
    while more and not isinstance(more[-1], Tensor) and more[-1] in (None, 1):
        more.pop()
    return aten.binary_cross_entropy_with_logits.default(input, target, *more)


@composite("binary_cross_entropy")
def bce(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    more = [weight, REDUCTIONS[reduction]] if weight is not None or reduction != "mean" else []
    return aten.binary_cross_entropy.default(input, target, *more)


@composite("kl_div")
def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    if log_target:
        loss = target.exp() * (target - input)
    else:
        product = target * input
        loss = torch.xlogy(target, target) - product
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return _reduced(loss, reduction)


@composite("layer_norm")
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    return aten.native_layer_norm.default(input, shape, weight, bias, eps)[0]


@composite("group_norm")
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    n, c = input.shape[:2]
    return aten.native_group_norm.default(input, weight, bias, n, c, math.prod(input.shape[2:]), num_groups, eps)[0]


@composite("batch_norm")
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if training:
        # what torch keeps for other libraries' kernels
        aten.empty.memory_format([0], dtype=torch.uint8, layout=torch.strided, device=input.device)
    return aten.native_batch_norm.default(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@composite("instance_norm")
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if running_mean is not None or not use_input_stats:
        return NotImplemented
    n, c = input.shape[:2]
    made = batch_norm(
        input.reshape(1, n * c, *input.shape[2:]),
        None,
        None,
        None if weight is None else weight.repeat(n),
        None if bias is None else bias.repeat(n),
        True,
        momentum,
        eps,
    )
    return made.view(input.shape)


def _convolution(dims: int, transposed: bool) -> Callable[..., Any]:
    def forward(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        if isinstance(padding, str):
            if padding == "valid":
                padding = 0
            else:
                total = [d * (k - 1) for d, k in zip(_pair(dilation, dims), weight.shape[2:], strict=True)]
                if any(n % 2 for n in total):
                    sides = [side for n in reversed(total) for side in (0, n % 2)]
                    input = torch.constant_pad_nd(input, sides, 0)
                padding = [n // 2 for n in total]
        return _run(input, weight, bias, stride, padding, dilation, [0] * dims, groups)

    def backward(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        return _run(input, weight, bias, stride, padding, dilation, _pair(output_padding, dims), groups)

    def _run(
        input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any, groups: int
    ) -> Any:
        alone = input.dim() == dims + 1
        made = aten.convolution.default(
            input.unsqueeze(0) if alone else input,
            weight,
            bias,
            _pair(stride, dims),
            _pair(padding, dims),
            _pair(dilation, dims),
            transposed,
            output_padding,
            groups,
        )
        return made.squeeze(0) if alone else made

    return backward if transposed else forward


for _dims in (1, 2, 3):
    FOUND[f"conv{_dims}d"] = _convolution(_dims, False)
    FOUND[f"conv_transpose{_dims}d"] = _convolution(_dims, True)


@composite("max_pool2d")
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    more = [_pair(padding), _pair(dilation), ceil_mode]
    for value, default in (([ceil_mode], [False]), (_pair(dilation), [1, 1]), (_pair(padding), [0, 0])):
        if value != default:
            break
        more.pop()
    made = aten.max_pool2d_with_indices.default(
        input, _pair(kernel_size), [] if stride is None else _pair(stride), *more
    )
    return made if return_indices else made[0]


FOUND["max_pool2d_with_indices"] = lambda *args, **kwargs: max_pool2d(*args, **{**kwargs, "return_indices": True})


@composite("adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    sizes = _pair(output_size)
    sizes = [own if one is None else one for one, own in zip(sizes, input.shape[-2:], strict=True)]
    if sizes == [1, 1]:
        return input.mean([-1, -2], keepdim=True)
    return aten._adaptive_avg_pool2d.default(input, sizes)


@composite("avg_pool2d")
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    more = [_pair(padding), ceil_mode, count_include_pad, divisor_override]
    for value, default in (
        (divisor_override, None),
        (count_include_pad, True),
        (ceil_mode, False),
        (_pair(padding), [0, 0]),
    ):
        if value != default:
            break
        more.pop()
    return aten.avg_pool2d.default(input, _pair(kernel_size), [] if stride is None else _pair(stride), *more)


@composite("embedding")
def embedding(
    input: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if max_norm is not None or sparse:
        return NotImplemented
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    more = [-1 if padding_idx is None else padding_idx, *([True] if scale_grad_by_freq else [])]
    return aten.embedding.default(weight, input, *([] if more == [-1] else more))


@composite("dropout")
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or p == 0 or inplace:
        return input if not inplace else NotImplemented
    if p == 1:
        return input * torch.zeros_like(input)
    noise = aten.div_.Scalar(torch.empty_like(input).bernoulli_(1 - p), 1 - p)
    return input * noise


@composite("relu")
def relu(input: Any, inplace: bool = False) -> Any:
    return aten.relu_.default(input) if inplace else aten.relu.default(input)


@composite("silu")
def silu(input: Any, inplace: bool = False) -> Any:
    return aten.silu_.default(input) if inplace else aten.silu.default(input)


@composite("leaky_relu")
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    more = [] if negative_slope == 0.01 else [negative_slope]
    return (aten.leaky_relu_ if inplace else aten.leaky_relu).default(input, *more)


@composite("elu")
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return (aten.elu_ if inplace else aten.elu).default(input, *([] if alpha == 1 else [alpha]))


@composite("relu6")
def relu6(input: Any, inplace: bool = False) -> Any:
    return (aten.hardtanh_ if inplace else aten.hardtanh).default(input, 0.0, 6.0)


@composite("softplus")
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    return aten.softplus.default(input, *([] if (beta, threshold) == (1, 20) else [beta, threshold]))


@composite("gelu")
def gelu(input: Any, approximate: str = "none") -> Any:
    return aten.gelu.default(input, **({} if approximate == "none" else {"approximate": approximate}))


@composite("logsigmoid")
def logsigmoid(input: Any) -> Any:
    return NotImplemented


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


@composite("scaled_dot_product_attention")
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    if enable_gqa:
        return NotImplemented
    if query.dim() == 4 and not dropout_p and not (attn_mask is not None and attn_mask.requires_grad):
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask.logical_not(), -math.inf)
        options = {} if attn_mask is None else {"attn_mask": attn_mask}
        options |= {} if scale is None else {"scale": scale}
        flags = [dropout_p, is_causal] if is_causal else []
        return aten._scaled_dot_product_flash_attention_for_cpu.default(query, key, value, *flags, **options)[0]
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = (query * factor) @ (key.transpose(-2, -1) * factor)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask.logical_not(), -math.inf)
        scores = scores + attn_mask
    weights = aten._safe_softmax.default(scores, -1)
    return (F.dropout(weights, dropout_p) if dropout_p else weights) @ value


@composite("multi_head_attention_forward")
def multi_head_attention(
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
) -> Any:
    rare = (bias_k, bias_v, static_k, static_v, key_padding_mask)
    if any(one is not None for one in rare) or add_zero_attn or query.dim() != 3:
        return NotImplemented
    length, batch, width = query.shape
    head = width // num_heads
    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    elif query is key and key is value:
        made = F.linear(query, in_proj_weight, in_proj_bias)
        made = made.unflatten(-1, (3, width)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        q, k, v = made[0], made[1], made[2]
    else:
        weights = in_proj_weight.chunk(3)
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    source = k.shape[0]
    q = q.view(length, batch * num_heads, head).transpose(0, 1)
    k = k.view(source, batch * num_heads, head).transpose(0, 1)
    v = v.view(source, batch * num_heads, head).transpose(0, 1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill_(attn_mask, -math.inf)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scaled = q * math.sqrt(1.0 / head)
        if attn_mask is not None:
            mask = attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask
            scores = torch.baddbmm(mask, scaled, k.transpose(-2, -1))
        else:
            scores = torch.bmm(scaled, k.transpose(-2, -1))
        weights = F.softmax(scores, -1)
        if dropout_p:
            weights = F.dropout(weights, dropout_p)
        out = torch.bmm(weights, v).transpose(0, 1).contiguous().view(length * batch, width)
        out = F.linear(out, out_proj_weight, out_proj_bias).view(length, batch, width)
        shown = weights.view(batch, num_heads, length, source)
        return out, shown.mean(1) if average_attn_weights else shown
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.view(batch, num_heads, length, source)
    q = q.view(batch, num_heads, length, head)
    k = k.view(batch, num_heads, source, head)
    v = v.view(batch, num_heads, source, head)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal and attn_mask is None)
    out = out.permute(2, 0, 1, 3).contiguous().view(batch * length, width)
    return F.linear(out, out_proj_weight, out_proj_bias).view(length, batch, width), None


@composite("det", "linalg_det")
def det(A: Any) -> Any:  # noqa: N803
    return aten._linalg_det.default(A)[0]


@composite("interpolate")
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    dims = input.dim() - 2
    names = {
        "nearest": f"upsample_nearest{dims}d",
        "bilinear": "upsample_bilinear2d",
        "linear": "upsample_linear1d",
        "trilinear": "upsample_trilinear3d",
        "bicubic": "upsample_bicubic2d",
    }
    if mode not in names or antialias or recompute_scale_factor:
        return NotImplemented
    scales = [None] * dims if scale_factor is None else [float(one) for one in _pair(scale_factor, dims)]
    sizes = (
        _pair(size, dims)
        if size is not None
        else [math.floor(n * s) for n, s in zip(input.shape[2:], scales, strict=True)]
    )
    flags = [] if mode == "nearest" else [bool(align_corners)]
    return getattr(aten, names[mode]).default(input, sizes, *flags, *(scales if scale_factor is not None else []))
