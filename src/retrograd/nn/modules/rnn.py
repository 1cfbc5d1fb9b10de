"""Recurrent networks: RNN, LSTM and GRU, and their cells."""

from __future__ import annotations

import math
import numbers
from typing import Any

from ..._modes import current_mode
from ..._warnings import warn
from ...tensor._functions.creation import empty, zeros
from ...tensor._tensor import Tensor
from .. import init
from ..functional import _torch_recurrent as recurrent
from ..parameter import make_parameter
from ..utils.rnn import PackedSequence
from .module import Module

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """A recurrent network: layers, each in one or two directions, over sequences or packed sequences.

    `forward` of a subclass runs it; see RNN, LSTM and GRU.
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                named = self._shapes_of(layer)
                for name, shape in named.items():
                    setattr(self, f"{name}_l{layer}{suffix}", make_parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in named])
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}"
            )
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _shapes_of(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of one layer's parameters in one direction, in torch's order."""
        gates, output = GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        inputs = output * self._directions if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, inputs), "weight_hh": (gates, output)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    @property
    def _flat_weights(self) -> list[Any]:
        """The parameters in the order of their names: read again, so whatever has replaced one is found."""
        own = self._parameters
        found = [own[name] if name in own else self._replaced(name) for name in self._flat_weights_names]
        if not (given := self.__dict__.get("_given_weights")):
            return found
        return [next((new for old, new in given if old is one), one) for one in found]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        """Compute with other tensors, in the order of the names, until a parameter is replaced; the parameters stay."""
        own = [self._parameters.get(name) for name in self._flat_weights_names]
        self._given_weights = [pair for pair in zip(own, weights, strict=True) if pair[0] is not pair[1]]

    def _replaced(self, name: str) -> Any:
        """Return what stands for a weight that is no longer a parameter: a tensor, as weight_norm leaves it."""
        value = getattr(self, name, None)
        if value is None:  # no AttributeError, which Python would take for one of the property that asks
            raise RuntimeError(
                f"{type(self).__name__} has no weight '{name}': it was deleted\nHint: restore it with "
                f"`layer.{name} = torch.nn.Parameter(...)`."
            )
        return value

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: weights need not lie side by side here."""

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        # torch reads the weights from a list of them as well
        return {**self.__dict__, "_flat_weights": [getattr(self, name, None) for name in self._flat_weights_names]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What torch keeps beside the parameters is read from them here.
        kept = {name: value for name, value in state.items() if name not in ("_flat_weights", "_flat_weight_refs")}
        kept.setdefault("proj_size", 0)
        if "all_weights" in kept:  # of an old file
            kept["_all_weights"] = kept.pop("all_weights")
        super().__setstate__(kept)
        self._flat_weights_names = [name for names in self._all_weights for name in names]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        ordinary = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, value in ordinary.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text

    # ---- what a forward checks ----
    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuse an input of another dtype, rank or size than the layer's."""
        weight = self._flat_weights[0]
        if input.dtype is not weight.dtype and current_mode().autocast is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
                f"\nHint: {type(self).__name__}({self.extra_repr()}) got an input of shape {list(input.shape)}."
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape that an initial hidden state must have."""
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * self._directions, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse an input or a hidden state that does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Bring the batch of a state into another order; None leaves it."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- the steps of a forward ----
    def _no_state(self, input: Any, batch_sizes: Any, width: int) -> Any:
        """Return the state before the first step: zeros."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return zeros((layers, batch, width), dtype=input.dtype, device=input.device)

    def _options(self) -> tuple[Any, ...]:
        """Return what all functions take after the parameters."""
        return self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    def _check_rank(self, input: Any, noun: str = "") -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D {noun}instead")


