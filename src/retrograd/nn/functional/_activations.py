"""Activation functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import _dtypes
from ..._errors import wrap_dim
from ..._modes import current_mode
from ..._ops import activations as a
from ..._warnings import warn
from ...overrides import overridable, takes_out
from ...tensor import _base
from ...tensor._aliasing.inplace import inplace
from ...tensor._functions import elementwise as _pointwise
from ...tensor._functions import reduce as _reductions
from ...tensor._functions.creation import empty_like, ones_like, zeros_like
from ...tensor._functions.generators import default_generator
from ...tensor._functions.random_fills import _sampled
from ...tensor._recording.operands import not_a_tensor
from ...tensor._recording.record import Elementwise, record, unary
from ...tensor._recording.refusals import REFUSED, kernel, refuse, refused
from ._public import public_names

OF_FLOATS = (
    "elu",
    "mish",
    "softplus",
    "hardswish",
    "hardsigmoid",
    "leaky_relu",
    "log_sigmoid",
    "hardshrink",
    "glu",
    "prelu",
)
refused(*OF_FLOATS, bic=kernel("{name}_cpu"))
refused("gelu", bic=kernel("GeluKernelImpl"))
refused("silu", bi=kernel("{name}_cpu"))
refused("softshrink", bic=kernel("softshrink_check"))
refused("threshold", bc=kernel("{name}_cpu"))
refused("hardtanh", b=(RuntimeError, "Bool inputs not supported for hardtanh"), c=REFUSED["clamp"]["c"])

_silu, _mish = unary(a.silu, "silu"), unary(a.mish, "mish")
_hardswish, _hardsigmoid = unary(a.hardswish, "hardswish"), unary(a.hardsigmoid, "hardsigmoid")
_log_sigmoid = unary(a.log_sigmoid, "log_sigmoid")
_GELU = Elementwise(a.gelu, "gelu", None, False)
_SOFTPLUS = Elementwise(a.soft, "softplus", None, False)
_ELU = [Elementwise(a.elu, "elu", f"EluBackward{k}", False) for k in (0, 1)]
_CELU = [Elementwise(a.elu, "elu", f"CeluBackward{k}", False) for k in (0, 1)]
_LEAKY = [Elementwise(a.leaky_relu, "leaky_relu", f"LeakyReluBackward{k}", False) for k in (0, 1)]
_THRESHOLD = [Elementwise(a.threshold, "threshold", f"ThresholdBackward{k}", False) for k in (0, 1)]
_RRELU = [Elementwise(a.rrelu, "leaky_relu", f"RreluWithNoiseBackward{k}", False) for k in (0, 1)]
_PRELU = Elementwise(a.prelu, "prelu", "PreluKernelBackward0", False)
_HARD = Elementwise(a.hardtanh, "hardtanh", "HardtanhBackward0", False)
_SOFTSHRINK = Elementwise(a.softshrink, "softshrink", None, False)
_HARDSHRINK = Elementwise(a.hardshrink, "hardshrink", None, False)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _need_tensor(name: str, input: Any) -> None:
    if not isinstance(input, _base.Tensor):
        raise TypeError(not_a_tensor(name, 1, input, "input"))


def _need_number(name: str, position: int, argument: str, value: Any) -> Any:
    if type(value) in (int, float, bool):
        return value
    if isinstance(value, np.generic) or (
        isinstance(value, _base.Tensor) and not value._array.ndim and not value.requires_grad
    ):
        return value.item()
    raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}")


# ---- without parameters ----
relu_ = _base.Tensor.relu_
_silu_, _mish_ = inplace("silu", _silu), inplace("mish", _mish)
_hardswish_, _hardsigmoid_ = inplace("hardswish", _hardswish), inplace("hardsigmoid", _hardsigmoid)


@overridable
def relu(input: Any, inplace: bool = False) -> Any:
    """Replace what is negative by 0.

    Args:
        input: a tensor of any shape
        inplace: write the result into `input`

    Example:
        >>> F.relu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return relu_(input) if inplace else _pointwise.relu(input)


@overridable
def silu(input: Any, inplace: bool = False) -> Any:
    """Compute x * sigmoid(x) of each element x.

    Args:
        input: a tensor of any shape
        inplace: write the result into `input`

    Example:
        >>> F.silu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """
    if (
        isinstance(input, _base.Tensor)
        and input._array.dtype.kind == "c"
        and input.requires_grad
        and current_mode().tracks
    ):
        raise RuntimeError("silu does not support automatic differentiation for outputs with complex dtype.")
    return _silu_(input) if inplace else _silu(input)


