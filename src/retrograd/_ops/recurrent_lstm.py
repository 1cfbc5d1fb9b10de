"""LSTM: a layer in one direction over a whole sequence. See Note [Recurrent layers] in `recurrent.py`."""

from __future__ import annotations

from .._core.fused import fused
from .recurrent import (
    Walk,
    begun,
    gate_major,
    gates_of,
    gradient_by_step,
    projected,
    pull_back_weights,
    rows_of,
    share_of,
    step_by_step,
)

ORDER, FACTORS = (0, 1, 3, 2), (0.5, 0.5, 0.5, 1)  # torch's gates are i, f, g, o; ours i, f, o, g: sigmoids first
I, F, O, G, C, TANH_C = range(6)  # noqa: E741 - what a step keeps; C is the cell state it reads


@fused("MkldnnRnnLayerBackward0", outputs=3, unread=("b_ih", "b_hh"))
def lstm_layer(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, sizes, reverse):
    """Return the hidden states of all steps, the last one and the last cell state."""
    module = xp.module
    add, multiply, tanh, matmul = module.add, module.multiply, module.tanh, module.matmul
    walk = Walk(x, sizes, reverse)
    steps, batch, hidden = walk.steps, walk.batch, w_hh.shape[0] // 4
    shares = projected(xp, rows_of(x), w_ih, None if b_ih is None else b_ih + b_hh, ORDER, FACTORS)
    recurrent = gate_major(xp, w_hh, ORDER, FACTORS)
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


def _factors(module, kept):
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
    factors, of_cell = _factors(module, mine)
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
