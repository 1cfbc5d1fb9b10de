"""Recurrent layers and cells: `torch.lstm`, `torch.gru` and the like, which torch does not show in nn.functional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import _errors
from ..._core.numpy_namespace import HALVES
from ..._dtypes import CPP_NAMES
from ..._modes import current_mode
from ..._ops import recurrent as ops
from ...overrides import overridable, overridable_as
from ...tensor._functions.creation import zeros_like
from ...tensor._functions.joining import cat, stack
from ...tensor._functions.matrix_checks import scalar_name
from ...tensor._functions.shape import transpose
from ...tensor._functions.splitting import unbind
from ...tensor._recording.fused import by_parts
from ...tensor._recording.record import record
from ...tensor._recording.refusals import refuse

ORDINARY = (np.dtype(np.float32), np.dtype(np.float64))


class _Call(NamedTuple):
    """The arguments of a recurrent function, whichever of its two forms was called."""

    input: Any
    sizes: tuple[int, ...] | None  # of a packed sequence: how many entries each step has
    hx: Any
    params: Sequence[Any]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool


def _read(name: str, states: str, given: tuple[Any, ...], data: Any, batch_sizes: Any) -> _Call:
    """Tell the two forms apart: (input, hx, params, ..., batch_first) and (data, batch_sizes, hx, params, ...)."""
    if isinstance(given[3], (list, tuple)):  # where the first form has a bool
        data, batch_sizes, *rest = given
    elif data is not None:
        rest = [*given[1:8]]
    else:
        rest = [*given[1:]]
    if any(one is None for one in rest):
        kinds = ", ".join(type(one).__name__ for one in given if one is not None)
        options = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
            f" * (Tensor data, Tensor batch_sizes, {states} hx, tuple of Tensors params, {options})\n"
            f" * (Tensor input, {states} hx, tuple of Tensors params, {options}, bool batch_first)\n"
        )
    if data is None:
        return _Call._make((given[0], None, *rest))
    return _Call._make((data, tuple(batch_sizes.tolist()), *rest, False))


def _check_layer(x: Any, state: Any, batch: int, params: Sequence[Any], relu: bool) -> None:
    """Refuse what does not fit together, as torch's products and sums do."""
    w_ih, w_hh = params[:2]
    if x.dtype is not w_ih.dtype or state.dtype is not w_ih.dtype:
        other = x if x.dtype is not w_ih.dtype else state
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {scalar_name(other)} and {scalar_name(w_ih)}"
        )
    _need_one_dtype(params, w_ih)
    _refuse_dtype(x, relu)
    if x.shape[-1] != w_ih.shape[1]:
        rows = x.numel() // max(x.shape[-1], 1)
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {w_ih.shape[1]}x{w_ih.shape[0]})"
        )
    width = w_hh.shape[1]
    if state.shape[-1] != width:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({batch}x{state.shape[-1]} and {w_hh.shape[1]}x{w_hh.shape[0]})"
        )
    if state.shape[0] != batch:
        raise _errors.broadcast_error(tuple(state.shape), (batch, width))


def _need_one_dtype(params: Sequence[Any], w_ih: Any) -> None:
    """Refuse parameters of another dtype than the first, in the words of the product that meets one."""
    dtype = w_ih._array.dtype
    for one in params:
        if one is not None and one._array.dtype is not dtype and one._array.dtype != dtype:
            if one._array.ndim == 1:
                raise RuntimeError(
                    f"self and mat2 must have the same dtype, but got {scalar_name(one)} and {scalar_name(w_ih)}"
                )
            names = [CPP_NAMES[each._array.dtype.name] for each in (w_ih, one)]
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}")


def _refuse_dtype(x: Any, relu: bool) -> None:
    """Refuse a dtype that torch's products or activations do not support."""
    refuse("mm", x.dtype.numpy)
    if relu:
        refuse("relu", x.dtype.numpy)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(x)}")


