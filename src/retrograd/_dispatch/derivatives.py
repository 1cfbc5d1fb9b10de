# ruff: noqa: E501, N803 - a formula reads best in one line
"""Derivatives of torch's operations, in public functions, as torch writes them: so a backward shows the operations that torch's does.

A formula is for one argument, or for several together, and reads by name: `grad` (of the only result) or `grads` (of all), arguments,
`result` or `result1` and so on, `self_sizes` and `self_options` (dtype and device of an argument), `needed` (which of its
arguments want a gradient). What it does not read is not kept. See `recording.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._core.primitive import parameters_of
from .._ops.strided import overlaps, storage_row

Formula = Callable[..., Any]
Formulas = dict[Any, Formula]

torch: Any = import_module(__package__.partition(".")[0])
aten: Any = import_module(f"{torch.__name__}.ops").aten

NO_DERIVATIVE = frozenset(
    """detach ones_like zeros_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty new_full
    new_empty_strided argmax argmin argsort eq ne lt le gt ge isnan isinf isfinite isposinf isneginf signbit bernoulli_ multinomial
    randperm bucketize searchsorted _local_scalar_dense equal allclose nonzero count_nonzero bincount histc logical_and logical_or
    logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor floor_divide any all detach_ zero lift_fresh
    set_ resize_ is_same_size unique_consecutive _unique2 random random_ geometric_ cauchy_ log_normal_ exponential_ uniform_ normal_
    uniform exponential geometric cauchy log_normal empty zeros ones full arange scalar_tensor isclose""".split()  # noqa: SIM905
)


def _times(grad: Any, number: Any) -> Any:
    return grad if number == 1 else aten.mul.Scalar(grad, number)


def _plus(x: Any, number: Any) -> Any:
    return aten.add.Scalar(x, number)


def _restored(x: Any, rank: int, dim: Any, keepdim: bool) -> Any:
    """Give the result of a reduction the dimensions that it has lost; one that has lost them all broadcasts as it is."""
    if not keepdim and rank:
        for d in sorted(d % rank for d in ([dim] if isinstance(dim, int) else dim or ())):
            x = x.unsqueeze(d)
    return x


def _undone(grad: Any, sizes: Any, dim: Any, keepdim: bool) -> Any:
    """Spread the gradient of a reduction over what was reduced."""
    return _restored(grad, len(sizes), dim, keepdim).expand(sizes) if sizes else grad


def conj(x: Any) -> Any:
    if isinstance(x, (int, float, complex)):
        return x.conjugate()
    return x.conj() if x.is_complex() else x


def _is_by_columns(x: Any) -> bool:
    """Tell whether a matrix lies in memory column by column; one that was not kept does not."""
    return x is not None and tuple(x.stride()) == (1, x.shape[0])


def _left_of_product(grad: Any, self: Any, mat2: Any) -> Any:
    if _is_by_columns(self) and not self.is_contiguous():
        return conj(mat2).mm(grad.t()).t()
    return grad.mm(conj(mat2).t())


def _right_of_product(grad: Any, self: Any, mat2: Any) -> Any:
    if _is_by_columns(mat2) and not mat2.is_contiguous():
        return grad.t().mm(conj(self)).t()
    return conj(self).t().mm(grad)


def _count(sizes: Any, dim: Any) -> int:
    if dim is None or dim == [] or not sizes:
        return math.prod(sizes)
    return math.prod(sizes[d] for d in ([dim] if isinstance(dim, int) else dim))


def _sizes_back(grad: Any, sizes: Any, dims: Any) -> Any:
    """Give back dimensions of one element that `squeeze` has taken."""
    for d in sorted(d % len(sizes) for d in dims) if sizes else ():
        if sizes[d] == 1:
            grad = grad.unsqueeze(d)
    return grad


def _of_power(grad: Any, self: Any, exponent: Any) -> Any:
    if exponent == 0:
        return torch.zeros_like(self)
    exponent = exponent if isinstance(exponent, complex) else float(exponent)
    return grad * aten.mul.Scalar(self.pow(exponent - 1), exponent)


def _zero_beside(grad: Any) -> Any:
    return torch.scalar_tensor(0.0, dtype=grad.dtype, device=grad.device)


def _of_power_base(grad: Any, self: Any, exponent: Any) -> Any:
    found = grad * (exponent * self.pow(aten.sub.Scalar(exponent, 1)))
    zero = _zero_beside(grad)
    return torch.where(exponent == 0, zero, found)


def _of_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    is_positive = exponent >= 0
    known = torch.logical_and(self == 0, is_positive)
    found = result * self.log()
    return grad * torch.where(known, _zero_beside(grad), found)


def _of_divisor(grad: Any, self: Any, other: Any) -> Any:
    found = conj((self / other) / other)
    return -grad * found


def _parts_of_cat(grad: Any, tensors: Any, dim: int) -> Any:
    found: list[Any] = []
    at = 0
    dim %= grad.dim()
    for one in tensors:
        if one.dim() == 1 and not one.numel() and grad.dim() != 1:
            found.append(None)
            continue
        size = one.shape[dim]
        found.append(grad.narrow(dim, at, size))
        at += size
    return found


def _of_parts(grads: Any, sizes: Any, dim: int, kept: Any, options: Any, split: Any) -> Any:
    """Join the gradients of parts; None where none came."""
    lengths = split if isinstance(split, list) else [min(split, sizes[dim] - k) for k in range(0, sizes[dim], split)]
    whole = []
    for one, length in zip(grads, lengths, strict=False):
        if one is None:
            shape = list(sizes)
            shape[dim] = length
            one = torch.zeros(shape, **options)
        whole.append(one)
    return torch.cat(whole, dim)


def _of_unbound(grads: Any, sizes: Any, dim: int, options: Any) -> Any:
    shape = [n for k, n in enumerate(sizes) if k != dim % len(sizes)]
    return torch.stack([torch.zeros(shape, **options) if one is None else one for one in grads], dim)


def _of_extreme(grad: Any, self: Any, dim: Any, keepdim: Any, result: Any) -> Any:
    dims = [d % self.dim() for d in dim or range(self.dim())] if self.dim() else []
    sizes = [1 if d in dims else n for d, n in enumerate(self.shape)]
    mask = (result if keepdim else result.view(sizes)) == self
    grad = grad if keepdim else grad.view(sizes)
    return grad / mask.sum(dim or None, keepdim=True) * mask if self.dim() else grad / mask.sum() * mask


def _of_whole_extreme(grad: Any, self: Any, result: Any) -> Any:
    mask = torch.logical_and(self.isnan(), result.isnan()).logical_or_(self == result)
    return mask * (grad / mask.sum())


def _chosen(grad: Any, sizes: Any, dim: int, indices: Any, keepdim: bool) -> Any:
    """Put the gradient of chosen elements where they were chosen from."""
    if not sizes:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return aten.new_zeros.default(grad, sizes).scatter(dim, indices, grad)


def _of_vector_norm(grad: Any, self: Any, ord: Any, dim: Any, keepdim: bool, result: Any) -> Any:
    result, grad = _restored(result, self.dim(), dim, keepdim), _restored(grad, self.dim(), dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return self.sgn() * grad
    if ord == 2:
        return self * (grad / result).masked_fill_(result == 0, 0)
    if ord in (math.inf, -math.inf):
        mask = torch.logical_or(self.abs() == result, result.isnan())
        return (grad / mask.sum(dim or None, keepdim=True) * mask) * self.sgn()
    if ord < 1:
        scaled = self.abs().pow_(ord - 1).masked_fill_(self == 0, 0) * self.sgn()
        power = result.pow(1 - ord)
        return scaled * grad * power
    scaled = self.abs().pow_(ord - 1) * self.sgn() if ord < 2 else self * self.abs().pow_(ord - 2)
    return scaled * (grad / result.pow(ord - 1)).masked_fill_(result == 0, 0)


def _of_variance(grad: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    correction = 1 if correction is None else correction
    scale = 2.0 / (_count(list(self.shape), dim) - correction)
    if not self.dim() or dim is None:
        centred = self - self.mean()
    else:
        grad = _restored(grad, self.dim(), dim, keepdim)
        centred = self - self.mean(dim or None, keepdim=True)
    return aten.mul.Scalar(grad, scale) * centred


def _of_deviation(grad: Any, self: Any, dim: Any, correction: Any, keepdim: bool, result: Any) -> Any:
    variance = (grad / aten.mul.Scalar(result, 2)).masked_fill_(result == 0, 0)
    return _of_variance(variance, self, dim, correction, keepdim)


def _of_index(grad: Any, self_sizes: Any, indices: Any) -> Any:
    options = {"dtype": grad.dtype, "layout": grad.layout, "device": grad.device}
    return aten.new_zeros.default(grad, self_sizes, **options).index_put(indices, grad, True)


def _of_strided(
    grad: Any, self_sizes: Any, self_strides: Any, self_offset: int, size: Any, stride: Any, storage_offset: Any
) -> Any:
    """Put a gradient into memory where the view was, and read it where the tensor was; elements seen twice get a sum, or share one."""
    offset = self_offset if storage_offset is None else storage_offset
    row = storage_row(self_sizes, self_strides, self_offset, size, stride, offset)
    own, view = (self_sizes, self_strides, row["start"]), (list(size), list(stride), row["offset"])
    memory = grad.new_zeros([row["length"]])

    def places(layout: Any) -> Any:
        return torch.arange(0, row["length"], device=grad.device).as_strided(*layout)

    if overlaps(size, stride):
        found, parts = places(view), grad.reshape(-1)
        memory.index_add_(0, found.reshape(-1), parts)
    else:
        memory.as_strided(*view).copy_(grad)
    if overlaps(self_sizes, self_strides):
        shared = places(own).reshape(-1)
        memory = memory / torch.zeros_like(memory).index_add_(0, shared, grad.new_ones([1]).expand(shared.shape))
    return memory.as_strided(*own)


def _of_where(grad: Any, condition: Any, first: bool) -> Any:
    zero = _zero_beside(grad)
    return torch.where(condition, grad, zero) if first else torch.where(condition, zero, grad)


def _of_larger(grad: Any, self: Any, other: Any, loses: Formula) -> Any:
    half = aten.div.Scalar(grad, 2)
    return torch.where(self == other, half, grad).masked_fill_(loses(other), 0)


def _of_clamp(grad: Any, self: Any, min: Any, max: Any) -> Any:
    zero = _zero_beside(grad)
    kept = None if min is None else self >= min
    if max is not None:
        kept = self <= max if kept is None else kept.logical_and_(self <= max)
    return torch.where(kept, grad, zero)


def _of_added_divisor(grad: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    square = tensor2 * tensor2
    found = aten.mul.Scalar(tensor1, value) / square
    return -grad * found


def _of_cumsum(grad: Any, dim: int) -> Any:
    if grad.numel() <= 1 or grad.shape[dim] == 1:
        return grad
    return grad.flip(dim).cumsum(dim).flip(dim)


def _of_bce_with_logits(grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    if pos_weight is not None:
        t = pos_weight * target
        found = ((t + 1 - target) * self.sigmoid() - t) * grad
    else:
        found = (self.sigmoid() - target) * grad
    if weight is not None:
        found = found * weight
    return aten.div_.Scalar(found, self.numel()) if reduction == 1 else found


def _of_group_norm(
    grads: Any, needed: Any, input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: Any, eps: Any, result1: Any, result2: Any
) -> Any:  # fmt: skip
    if any(one is not None for one in grads[1:]):  # of the means and deviations
        vjp = import_module(f"{torch.__name__}.ops").vjp_of(aten.native_group_norm.default)
        which, arrived = [one is not None for one in grads], [one for one in grads if one is not None]
        found = iter(vjp(arrived, which, list(needed), None, [], input, weight, bias, N, C, HxW, group, eps))
        return [None if one is None else next(found) for one in (input, weight, bias)]
    if torch.is_grad_enabled():  # how they depend on the input is in the derivative of the backward
        result1, result2 = result1.detach(), result2.detach()
    return aten.native_group_norm_backward.default(
        grads[0].contiguous(), input, result1, result2, weight, N, C, HxW, group, list(needed)
    )


def zeros_of(grad: Any) -> Any:
    """Return the gradient of what was overwritten."""
    return aten.zeros_like.default(grad)


def _of_conversion(grad: Any, self_options: Any) -> Any:
    if grad.is_complex() and not self_options["dtype"].is_complex:
        grad = grad.real
    return grad.to(self_options["device"], self_options["dtype"])


def _masked(grad: Any, mask: Any) -> Any:
    return grad.masked_fill(mask, 0)


def reading(formula: Formula, names: tuple[str, ...]) -> Formula:
    """Say what a formula reads, where its parameters do not."""
    formula.reads = names  # type: ignore[attr-defined]
    return formula


def reads(formula: Formula) -> tuple[str, ...]:
    """Return the names of what a formula reads."""
    return getattr(formula, "reads", None) or parameters_of(formula)


# Operations whose formulas hold for complex numbers, too.
OF_COMPLEX_NUMBERS = frozenset(
    """add sub rsub mul div neg mm bmm view _unsafe_view t transpose permute expand unsqueeze squeeze select slice split
    split_with_sizes unbind _conj as_strided cat stack clone alias _to_copy sum mean index index_put gather copy fill masked_fill where repeat flip tril triu
    select_backward slice_backward""".split()  # noqa: SIM905
)

# Operations of whose results only the first has a derivative; the others are kept for the backward.
FIRST_ONLY = frozenset(
    """native_layer_norm native_batch_norm nll_loss_forward nll_loss2d_forward native_dropout _linalg_det
    _scaled_dot_product_flash_attention_for_cpu max_pool2d_with_indices""".split()  # noqa: SIM905
)


def without_derivative(name: str, kept: dict[str, Any], position: int) -> bool:
    """Tell whether one of an operation's results has no derivative, though it has the dtype for it."""
    if name in FIRST_ONLY:
        return position > 0
    if name == "svd":  # the vectors, where they are not computed
        return kept.get("compute_uv") is False and position != 1
    return name == "lu_unpack" and position == 0


