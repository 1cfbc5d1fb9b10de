"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..._warnings import warn
from ...tensor._functions.creation import empty
from ...tensor._functions.elementwise import sigmoid, tanh
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..parameter import make_parameter
from ._multihead import MultiheadAttention
from ._named_init import NamedInit
from .module import Module


class _InPlace(NamedInit, Module):
    """An activation without parameters that may write in place."""

    __constants__ = ["inplace"]  # noqa: RUF012 - torch's
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _and_in_place(text: str, inplace: bool) -> str:
    return f"{text}, inplace=True" if inplace else text


class Threshold(Module):
    """Replaces what does not exceed a threshold by a value."""

    __constants__ = ["threshold", "value", "inplace"]  # noqa: RUF012 - torch's

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _and_in_place(f"threshold={self.threshold}, value={self.value}", self.inplace)


class ReLU(_InPlace):
    """Replaces what is negative by 0."""

    def forward(self, input: Any) -> Any:
        return F.relu(input, self.inplace)


class RReLU(Module):
    """Multiplies by a slope where x is not positive: drawn in training, else the middle of the interval."""

    __constants__ = ["lower", "upper", "inplace"]  # noqa: RUF012 - torch's

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _and_in_place(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(Module):
    """Limits to an interval; its ends pass no gradient."""

    __constants__ = ["min_val", "max_val", "inplace"]  # noqa: RUF012 - torch's

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _and_in_place(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """Limits to the interval from 0 to 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """Computes 1 / (1 + exp(-x))."""

    def forward(self, input: Any) -> Any:
        return sigmoid(input)


class Tanh(Module):
    """Computes the hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        return tanh(input)


class Hardsigmoid(_InPlace):
    """Rises from 0 at -3 to 1 at 3."""

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InPlace):
    """Multiplies by a ramp from -3 to 3."""

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class SiLU(_InPlace):
    """Multiplies by the sigmoid."""

    def forward(self, input: Any) -> Any:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """Multiplies by the hyperbolic tangent of softplus."""

    def forward(self, input: Any) -> Any:
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """Computes elu with the scales that keep mean and variance."""

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class ELU(Module):
    """Computes alpha (exp(x) - 1) where x is negative."""

    __constants__ = ["alpha", "inplace"]  # noqa: RUF012 - torch's

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _and_in_place(f"alpha={self.alpha}", self.inplace)


class CELU(ELU):
    """Computes alpha (exp(x / alpha) - 1) where x is negative."""

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """Multiplies by a slope where x is negative."""

    __constants__ = ["inplace", "negative_slope"]  # noqa: RUF012 - torch's

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _and_in_place(f"negative_slope={self.negative_slope}", self.inplace)


class PReLU(Module):
    """Multiplies by a weight where x is negative: one for all, or one for each channel."""

    __constants__ = ["num_parameters"]  # noqa: RUF012 - torch's
    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = make_parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Give all weights their initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """Multiplies the first half of a dimension by the sigmoid of the second."""

    __constants__ = ["dim"]  # noqa: RUF012 - torch's

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Multiplies by the normal distribution function, or by its approximation by `tanh`."""

    __constants__ = ["approximate"]  # noqa: RUF012 - torch's

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Replaces what lies between -lambd and lambd by 0."""

    __constants__ = ["lambd"]  # noqa: RUF012 - torch's

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """Moves towards 0 by `lambd`."""

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """Computes x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """Computes the logarithm of the sigmoid."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softplus(Module):
    """Computes log(1 + exp(beta x)) / beta, and x itself beyond a threshold."""

    __constants__ = ["beta", "threshold"]  # noqa: RUF012 - torch's

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """Computes x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class _Along(NamedInit, Module):
    """An activation along a dimension."""

    __constants__ = ["dim"]  # noqa: RUF012 - torch's
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_Along):
    """Normalises exponentials of the negative along a dimension."""

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_Along):
    """Normalises exponentials along a dimension."""

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_Along):
    """Computes the logarithm of softmax along a dimension."""

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Normalises exponentials over the channels of images."""

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip
