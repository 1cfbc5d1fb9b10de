# ruff: noqa: N803 - torch's names of arguments
"""What computes torch's operations on tensors that no mode or class watches.

Most operations are public functions with the same arguments. Here are those that programs do not call themselves: what layers and
backwards come to. A backward that is more than a line is the derivative of its forward, computed again.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from .._graph.node import Node, Slot
from .._modes import current_mode, using
from ..ops import has_function
from ..tensor._base import LEAF, wrap
from ..tensor._functions.generators import drawing_apart
from . import backwards, flat_tensors, kernel_of, schemas

torch: Any = import_module(__package__.partition(".")[0])
F: Any = torch.nn.functional
KERNELS: dict[str, Callable[..., Any]] = {}
REDUCTIONS = ("none", "mean", "sum")


def kernel(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say which operations a function computes."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            KERNELS[name] = function
        return function

    return register


def find(op: Any) -> Callable[..., Any]:
    """Return what computes an operation."""
    packet = op._overloadpacket
    if op.namespace != "aten":
        return packet._computes(op)  # type: ignore[no-any-return]
    name = packet.__name__
    found = KERNELS.get(f"{name}.{op._overloadname}") or KERNELS.get(name)
    schema = packet._forms().get(op._overloadname)  # none for an operation that only torch has
    in_functional = not hasattr(torch, name) and not hasattr(torch.Tensor, name) and hasattr(F, name.removesuffix("_"))
    if found is None and (forward := backwards.forward_of(name)) is not None and not has_function(name):
        return _derivative(forward, op)
    if found is None and schema and (in_functional or any(one.name == "reduction" for one in schema.arguments)):
        return _by_name(packet._public(), schema, in_functional)
    return found or packet._public()


def _derivative(forward: Any, backward: Any) -> Callable[..., Any]:
    """Compute the backward of an operation: compute it again, and differentiate it."""
    names = backwards.differentiated(forward, backward)

    def compute(*args: Any, **kwargs: Any) -> Any:
        values, mask = backwards.values_of_forward(forward, backward, args, kwargs)

        def run(*own: Any) -> Any:
            known = values | {name: one for name, one in zip(names, own, strict=True) if one is not None}
            positional, named = schemas.given(forward._schema, known)
            out = kernel_of(forward)(*positional, **named)
            return out[0] if isinstance(out, tuple) else out

        found = of_forward(run, [values[name] if one else None for name, one in zip(names, mask, strict=True)], args[0])
        return found if len(names) > 1 else found[0]

    return compute


def _by_name(function: Callable[..., Any], schema: Any, in_functional: bool) -> Callable[..., Any]:
    """Call a function of `nn.functional` by the names of arguments; let a loss take its reduction as a number.

    The reduction is said even where it is the usual.
    """

    def loss(*args: Any, **kwargs: Any) -> Any:
        values = schemas.bind(schema, args, kwargs) or {}
        if any(one.name == "reduction" for one in schema.arguments):
            reduction = values.get("reduction", 1)
            values["reduction"] = REDUCTIONS[reduction] if in_functional else reduction
        if in_functional:
            return function(**{"input" if name == "self" else name: value for name, value in values.items()})
        names = [one.name for one in schema.arguments]
        defaults = {one.name: one.default_value for one in schema.arguments}
        last = max(k for k, name in enumerate(names) if name in values)
        return function(*[values.get(name, defaults[name]) for name in names[: last + 1]])

    return loss


def of_forward(forward: Callable[..., Any], inputs: list[Any], grad: Any) -> tuple[Any, ...]:
    """Return the gradients of a function's inputs; None for those that are None."""
    keep = _is_recorded((*inputs, grad))
    with _differentiating():
        own = [None if one is None else _apart(one, keep) for one in inputs]
        out = forward(*own)
        grad = grad if grad.dtype == out.dtype else grad.to(out.dtype)
        wanted = [one for one in own if one is not None]
        found = iter(torch.autograd.grad(out, wanted, grad, allow_unused=True, create_graph=keep))
    return tuple(None if one is None else next(found) for one in own)


def _differentiating() -> using:
    """Record a graph of our own, below all transforms."""
    return using(grad=True, transforms=())


