"""What the recurrent layers share: how a layer walks along its sequence, and how weights and gradients lie.

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

from .._core.primitive import stack
from . import affine, elementwise, index, shape  # noqa: F401 - the words of decompositions


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
