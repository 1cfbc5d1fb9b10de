"""Recurrent cells: one step of a batch.

Gates lie as (gates, hidden, batch): a weight then multiplies from the left, where BLAS wants its rows as they are, and every gate
is a stretch of memory.
"""

from __future__ import annotations

import numpy as np

from .._core.fused import fused
from .._core.passes import ones
from .recurrent import share_of
from .recurrent_gru import gru_step
from .recurrent_lstm import lstm_step


def _share(xp, weight, rows, bias):
    """Return the share of an input, or of a hidden state, in the gates: (gates x hidden, batch)."""
    out = xp.module.matmul(weight, xp.module.ascontiguousarray(rows.T))
    if bias is not None:
        out += bias[:, None]
    return out


def _summed_shares(xp, x, h, w_ih, w_hh, b_ih, b_hh):
    out = _share(xp, w_ih, x, None if b_ih is None else b_ih + b_hh)
    out += xp.module.matmul(w_hh, xp.module.ascontiguousarray(h.T))
    return out


def _halve(module, gates):
    """Prepare gates for the sigmoid by tanh: see Note [Recurrent layers]."""
    module.multiply(gates, 0.5, gates)


def _finish(module, gates):
    """Make sigmoids of the tanh of halves."""
    module.multiply(gates, 0.5, gates)
    module.add(gates, 0.5, gates)


def _sum_of_batch(xp, rows):
    """Sum gradients of gates over the batch; on the CPU by BLAS."""
    if xp.module is np:
        return rows.dot(ones(rows.shape[1], rows.dtype))
    return rows.sum(axis=1)


def _pull_back_shares(xp, needed, on_input, on_hidden, x, h, w_ih, w_hh):
    """Return the gradients of the input, the hidden state, the weights and the biases from those of the gates."""
    matmul = xp.module.matmul
    db_ih = _sum_of_batch(xp, on_input) if needed[4] else None
    if not needed[5]:
        db_hh = None
    elif on_hidden is on_input and db_ih is not None:
        db_hh = db_ih.copy()
    else:
        db_hh = _sum_of_batch(xp, on_hidden)
    return (
        matmul(on_input.T, w_ih) if needed[0] else None,
        matmul(on_hidden.T, w_hh) if needed[1] else None,
        matmul(on_input, x) if needed[2] else None,
        matmul(on_hidden, h) if needed[3] else None,
        db_ih,
        db_hh,
    )


# ---- LSTM ----
@fused("LstmCellBackward0", outputs=2, unread=("b_ih", "b_hh"))
def lstm_cell(xp, x, h, c, w_ih, w_hh, b_ih, b_hh):
    """Return the new hidden state and cell state."""
    module = xp.module
    gates = _summed_shares(xp, x, h, w_ih, w_hh, b_ih, b_hh)
    gates = gates.reshape(4, w_hh.shape[1], x.shape[0])
    for sigmoids in (gates[:2], gates[3]):
        _halve(module, sigmoids)
    module.tanh(gates, gates)
    for sigmoids in (gates[:2], gates[3]):
        _finish(module, sigmoids)
    i, f, g, o = gates
    cell = module.multiply(f, c.T)
    cell += i * g
    c_new, h_new = module.empty(c.shape, c.dtype), module.empty(h.shape, h.dtype)
    c_new.T[...] = cell
    module.tanh(cell, cell)
    module.multiply(o, cell, h_new.T)
    return (h_new, c_new), (gates, cell)


@lstm_cell.backward
def _(xp, grads, needed, residuals, x, h, c, w_ih, w_hh, b_ih, b_hh):
    module = xp.module
    multiply, subtract = module.multiply, module.subtract
    gates, tanh_c = residuals
    i, f, g, o = gates
    dgates = multiply(gates, gates)
    subtract(gates[:2], dgates[:2], dgates[:2])
    subtract(1, dgates[2], dgates[2])
    subtract(o, dgates[3], dgates[3])
    dh, dc = (None if grad is None else grad.T for grad in grads)
    if dh is None:
        dgates[3] = 0
    else:
        through = multiply(tanh_c, tanh_c)
        subtract(1, through, through)
        through *= o
        through *= dh
        dc = through if dc is None else module.add(through, dc, through)
        dgates[3] *= tanh_c
        dgates[3] *= dh
    dgates[0] *= g
    multiply(dgates[1], c.T, dgates[1])
    dgates[2] *= i
    dgates[:3] *= dc
    rows = dgates.reshape(w_hh.shape[0], x.shape[0])
    dx, dh, *dweights = _pull_back_shares(xp, (*needed[:2], *needed[3:]), rows, rows, x, h, w_ih, w_hh)
    return dx, dh, (dc * f).T if needed[2] else None, *dweights


