"""Recurrent layers in one direction over a whole sequence, and recurrent cells, which take one step of a batch.

Note [Recurrent layers]
A layer in one direction is one fused operation. Its inputs are projected for all steps by one product; the loop over steps then
has one product and a few elementwise calls, each into memory that was made before the loop. Two layouts matter, because the
calls are on few numbers:
- within the loop gates come first, (gates, batch, hidden): each gate is a stretch of memory, and so are neighbouring gates;
- gradients of the gates lie in rows, (step and batch, gates x hidden), so that one product makes the gradient of a weight.
Where there is enough to do a step's gates are one call of a kernel, made from a formula, forward and backward. Gates are made in the
memory of the inputs' shares, and nothing is kept that a kernel makes again in less time than memory takes.
Elsewhere they are a few calls of NumPy, which are of another make: a sigmoid is (1 + tanh(x / 2)) / 2, so that one call of tanh
serves all gates; the weights have been halved before. What the backward multiplies gradients with is computed for all steps at once.
"""

from __future__ import annotations

import numpy as np

from .._core.fused import fused
from .._core.passes import ones
from .._core.primitive import stack
from .._native.program import formula
from .._thresholds import NATIVE_SLOW
from . import affine, elementwise, index, shape  # noqa: F401 - the words of decompositions


# ---- how a layer walks along its sequence, and how weights and gradients lie ----
class Walk:
    """The order of the steps, and what each of them reads and writes.

    `sizes` is None where every step has the whole batch. In a packed sequence it holds the number of entries of each step, which
    never grows; x then has a row for every step and entry. All else has room for every entry at every step.
    """

    __slots__ = ("batch", "reverse", "sizes", "steps")

    def __init__(self, x, sizes, reverse):
        self.sizes, self.reverse = sizes, reverse
        self.steps, self.batch = x.shape[:2] if sizes is None else (len(sizes), sizes[0])

    def around(self, states):
        """Part states, one more than steps, into what each step reads and what it writes."""
        return (states[1:], states[:-1]) if self.reverse else (states[:-1], states[1:])

    def start(self, states, first):
        """Put the first state where the first step reads it; entries that begin later find it there too."""
        if self.sizes is None:
            states[-1 if self.reverse else 0] = first
        else:
            states[...] = first

    def order(self, backward=False):
        """Return the numbers of the steps, each with the number of its entries, from the first to the last or backward."""
        found = list(enumerate(self.sizes or (self.batch,) * self.steps))
        return found[::-1] if self.reverse is not backward else found

    def views(self, array):
        """Return what each step uses of an array (steps, ..., batch, width); there may be no array."""
        if array is None:
            return [None] * self.steps
        if self.sizes is None:
            return list(array)
        return [view[..., :size, :] for view, size in zip(array, self.sizes, strict=True)]

    def joined(self, module, array):
        """Return the used entries of an array (steps, batch, width) as rows."""
        if self.sizes is None:
            return array.reshape(self.steps * self.batch, array.shape[-1])
        return module.concatenate(self.views(array))

    def spread(self, module, rows):
        """Return rows (..., rows, width) as an array (..., steps, batch, width); entries that are not used are anything."""
        whole = (*rows.shape[:-2], self.steps, self.batch, rows.shape[-1])
        if self.sizes is None:
            return rows.reshape(whole)
        out, start = module.empty(whole, rows.dtype), 0
        for k, size in enumerate(self.sizes):
            out[..., k, :size, :] = rows[..., start : start + size, :]
            start += size
        return out

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


def by_kernel(module, walk, prepared, gates, outs, *arrays):
    """Return a function of a step's number and its entries that computes a formula by a kernel; None where NumPy has to.

    Arrays are (steps, batch, width), or less where steps or entries share them. The number of gates alone decides.
    """
    if module is not np or outs[0].dtype.char not in "fd" or gates * outs[0].size < NATIVE_SLOW:
        return None
    kernel = prepared.repeated(outs, *arrays, apart=1 if walk.sizes is None else 2)
    if kernel is None:
        return None
    if walk.sizes is None:
        return lambda k, size: kernel(k, k + 1)
    return lambda k, size: kernel(k * walk.batch, k * walk.batch + size)


