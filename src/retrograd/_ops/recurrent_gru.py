"""GRU: a layer in one direction over a whole sequence. See Note [Recurrent layers] in `recurrent.py`."""

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

ORDER, FACTORS = (0, 1, 2), (0.5, 0.5, 1)
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
    shares = projected(xp, rows_of(x), w_ih, biases, ORDER, FACTORS)
    recurrent = gate_major(xp, w_hh, ORDER, FACTORS)
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


def _factors(module, kept, read):
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
    factors = _factors(module, kept, read)
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
