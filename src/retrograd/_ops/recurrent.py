"""Recurrent layers in one direction over a whole sequence, and recurrent cells, which take one step of a batch.

Note [Recurrent layers]
A layer in one direction is one fused operation. Its inputs are projected for all steps by one product; the loop over steps then
has one product and a few elementwise calls, each into memory that was made before the loop. Two layouts matter, because the
calls are on few numbers:
- within the loop gates come first, (gates, batch, hidden): each gate is a stretch of memory, and so are neighbouring gates;
- gradients of the gates lie in rows, (step and batch, gates x hidden), so that one product makes the gradient of a weight.
A sigmoid is computed as (1 + tanh(x / 2)) / 2: one call of tanh serves all gates, and the weights have been halved before.
What the backward multiplies gradients with is computed for all steps at once, so its loop is as short.
"""

from __future__ import annotations

import numpy as np

from .._core.fused import fused
from .._core.passes import ones
from .._core.primitive import stack
from . import affine, elementwise, index, shape  # noqa: F401 - the words of decompositions


# ---- how a layer walks along its sequence, and how weights and gradients lie ----
class Walk:
    """The order of the steps, and what each of them reads and writes.

    `sizes` is None where every step has the whole batch. In a packed sequence it holds the number of entries of each step, which
    never grows; x then has a row for every step and entry, and buffers of states have unused rows.
    """

    __slots__ = ("batch", "reverse", "rows", "sizes", "steps")

    def __init__(self, x, sizes, reverse):
        self.sizes, self.reverse = sizes, reverse
        if sizes is None:
            self.steps, self.batch = x.shape[:2]
            self.rows = self.steps * self.batch
        else:
            self.steps, self.batch, self.rows = len(sizes), sizes[0], x.shape[0]

    def around(self, states):
        """Part states, one more than steps, into what each step reads and what it writes."""
        return (states[1:], states[:-1]) if self.reverse else (states[:-1], states[1:])

    def start(self, states, first):
        """Put the first state where the first step reads it; entries that begin later find it there too."""
        if self.sizes is None:
            states[-1 if self.reverse else 0] = first
        else:
            states[...] = first

    def states(self, array):
        """Return what each step uses of an array (steps, ..., batch, width), in the order of the walk."""
        views = list(array)
        if self.sizes is not None:
            views = [view[..., :size, :] for view, size in zip(views, self.sizes, strict=True)]
        return views[::-1] if self.reverse else views

    def entries(self, array):
        """Return what each step uses of one array (..., batch, width) that all steps share."""
        if self.sizes is None:
            return [array] * self.steps
        views = [array[..., :size, :] for size in self.sizes]
        return views[::-1] if self.reverse else views

    def parts(self, array):
        """Return what each step uses of an array (rows, width) or (gates, rows, width), in the order of the walk."""
        if self.sizes is None:
            split = array.reshape(*array.shape[:-2], self.steps, self.batch, array.shape[-1])
            views = list(split if split.ndim == 3 else split.swapaxes(0, 1))
        else:
            views, start = [], 0
            for size in self.sizes:
                views.append(array[..., start : start + size, :])
                start += size
        return views[::-1] if self.reverse else views

    def joined(self, module, array):
        """Return the used entries of an array (steps, batch, width) as rows."""
        if self.sizes is None:
            return array.reshape(self.rows, array.shape[-1])
        return module.concatenate([one[:size] for one, size in zip(array, self.sizes, strict=True)])

    def output(self, module, written):
        """Return the states of all steps in memory of their own, shaped as the input."""
        return written.copy() if self.sizes is None else self.joined(module, written)

    def last(self, written):
        """Return every entry's state after its last step."""
        if self.reverse:
            return written[0].copy()
        state = written[-1].copy()
        if self.sizes is not None:
            for k in range(self.steps - 1):
                ended = slice(self.sizes[k + 1], self.sizes[k])
                state[ended] = written[k, ended]
        return state


