"""Recurrent networks: RNN, LSTM and GRU, and their cells."""

from __future__ import annotations

from typing import Any

from ..._warnings import warn
from ..functional import _recurrent as recurrent
from ..utils.rnn import PackedSequence
from ._rnn_base import RNNBase, RNNOfOneState
from ._rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """Reorder a dimension; torch says to use index_select."""
    warn("`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead", FutureWarning)
    return tensor.index_select(dim, permutation)


def _refuse_projections(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNOfOneState):
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


class GRU(RNNOfOneState):
    """Layers of gated recurrent units: a reset gate, an update gate and a candidate for the hidden state."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def _function(self) -> Any:
        return recurrent.gru


class LSTM(RNNBase):
    """Layers of long short-term memory: the state is a hidden state, which may be projected, and a cell state."""

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

    def _no_states(self, input: Any, batch_sizes: Any) -> tuple[Any, Any]:
        hidden = self._no_state(input, batch_sizes, self.proj_size or self.hidden_size)
        return hidden, self._no_state(input, batch_sizes, self.hidden_size)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_rank(input)
        unbatched = input.dim() == 2
        batch_dim = 0 if self.batch_first else 1
        if unbatched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._no_states(input, None)
        else:
            rank = 2 if unbatched else 3
            if hx[0].dim() != rank or hx[1].dim() != rank:
                kind = "unbatched 2-D" if unbatched else "batched 3-D"
                raise RuntimeError(
                    f"For {kind} input, hx and cx should also be {rank}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                    "tensors"
                )
            if unbatched:
                hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        self.check_forward_args(input, hx, None)
        output, h, c = recurrent.lstm(input, hx, self._flat_weights, *self._options(), self.batch_first)
        if unbatched:
            return output.squeeze(batch_dim), (h.squeeze(1), c.squeeze(1))
        return output, (h, c)

    def _forward_packed(self, sequence: PackedSequence, hx: Any) -> tuple[Any, tuple[Any, Any]]:
        data, batch_sizes, sorted_indices, unsorted_indices = sequence
        hx = self._no_states(data, batch_sizes) if hx is None else self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        output, h, c = recurrent.lstm(data, batch_sizes, hx, self._flat_weights, *self._options())
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden((h, c), unsorted_indices)


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]
