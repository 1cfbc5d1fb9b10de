"""Connectionist temporal classification: the loss of a sequence of labels over all its alignments with a longer one.

Note [Alignments]
The states of an alignment are the labels with blanks around each: state 0 is blank, 1 the first label, 2 blank, and so on. At
every step an alignment stays, moves on by one state, or skips a blank between two different labels. `alpha[t, n, s]` is the
logarithm of the probability of all beginnings that are in state s after step t, `beta` that of all ends from there. Steps
follow one another; sequences and states are computed together. NEVER stands for log(0): a finite number, so that differences
of two of them are no NaN.

torch's gradient is that of the loss after a log_softmax: it adds the probabilities themselves, whose part a log_softmax
removes again. The decomposition has it by adding sum(exp(x)) and subtracting it as a constant.
"""

from __future__ import annotations

from .._core.fused import fused
from . import along, cumulative, elementwise, elementwise_unary, reduce, shape  # noqa: F401 - the words of the decomposition

NEVER = -1e30


# ---- on arrays ----
def _states(m, targets, blank):
    """Return the class of every state, and what keeps alignments from skipping to it: 0 or NEVER."""
    rows, longest = targets.shape
    classes = m.full((rows, 2 * longest + 1), blank, m.int64)
    classes[:, 1::2] = targets
    barred = m.full(classes.shape, NEVER)
    barred[:, 3::2][classes[:, 3::2] != classes[:, 1:-2:2]] = 0
    return classes, barred


def _advance(m, here, barred, emitted, spaces):
    """Add up the ways to every state after one more step, of arrays that begin with two states that never are."""
    stay, step, skip = here[:, 2:], here[:, 1:-1], here[:, :-2]
    leap, top, power, total = spaces
    m.add(skip, barred, out=leap)
    m.maximum(stay, step, out=top)
    m.maximum(top, leap, out=top)
    m.exp(m.subtract(stay, top, out=total), out=total)
    for way in (step, leap):
        total += m.exp(m.subtract(way, top, out=power), out=power)
    m.log(total, out=total)
    total += top
    total += emitted
    return total


def _emissions(m, x, classes):
    """Return the log-probability of every state at every step."""
    rows = m.arange(classes.shape[0])[:, None]
    return m.maximum(x[:, rows, classes], NEVER)


def _beginnings(m, emitted, barred):
    steps, rows, states = emitted.shape
    alpha = m.full((steps, rows, states + 2), NEVER, emitted.dtype)
    alpha[0, :, 2:4] = emitted[0, :, :2]
    spaces = [m.empty((rows, states), emitted.dtype) for _ in range(4)]
    for t in range(1, steps):
        alpha[t, :, 2:] = _advance(m, alpha[t - 1], barred, emitted[t], spaces)
    return alpha[:, :, 2:]


def _ends(m, emitted, barred, input_lengths, target_lengths):
    """Return the logarithms of all ends: the same walk in reverse, which each sequence begins at its own last step."""
    steps, rows, states = emitted.shape
    beta = m.full((steps, rows, states + 2), NEVER, emitted.dtype)
    backward = m.full(barred.shape, NEVER, emitted.dtype)
    backward[:, 2:] = barred[:, :1:-1]  # to skip from a state is to skip to the one two before it in reverse
    spaces = [m.empty((rows, states), emitted.dtype) for _ in range(4)]
    flipped = emitted[:, :, ::-1]
    numbers = m.arange(states)
    last = 2 * target_lengths[:, None]
    final = (numbers == last) | (numbers == last - 1)
    for t in range(steps - 1, -1, -1):
        if t < steps - 1:
            beta[t, :, 2:] = _advance(m, beta[t + 1], backward, flipped[t], spaces)
        begins = input_lengths == t + 1
        if begins.any():
            beta[t, begins, 2:] = m.where(final[begins], emitted[t, begins], NEVER)[:, ::-1]
    return beta[:, :, :1:-1]


def _whole(m, alpha, input_lengths, target_lengths):
    """Return the logarithm of the probability of all alignments."""
    rows = m.arange(len(input_lengths))
    at = m.maximum(input_lengths - 1, 0)
    last = 2 * target_lengths
    blank = alpha[at, rows, last]
    label = m.where(target_lengths > 0, alpha[at, rows, m.maximum(last - 1, 0)], NEVER)
    top = m.maximum(blank, label)
    total = m.log(m.exp(blank - top) + m.exp(label - top)) + top
    return m.where(input_lengths > 0, total, m.where(target_lengths > 0, NEVER, 0)).astype(alpha.dtype)


def _as_loss(m, total):
    return m.where(total < NEVER / 2, m.inf, -total).astype(total.dtype)


@fused("CtcLossBackward0", widens=False, edges=(0,))
def ctc_loss(xp, x, targets, input_lengths, target_lengths, *, blank, zero_infinity):
    """The loss of each sequence: x are log-probabilities (steps, sequences, classes), targets padded labels. See Note [Alignments]."""
    m = xp.module
    classes, barred = _states(m, targets, blank)
    steps = max(int(input_lengths.max()), 1)
    emitted = _emissions(m, x[:steps], classes)
    alpha = _beginnings(m, emitted, barred.astype(x.dtype))
    total = _whole(m, alpha, input_lengths, target_lengths)
    return _as_loss(m, total), (emitted, alpha, total)