@overridable
def mish(input: Any, inplace: bool = False) -> Any:
    """Compute x * tanh(softplus(x)) of each element x.

    Args:
        input: a tensor of any shape
        inplace: write the result into `input`

    Example:
        >>> F.mish(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """
    return _mish_(input) if inplace else _mish(input)


@overridable
def hardswish(input: Any, inplace: bool = False) -> Any:
    """Compute x * relu6(x + 3) / 6 of each element x, a piecewise form of `silu`.

    Args:
        input: a tensor of any shape
        inplace: write the result into `input`

    Example:
        >>> F.hardswish(torch.tensor([-4.0, 0.0, 4.0]))
        tensor([-0., 0., 4.])
    """
    return _hardswish_(input) if inplace else _hardswish(input)


@overridable
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """Rise from 0 at -3 to 1 at 3."""
    return _hardsigmoid_(input) if inplace else _hardsigmoid(input)


def sigmoid(input: Any) -> Any:
    """Compute 1 / (1 + exp(-x)) of each element x.

    Args:
        input: a tensor of any shape

    Example:
        >>> F.sigmoid(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    return input.sigmoid()


def tanh(input: Any) -> Any:
    """Compute the hyperbolic tangent of each element.

    Args:
        input: a tensor of any shape

    Example:
        >>> F.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """
    return input.tanh()


@takes_out
def logsigmoid(input: Any) -> Any:
    """Compute log(sigmoid(x)) of each element x, exact also where it is large and negative.

    Args:
        input: a tensor of any shape

    Example:
        >>> F.logsigmoid(torch.tensor([0.0, -100.0]))
        tensor([  -0.6931, -100.0000])
    """
    return _log_sigmoid(input)


@overridable
def softsign(input: Any) -> Any:
    """Compute x / (1 + |x|)."""
    return input / (input.abs() + 1)


@overridable
def tanhshrink(input: Any) -> Any:
    """Compute x - tanh(x)."""
    return input - input.tanh()


# ---- with parameters ----
@takes_out(out_dtype="kernel")
def gelu(input: Any, *, approximate: str = "none") -> Any:
    """Compute x times the probability that a normal variable is below x.

    Args:
        input: a tensor of any shape
        approximate: "none", or "tanh" for the usual approximation

    Example:
        >>> F.gelu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])
        >>> F.gelu(torch.tensor([1.0]), approximate="tanh")
        tensor([0.8412])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _GELU.slow((input,), {"approximate": approximate})


@takes_out(raised="cuda", out_dtype="kernel")
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """Compute log(1 + exp(beta * x)) / beta of each element x: a smooth `relu`.

    Args:
        input: a tensor of any shape
        beta: how sharp the bend is
        threshold: above it, x itself is returned

    Example:
        >>> F.softplus(torch.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000])
    """
    if type(beta) is complex or type(threshold) is complex:
        raise RuntimeError("value cannot be converted to type float without overflow")
    return _SOFTPLUS.slow((input,), {"beta": beta, "threshold": threshold})


def _elu(input: Any, alpha: float = 1.0, *, rules: Any = _ELU[0], scale: float = 1.0, input_scale: float = 1.0) -> Any:
    _need_tensor("elu", input)
    alpha = _need_number("elu", 2, "alpha", alpha)
    return rules.slow((input,), {"alpha": alpha, "scale": scale, "input_scale": input_scale})


def _selu(input: Any, rules: Any = _ELU[0]) -> Any:
    return _elu(input, SELU_ALPHA, scale=SELU_SCALE, rules=rules)


def _celu(input: Any, alpha: float = 1.0, rules: Any = _CELU[0]) -> Any:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if isinstance(alpha, (_base.Tensor, np.generic)):  # the kernel takes numbers alone
        alpha = _need_number("celu", 2, "alpha", alpha)
    return _elu(input, alpha, input_scale=1.0 / alpha, rules=rules)


def _leaky(input: Any, negative_slope: float = 0.01, rules: Any = _LEAKY[0]) -> Any:
    _need_tensor("leaky_relu", input)
    return rules.slow((input,), {"negative_slope": _need_number("leaky_relu", 2, "negative_slope", negative_slope)})


def _thresholded(input: Any, threshold: float, value: float, rules: Any = _THRESHOLD[0]) -> Any:
    _need_tensor("threshold", input)
    threshold = _need_number("threshold", 2, "threshold", threshold)
    value = _need_number("threshold", 3, "value", value)
    return rules.slow((input,), {"threshold": threshold, "value": value})