def _is_recorded(tensors: Any) -> bool:
    """Tell whether what is computed of some tensors, or None, has a place in a graph."""
    return current_mode().grad and any(one is not None and one.requires_grad for one in tensors)


def _apart(tensor: Any, keep: bool) -> Any:
    """Return a tensor whose gradient is that of one argument, even if it is given for several; `keep`: with its history."""
    if keep and tensor.requires_grad:
        return tensor.view(tensor.shape)
    return wrap(tensor._array, LEAF)  # a dual stays one, which `detach` would end


def vjp(op: Any) -> Callable[..., Any]:
    """Make what computes `retrograd::<name>_vjp`: gradients of all tensors among an operation's arguments.

    The operation is computed again, with the random numbers that it drew.
    """

    def run(seeds: Any, which: Any, wanted: Any, drawing: Any, stale: Any, *args: Any) -> Any:
        keep = _is_recorded(flat_tensors((seeds, *args)))
        schema = op._schema
        grads = iter(seeds)
        with _differentiating():
            own = []
            wants = iter(wanted)
            for argument, value in zip(schema.arguments, args, strict=False):
                is_wanted = next(wants) if argument.type.startswith("Tensor") else False
                for one in flat_tensors((value,)):
                    differs = is_wanted and (one.is_floating_point() or one.is_complex())
                    own.append(_apart(one, keep) if differs else one.detach())
            tensors = iter(own)
            values = {
                one.name: _written(_put(value, tensors)) if one.is_write else _put(value, tensors)
                for value, one in zip(args, schema.arguments, strict=False)
            }
            positional, named = schemas.given(schema, values)
            with nullcontext() if drawing is None else drawing_apart(drawing.get_state()):
                out = kernel_of(op)(*positional, **named)
            outs = list(out) if isinstance(out, (list, tuple)) else [out]
            if stale:
                known = [one._array for one, is_stale in zip(own, stale, strict=True) if not is_stale]
                _check_that_only_these_count(outs, known)
            pairs = [(one, next(grads)) for one, is_given in zip(outs, which, strict=False) if is_given]
            pairs = [(one, grad) for one, grad in pairs if one.requires_grad]
            inputs = [one for one in own if one.requires_grad]
            found: Any = [None] * len(inputs)
            if pairs and inputs:
                roots, seeds = zip(*pairs, strict=True)
                found = torch.autograd.grad(roots, inputs, seeds, allow_unused=True, create_graph=keep)
        by_id = {id(one): grad for one, grad in zip(inputs, found, strict=True)}
        return [by_id.get(id(one)) for one in own]

    return run


class ValuesNeededError(RuntimeError):
    """A derivative depends on values that were overwritten."""


def _check_that_only_these_count(outs: Any, known: list[Any]) -> None:
    """Raise unless all that a graph has saved is in the memory of these arrays: then no other value changes the gradient."""
    found = [one._edge for one in outs if isinstance(one, torch.Tensor) and one.requires_grad]
    seen = set()
    for edge in found:  # which grows meanwhile
        node = edge.node if isinstance(edge, Slot) else edge
        if not isinstance(node, Node) or node in seen:
            continue
        seen.add(node)
        found += [one for one in node._edges if one is not None]
        for name in node.array_names:
            value = getattr(node, name, None)
            for one in value if isinstance(value, tuple) else (value,):
                if one is not None and not any(np.may_share_memory(one, other) for other in known):
                    raise ValuesNeededError
        if node.saves and not node.array_names:
            raise ValuesNeededError


def _written(value: Any) -> Any:
    """Return copies, into which an operation may write."""
    return [one.clone() for one in value] if isinstance(value, list) else value.clone()


def _put(value: Any, tensors: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_put(one, tensors) for one in value]
    if isinstance(value, torch.Generator):
        return value.clone_state()
    return next(tensors) if isinstance(value, torch.Tensor) else value


# ---- conversions, views ----
@kernel("_to_copy")
def _to_copy(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    """Convert, always to new memory."""
    kept = {} if memory_format is None else {"memory_format": memory_format}
    made = self.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True, **kept)
    return made.pin_memory() if pin_memory else made