def _run(call: _Call, operation: Any, hx: Sequence[Any], options: dict[str, Any]) -> tuple[Any, ...]:
    """Run all layers and directions; return the output and the last states, stacked."""
    x = call.input
    if call.batch_first:
        x = transpose(x, 0, 1)
    if not x.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    for state in hx:
        if state.ndim != 3:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    directions = 2 if call.bidirectional else 1
    per_layer = (4 if call.has_biases else 2) + (len(hx) == 2 and hx[0].shape[2] != hx[1].shape[2])
    if len(call.params) % per_layer:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if directions == 2 and (hx[0].shape[0] % 2 or len(call.params) // per_layer % 2):
        raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
    if hx[0].shape[0] < call.num_layers * directions or len(call.params) < per_layer * call.num_layers * directions:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    # Of half precision torch rounds every number of every step, except in LSTM.
    run = by_parts if x.dtype.numpy in HALVES and not operation.widens else record
    states = list(zip(*[unbind(one, 0) for one in hx], strict=True))
    batch = x.shape[1] if call.sizes is None else call.sizes[0]
    last = []
    for layer in range(call.num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            params = list(call.params[at * per_layer : (at + 1) * per_layer])
            _check_layer(x, states[at][0], batch, params, options.get("relu", False))
            if not call.has_biases:
                params[2:2] = [None, None]
            if operation is ops.lstm_layer and len(params) == 4:
                params.append(None)
            params_of_call = {**options, "sizes": call.sizes, "reverse": direction == 1}
            output, *state = run(operation, (x, *states[at], *params), params_of_call)
            outputs.append(output)
            last.append(state)
        x = outputs[0] if directions == 1 else cat(outputs, outputs[0].ndim - 1)
        if call.dropout and call.train and layer < call.num_layers - 1:
            from ._dropout import dropout

            x = dropout(x, call.dropout, True)
    if call.batch_first:
        x = transpose(x, 0, 1)
    return (x, *[stack(one) for one in zip(*last, strict=True)])


def _layers(name: str, operation: Any, options: dict[str, Any], what: str, lowered: str) -> Any:
    """Make the function that runs layers; the state of LSTM is two tensors, that of the others one."""
    two = operation is ops.lstm_layer

    def run(
        input: Any = None,
        hx: Any = None,
        params: Any = None,
        has_biases: Any = None,
        num_layers: Any = None,
        dropout: Any = None,
        train: Any = None,
        bidirectional: Any = None,
        batch_first: Any = None,
        *,
        data: Any = None,
        batch_sizes: Any = None,
    ) -> Any:
        given = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        call = _read(name, "tuple of Tensors" if two else "Tensor", given, data, batch_sizes)
        if two and len(call.hx) != 2:
            raise RuntimeError(f"{name} expects two hidden states")
        if "cpu" not in lowered and current_mode().autocast is not None:
            own = call.hx.dtype
            call = call._replace(input=call.input.to(own), params=[one.to(own) for one in call.params])
        return _run(call, operation, call.hx if two else (call.hx,), options)

    results = "the output, the last hidden states and cell states" if two else "the output and the last hidden states"
    doc = f"Run layers of {what} over a sequence, or over a packed one: {results}."
    return overridable_as(name, run, doc, lowered=lowered)


lstm = _layers("lstm", ops.lstm_layer, {}, "LSTM", lowered="cpu cuda")
gru = _layers("gru", ops.gru_layer, {}, "GRU", lowered="cuda")
rnn_tanh = _layers("rnn_tanh", ops.rnn_layer, {"relu": False}, "RNN with tanh", lowered="cpu cuda")
rnn_relu = _layers("rnn_relu", ops.rnn_layer, {"relu": True}, "RNN with relu", lowered="cpu cuda")


# ---- cells ----
def _two_dims(array: Any) -> tuple[int, int]:
    shape = array.shape
    if len(shape) < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    return shape[0], shape[1]


def _cell(
    name: str, operation: Any, gates: int, x: Any, states: Sequence[Any], weights: Any, options: dict[str, Any]
) -> Any:
    """Check one step and run it."""
    w_ih, w_hh, b_ih, b_hh = weights
    first, second = w_ih._array, w_hh._array  # arrays tell their shapes and dtypes in a tenth of a tensor's time
    batch, inputs = _two_dims(x._array)
    rows, hidden = second.shape
    if inputs != first.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {inputs} expected {first.shape[1]}")
    for k, state in enumerate(states):
        array = state._array
        if array.ndim and array.shape[0] != batch:
            raise RuntimeError(f"Input batch size {batch} doesn't match hidden{k} batch size {array.shape[0]}")
        if _two_dims(array)[1] != hidden:
            raise RuntimeError(f"hidden{k} has inconsistent hidden_size: got {array.shape[1]}, expected {hidden}")
    for argument, count in (("weight_ih", first.shape[0]), ("weight_hh", rows)):
        if count != gates * hidden:
            raise RuntimeError(
                f"{argument} first dim must be {gates} * hidden_size = {gates * hidden}, but got {count}"
            )
    dtype = first.dtype
    for value in (x, *states):
        if value._array.dtype != dtype:
            if current_mode().autocast is not None:
                own = states[0].dtype
                own_weights = [one if one is None else one.to(own) for one in weights]
                return _cell(name, operation, gates, x.to(own), [one.to(own) for one in states], own_weights, options)
            raise RuntimeError(
                f"mat1 and mat2 must have the same dtype, but got {scalar_name(value)} and {scalar_name(w_ih)}"
            )
    _need_one_dtype(weights, w_ih)
    if dtype not in ORDINARY:
        _refuse_dtype(x, options.get("relu", False))
    for bias in (b_ih, b_hh):
        if bias is not None and bias._array.shape[-1] != rows:
            raise RuntimeError(
                f"The expanded size of the tensor ({rows}) must match the existing size ({bias.shape[-1]}) at "
                f"non-singleton dimension 1.  Target sizes: [{batch}, {rows}].  Tensor sizes: {list(bias.shape)}"
            )
    if (b_ih is None) != (b_hh is None):
        b_ih, b_hh = (zeros_like(b_hh), b_hh) if b_ih is None else (b_ih, zeros_like(b_ih))
    return record(operation, (x, *states, w_ih, w_hh, b_ih, b_hh), options)


@overridable
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Run one step of LSTM: the new hidden state and cell state."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm_cell", ops.lstm_cell, 4, input, hx, (w_ih, w_hh, b_ih, b_hh), {})


@overridable
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Run one step of GRU: the new hidden state."""
    return _cell("gru_cell", ops.gru_cell, 3, input, (hx,), (w_ih, w_hh, b_ih, b_hh), {})


@overridable(lowered="cpu cuda")
def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Run one step of RNN with tanh: the new hidden state."""
    return _cell("rnn_tanh_cell", ops.rnn_cell, 1, input, (hx,), (w_ih, w_hh, b_ih, b_hh), {"relu": False})


@overridable(lowered="cpu cuda")
def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Run one step of RNN with relu: the new hidden state."""
    return _cell("rnn_relu_cell", ops.rnn_cell, 1, input, (hx,), (w_ih, w_hh, b_ih, b_hh), {"relu": True})
