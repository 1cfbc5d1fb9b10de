"""nn.init: filling parameters, with torch's formulas and torch's random stream."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .._absent import finder
from .._modes import using
from .._tracebacks import guarded as _guarded
from .._warnings import warn

_GAINS: dict[str, float] = dict.fromkeys(
    ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"), 1
)
_GAINS |= {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


@_guarded
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights before a nonlinearity keep the scale of their inputs."""
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        slope = 0.01
    elif isinstance(param, (int, float)) and not isinstance(param, bool):
        slope = param
    else:
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def _without_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Fill a tensor without recording it."""

    @functools.wraps(function)
    def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        with using(grad=False):
            return function(tensor, *args, **kwargs)

    return call


@_guarded
@_without_graph
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with numbers between `a` and `b`.

    Args:
        tensor: the tensor that is filled
        a: the lower end
        b: the upper end
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> nn.init.uniform_(torch.empty(2), -1, 1)
        tensor([-0.0075,  0.5364])
    """
    return tensor.uniform_(a, b, generator=generator)


@_guarded
@_without_graph
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with numbers of a normal distribution.

    Args:
        tensor: the tensor that is filled
        mean: the mean
        std: the standard deviation
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> nn.init.normal_(torch.empty(2), std=0.1)
        tensor([ 0.1541, -0.0293])
    """
    return tensor.normal_(mean, std, generator=generator)


@_guarded
@_without_graph
def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill with numbers of a normal distribution cut off at `a` and `b`.

    Numbers outside are drawn again, from torch's stream. Where more than 70 % would be, the cumulative distribution is inverted
    instead: the same distribution, but other numbers than torch's.

    Args:
        tensor: the tensor that is filled
        mean: the mean
        std: the standard deviation
        a: the lower end
        b: the upper end
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> bool((nn.init.trunc_normal_(torch.empty(1000)).abs() <= 2).all())
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if below(b) - below(a) < 0.3:
        tensor.uniform_(2 * below(a) - 1, 2 * below(b) - 1, generator=generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)
    tensor.normal_(mean, std, generator=generator)
    while not tensor.is_meta and (outside := (tensor < a) | (tensor > b)).any():
        again = tensor.new_empty(tensor.shape).normal_(mean, std, generator=generator)
        tensor.copy_(again.where(outside, tensor))
    return tensor


@_guarded
@_without_graph
def constant_(tensor: Any, val: float) -> Any:
    """Fill with one number.

    Args:
        tensor: the tensor that is filled
        val: the value

    Example:
        >>> nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)


@_guarded
@_without_graph
def ones_(tensor: Any) -> Any:
    """Fill with ones.

    Args:
        tensor: the tensor that is filled

    Example:
        >>> nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_guarded
@_without_graph
def zeros_(tensor: Any) -> Any:
    """Fill with zeros.

    Args:
        tensor: the tensor that is filled

    Example:
        >>> nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    return tensor.zero_()


@_guarded
@_without_graph
def eye_(tensor: Any) -> Any:
    """Make a matrix the identity.

    Args:
        tensor: the matrix that is filled

    Example:
        >>> nn.init.eye_(torch.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    tensor.zero_()
    tensor.diagonal().fill_(1)
    return tensor


@_guarded
@_without_graph
def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Make the kernel of a convolution pass as many input channels through as it can, in each group."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    channels = tensor.size(0)
    if channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    in_group = channels // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    tensor.zero_()
    for group in range(groups):
        for d in range(min(in_group, tensor.size(1))):
            tensor[(group * in_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


@_guarded
@_without_graph
def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill as Glorot and Bengio (2010) propose, from a uniform distribution.

    Args:
        tensor: the tensor that is filled: (fan_out, fan_in), or the weight of a convolution
        gain: a factor of the bound sqrt(6 / (fan_in + fan_out))
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> bool(nn.init.xavier_uniform_(torch.empty(50, 50)).abs().max() <= (6 / 100) ** 0.5)
        True
    """
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return tensor.uniform_(-bound, bound, generator=generator)


@_guarded
@_without_graph
def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill as Glorot and Bengio (2010) propose, from a normal distribution.

    Args:
        tensor: the tensor that is filled: (fan_out, fan_in), or the weight of a convolution
        gain: a factor of the standard deviation sqrt(2 / (fan_in + fan_out))
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> nn.init.xavier_normal_(torch.empty(100, 100)).std().round(decimals=2)
        tensor(0.1000)
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return tensor.normal_(0.0, std, generator=generator)


def _is_empty(tensor: Any) -> bool:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return True
    return False


@_guarded
@_without_graph
def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill as He et al. (2015) propose, from a uniform distribution.

    Args:
        tensor: the tensor that is filled: (fan_out, fan_in), or the weight of a convolution
        a: the slope of the leaky ReLU that follows
        mode: "fan_in" keeps the variance forward, "fan_out" backward
        nonlinearity: what follows, such as "relu"
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> bool(nn.init.kaiming_uniform_(torch.empty(5, 24), nonlinearity="relu").abs().max() <= 0.5)
        True
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor.uniform_(-bound, bound, generator=generator)


@_guarded
@_without_graph
def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill as He et al. (2015) propose, from a normal distribution.

    Args:
        tensor: the tensor that is filled: (fan_out, fan_in), or the weight of a convolution
        a: the slope of the leaky ReLU that follows
        mode: "fan_in" keeps the variance forward, "fan_out" backward
        nonlinearity: what follows, such as "relu"
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> nn.init.kaiming_normal_(torch.empty(100, 200), nonlinearity="relu").std().round(decimals=2)
        tensor(0.1000)
    """
    if _is_empty(tensor):
        return tensor
    return tensor.normal_(0, _kaiming_std(tensor, a, mode, nonlinearity), generator=generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@_guarded
@_without_graph
def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a (semi-)orthogonal matrix, as Saxe et al. (2013) propose.

    Args:
        tensor: the matrix that is filled; further dimensions count as columns
        gain: a factor
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> w = nn.init.orthogonal_(torch.empty(3, 3))
        >>> torch.allclose(w @ w.T, torch.eye(3), atol=1e-5)
        True
    """
    from ..linalg import qr

    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    flat = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
    wide = rows < flat.size(1)
    q, r = qr(flat.t() if wide else flat)
    q = q * r.diagonal().sign()  # the sign of a column is free: this makes the distribution uniform
    tensor.view_as(q.t() if wide else q).copy_(q.t() if wide else q)
    return tensor.mul_(gain)


@_guarded
@_without_graph
def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill a matrix from a normal distribution, then set a fraction of each column to zero, as Martens (2010) proposes."""
    from ..tensor._functions.random_tensors import randperm

    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _old_name(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__[:-1]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return _guarded(call)


uniform, normal, constant, eye, dirac = map(_old_name, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_old_name, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_old_name, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_old_name, (orthogonal_, sparse_))

__getattr__ = finder("torch.nn.init")
