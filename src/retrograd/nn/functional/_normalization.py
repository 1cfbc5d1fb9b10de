"""Normalisation of activations."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.numpy_namespace import HALVES
from ...overrides import overridable, takes_out
from ...tensor._functions.matrix_checks import need_tensor, scalar_name
from ...tensor._functions.norms import vector
from ...tensor._functions.rearrange import constant_pad_nd
from ._public import public_names
from ._torch_normalization import by_instance, groups_of_channels, layers, over_samples, root_mean_squares


def _need_several(size: Any) -> None:
    """Refuse to normalise a single number per channel: its variance is 0."""
    count = size[0]
    for length in size[2:]:
        count *= length
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}\n"
            "Hint: a single number has no variance; use a larger batch, or eval()."
        )


@overridable
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Any:
    """Bring each channel to mean 0 and variance 1 over the samples, or by running statistics; then scale and shift it.

    Args:
        input: (N, C) or (N, C, ...)
        running_mean: (C), updated in training
        running_var: (C), updated in training
        weight: a factor for each channel
        bias: a summand for each channel
        training: use the statistics of the batch
        momentum: the share of the batch in the running statistics
        eps: what is added to the variance

    Example:
        >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    if training:
        _need_several(input.size())
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return over_samples(input, weight, bias, running_mean, running_var, training, momentum, eps)


@overridable
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Any:
    """Bring each channel of each sample to mean 0 and variance 1; then scale and shift it."""
    if use_input_stats:
        size = input.size()
        count = 1
        for length in size[2:]:
            count *= length
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")
    return by_instance(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def _need_optional(name: str, weight: Any, bias: Any = None) -> None:
    """Refuse weights that are no tensors; torch's function hands them on by position, and says so, however they were given."""
    for position, (argument, value) in enumerate((("weight", weight), ("bias", bias)), 3):
        if value is not None:
            need_tensor(value, name, argument, position)


@overridable(raised="cuda")
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Bring the numbers of the last axes to mean 0 and variance 1; then scale and shift them.

    Args:
        input: (..., *normalized_shape)
        normalized_shape: the sizes of the last axes
        weight: a factor for each number
        bias: a summand for each number
        eps: what is added to the variance

    Example:
        >>> F.layer_norm(torch.tensor([[1.0, 2.0, 3.0]]), (3,))
        tensor([[-1.2247,  0.0000,  1.2247]])
    """
    if weight is not None or bias is not None:
        _need_optional("layer_norm", weight, bias)
    return layers(input, normalized_shape, weight, bias, eps)


@overridable
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Divide the numbers of the last axes by the root of the mean of their squares; then scale them.

    Args:
        input: (..., *normalized_shape)
        normalized_shape: the sizes of the last axes
        weight: a factor for each number
        eps: what is added to the mean; the smallest step of the dtype if it is not given

    Example:
        >>> F.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
        tensor([[0.8485, 1.1314]])
    """
    if weight is not None:
        _need_optional("rms_norm", weight)
    return root_mean_squares(input, normalized_shape, weight, eps)


@overridable(raised="cuda")
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Bring groups of channels to mean 0 and variance 1, sample by sample; then scale and shift the channels.

    Args:
        input: (N, C, ...)
        num_groups: how many groups, a divisor of C
        weight: a factor for each channel
        bias: a summand for each channel
        eps: what is added to the variance

    Example:
        >>> F.group_norm(torch.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    size = input.size()
    if len(size) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(size)}")
    _need_several([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    if weight is not None or bias is not None:
        _need_optional("group_norm", weight, bias)
    return groups_of_channels(input, num_groups, weight, bias, eps)


@overridable
def local_response_norm(input: Any, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Any:
    """Divide by a power of the mean square of the neighbouring channels."""
    rank = input.dim()
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {rank} dimensions)")
    if not isinstance(size, int):
        raise TypeError(
            "pad(): argument 'pad' failed to unpack the object at pos 5 with error \"type must be tuple of ints,but got "
            f'{type(size).__name__}"'
        )
    if size <= 0:
        shown = f"kH: {size} kW: 1" if rank == 3 else f"kT: {size} kH: 1 kW: 1"
        raise RuntimeError(f"kernel size should be greater than zero, but got {shown}")
    if not input.numel():
        return input
    dtype = input._array.dtype
    if dtype.char not in "fdlq" and (rank > 3 or dtype not in HALVES):
        kernel = "avg_pool2d" if rank == 3 else "avg_pool3d_out_frame"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input)}'")
    square = constant_pad_nd(input.mul(input), [0, 0] * (rank - 2) + [size // 2, (size - 1) // 2])
    total = square.unfold(1, size, 1).sum(-1)
    mean = total / size if total.is_floating_point() else total // size
    return input / mean.mul(alpha).add(k).pow(beta)


@takes_out(raised="cuda")
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """Divide vectors along a dimension by their norms.

    Args:
        input: a tensor of any shape
        p: the order of the norm
        dim: the dimension
        eps: the smallest norm to divide by

    Example:
        >>> F.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    _errors.wrap_dim(dim, input.dim()) if isinstance(dim, int) else None
    return input / vector(input, p, dim, True, None).clamp_min(eps).expand_as(input)


__all__ = public_names(globals())
