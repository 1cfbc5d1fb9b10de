"""Recurrent cells: modules of one step."""

from __future__ import annotations

import math
from typing import Any

from ...tensor._functions.creation import empty, zeros
from ...tensor._tensor import Tensor
from .. import init
from ..functional import _recurrent as recurrent
from ..parameter import make_parameter
from .module import Module


class RNNCellBase(Module):
    """The parameters of a cell with `num_chunks` gates."""

    __constants__ = ["input_size", "hidden_size", "bias"]  # noqa: RUF012 - torch's
    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = make_parameter(empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = make_parameter(empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            if bias:
                setattr(self, name, make_parameter(empty(gates, device=device, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _weights(self) -> tuple[Any, Any, Any, Any]:
        own = self._parameters
        try:  # where they are as a rule: `self.weight_ih` asks several places first
            return own["weight_ih"], own["weight_hh"], own["bias_ih"], own["bias_hh"]
        except KeyError:
            return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_rank(self, value: Any, name: str) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {value.dim()}D instead")

    def _step(self, function: Any, input: Any, hx: Any) -> Any:
        """Run one step of a cell whose state is one tensor; vectors are batches of one."""
        self._check_rank(input, "input")
        if hx is not None:
            self._check_rank(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        out = function(input, hx, *self._weights())
        return out if batched else out.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an RNN: nonlinearity(weight_ih x + bias_ih + weight_hh h + bias_hh)."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]  # noqa: RUF012 - torch's
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(
            recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell, input, hx
        )


class LSTMCell(RNNCellBase):
    """One step of an LSTM; its state is a hidden state and a cell state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        self._check_rank(input, "input")
        if hx is not None:
            for k, value in enumerate(hx):
                self._check_rank(value, f"hx[{k}]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            state = zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device)
            hx = (state, state)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = recurrent.lstm_cell(input, hx, *self._weights())
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(recurrent.gru_cell, input, hx)
