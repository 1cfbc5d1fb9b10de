"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from ..._modes import using
from ...tensor._functions.creation import empty
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..parameter import later_parameter, make_parameter
from .lazy import LazyModuleMixin
from .module import Module


class Identity(Module):
    """Returns its input.

    Args:
        *args: ignored
        **kwargs: ignored

    Example:
        >>> nn.Identity()(torch.tensor([1, 2]))
        tensor([1, 2])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """Computes x @ weight.T + bias over the last dimension.

    Args:
        in_features: the size of the last dimension of the input
        out_features: that of the output
        bias: whether there is a bias
        device: where the parameters are
        dtype: their dtype

    Shape:
        (..., in_features) to (..., out_features).

    Example:
        >>> layer = nn.Linear(3, 2)
        >>> layer(torch.ones(5, 3)).shape
        torch.Size([5, 2])
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
    """

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Tensor
    bias: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = make_parameter(empty((out_features, in_features), device=device, dtype=dtype))
        bias_or_none = make_parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", bias_or_none)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        own = self._parameters
        try:  # where they are as a rule: `self.weight` asks several places first
            weight, bias = own["weight"], own["bias"]
        except KeyError:
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under torch's name for one that its quantisation leaves alone."""


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that takes `in_features` from its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = later_parameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = later_parameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weights and bias again, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Give weights and bias their shapes."""
        if self.has_uninitialized_params():
            with using(grad=False):
                self.in_features = input.shape[-1]
                weight: Any = self.weight
                weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    bias: Any = self.bias
                    bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class Bilinear(Module):
    """Computes x1 @ weight[k] @ x2 + bias[k] for every output k."""

    __constants__ = ["in1_features", "in2_features", "out_features"]
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = make_parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        bias_or_none = make_parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", bias_or_none)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and bias again."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]  # the fourth is torch's own, not a name of nn