@lstm_cell.decomposition
def _(xp, x, h, c, w_ih, w_hh, b_ih, b_hh):
    return lstm_step(xp, share_of(xp, x, w_ih, b_ih) + share_of(xp, h, w_hh, b_hh), c)


# ---- GRU ----
@fused("GruCellBackward0", unread=("b_ih", "b_hh"))
def gru_cell(xp, x, h, w_ih, w_hh, b_ih, b_hh):
    """Return the new hidden state."""
    module = xp.module
    gates = _share(xp, w_ih, x, b_ih).reshape(3, w_hh.shape[1], x.shape[0])
    own = _share(xp, w_hh, h, b_hh).reshape(3, w_hh.shape[1], x.shape[0])
    sigmoids, n = gates[:2], gates[2]
    sigmoids += own[:2]
    _halve(module, sigmoids)
    module.tanh(sigmoids, sigmoids)
    _finish(module, sigmoids)
    n += sigmoids[0] * own[2]
    module.tanh(n, n)
    beyond = module.subtract(h.T, n)
    out = module.empty(h.shape, h.dtype)
    module.add(beyond * sigmoids[1], n, out.T)
    return out, (gates, own[2], beyond)


@gru_cell.backward
def _(xp, grad, needed, residuals, x, h, w_ih, w_hh, b_ih, b_hh):
    module = xp.module
    multiply, subtract = module.multiply, module.subtract
    gates, q, beyond = residuals
    r, z = gates[:2]
    g = grad.T.copy()
    on_input = multiply(gates, gates)
    subtract(gates[:2], on_input[:2], on_input[:2])
    dr, dz, dn = on_input
    subtract(1, dn, dn)
    dz *= beyond
    dz *= g
    direct = g * z
    g -= direct
    dn *= g
    dr *= q
    dr *= dn
    on_hidden = on_input.copy()
    on_hidden[2] *= r
    sides = (one.reshape(w_hh.shape[0], x.shape[0]) for one in (on_input, on_hidden))
    dx, dh, *dweights = _pull_back_shares(xp, needed, *sides, x, h, w_ih, w_hh)
    if dh is not None:
        dh += direct.T
    return dx, dh, *dweights


@gru_cell.decomposition
def _(xp, x, h, w_ih, w_hh, b_ih, b_hh):
    return gru_step(xp, share_of(xp, x, w_ih, b_ih), share_of(xp, h, w_hh, b_hh), h)


# ---- RNN ----
@fused("RnnCellBackward0", unread=("b_ih", "b_hh"))
def rnn_cell(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, relu):
    """Return the new hidden state."""
    module = xp.module
    state = _summed_shares(xp, x, h, w_ih, w_hh, b_ih, b_hh)
    if relu:
        module.maximum(state, 0, out=state)
    else:
        module.tanh(state, state)
    return state.T.copy(), (state,)


@rnn_cell.backward
def _(xp, grad, needed, residuals, x, h, w_ih, w_hh, b_ih, b_hh, *, relu):
    (state,) = residuals
    if relu:
        rows = xp.module.multiply(state > 0, grad.T)
    else:
        rows = state * state
        xp.module.subtract(1, rows, rows)
        rows *= grad.T
    return _pull_back_shares(xp, needed, rows, rows, x, h, w_ih, w_hh)


@rnn_cell.decomposition
def _(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, relu):
    return (xp.relu if relu else xp.tanh)(share_of(xp, x, w_ih, b_ih) + share_of(xp, h, w_hh, b_hh))
