"""torch.nn.grad: the gradients of convolutions, as functions."""

from __future__ import annotations

from typing import Any

from .._ops.convolution import convolve_input, convolve_weight
from ..tensor._recording.record import record
from .functional._convolution_checks import numbers

NODE = "ConvolutionBackwardBackward0"


def _params(rank: int, stride: Any, padding: Any, dilation: Any, groups: int) -> dict[str, Any]:
    given = {"stride": stride, "padding": padding, "dilation": dilation}
    return {**{name: numbers(name, value, rank, rank) for name, value in given.items()}, "groups": groups}


def _input(rank: int, input_size: Any, weight: Any, grad_output: Any, *rest: Any) -> Any:
    params = {"size": tuple(input_size)[-rank:], **_params(rank, *rest)}
    return record(convolve_input, (grad_output, weight), params, NODE)


def _weight(rank: int, input: Any, weight_size: Any, grad_output: Any, *rest: Any) -> Any:
    params = {"size": tuple(weight_size)[-rank:], **_params(rank, *rest)}
    return record(convolve_weight, (grad_output, input), params, NODE)


def conv1d_input(
    input_size: Any,
    weight: Any,
    grad_output: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the gradient of conv1d for its input."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Any,
    weight_size: Any,
    grad_output: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the gradient of conv1d for its weight."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any,
    weight: Any,
    grad_output: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the gradient of conv2d for its input."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Any,
    weight_size: Any,
    grad_output: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the gradient of conv2d for its weight."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any,
    weight: Any,
    grad_output: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the gradient of conv3d for its input."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Any,
    weight_size: Any,
    grad_output: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the gradient of conv3d for its weight."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