KERNELS["alias"] = lambda self: self.view(self.shape)
KERNELS["lift"] = KERNELS["lift_fresh"] = lambda self: self
KERNELS["lift_fresh_copy"] = lambda self: self.clone()
KERNELS["copy"] = lambda self, src, non_blocking=False: self.clone().copy_(src)
KERNELS["_local_scalar_dense"] = lambda self: self.item()
KERNELS["histogramdd"] = lambda self, bins, range=None, weight=None, density=False: torch.histogramdd(
    self, bins, range=range, weight=weight, density=density
)


@kernel("_unsafe_view", "_reshape_alias")
def _unsafe_view(self: Any, size: Any, stride: Any = None) -> Any:
    made = self.reshape(size)
    return (
        made if current_mode().grad or current_mode().transforms else wrap(made._array)
    )  # no view: nobody else has the memory


@kernel("slice")
def _slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return self[(builtins.slice(None),) * (dim % self.dim()) + (builtins.slice(start, end, step),)]


KERNELS["index"] = lambda self, indices: self[tuple(builtins.slice(None) if one is None else one for one in indices)]
KERNELS["index_put"] = KERNELS["_unsafe_index_put"] = lambda self, indices, values, accumulate=False: _index_put_(
    self.clone(), indices, values, accumulate
)


@kernel("index_put_", "_index_put_impl_")
def _index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    if all(one is not None for one in indices):
        return self.index_put_(tuple(indices), values, accumulate)
    parts: list[Any] = []
    for one in indices:
        parts += one.nonzero().unbind(1) if one is not None and one.dtype in (torch.bool, torch.uint8) else [one]
    chosen = [k for k, one in enumerate(parts) if one is not None]
    rest = [k for k in range(self.dim()) if k not in chosen]
    sizes = list(torch.broadcast_shapes(*[parts[k].shape for k in chosen]))
    lead = (
        chosen[0] if chosen == list(range(chosen[0], chosen[-1] + 1)) else 0
    )  # where the chosen ones stand in the result
    whole = [*[self.shape[k] for k in rest[:lead]], *sizes, *[self.shape[k] for k in rest[lead:]]]
    values = values.expand(whole)
    values = values.permute([*range(lead, lead + len(sizes)), *range(lead), *range(lead + len(sizes), len(whole))])
    self.permute([*chosen, *rest]).index_put_(tuple([parts[k] for k in chosen]), values, accumulate)
    return self


@kernel("set_data")
def _set_data(self: Any, new_data: Any) -> None:
    self.data = new_data


# ---- activations ----
KERNELS["sigmoid_backward"] = lambda grad_output, output: grad_output * ((1 - output) * output)
KERNELS["tanh_backward"] = lambda grad_output, output: grad_output * (1 - output * output)
KERNELS["threshold_backward"] = lambda grad_output, self, threshold: torch.where(
    self <= threshold, torch.zeros_like(grad_output), grad_output
)


