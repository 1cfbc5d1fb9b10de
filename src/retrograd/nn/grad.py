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


def _of_rank(rank: int) -> tuple[Any, Any]:
    """Make the functions of the convolution along so many axes: for its input, and for its weight."""

    def for_input(
        input_size: Any,
        weight: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        params = {"size": tuple(input_size)[-rank:], **_params(rank, stride, padding, dilation, groups)}
        return record(convolve_input, (grad_output, weight), params, NODE)

    def for_weight(
        input: Any,
        weight_size: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        params = {"size": tuple(weight_size)[-rank:], **_params(rank, stride, padding, dilation, groups)}
        return record(convolve_weight, (grad_output, input), params, NODE)

    for function, what in ((for_input, "input"), (for_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{rank}d_{what}"
        function.__doc__ = f"Return the gradient of conv{rank}d for its {what}."
    return for_input, for_weight


(conv1d_input, conv1d_weight), (conv2d_input, conv2d_weight), (conv3d_input, conv3d_weight) = map(_of_rank, (1, 2, 3))