def biases_of(biases, gates, width, dtype):
    """Return the bias of each gate; zeros if there is none."""
    return (np.zeros((), dtype),) * gates if biases is None else tuple(biases.reshape(gates, width))


def zero(like):
    """Return a zero that stands for an array."""
    return np.zeros((), like.dtype)


def shares_of(module, walk, x, w_ih, w_hh, biases, kernel, factors, out):
    """Compute the share of the inputs in the gates of all steps, (gates, steps, batch, hidden); return what multiplies hidden states.

    Kernels add biases themselves and need no factors. BLAS takes the input's weight as it lies; of a hidden state there are few rows, for
    which its weight had better lie as it is read.
    """
    count = len(out)
    w_ih, w_hh = (w.reshape(count, -1, w.shape[1]).swapaxes(1, 2) for w in (w_ih, w_hh))
    if kernel is None:
        scale = module.asarray(factors, x.dtype)[:, None, None]
        w_ih, w_hh = w_ih * scale, w_hh * scale
    rows = rows_of(x)
    room = out.reshape(count, len(rows), out.shape[-1]) if walk.sizes is None else None
    shares = module.matmul(rows, w_ih, out=room)
    if kernel is None and biases is not None:
        shares += biases.reshape(count, 1, -1) * scale
    if room is None:
        out[...] = walk.spread(module, shares)
    return module.ascontiguousarray(w_hh)


def rows_of(x):
    """Return the inputs of all steps as rows."""
    return x if x.ndim == 2 else x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def begun(module, g, like):
    """Return the gradient of a last state in memory of its own, zeros if there is none."""
    return module.zeros_like(like) if g is None else g.copy()


def arriving(module, walk, g):
    """Return the gradients of the outputs of all steps, (steps, batch, width), if there are any."""
    return None if g is None else walk.spread(module, rows_of(g))


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
    parts = [walk.views(one) for one in (walk.spread(module, shares), read, written)]
    for k, _ in walk.order():
        share, h_read, h_written = (one[k] for one in parts)
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
    rows = module.empty((walk.steps, walk.batch, h.shape[-1]), states.dtype)
    slopes = (written > 0).astype(states.dtype) if relu else 1 - written * written
    dh = begun(module, g[1], h)
    parts = [walk.views(one) for one in (arriving(module, walk, g[0]), slopes, rows)]
    for k, size in walk.order(backward=True):
        (arrived, slope, row), dh_now = (one[k] for one in parts), dh[:size]
        if arrived is not None:
            module.add(dh_now, arrived, dh_now)
        module.multiply(dh_now, slope, row)
        module.matmul(row, w_hh, out=dh_now)
    rows, read = walk.joined(module, rows), walk.joined(module, read)
    dx, *dweights = pull_back_weights(xp, (needed[0], *needed[2:]), rows, x, w_ih, read)
    return dx, dh, *dweights


@rnn_layer.decomposition
def _(xp, x, h, w_ih, w_hh, b_ih, b_hh, *, relu, sizes, reverse):
    squash = xp.relu if relu else xp.tanh

    def step(share, h):
        return (squash(share + share_of(xp, h, w_hh, b_hh)),)

    return step_by_step(xp, share_of(xp, x, w_ih, b_ih), (h,), step, sizes, reverse)


# ---- layers: LSTM ----
LSTM_FACTORS = (0.5, 0.5, 1, 0.5)
I, F, G, O = range(4)  # noqa: E741 - how gates lie in memory


@formula
def lstm_gates(xp, i, f, g, o, own_i, own_f, own_g, own_o, b_i, b_f, b_g, b_o, c):
    """Return the gates, the cell state and the hidden state that shares of the input and of the hidden state make of c."""
    i, f, o = xp.sigmoid(i + own_i + b_i), xp.sigmoid(f + own_f + b_f), xp.sigmoid(o + own_o + b_o)
    g = xp.tanh(g + own_g + b_g)
    c = f * c + i * g
    return i, f, g, o, c, o * xp.tanh(c)