def _limited(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    _need_tensor("hardtanh", input)
    min_val = _need_number("hardtanh", 2, "min_val", min_val)
    max_val = _need_number("hardtanh", 3, "max_val", max_val)
    dtype = input._array.dtype
    if dtype.kind in "iu":
        if dtype.kind == "u" and min_val < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
        min_val, max_val = int(min_val), int(max_val)
    return _HARD.slow((input,), {"min_val": min_val, "max_val": max_val})


def _elu_written(input: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    return _elu(input, alpha, rules=_ELU[1], scale=scale, input_scale=input_scale)


elu_ = inplace("elu", _elu_written)
selu_ = inplace("selu", lambda input: _selu(input, _ELU[1]))
celu_ = inplace("celu", lambda input, alpha=1.0: _celu(input, alpha, _CELU[1]))
leaky_relu_ = inplace("leaky_relu", lambda input, negative_slope=0.01: _leaky(input, negative_slope, _LEAKY[1]))
threshold_ = inplace("threshold", lambda input, threshold, value: _thresholded(input, threshold, value, _THRESHOLD[1]))
hardtanh_ = inplace("hardtanh", _limited)


@takes_out
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Compute alpha * (exp(x) - 1) where x is negative; else x.

    Args:
        input: a tensor of any shape
        alpha: minus the limit for large negative x
        inplace: write the result into `input`

    Example:
        >>> F.elu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return elu_(input, alpha) if inplace else _elu(input, alpha)


@overridable
def selu(input: Any, inplace: bool = False) -> Any:
    """Compute elu with the scales that keep mean and variance."""
    return selu_(input) if inplace else _selu(input)


@overridable
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Compute alpha (exp(x / alpha) - 1) where x is negative."""
    return celu_(input, alpha) if inplace else _celu(input, alpha)


@takes_out
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Multiply what is negative by a small slope.

    Args:
        input: a tensor of any shape
        negative_slope: the slope
        inplace: write the result into `input`

    Example:
        >>> F.leaky_relu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.0100,  0.0000,  2.0000])
    """
    return leaky_relu_(input, negative_slope) if inplace else _leaky(input, negative_slope)


@takes_out
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Replace what does not exceed a threshold by a value."""
    return threshold_(input, threshold, value) if inplace else _thresholded(input, threshold, value)


_threshold = threshold  # as torch calls it, too


@takes_out
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Bring elements that are out of a range to its ends.

    Args:
        input: a tensor of any shape
        min_val: the lower end
        max_val: the upper end
        inplace: write the result into `input`

    Example:
        >>> F.hardtanh(torch.tensor([-3.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return hardtanh_(input, min_val, max_val) if inplace else _limited(input, min_val, max_val)


@overridable
def relu6(input: Any, inplace: bool = False) -> Any:
    """Bring elements that are out of [0, 6] to its ends.

    Args:
        input: a tensor of any shape
        inplace: write the result into `input`

    Example:
        >>> F.relu6(torch.tensor([-3.0, 0.5, 8.0]))
        tensor([0.0000, 0.5000, 6.0000])
    """
    return hardtanh_(input, 0, 6) if inplace else _limited(input, 0, 6)


@takes_out(out_dtype="kernel")
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Move towards 0 by `lambd`."""
    refuse("softshrink", input._array.dtype)
    if not 0 <= lambd < math.inf:
        kind = _base.dtype_of(input)
        raise RuntimeError(
            f"lambda must be in range [0, {_dtypes.finfo(kind).max:.6g}] for input dtype {kind._scalar_name}, but found "
            f"{lambd:g}"
        )
    return _SOFTSHRINK.slow((input,), {"lambd": lambd})


@takes_out(out_dtype="kernel")
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Replace what lies between -lambd and lambd by 0."""
    return _HARDSHRINK.slow((input,), {"lambd": lambd})


@overridable(lowered="cpu cuda")
def prelu(input: Any, weight: Any) -> Any:
    """Multiply what is negative by learned slopes.

    Args:
        input: (N, C, ...)
        weight: one slope, or one for each channel

    Example:
        >>> F.prelu(torch.tensor([[-2.0, 4.0]]), torch.tensor([0.25]))
        tensor([[-0.5000,  4.0000]])
    """
    x, w = input._array, weight._array
    if x.dtype != w.dtype:
        names = [_base.dtype_of(one)._scalar_name for one in (input, weight)]
        raise RuntimeError(f"prelu: Type promoting not supported. Got {names[0]} and {names[1]}")
    if w.size != 1:
        if not x.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{w.size} and channel size = {channels}."
            )
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if x.ndim != w.ndim:
        weight = weight.reshape([w.size if k == 1 else 1 for k in range(x.ndim)] if x.ndim > 1 else [w.size] * x.ndim)
    return _PRELU.slow((input, weight))


def _rrelu(input: Any, lower: float, upper: float, training: bool, rules: Any) -> Any:
    _need_tensor("rrelu", input)
    for side, bound in (("lower", lower), ("upper", upper)):
        if math.isinf(bound):
            raise RuntimeError(f"rrelu: {side} bound must be finite, got {bound}")
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        refuse("leaky_relu", input._array.dtype)
        slope = (lower + upper) / 2
        known = input.detach()
        noise = _pointwise.where(known > 0, ones_like(known), slope)
    else:
        noise = _drawn_slopes(input, lower, upper)
    return rules.slow((input, noise), {"lower": lower, "upper": upper, "training": training})


def _drawn_slopes(input: Any, lower: float, upper: float) -> Any:
    """Draw a slope for every element that is not positive, in torch's order; others have 1."""
    dtype = _base.dtype_of(input)
    if dtype._scalar_name not in ("Float", "Double", "BFloat16"):
        raise NotImplementedError(f"\"rrelu_with_noise_out_cpu\" not implemented for '{dtype._scalar_name}'")

    def draw(array: Any) -> Any:
        slopes = np.ones(array.shape, array.dtype)
        chosen = array <= 0
        drawn = default_generator.unit_doubles(int(np.count_nonzero(chosen)))
        slopes[chosen] = drawn * (upper - lower) + lower
        return slopes

    return _base.wrap(_sampled(input._array, default_generator, draw))


rrelu_ = inplace(
    "rrelu",
    lambda input, lower=1 / 8, upper=1 / 3, training=False: _rrelu(input, lower, upper, training, _RRELU[1]),
)


@overridable
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """Multiply by a slope where x is not positive: drawn for each element in training, else the middle of the interval."""
    if inplace:
        return rrelu_(input, lower, upper, training)
    return _rrelu(input, lower, upper, training, _RRELU[0])


@takes_out
def glu(input: Any, dim: int = -1) -> Any:
    """Multiply the first half along a dimension by the sigmoid of the second.

    Args:
        input: a tensor whose size along `dim` is even
        dim: the dimension

    Example:
        >>> F.glu(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """
    array = input._array
    if not array.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = wrap_dim(dim, array.ndim)
    if array.shape[axis] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {array.shape[axis]}")
    refuse("glu", array.dtype)
    return record(a.glu, (input,), {"axis": axis})


# ---- along a dimension ----
def _chosen_dim(name: str, ndim: int, stacklevel: int) -> int:
    """Choose the dimension as torch did before it had to be named."""
    operator.index(stacklevel)  # we warn at the user's line, whatever it is
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


@overridable(raised="cuda")
def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Turn numbers along a dimension into probabilities: exp(input) divided by its sum.

    Args:
        input: a tensor of any shape
        dim: the dimension along which the results sum to 1
        dtype: convert to this dtype first

    Example:
        >>> F.softmax(torch.tensor([[0.0, 1.0], [5.0, 5.0]]), dim=1)
        tensor([[0.2689, 0.7311],
                [0.5000, 0.5000]])
    """
    if dim is None:
        dim = _chosen_dim("softmax", input.dim(), _stacklevel)
    return _reductions.softmax(input, dim, dtype=dtype)


@overridable(raised="cuda")
def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Normalise exponentials of the negative along a dimension."""
    if dim is None:
        dim = _chosen_dim("softmin", input.dim(), _stacklevel)
    return _reductions.softmax(-input, dim, dtype=dtype)


@overridable(raised="cuda")
def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Compute log(softmax(input)), exact also where a probability is close to 0.

    Args:
        input: a tensor of any shape
        dim: the dimension along which the probabilities sum to 1
        dtype: convert to this dtype first

    Example:
        >>> F.log_softmax(torch.tensor([0.0, 100.0]), dim=0)
        tensor([-100.,    0.])
    """
    if dim is None:
        dim = _chosen_dim("log_softmax", input.dim(), _stacklevel)
    return _reductions.log_softmax(input, dim, dtype=dtype)


@overridable
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """Draw samples from a relaxed, differentiable form of a categorical distribution.

    Args:
        logits: logarithms of probabilities, up to a constant
        tau: the temperature: the smaller, the closer to one-hot vectors
        hard: return one-hot vectors, with the gradients of the relaxed ones
        eps: has no effect any more
        dim: the dimension of the categories

    Example:
        >>> _ = torch.manual_seed(0)
        >>> F.gumbel_softmax(torch.zeros(1, 3), hard=True).sum()
        tensor(1.)
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    gumbels = -empty_like(logits).exponential_().log()
    soft = _reductions.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    chosen = soft.max(dim, keepdim=True)[1]
    ones = zeros_like(logits).scatter_(dim, chosen, 1.0)
    return ones - soft.detach() + soft


__all__ = public_names(
    globals(),
    "_threshold",
    "celu_",
    "elu_",
    "hardtanh_",
    "leaky_relu_",
    "relu_",
    "rrelu_",
    "selu_",
    "sigmoid",
    "tanh",
    "threshold_",
)