_same = lambda grad: grad  # noqa: E731

FORMULAS: dict[str, Formulas] = {
    # ---- arithmetic ----
    "add": {"self": _same, "other": lambda grad, alpha: _times(grad, conj(alpha))},
    "sub": {"self": _same, "other": lambda grad, alpha: _times(grad.neg(), conj(alpha))},
    "rsub": {"self": lambda grad, alpha: _times(grad.neg(), conj(alpha)), "other": _same},
    "mul.Scalar": {"self": lambda grad, other: aten.mul.Scalar(grad, conj(other))},
    "mul": {"self": lambda grad, other: grad * conj(other),
            "other": lambda grad, self: grad * conj(self)},
    "div.Tensor": {"self": lambda grad, other: grad / conj(other), "other": _of_divisor},
    "div.Scalar": {"self": lambda grad, other: grad / conj(other)},
    "neg": {"self": lambda grad: grad.neg()},
    "reciprocal": {"self": lambda grad, result: grad * -(result * result)},
    "pow.Tensor_Scalar": {"self": _of_power},
    "pow.Tensor_Tensor": {"self": _of_power_base, "exponent": _of_exponent},
    "exp": {"self": lambda grad, result: grad * conj(result)},
    "expm1": {"self": lambda grad, result: grad * _plus(result, 1)},
    "log": {"self": lambda grad, self: grad.div(self)},
    "log2": {"self": lambda grad, self: grad / _times(self, math.log(2))},
    "log10": {"self": lambda grad, self: grad / _times(self, math.log(10))},
    "log1p": {"self": lambda grad, self: grad / _plus(self, 1)},
    "sqrt": {"self": lambda grad, result: grad / _times(result, 2)},
    "rsqrt": {"self": lambda grad, result: grad * _times(result.pow(3), -0.5)},
    "sin": {"self": lambda grad, self: grad * self.cos()},
    "cos": {"self": lambda grad, self: grad * -self.sin()},
    "tan": {"self": lambda grad, result: grad * _plus(result.pow(2), 1)},
    "sinh": {"self": lambda grad, self: grad * self.cosh()},
    "cosh": {"self": lambda grad, self: grad * self.sinh()},
    "asin": {"self": lambda grad, self: grad * _plus(-self * self, 1).rsqrt()},
    "acos": {"self": lambda grad, self: grad * -_plus(-self * self, 1).rsqrt()},
    "atan": {"self": lambda grad, self: grad / _plus(self * self, 1)},
    "abs": {"self": lambda grad, self: grad * self.sgn()},
    "erf": {"self": lambda grad, self: _times(torch.exp(-(self.pow(2))), 2.0 / math.sqrt(math.pi)) * grad},
    "relu": {"self": lambda grad, result: aten.threshold_backward.default(grad, result, 0)},
    "silu": {"self": lambda grad, self: aten.silu_backward.default(grad, self)},
    "sign": {"self": zeros_of},
    "floor": {"self": zeros_of},
    "ceil": {"self": zeros_of},
    "round": {"self": zeros_of},
    "trunc": {"self": zeros_of},
    "frac": {"self": _same},
    "maximum": {"self": lambda grad, self, other: _of_larger(grad, self, other, self.lt), "other": lambda grad, self, other: _of_larger(grad, self, other, self.gt)},
    "minimum": {"self": lambda grad, self, other: _of_larger(grad, self, other, self.gt), "other": lambda grad, self, other: _of_larger(grad, self, other, self.lt)},
    "clamp.default": {"self": _of_clamp},
    "clamp_min.default": {"self": lambda grad, self, min: _of_clamp(grad, self, min, None)},
    "clamp_max.default": {"self": lambda grad, self, max: _of_clamp(grad, self, None, max)},
    "where.self": {"self": lambda grad, condition: _of_where(grad, condition, True), "other": lambda grad, condition: _of_where(grad, condition, False)},
    "lerp.Scalar": {"self": lambda grad, weight: _times(grad, 1 - weight), "end": lambda grad, weight: _times(grad, weight)},
    "addcmul": {"self": _same, "tensor1": lambda grad, tensor2, value: grad * aten.mul.Scalar(tensor2, value),
                "tensor2": lambda grad, tensor1, value: grad * aten.mul.Scalar(tensor1, value)},
    "addcdiv": {"self": _same, "tensor1": lambda grad, tensor2, value: grad * aten.empty_like.default(tensor2).fill_(value).div_(tensor2),
                "tensor2": _of_added_divisor},
    "masked_fill.Scalar": {"self": _masked},
    "masked_fill.Tensor": {"self": _masked, "value": lambda grad, mask: _of_where(grad, mask, True).sum()},
    "fill.Scalar": {"self": zeros_of},
    "fill.Tensor": {"self": zeros_of, "value": lambda grad: grad.sum()},
    "copy": {"self": zeros_of, "src": _same},
    # ---- products ----
    "mm": {"self": _left_of_product, "mat2": _right_of_product},
    "addmm": {"mat1": lambda grad, mat1, mat2, alpha: _times(_left_of_product(grad, mat1, mat2), alpha),
              "mat2": lambda grad, mat1, mat2, alpha: _times(_right_of_product(grad, mat1, mat2), alpha),
              "self": lambda grad, beta: _times(grad, beta)},
    "bmm": {"self": lambda grad, mat2: grad.bmm(conj(mat2.transpose(1, 2))), "mat2": lambda grad, self: conj(self.transpose(1, 2)).bmm(grad)},
    "baddbmm": {"batch1": lambda grad, batch2, alpha: _times(grad.bmm(batch2.transpose(1, 2)), alpha),
                "batch2": lambda grad, batch1, alpha: _times(batch1.transpose(1, 2).bmm(grad), alpha),
                "self": lambda grad, beta: _times(grad, beta)},
    "mv": {"self": lambda grad, vec: torch.outer(grad, vec), "vec": lambda grad, self: self.t().mv(grad)},
    "dot": {"self": lambda grad, tensor: grad * tensor, "tensor": lambda grad, self: grad * self},
    # ---- views and shapes ----
    "view": {"self": lambda grad, self_sizes: grad.reshape(self_sizes)},
    "_unsafe_view": {"self": lambda grad, self_sizes: grad.reshape(self_sizes)},
    "t": {"self": lambda grad: grad.t()},
    "transpose.int": {"self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1)},
    "permute": {"self": lambda grad, dims: grad.permute([[d % len(dims) for d in dims].index(k) for k in range(len(dims))])},
    "expand": {"self": _same},
    "unsqueeze": {"self": lambda grad, dim: grad.squeeze(dim)},
    "squeeze.default": {"self": lambda grad, self_sizes: _sizes_back(grad, self_sizes, range(len(self_sizes)))},
    "squeeze.dim": {"self": lambda grad, self_sizes, dim: _sizes_back(grad, self_sizes, [dim])},
    "squeeze.dims": {"self": lambda grad, self_sizes, dim: _sizes_back(grad, self_sizes, dim)},
    "slice.Tensor": {"self": lambda grad, self_sizes, dim, start, end, step: aten.slice_backward.default(
        grad, self_sizes, dim, start or 0, 9223372036854775807 if end is None else end, step)},
    "select_backward": {"grad_output": lambda grad, dim, index: grad.select(dim, index)},
    "slice_backward": {"grad_output": lambda grad, dim, start, end, step: aten.slice.Tensor(grad, dim, start, end, step)},
    "split.Tensor": {"self": lambda grads, self_sizes, self_options, split_size, dim: _of_parts(grads, self_sizes, dim % len(self_sizes), None, self_options, split_size)},
    "split_with_sizes": {"self": lambda grads, self_sizes, self_options, split_sizes, dim: _of_parts(grads, self_sizes, dim % len(self_sizes), None, self_options, split_sizes)},
    "unbind.int": {"self": lambda grads, self_sizes, self_options, dim: _of_unbound(grads, self_sizes, dim, self_options)},
    "cat": {"tensors": _parts_of_cat},
    "stack": {"tensors": lambda grad, tensors, dim: [grad.select(dim, k) for k in range(len(tensors))]},
    "as_strided": {"self": _of_strided},
    "_conj": {"self": lambda grad: grad.conj()},
    "alias": {"self": _same},
    "clone": {"self": _same},
    "_to_copy": {"self": _of_conversion},
    "flip": {"self": lambda grad, dims: grad.flip(dims)},
    "constant_pad_nd": {"self": lambda grad, pad: torch.constant_pad_nd(grad, [-n for n in pad], 0)},
    "tril": {"self": lambda grad, diagonal: grad.tril(diagonal)},
    "triu": {"self": lambda grad, diagonal: grad.triu(diagonal)},
    "repeat": {"self": lambda grad, self_sizes, repeats: _of_repeats(grad, self_sizes, repeats)},
    # ---- indexing ----
    "index.Tensor": {"self": _of_index},
    "index_put": {"self": lambda grad, indices, values_sizes, accumulate: grad if accumulate else grad.index_put(indices, torch.zeros(values_sizes, dtype=grad.dtype)),
                  "values": lambda grad, indices: aten.index.Tensor(grad, indices)},
    "gather": {"self": lambda grad, self_sizes, dim, index: grad.new_zeros(self_sizes).scatter_add(dim, index, grad)},
    "index_select": {"self": lambda grad, self_sizes, dim, index: grad.new_zeros(self_sizes).index_add(dim, index, grad)},
    "scatter.src": {"self": lambda grad, dim, index: grad.scatter(dim, index, 0)},
    "scatter.value": {"self": lambda grad, dim, index: grad.scatter(dim, index, 0)},
    "scatter_add": {"self": _same},
    "embedding": {"weight": lambda grad, weight_sizes, indices, padding_idx, scale_grad_by_freq, sparse: aten.embedding_dense_backward.default(
        grad, indices, weight_sizes[0], padding_idx, scale_grad_by_freq)},
    # ---- reductions ----
    "sum.default": {"self": lambda grad, self_sizes: grad.expand(self_sizes)},
    "sum.dim_IntList": {"self": lambda grad, self_sizes, dim, keepdim: _undone(grad, self_sizes, dim, keepdim)},
    "mean.default": {"self": lambda grad, self_sizes: aten.div.Scalar(grad.expand(self_sizes), _count(self_sizes, None))},
    "mean.dim": {"self": lambda grad, self_sizes, dim, keepdim: aten.div.Scalar(_undone(grad, self_sizes, dim, keepdim), _count(self_sizes, dim))},
    "var.correction": {"self": _of_variance},
    "std.correction": {"self": _of_deviation},
    "amax": {"self": _of_extreme},
    "amin": {"self": _of_extreme},
    "max.default": {"self": _of_whole_extreme},
    "min.default": {"self": _of_whole_extreme},
    "max.dim": {"self": lambda grads, self_sizes, dim, keepdim, result1: _chosen(grads[0], self_sizes, dim, result1, keepdim)},
    "min.dim": {"self": lambda grads, self_sizes, dim, keepdim, result1: _chosen(grads[0], self_sizes, dim, result1, keepdim)},
    "topk": {"self": lambda grads, self_sizes, dim, result1: _chosen(grads[0], self_sizes, dim, result1, True)},
    "sort": {"self": lambda grads, self_sizes, dim, result1: _chosen(grads[0], self_sizes, dim, result1, True)},
    "logsumexp": {"self": lambda grad, self, dim, keepdim, result: _of_logsumexp(grad, self, dim, keepdim, result)},
    "cumsum": {"self": _of_cumsum},
    "linalg_vector_norm": {"self": _of_vector_norm},
    # ---- layers and losses ----
    "mse_loss": {"target": lambda grad, self, target, reduction: aten.mse_loss_backward.default(grad, target, self, reduction)},
    "smooth_l1_loss": {"target": lambda grad, self, target, reduction, beta: aten.smooth_l1_loss_backward.default(grad, target, self, reduction, beta)},
    "huber_loss": {"target": lambda grad, self, target, reduction, delta: aten.huber_loss_backward.default(grad, target, self, reduction, delta)},
    "binary_cross_entropy_with_logits": {"self": _of_bce_with_logits},
    "native_group_norm": {("input", "weight", "bias"): _of_group_norm},
}  # fmt: skip


def _of_logsumexp(grad: Any, self: Any, dim: Any, keepdim: bool, result: Any) -> Any:
    grad, result = _restored(grad, self.dim(), dim, keepdim), _restored(result, self.dim(), dim, keepdim)
    return grad * (self - result).exp()


def _of_repeats(grad: Any, sizes: Any, repeats: Any) -> Any:
    lead = len(repeats) - len(sizes)
    split: list[int] = []
    for k, count in enumerate(repeats):
        split += [count, 1 if k < lead else sizes[k - lead]]
    return grad.reshape(split).sum([*range(0, len(split), 2)])