@ctc_loss.backward
def ctc_loss_back(xp, g, needed, residuals, x, targets, input_lengths, target_lengths, *, blank, zero_infinity):
    m = xp.module
    emitted, alpha, total = residuals
    classes, barred = _states(m, targets, blank)
    beta = _ends(m, emitted, barred.astype(x.dtype), input_lengths, target_lengths)
    steps, rows, states = emitted.shape
    share = alpha + beta
    share -= emitted
    share -= total[:, None]
    m.exp(share, out=share)  # the probability of each state at each step, given the labels
    dx = m.zeros(x.shape, x.dtype)
    part = dx[:steps]
    m.exp(x[:steps], out=part)
    part[:, :, blank] -= share[:, :, ::2].sum(2)
    if states > 1:
        cells = m.arange(steps * rows).reshape(steps, rows, 1) * x.shape[2] + classes[:, 1::2]
        m.add.at(
            part.reshape(-1), cells.reshape(-1), -share[:, :, 1::2].reshape(-1)
        )  # CuPy subtracts whole numbers only
    part *= g[:, None]
    lost = total < NEVER / 2
    if lost.any():
        part[:, lost] = 0 if zero_infinity else m.nan
    m.copyto(part, 0, where=(m.arange(steps)[:, None] >= input_lengths)[:, :, None])
    return dx, None, None, None


# ---- in words ----
ALL = slice(None)


def _states_in_words(xp, targets, target_lengths, blank):
    """Return the class of every state, the states' numbers, and to which of them alignments may skip."""
    longest = targets.shape[1]
    blanks = xp.expand_dims(xp.zeros_like(target_lengths) + blank, axis=1)
    columns = [blanks]
    for k in range(longest):
        columns += [xp.getitem(targets, index=(ALL, slice(k, k + 1))), blanks]
    classes = xp.concat(*columns, axis=1)
    number = xp.cumsum(xp.ones_like(classes), axis=1) - 1
    if not longest:
        return classes, number, xp.less(number, 0)
    before = xp.concat(blanks, blanks, xp.getitem(classes, index=(ALL, slice(0, 2 * longest - 1))), axis=1)
    may_skip = xp.logical_and(xp.not_equal(classes, before), xp.equal(xp.remainder(number, 2), 1))
    return classes, number, may_skip


def _advance_in_words(xp, alpha, may_skip, emitted):
    """Add up the ways to every state after one more step."""
    states = alpha.shape[1]
    never = xp.getitem(alpha, index=(ALL, slice(0, 1))) * 0 + NEVER
    ways = [alpha]
    if states > 1:
        ways.append(xp.concat(never, xp.getitem(alpha, index=(ALL, slice(0, states - 1))), axis=1))
        skip = xp.concat(never, never, xp.getitem(alpha, index=(ALL, slice(0, states - 2))), axis=1)
        ways.append(xp.where(may_skip, skip, NEVER))
    # not logaddexp, whose second derivative overflows this far apart
    return xp.logsumexp(xp.stack(*ways, axis=0), axis=(0,), keepdims=False) + emitted


@ctc_loss.decomposition
def ctc_loss_parts(xp, x, targets, input_lengths, target_lengths, *, blank, zero_infinity):
    steps, rows = x.shape[:2]
    classes, number, may_skip = _states_in_words(xp, targets, target_lengths, blank)
    places = xp.broadcast_to(xp.expand_dims(classes, axis=0), shape=(steps, rows, classes.shape[1]))
    emitted = xp.take_along(xp.clip(x, low=NEVER, high=None), places, axis=2)
    alpha = xp.where(xp.less(number, 2), xp.getitem(emitted, index=(0,)), NEVER)
    ended = xp.where(xp.expand_dims(xp.equal(input_lengths, 1), axis=1), alpha, NEVER)
    for t in range(1, steps):
        alpha = _advance_in_words(xp, alpha, may_skip, xp.getitem(emitted, index=(t,)))
        ended = xp.where(xp.expand_dims(xp.equal(input_lengths, t + 1), axis=1), alpha, ended)
    last = xp.expand_dims(target_lengths * 2, axis=1)
    final = xp.logical_or(xp.equal(number, last), xp.equal(number, last - 1))
    total = xp.logsumexp(xp.where(final, ended, NEVER), axis=(1,), keepdims=False)
    empty = xp.where(xp.greater(target_lengths, 0), total * 0 + NEVER, 0)
    total = xp.where(xp.greater(input_lengths, 0), total, empty)
    loss = xp.where(xp.less(total, NEVER / 2), float("inf"), -total)
    time = xp.cumsum(xp.ones_like(xp.getitem(x, index=(ALL, 0, 0))), axis=0)
    inside = xp.less_equal(xp.expand_dims(time, axis=1), input_lengths)
    mass = xp.sum(xp.where(xp.expand_dims(inside, axis=2), xp.exp(x), 0), axis=(0, 2), keepdims=False)
    return loss + (mass - xp.forget(mass))
