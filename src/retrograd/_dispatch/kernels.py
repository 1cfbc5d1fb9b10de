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
from ..tensor._base import LEAF, wrap
from ..tensor._functions.generators import drawing_apart

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
    import_module(f"{__package__}.kernels_layers")
    name = packet.__name__
    found = KERNELS.get(f"{name}.{op._overloadname}") or KERNELS.get(name)
    schema = packet._forms().get(op._overloadname)  # none for an operation that only torch has
    in_functional = not hasattr(torch, name) and not hasattr(torch.Tensor, name) and hasattr(F, name.removesuffix("_"))
    if (
        found is None
        and schema is not None
        and (in_functional or any(one.name == "reduction" for one in schema.arguments))
    ):
        return _by_name(packet._public(), schema, in_functional)
    return found or packet._public()


def _by_name(function: Callable[..., Any], schema: Any, in_functional: bool) -> Callable[..., Any]:
    """Call a function of `nn.functional` by the names of arguments; let a loss take its reduction as a number.

    The reduction is said even where it is the usual.
    """
    from .schemas import bind

    def loss(*args: Any, **kwargs: Any) -> Any:
        values = bind(schema, args, kwargs) or {}
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
        from . import flat_tensors, kernel_of, schemas

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


@kernel("alias")
def _alias(self: Any) -> Any:
    return self.view(self.shape)


@kernel("lift_fresh", "lift")
def _lift(self: Any) -> Any:
    return self


@kernel("lift_fresh_copy")
def _lift_fresh_copy(self: Any) -> Any:
    return self.clone()


@kernel("_unsafe_view", "_reshape_alias")
def _unsafe_view(self: Any, size: Any, stride: Any = None) -> Any:
    made = self.reshape(size)
    return (
        made if current_mode().grad or current_mode().transforms else wrap(made._array)
    )  # no view: nobody else has the memory


@kernel("slice")
def _slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return self[(builtins.slice(None),) * (dim % self.dim()) + (builtins.slice(start, end, step),)]


@kernel("index")
def _index(self: Any, indices: Any) -> Any:
    return self[tuple(builtins.slice(None) if one is None else one for one in indices)]


@kernel("index_put", "_unsafe_index_put")
def _index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return _index_put_(self.clone(), indices, values, accumulate)


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


@kernel("_local_scalar_dense")
def _local_scalar_dense(self: Any) -> Any:
    return self.item()


@kernel("scalar_tensor")
def _scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Any:
    return torch.scalar_tensor(s, dtype=dtype, device=device)