def gate_major(xp, weight, order, factors):
    """Return a weight (gates x hidden, inputs), or a bias, as (gates, inputs, hidden): gates reordered and scaled."""
    parts = weight.reshape(len(order), -1, *weight.shape[1:])
    out = xp.module.empty((parts.shape[0], *parts.shape[:0:-1]), weight.dtype)
    for k, (source, factor) in enumerate(zip(order, factors, strict=True)):
        xp.module.multiply(parts[source].T, factor, out[k])
    return out


def projected(xp, rows, w_ih, biases, order, factors):
    """Return the share of the inputs in the gates of all steps, (gates, rows, hidden)."""
    shares = xp.module.matmul(rows, gate_major(xp, w_ih, order, factors))
    if biases is not None:
        shares += gate_major(xp, biases, order, factors)[:, None]
    return shares


def rows_of(x):
    """Return the inputs of all steps as rows."""
    return x.reshape(-1, x.shape[-1])


def gradient_by_step(walk, g):
    """Return the gradient of each step's output from the last step to the first; None if there is none."""
    if g is None:
        return [None] * walk.steps
    return walk.parts(rows_of(g))[::-1]


def begun(module, g, like):
    """Return the gradient of a last state in memory of its own, zeros if there is none."""
    return module.zeros_like(like) if g is None else g.copy()


def pull_back_weights(xp, needed, gates, x, w_ih, read, hidden_gates=None):
    """Return the gradients of the input, of both weights and both biases from those of the gates, in rows.

    `read` are the states that the steps have read, in rows. `hidden_gates` are the gradients on the hidden state's side, where
    those differ.
    """
    if hidden_gates is None:
        hidden_gates = gates
    matmul = xp.module.matmul
    dx = matmul(gates, w_ih).reshape(x.shape) if needed[0] else None
    dw_ih = matmul(gates.T, rows_of(x)) if needed[1] else None
    dw_hh = matmul(hidden_gates.T, read) if needed[2] else None
    db_ih = xp.sum(gates, axis=(0,), keepdims=False) if needed[3] else None
    if not needed[4]:
        db_hh = None
    elif hidden_gates is gates and db_ih is not None:
        db_hh = db_ih.copy()
    else:
        db_hh = xp.sum(hidden_gates, axis=(0,), keepdims=False)
    return dx, dw_ih, dw_hh, db_ih, db_hh


# ---- the same in words of xp ----
def share_of(xp, x, weight, bias):
    """Return the share of an input in gates: the product with a weight's transpose, and a bias, if there is one."""
    return xp.linear_map(x, weight) if bias is None else xp.affine(bias, x, weight)


def gates_of(xp, x, count):
    """Cut rows of gates into gates."""
    width = x.shape[-1] // count
    return [xp.getitem(x, index=(slice(None), slice(k * width, (k + 1) * width))) for k in range(count)]


def step_by_step(xp, x, states, step, sizes, reverse):
    """Run `step(x, *states)`, which returns the new states, along a sequence; return all first states and the last of each."""
    if sizes is None:
        sizes = (x.shape[1],) * x.shape[0]
        inputs = [xp.getitem(x, index=(k,)) for k in range(len(sizes))]
    else:
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        inputs = [xp.getitem(x, index=(slice(a, a + n),)) for a, n in zip(starts, sizes, strict=True)]
    packed = len(x.shape) == 2
    outputs = []
    for k in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        here, beyond = (slice(sizes[k]),), (slice(sizes[k], None),)
        if sizes[k] == sizes[0]:
            states = step(inputs[k], *states)
            outputs.append(states[0])
        else:
            made = step(inputs[k], *[xp.getitem(state, index=here) for state in states])
            outputs.append(made[0])
            states = [
                xp.concat(new, xp.getitem(old, index=beyond), axis=0) for new, old in zip(made, states, strict=True)
            ]
    if reverse:
        outputs.reverse()
    return (xp.concat(*outputs, axis=0) if packed else stack(outputs), *states)