class _Recurrent(RNNBase):
    """What RNN, LSTM and GRU have in common: how they run over a batch, over one sequence and over packed ones."""

    _noun = ""  # in the message about ranks

    def _function(self) -> Any:
        """Return the function that runs all layers."""
        raise NotImplementedError

    def _no_states(self, input: Any, batch_sizes: Any) -> Any:
        return self._no_state(input, batch_sizes, self.hidden_size)

    def _each_state(self, change: Any, hx: Any) -> Any:
        """Return what a function makes of the state, or of each of the two that LSTM has."""
        return change(hx)

    def _check_state_rank(self, hx: Any, rank: int, kind: str) -> None:
        if hx.dim() != rank:
            raise RuntimeError(f"For {kind} input, hx should also be {rank}-D but got {hx.dim()}-D tensor")

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_rank(input, self._noun)
        unbatched = input.dim() == 2
        batch_dim = 0 if self.batch_first else 1
        if unbatched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._no_states(input, None)
        elif unbatched:
            self._check_state_rank(hx, 2, "unbatched 2-D")
            hx = self._each_state(lambda one: one.unsqueeze(1), hx)
        else:
            self._check_state_rank(hx, 3, "batched 3-D")
        self.check_forward_args(input, hx, None)
        output, *states = self._function()(input, hx, self._flat_weights, *self._options(), self.batch_first)
        if unbatched:
            output, states = output.squeeze(batch_dim), [one.squeeze(1) for one in states]
        return output, tuple(states) if len(states) > 1 else states[0]

    def _forward_packed(self, sequence: PackedSequence, hx: Any) -> tuple[Any, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = sequence
        hx = self._no_states(data, batch_sizes) if hx is None else self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        output, *states = self._function()(data, batch_sizes, hx, self._flat_weights, *self._options())
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(tuple(states) if len(states) > 1 else states[0], unsorted_indices)


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """Reorder a dimension; torch says to use index_select."""
    warn("`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead", FutureWarning)
    return tensor.index_select(dim, permutation)


def _refuse_projections(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(_Recurrent):
    """Layers of h' = tanh or relu of (weight_ih x + bias_ih + weight_hh h + bias_hh)."""

    _noun = "tensor "

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if self.nonlinearity not in modes:
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(modes[self.nonlinearity], *args, **kwargs)

    def _function(self) -> Any:
        return recurrent.rnn_tanh if self.mode == "RNN_TANH" else recurrent.rnn_relu


class GRU(_Recurrent):
    """Layers of gated recurrent units: a reset gate, an update gate and a candidate for the hidden state.

    Args:
        *args: `input_size` and `hidden_size`: how long the vectors of the input and of the state are
        **kwargs: `num_layers`, `bias`, `batch_first` for (N, L, H) instead of (L, N, H), `dropout` between layers, `bidirectional`,
            `device`, `dtype`

    Returns:
        The outputs of the last layer for each step, and the last states.

    Example:
        >>> out, h = nn.GRU(4, 8)(torch.ones(5, 3, 4))
        >>> out.shape, h.shape
        (torch.Size([5, 3, 8]), torch.Size([1, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def _function(self) -> Any:
        return recurrent.gru


class LSTM(_Recurrent):
    """Layers of long short-term memory: the state is a hidden state, which may be projected, and a cell state.

    Args:
        *args: `input_size` and `hidden_size`: how long the vectors of the input and of the state are
        **kwargs: `num_layers`, `bias`, `batch_first` for (N, L, H) instead of (L, N, H), `dropout` between layers, `bidirectional`,
            `proj_size`, `device`, `dtype`

    Returns:
        The outputs of the last layer for each step, and the last states (h, c).

    Example:
        >>> lstm = nn.LSTM(4, 8, num_layers=2, batch_first=True)
        >>> out, (h, c) = lstm(torch.ones(3, 5, 4))
        >>> out.shape, h.shape
        (torch.Size([3, 5, 8]), torch.Size([2, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape that an initial cell state must have."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse an input or states that do not fit."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Bring the batch of both states into another order; None leaves them."""
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _function(self) -> Any:
        return recurrent.lstm

    def _no_states(self, input: Any, batch_sizes: Any) -> tuple[Any, Any]:
        hidden = self._no_state(input, batch_sizes, self.proj_size or self.hidden_size)
        return hidden, self._no_state(input, batch_sizes, self.hidden_size)

    def _each_state(self, change: Any, hx: Any) -> tuple[Any, Any]:
        return change(hx[0]), change(hx[1])

    def _check_state_rank(self, hx: Any, rank: int, kind: str) -> None:
        if hx[0].dim() != rank or hx[1].dim() != rank:
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {rank}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )


class RNNCellBase(Module):
    """The parameters of a cell with `num_chunks` gates."""

    __constants__ = ["input_size", "hidden_size", "bias"]
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

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]
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


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]
