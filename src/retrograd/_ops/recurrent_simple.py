"""RNN with tanh or relu: a layer in one direction over a whole sequence. See Note [Recurrent layers] in `recurrent.py`."""

from __future__ import annotations

from .._core.fused import fused
from .recurrent import Walk, begun, gradient_by_step, pull_back_weights, rows_of, share_of, step_by_step


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