# ---- layers: RNN with tanh or relu ----
@fused("RnnBackward0", outputs=2, widens=False, unread=("b_ih", "b_hh"))
def rnn_layer(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, relu, sizes, reverse):
    """Return the hidden states of all steps and the last one."""
    module = xp.module
    walk = Walk(x, sizes, reverse)
    shares = module.matmul(rows_of(x), w_ih.T)
    if b_ih is not None:
        shares += b_ih + b_hh
    recurrent = module.ascontiguousarray(w_hh.T)
    states = module.empty((walk.steps + 1, walk.batch, w_hh.shape[1]), x.dtype)
    walk.start(states, h)
    read, written = walk.around(states)
    for share, h_read, h_written in zip(walk.parts(shares), walk.states(read), walk.states(written), strict=True):
        module.matmul(h_read, recurrent, out=h_written)
        module.add(h_written, share, h_written)
        if relu:
            module.maximum(h_written, 0, out=h_written)
        else:
            module.tanh(h_written, h_written)
    return (walk.output(module, written), walk.last(written)), (states,)


@rnn_layer.backward
def _(xp, g, needed, residuals, x, h, w_ih, w_hh, b_ih, b_hh, *, relu, sizes, reverse):
    module = xp.module
    (states,) = residuals
    walk = Walk(x, sizes, reverse)
    read, written = walk.around(states)
    rows = module.empty((walk.rows, h.shape[-1]), states.dtype)
    slopes = (written > 0).astype(states.dtype) if relu else 1 - written * written
    dh = begun(module, g[1], h)
    for arrived, dh_now, slope, row in zip(
        gradient_by_step(walk, g[0]),
        walk.entries(dh)[::-1],
        walk.states(slopes)[::-1],
        walk.parts(rows)[::-1],
        strict=True,
    ):
        if arrived is not None:
            module.add(dh_now, arrived, dh_now)
        module.multiply(dh_now, slope, row)
        module.matmul(row, w_hh, out=dh_now)
    dx, *dweights = pull_back_weights(xp, (needed[0], *needed[2:]), rows, x, w_ih, walk.joined(module, read))
    return dx, dh, *dweights


@rnn_layer.decomposition
def _(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, relu, sizes, reverse):
    squash = xp.relu if relu else xp.tanh

    def step(share, h):
        return (squash(share + share_of(xp, h, w_hh, b_hh)),)

    return step_by_step(xp, share_of(xp, x, w_ih, b_ih), (h,), step, sizes, reverse)


# ---- layers: LSTM ----
# torch's gates are i, f, g, o; ours i, f, o, g: sigmoids first
LSTM_ORDER, LSTM_FACTORS = (0, 1, 3, 2), (0.5, 0.5, 0.5, 1)
I, F, O, G, C, TANH_C = range(6)  # noqa: E741 - what a step keeps; C is the cell state it reads