@kernel("elu")
def _elu(self: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if scale == 1 and input_scale == 1:
        return F.elu(self, alpha)
    return torch.where(self > 0, self * scale, torch.expm1(self * input_scale) * (alpha * scale))


# ---- softmax and losses ----
for _name, _of in (("_softmax", F.softmax), ("_log_softmax", F.log_softmax)):
    KERNELS[_name] = lambda self, dim, half_to_float=False, _of=_of: _of(
        self, dim, dtype=torch.float32 if half_to_float else None
    )


@kernel("_safe_softmax")
def _safe_softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    masked = (self == -math.inf).all(dim, keepdim=True)
    return F.softmax(self.masked_fill(masked, 0.0), dim, dtype=dtype).masked_fill(masked, 0.0)


@kernel("_softmax_backward_data")
def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    whole = grad_output * output
    return (whole - output * whole.sum(dim, keepdim=True)).to(input_dtype)


@kernel("_log_softmax_backward_data")
def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


@kernel("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss_forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    out = F.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])
    if reduction == 0:
        return out, self.new_zeros(())
    counted = target != ignore_index
    if weight is None:
        return out, counted.sum().to(self.dtype)
    return out, (weight[target.clamp_min(0)] * counted).sum()


# ---- layers ----
KERNELS["_convolution"] = KERNELS["convolution_overrideable"] = lambda *args: torch.convolution(
    *args[:9]  # the others are for libraries of kernels
)


def _in_single(x: Any) -> Any:
    """Return a tensor of halves as one in which sums are precise."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _normalised(x: Any, input: Any, rstd: Any, dims: Any) -> Any:
    """Return `x` with mean 0 and deviation 1. What was added to the variance of `input`, its value, is known by `rstd` alone."""
    x, rstd = _in_single(x), _in_single(rstd)
    before = _in_single(input).var(dims, correction=0, keepdim=True).detach()
    variance = x.var(dims, correction=0, keepdim=True) - before + rstd.detach().pow(-2)
    return (x - x.mean(dims, keepdim=True)) * variance.rsqrt()


def _norm_backward(grad: Any, input: Any, weight: Any, shape: Any, mask: Any, normalise: Callable[[Any], Any]) -> Any:
    """Return the gradients of an input, and of the weight and bias of a shape that follow once it is normalised."""

    def forward(x: Any, w: Any, b: Any) -> Any:
        out = normalise(_in_single(input if x is None else x))
        w = weight if w is None else w
        out = out if w is None else out * w.reshape(shape)
        return out if b is None else out + b.reshape(shape)

    bias = (input if weight is None else weight).new_zeros(shape).reshape(-1)  # only its gradient counts
    wanted = (input, weight, bias if weight is None else bias.reshape(weight.shape))
    return of_forward(forward, [one if is_needed else None for one, is_needed in zip(wanted, mask, strict=True)], grad)


@kernel("native_layer_norm_backward")
def _native_layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:
    dims = [*range(-len(normalized_shape), 0)]
    shape = list(normalized_shape)
    return _norm_backward(grad_out, input, weight, shape, output_mask, lambda x: _normalised(x, input, rstd, dims))


@kernel("native_group_norm_backward")
def _native_group_norm_backward(
    grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int, group: int, output_mask: Any
) -> Any:
    def normalise(x: Any) -> Any:
        own, given = (one.reshape(N, group, -1) for one in (x, input))
        return _normalised(own, given, rstd.reshape(N, group, 1), 2).reshape(input.shape)

    return _norm_backward(grad_out, input, weight, (1, C, *(1,) * (input.dim() - 2)), output_mask, normalise)


@kernel("native_batch_norm_backward")
def _native_batch_norm_backward(grad_out: Any, input: Any, weight: Any, *rest: Any) -> Any:
    running_mean, running_var, _, _, train, eps, output_mask = rest
    means = (None, None) if train else (running_mean, running_var)
    shape = (1, input.shape[1], *(1,) * (input.dim() - 2))
    return _norm_backward(
        grad_out, input, weight, shape, output_mask, lambda x: F.batch_norm(x, *means, None, None, train, 0.0, eps)
    )


@kernel("embedding_dense_backward")
def _embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    weight = torch.zeros(num_weights, grad_output.shape[-1], dtype=grad_output.dtype, device=grad_output.device)
    return of_forward(lambda w: torch.embedding(w, indices, padding_idx, scale_grad_by_freq), [weight], grad_output)[0]


def _upsampled(mode: str, has_corners: bool) -> Callable[..., Any]:
    def upsample(self: Any, output_size: Any, *more: Any) -> Any:
        corners = more[0] if has_corners else None
        scales = [one for one in more[int(has_corners) :] if one is not None]
        if scales and not corners:  # which the scale decides, not the sizes that it gave
            return F.interpolate(self, scale_factor=scales, mode=mode, align_corners=corners)
        return F.interpolate(self, tuple(output_size), mode=mode, align_corners=corners)

    return upsample


for _name in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "bicubic2d", "trilinear3d"):
    KERNELS[f"upsample_{_name}"] = _upsampled(_name[:-2], not _name.startswith("nearest"))

KERNELS["block_diag"] = lambda tensors: torch.block_diag(*tensors)
KERNELS["_linalg_det"] = lambda A: (torch.linalg.det(A), *torch.linalg.lu_factor_ex(A)[:2])


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