@kernel("select_backward")
def _select_backward(grad_output: Any, input_sizes: Any, dim: int, index: int) -> Any:
    made = torch.zeros(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    return (
        made.select_scatter(grad_output, dim, index)
        if current_mode().grad
        else _filled(made, grad_output, made.select(dim, index))
    )


@kernel("slice_backward")
def _slice_backward(grad_output: Any, input_sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
    made = torch.zeros(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    if current_mode().grad:
        return made.slice_scatter(grad_output, dim, start, end, step)
    return _filled(made, grad_output, _slice(made, dim, start, end, step))


def _filled(made: Any, value: Any, part: Any) -> Any:
    part.copy_(value)
    return made


@kernel("mul.Scalar", "mul_.Scalar")
def _mul_scalar(self: Any, other: Any) -> Any:
    return self * other


@kernel("div_.Scalar")
def _div_scalar_(self: Any, other: Any) -> Any:
    return self.div_(other)


@kernel("copy")
def _copy(self: Any, src: Any, non_blocking: bool = False) -> Any:
    return self.clone().copy_(src)


@kernel("histogramdd")
def _histogramdd(self: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    return torch.histogramdd(self, bins, range=range, weight=weight, density=density)


@kernel("set_data")
def _set_data(self: Any, new_data: Any) -> None:
    self.data = new_data


# ---- activations ----
@kernel("threshold_backward")
def _threshold_backward(grad_output: Any, self: Any, threshold: float) -> Any:
    return torch.where(self <= threshold, torch.zeros_like(grad_output), grad_output)


@kernel("sigmoid_backward")
def _sigmoid_backward(grad_output: Any, output: Any) -> Any:
    return grad_output * ((1 - output) * output)


@kernel("tanh_backward")
def _tanh_backward(grad_output: Any, output: Any) -> Any:
    return grad_output * (1 - output * output)


def _derivative_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make the backward of an activation: its gradient, the input, and options of the forward."""

    def backward(grad_output: Any, self: Any, *args: Any, **options: Any) -> Any:
        return of_forward(lambda x: function(x, *args, **options), [self], grad_output)[0]

    return backward


KERNELS["gelu_backward"] = _derivative_of(lambda x, approximate="none": F.gelu(x, approximate=approximate))
KERNELS["silu_backward"] = _derivative_of(F.silu)
KERNELS["leaky_relu_backward"] = _derivative_of(lambda x, slope, of_result: F.leaky_relu(x, slope))
KERNELS["softplus_backward"] = _derivative_of(lambda x, beta, threshold: F.softplus(x, beta, threshold))
KERNELS["hardtanh_backward"] = _derivative_of(lambda x, low, high: F.hardtanh(x, low, high))
KERNELS["hardswish_backward"] = _derivative_of(F.hardswish)
KERNELS["mish_backward"] = _derivative_of(F.mish)
KERNELS["_adaptive_avg_pool2d_backward"] = lambda grad, self: of_forward(
    lambda x: F.adaptive_avg_pool2d(x, grad.shape[-2:]), [self], grad
)[0]
KERNELS["_adaptive_avg_pool2d"] = lambda self, output_size: F.adaptive_avg_pool2d(self, output_size)
KERNELS["_adaptive_avg_pool3d"] = lambda self, output_size: F.adaptive_avg_pool3d(self, output_size)


@kernel("elu_backward")
def _elu_backward(
    grad_output: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Any
) -> Any:
    return of_forward(lambda x: _elu(x, alpha, scale, input_scale), [self_or_result], grad_output)[0]


@kernel("elu")
def _elu(self: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if scale == 1 and input_scale == 1:
        return F.elu(self, alpha)
    return torch.where(self > 0, self * scale, torch.expm1(self * input_scale) * (alpha * scale))


# ---- softmax and losses ----
@kernel("_softmax")
def _softmax(self: Any, dim: int, half_to_float: bool = False) -> Any:
    return F.softmax(self, dim, dtype=torch.float32 if half_to_float else None)


@kernel("_log_softmax")
def _log_softmax(self: Any, dim: int, half_to_float: bool = False) -> Any:
    return F.log_softmax(self, dim, dtype=torch.float32 if half_to_float else None)


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


@kernel("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss_backward(
    grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    def forward(x: Any) -> Any:
        return F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])

    return of_forward(forward, [self], grad_output)[0]


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, target, reduction=1, *more: function(self, target, *more, reduction=REDUCTIONS[reduction])


def _loss_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    def backward(grad_output: Any, self: Any, target: Any, reduction: int, *more: Any) -> Any:
        return of_forward(lambda x: function(x, target, *more, reduction=REDUCTIONS[reduction]), [self], grad_output)[0]

    return backward


for _name, _function in {
    "mse_loss": F.mse_loss,
    "smooth_l1_loss": lambda x, y, beta=1.0, *, reduction: F.smooth_l1_loss(x, y, beta=beta, reduction=reduction),
    "huber_loss": lambda x, y, delta=1.0, *, reduction: F.huber_loss(x, y, delta=delta, reduction=reduction),
    "soft_margin_loss": F.soft_margin_loss,
}.items():
    KERNELS[_name] = _loss(_function)
    KERNELS[f"{_name}_backward"] = _loss_backward(_function)
KERNELS["binary_cross_entropy"] = lambda self, target, weight=None, reduction=1: F.binary_cross_entropy(
    self, target, weight, reduction=REDUCTIONS[reduction]
)
KERNELS["binary_cross_entropy_backward"] = lambda grad, self, target, weight=None, reduction=1: of_forward(
    lambda x: KERNELS["binary_cross_entropy"](x, target, weight, reduction), [self], grad
)[0]
KERNELS["binary_cross_entropy_with_logits"] = lambda self, target, weight=None, pos_weight=None, reduction=1: (
    F.binary_cross_entropy_with_logits(self, target, weight, pos_weight=pos_weight, reduction=REDUCTIONS[reduction])
)