@fused("MkldnnRnnLayerBackward0", outputs=3, unread=("b_ih", "b_hh"))
def lstm_layer(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    """Return the hidden states of all steps, the last one and the last cell state."""
    module = xp.module
    add, multiply, tanh, matmul = module.add, module.multiply, module.tanh, module.matmul
    walk = Walk(x, sizes, reverse)
    steps, batch, hidden = walk.steps, walk.batch, w_hh.shape[0] // 4
    shares = projected(xp, rows_of(x), w_ih, None if b_ih is None else b_ih + b_hh, LSTM_ORDER, LSTM_FACTORS)
    recurrent = gate_major(xp, w_hh, LSTM_ORDER, LSTM_FACTORS)
    kept = module.empty((steps + 1, 6, batch, hidden), x.dtype)
    states = module.empty((steps + 1, batch, w_hh.shape[1]), x.dtype)
    walk.start(kept[:, C], c)
    walk.start(states, h)
    mine, following = walk.around(kept)
    read, written = walk.around(states)
    projection = None if w_hr is None else w_hr.T
    for share, own, h_read, h_written, c_written, gates, pair in zip(
        walk.parts(shares),
        walk.states(mine),
        walk.states(read),
        walk.states(written),
        walk.states(following[:, C]),
        walk.entries(module.empty((4, batch, hidden), x.dtype)),
        walk.entries(module.empty((2, batch, hidden), x.dtype)),
        strict=True,
    ):
        matmul(h_read, recurrent, out=gates)
        add(gates, share, gates)
        tanh(gates, own[:4])
        sigmoids = own[:3]
        multiply(sigmoids, 0.5, sigmoids)
        add(sigmoids, 0.5, sigmoids)
        multiply(own[:2], own[3:5], pair)  # i g and f c
        add(pair[0], pair[1], c_written)
        tanh_c = own[TANH_C]
        tanh(c_written, tanh_c)
        if projection is None:
            multiply(own[O], tanh_c, h_written)
        else:
            matmul(multiply(own[O], tanh_c, pair[0]), projection, out=h_written)
    return (walk.output(module, written), walk.last(written), walk.last(following[:, C])), (kept, states)


def _lstm_factors(module, kept):
    """Return what multiplies gradients: the cell's in gates i, f and g and the output's in o; then the output's in the cell.

    Every slope is made where it will stay: memory that is touched for the first time costs more than these calls.
    """
    multiply, subtract = module.multiply, module.subtract
    out = module.empty((kept.shape[0], 4, *kept.shape[2:]), kept.dtype)
    of_cell = module.empty((kept.shape[0], *kept.shape[2:]), kept.dtype)
    for slope, sigmoid, factor in (
        (out[:, :2], kept[:, :2], kept[:, G : G + 2]),  # i' g and f' c
        (out[:, 3], kept[:, O], kept[:, TANH_C]),
    ):
        multiply(sigmoid, sigmoid, slope)
        subtract(sigmoid, slope, slope)
        multiply(slope, factor, slope)
    for slope, tanh, factor in ((out[:, 2], kept[:, G], kept[:, I]), (of_cell, kept[:, TANH_C], kept[:, O])):
        multiply(tanh, tanh, slope)
        subtract(1, slope, slope)
        multiply(slope, factor, slope)
    return out, of_cell


@lstm_layer.backward
def _(xp, g, needed, residuals, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    module = xp.module
    add, multiply, matmul = module.add, module.multiply, module.matmul
    kept, states = residuals
    walk = Walk(x, sizes, reverse)
    mine, read = walk.around(kept)[0], walk.around(states)[0]
    hidden = kept.shape[-1]
    factors, of_cell = _lstm_factors(module, mine)
    rows = module.empty((walk.rows, 4 * hidden), kept.dtype)
    dh, dc = begun(module, g[1], h), begun(module, g[2], c)
    room, inner = module.empty((2, *dc.shape), kept.dtype)
    totals = None if w_hr is None else module.empty((walk.rows, dh.shape[-1]), kept.dtype)
    for arrived, total, dh_now, dc_now, inner_now, room_now, factor, cell, forget, row, gates in zip(
        gradient_by_step(walk, g[0]),
        gradient_by_step(walk, totals),
        walk.entries(dh)[::-1],
        walk.entries(dc)[::-1],
        walk.entries(inner)[::-1],
        walk.entries(room)[::-1],
        walk.states(factors)[::-1],
        walk.states(of_cell)[::-1],
        walk.states(mine[:, F])[::-1],
        walk.parts(rows)[::-1],
        walk.parts(rows.reshape(walk.rows, 4, hidden).swapaxes(0, 1))[::-1],
        strict=True,
    ):
        if arrived is not None:
            add(dh_now, arrived, dh_now)
        if total is None:
            inner_now = dh_now
        else:
            total[...] = dh_now
            matmul(dh_now, w_hr, out=inner_now)
        multiply(inner_now, cell, room_now)
        add(dc_now, room_now, dc_now)
        multiply(factor[:3], dc_now, gates[:3])
        multiply(factor[3], inner_now, gates[3])
        multiply(dc_now, forget, dc_now)
        matmul(row, w_hh, out=dh_now)
    dx, *dweights = pull_back_weights(xp, (needed[0], *needed[3:7]), rows, x, w_ih, walk.joined(module, read))
    dw_hr = matmul(totals.T, walk.joined(module, mine[:, O] * mine[:, TANH_C])) if needed[7] else None
    return dx, dh, dc, *dweights, dw_hr


def lstm_step(xp, gates, c, w_hr=None):
    """Return the hidden state and the cell state that gates, before their sigmoids, make of a cell state."""
    i, f, g, o = gates_of(xp, gates, 4)
    c = xp.sigmoid(f) * c + xp.sigmoid(i) * xp.tanh(g)
    h = xp.sigmoid(o) * xp.tanh(c)
    return (h if w_hr is None else share_of(xp, h, w_hr, None)), c


@lstm_layer.decomposition
def _(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    def step(share, h, c):
        return lstm_step(xp, share + share_of(xp, h, w_hh, b_hh), c, w_hr)

    return step_by_step(xp, share_of(xp, x, w_ih, b_ih), (h, c), step, sizes, reverse)


# ---- layers: GRU ----
GRU_ORDER, GRU_FACTORS = (0, 1, 2), (0.5, 0.5, 1)
R, Z, N, Q = range(4)  # what a step keeps: both gates, the candidate, and the hidden state's share in it


@fused("GruBackward0", outputs=2, widens=False, unread=("b_ih", "b_hh"))
def gru_layer(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, sizes, reverse):
    """Return the hidden states of all steps and the last one."""
    module = xp.module
    add, multiply, subtract, tanh = module.add, module.multiply, module.subtract, module.tanh
    walk = Walk(x, sizes, reverse)
    steps, batch, hidden = walk.steps, walk.batch, w_hh.shape[1]
    biases = b_q = None
    if b_ih is not None:
        biases, b_q = b_ih.copy(), b_hh[2 * hidden :]
        biases[: 2 * hidden] += b_hh[: 2 * hidden]
    shares = projected(xp, rows_of(x), w_ih, biases, GRU_ORDER, GRU_FACTORS)
    recurrent = gate_major(xp, w_hh, GRU_ORDER, GRU_FACTORS)
    kept = module.empty((steps, 4, batch, hidden), x.dtype)
    states = module.empty((steps + 1, batch, hidden), x.dtype)
    walk.start(states, h)
    read, written = walk.around(states)
    for share, own, h_read, h_written, gates in zip(
        walk.parts(shares),
        walk.states(kept),
        walk.states(read),
        walk.states(written),
        walk.entries(module.empty((3, batch, hidden), x.dtype)),
        strict=True,
    ):
        module.matmul(h_read, recurrent, out=gates)
        sigmoids, n = own[:2], own[N]
        add(gates[:2], share[:2], sigmoids)
        tanh(sigmoids, sigmoids)
        multiply(sigmoids, 0.5, sigmoids)
        add(sigmoids, 0.5, sigmoids)
        q = own[Q]
        if b_q is None:
            q[...] = gates[2]
        else:
            add(gates[2], b_q, q)
        multiply(own[R], q, n)
        add(n, share[2], n)
        tanh(n, n)
        subtract(h_read, n, h_written)
        multiply(h_written, own[Z], h_written)
        add(h_written, n, h_written)
    return (walk.output(module, written), walk.last(written)), (kept, states)


def _gru_factors(module, kept, read):
    """Return what multiplies the gradient of h in q, r, z and n: those on the hidden state's side, then on the input's.

    Every factor is made where it will stay: memory that is touched for the first time costs more than these calls.
    """
    multiply, subtract = module.multiply, module.subtract
    out = module.empty_like(kept)
    r, z, n, q = (kept[:, k] for k in (R, Z, N, Q))
    of_q, of_r, of_z, of_n = (out[:, k] for k in range(4))
    for slope, sigmoid in ((of_z, z), (of_r, r)):
        multiply(sigmoid, sigmoid, slope)
        subtract(sigmoid, slope, slope)
    subtract(read, n, of_q)
    multiply(of_z, of_q, of_z)
    multiply(n, n, of_n)
    subtract(1, of_n, of_n)
    subtract(1, z, of_q)
    multiply(of_n, of_q, of_n)
    multiply(of_r, q, of_r)
    multiply(of_r, of_n, of_r)
    multiply(of_n, r, of_q)
    return out


@gru_layer.backward
def _(xp, g, needed, residuals, x, h, w_ih, w_hh, b_ih, b_hh, *, sizes, reverse):
    module = xp.module
    add, multiply = module.add, module.multiply
    kept, states = residuals
    walk = Walk(x, sizes, reverse)
    read = walk.around(states)[0]
    hidden = kept.shape[-1]
    factors = _gru_factors(module, kept, read)
    rows = module.empty(
        (walk.rows, 4 * hidden), kept.dtype
    )  # q, r, z, n: its first three and its last three are wanted
    recurrent = module.concatenate([w_hh[2 * hidden :], w_hh[: 2 * hidden]])
    dh = begun(module, g[1], h)
    for arrived, dh_now, room, factor, z, row, gates in zip(
        gradient_by_step(walk, g[0]),
        walk.entries(dh)[::-1],
        walk.entries(module.empty_like(dh))[::-1],
        walk.states(factors)[::-1],
        walk.states(kept[:, Z])[::-1],
        walk.parts(rows[:, : 3 * hidden])[::-1],
        walk.parts(rows.reshape(walk.rows, 4, hidden).swapaxes(0, 1))[::-1],
        strict=True,
    ):
        if arrived is not None:
            add(dh_now, arrived, dh_now)
        multiply(factor, dh_now, gates)
        module.matmul(row, recurrent, out=room)
        multiply(dh_now, z, dh_now)
        add(dh_now, room, dh_now)
    on_input, on_hidden = rows[:, hidden:], rows[:, : 3 * hidden]
    dx, dw_ih, dw_hh, db_ih, db_hh = pull_back_weights(
        xp, (needed[0], *needed[2:]), on_input, x, w_ih, walk.joined(module, read), on_hidden
    )
    return dx, dh, dw_ih, _n_last(module, dw_hh, hidden), db_ih, _n_last(module, db_hh, hidden)


def _n_last(module, gradient, hidden):
    """Bring the rows of gates n, r, z into torch's order r, z, n."""
    return None if gradient is None else module.concatenate([gradient[hidden:], gradient[:hidden]])


def gru_step(xp, share, own, h):
    """Return the hidden state that the gates' shares of the input and of the hidden state make of h."""
    (r, z, n), (own_r, own_z, q) = gates_of(xp, share, 3), gates_of(xp, own, 3)
    z = xp.sigmoid(z + own_z)
    n = xp.tanh(n + xp.sigmoid(r + own_r) * q)
    return n + z * (h - n)


@gru_layer.decomposition
def _(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, sizes, reverse):
    def step(share, h):
        return (gru_step(xp, share, share_of(xp, h, w_hh, b_hh), h),)

    return step_by_step(xp, share_of(xp, x, w_ih, b_ih), (h,), step, sizes, reverse)


# ---- cells ----
# Gates lie as (gates, hidden, batch): a weight then multiplies from the left, where BLAS wants its rows as they are, and every gate
# is a stretch of memory.
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


# ---- cells: LSTM ----
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


# ---- cells: GRU ----
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


# ---- cells: RNN ----
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