@formula
def lstm_gates_back(xp, i, f, g, o, c, c_new, dh, arrived, dc):
    """Return the gradients of the gates before their sigmoids, and that of the cell state."""
    dh = dh + arrived
    tanh_c = xp.tanh(c_new)
    dc = dc + dh * o * (1 - tanh_c * tanh_c)
    return dc * g * (i - i * i), dc * c * (f - f * f), dc * i * (1 - g * g), dh * tanh_c * (o - o * o), dc * f


@fused("MkldnnRnnLayerBackward0", outputs=3, unread=("b_ih", "b_hh"))
def lstm_layer(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    """Return the hidden states of all steps, the last one and the last cell state."""
    module = xp.module
    add, multiply, tanh, matmul = module.add, module.multiply, module.tanh, module.matmul
    walk = Walk(x, sizes, reverse)
    steps, batch, hidden = walk.steps, walk.batch, w_hh.shape[0] // 4
    gates = module.empty((4, steps, batch, hidden), x.dtype)  # shares of the inputs, then gates
    sums, room = module.empty((4, batch, hidden), x.dtype), module.empty((batch, hidden), x.dtype)
    cells = module.empty((steps + 1, batch, hidden), x.dtype)
    states = module.empty((steps + 1, batch, w_hh.shape[1]), x.dtype)
    walk.start(cells, c)
    walk.start(states, h)
    (c_read, c_written), (read, written) = walk.around(cells), walk.around(states)
    biases = None if b_ih is None else b_ih + b_hh
    made = written if w_hr is None else room
    kernel = by_kernel(
        module,
        walk,
        lstm_gates,
        4,
        (*gates, c_written, made),
        *gates,
        *sums,
        *biases_of(biases, 4, hidden, x.dtype),
        c_read,
    )
    recurrent = shares_of(module, walk, x, w_ih, w_hh, biases, kernel, LSTM_FACTORS, gates)
    own, read_by, written_by = walk.views(gates.swapaxes(0, 1)), walk.views(read), walk.views(written)
    before, after = (None, None) if kernel else (walk.views(c_read), walk.views(c_written))
    for k, size in walk.order():
        now = sums if size == batch else sums[:, :size]
        matmul(read_by[k], recurrent, out=now)
        if kernel is not None:
            kernel(k, size)
        else:
            own_now, c_now, room_now = own[k], after[k], room[:size]
            add(now, own_now, own_now)
            tanh(own_now, own_now)
            for sigmoids in (own_now[:2], own_now[O]):
                multiply(sigmoids, 0.5, sigmoids)
                add(sigmoids, 0.5, sigmoids)
            multiply(own_now[F], before[k], c_now)
            add(c_now, multiply(own_now[I], own_now[G], room_now), c_now)
            multiply(own_now[O], tanh(c_now, room_now), written_by[k] if w_hr is None else room_now)
        if w_hr is not None:
            matmul(room[:size], w_hr.T, out=written_by[k])
    return (walk.output(module, written), walk.last(written), walk.last(c_written)), (gates, cells, states)


@lstm_layer.backward
def _(xp, g, needed, residuals, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    module = xp.module
    matmul = module.matmul
    gates, cells, states = residuals
    walk = Walk(x, sizes, reverse)
    (c_read, c_written), read = walk.around(cells), walk.around(states)[0]
    rows = module.empty((walk.steps, walk.batch, w_hh.shape[0]), gates.dtype)
    dh, dc = begun(module, g[1], h), begun(module, g[2], c)
    arrived = arriving(module, walk, g[0])
    if w_hr is None:
        step = _lstm_back(module, walk, gates, c_read, c_written, dh, arrived, dc, rows)
    else:
        inner, totals = module.empty_like(dc), module.empty((walk.steps, *dh.shape), dh.dtype)
        step = _lstm_back(module, walk, gates, c_read, c_written, inner, None, dc, rows)
        arrived_by = walk.views(arrived)
    row_by = walk.views(rows)
    for k, size in walk.order(backward=True):
        dh_now = dh[:size]
        if w_hr is not None:
            if arrived is not None:
                module.add(dh_now, arrived_by[k], dh_now)
            totals[k, :size] = dh_now
            matmul(dh_now, w_hr, out=inner[:size])
        step(k, size)
        matmul(row_by[k], w_hh, out=dh_now)
    rows, read = walk.joined(module, rows), walk.joined(module, read)
    dx, *dweights = pull_back_weights(xp, (needed[0], *needed[3:7]), rows, x, w_ih, read)
    dw_hr = None
    if needed[7]:
        dw_hr = matmul(walk.joined(module, totals).T, walk.joined(module, gates[O] * module.tanh(c_written)))
    return dx, dh, dc, *dweights, dw_hr


def _lstm_back(module, walk, gates, c_read, c_written, dh, arrived, dc, rows):
    """Return a function of a step's number and its entries, which writes the gradients of its gates and changes dc.

    `dh` is the gradient of the step's hidden state, but for what has arrived at its output.
    """
    found = rows.reshape(*rows.shape[:2], 4, gates.shape[-1]).swapaxes(1, 2)
    kernel = by_kernel(
        module,
        walk,
        lstm_gates_back,
        4,
        (*found.swapaxes(0, 1), dc),
        *gates,
        c_read,
        c_written,
        dh,
        zero(gates) if arrived is None else arrived,
        dc,
    )
    if kernel is not None:
        return kernel
    add, multiply = module.add, module.multiply
    factors, of_cell = _lstm_factors(module, gates, c_read, module.tanh(c_written))
    parts = [walk.views(one) for one in (arrived, factors.swapaxes(0, 1), of_cell, gates[F], found)]
    room = module.empty_like(dc)

    def step(k, size):
        (came, factor, cell, forget, row), dh_now, dc_now = (one[k] for one in parts), dh[:size], dc[:size]
        if came is not None:
            add(dh_now, came, dh_now)
        add(dc_now, multiply(dh_now, cell, room[:size]), dc_now)
        multiply(factor[:3], dc_now, row[:3])
        multiply(factor[3], dh_now, row[3])
        multiply(dc_now, forget, dc_now)

    return step


def _lstm_factors(module, gates, c, tanh_c):
    """Return what multiplies gradients: the cell's in gates i, f and g and the output's in o; then the output's in the cell.

    Every slope is made where it will stay: memory that is touched for the first time costs more than these calls.
    """
    multiply, subtract = module.multiply, module.subtract
    out, of_cell = module.empty_like(gates), module.empty_like(tanh_c)
    i, f, g, o = gates
    for slope, sigmoid, factor in ((out[0], i, g), (out[1], f, c), (out[3], o, tanh_c)):
        multiply(sigmoid, sigmoid, slope)
        subtract(sigmoid, slope, slope)
        multiply(slope, factor, slope)
    for slope, tanh, factor in ((out[2], g, i), (of_cell, tanh_c, o)):
        multiply(tanh, tanh, slope)
        subtract(1, slope, slope)
        multiply(slope, factor, slope)
    return out, of_cell


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
GRU_FACTORS = (0.5, 0.5, 1)
R, Z, N, Q = range(4)  # what a step keeps: both gates, the candidate, and the hidden state's share in it


@formula
def gru_gates(xp, r, z, n, own_r, own_z, own_n, b_r, b_z, b_n, b_q, h):
    """Return both gates, the candidate, the hidden state's share in it and the hidden state that they make of h."""
    r, z = xp.sigmoid(r + own_r + b_r), xp.sigmoid(z + own_z + b_z)
    q = own_n + b_q
    n = xp.tanh(n + b_n + r * q)
    return r, z, n, q, (h - n) * z + n


@formula
def gru_gates_back(xp, r, z, n, q, h, direct, through, arrived):
    """Return the gradients of q, r, z and n, and what goes from the hidden state straight to the one before."""
    dh = direct + through + arrived
    dn = dh * (1 - z) * (1 - n * n)
    return dn * r, dn * q * (r - r * r), dh * (h - n) * (z - z * z), dn, dh * z


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
    gates = module.empty((4, steps, batch, hidden), x.dtype)  # shares of the inputs, then gates
    sums = module.empty((3, batch, hidden), x.dtype)
    states = module.empty((steps + 1, batch, hidden), x.dtype)
    walk.start(states, h)
    read, written = walk.around(states)
    kernel = by_kernel(
        module,
        walk,
        gru_gates,
        4,
        (*gates, written),
        *gates[:3],
        *sums,
        *biases_of(biases, 3, hidden, x.dtype),
        *biases_of(b_q, 1, hidden, x.dtype),
        read,
    )
    recurrent = shares_of(module, walk, x, w_ih, w_hh, biases, kernel, GRU_FACTORS, gates[:3])
    own, read_by, written_by = walk.views(gates.swapaxes(0, 1)), walk.views(read), walk.views(written)
    for k, size in walk.order():
        h_read, h_written, now = read_by[k], written_by[k], sums if size == batch else sums[:, :size]
        module.matmul(h_read, recurrent, out=now)
        if kernel is not None:
            kernel(k, size)
            continue
        r, z, n, q = own[k]
        sigmoids = own[k][:2]
        add(now[:2], sigmoids, sigmoids)
        tanh(sigmoids, sigmoids)
        multiply(sigmoids, 0.5, sigmoids)
        add(sigmoids, 0.5, sigmoids)
        if b_q is None:
            q[...] = now[2]
        else:
            add(now[2], b_q, q)
        add(n, multiply(r, q, h_written), n)
        tanh(n, n)
        subtract(h_read, n, h_written)
        multiply(h_written, z, h_written)
        add(h_written, n, h_written)
    return (walk.output(module, written), walk.last(written)), (gates, states)


def _gru_factors(module, gates, read):
    """Return what multiplies the gradient of h in q, r, z and n: those on the hidden state's side, then on the input's.

    Every factor is made where it will stay: memory that is touched for the first time costs more than these calls.
    """
    multiply, subtract = module.multiply, module.subtract
    out = module.empty_like(gates)
    r, z, n, q = gates
    of_q, of_r, of_z, of_n = out
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
    gates, states = residuals
    walk = Walk(x, sizes, reverse)
    read = walk.around(states)[0]
    hidden = gates.shape[-1]
    # q, r, z, n: the first three and the last three are wanted
    rows = module.empty((walk.steps, walk.batch, 4 * hidden), gates.dtype)
    recurrent = module.concatenate([w_hh[2 * hidden :], w_hh[: 2 * hidden]])
    dh = begun(module, g[1], h)
    through = module.zeros_like(dh)
    step = _gru_back(module, walk, gates, read, dh, through, arriving(module, walk, g[0]), rows)
    row_by = walk.views(rows[..., : 3 * hidden])
    for k, size in walk.order(backward=True):
        step(k, size)
        module.matmul(row_by[k], recurrent, out=through[:size])
    dh += through
    rows, read = walk.joined(module, rows), walk.joined(module, read)
    on_input, on_hidden = rows[:, hidden:], rows[:, : 3 * hidden]
    dx, dw_ih, dw_hh, db_ih, db_hh = pull_back_weights(xp, (needed[0], *needed[2:]), on_input, x, w_ih, read, on_hidden)
    return dx, dh, dw_ih, _n_last(module, dw_hh, hidden), db_ih, _n_last(module, db_hh, hidden)


def _gru_back(module, walk, gates, read, dh, through, arrived, rows):
    """Return a function of a step's number and its entries, which writes the gradients of its gates and changes dh.

    The gradient of the step's hidden state is dh and `through`, which has come through the gates of the next, and what has arrived.
    """
    found = rows.reshape(*rows.shape[:2], 4, gates.shape[-1]).swapaxes(1, 2)
    came = zero(gates) if arrived is None else arrived
    outs = (*found.swapaxes(0, 1), dh)
    kernel = by_kernel(module, walk, gru_gates_back, 4, outs, *gates, read, dh, through, came)
    if kernel is not None:
        return kernel
    add, multiply = module.add, module.multiply
    factors = _gru_factors(module, gates, read).swapaxes(0, 1)
    parts = [walk.views(one) for one in (arrived, factors, gates[Z], found)]

    def step(k, size):
        (came, factor, z, row), now = (one[k] for one in parts), dh[:size]
        add(now, through[:size], now)
        if came is not None:
            add(now, came, now)
        multiply(factor, now, row)
        multiply(now, z, now)

    return step


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
