"""One or a few elements of each row by rank or frequency: the k-th smallest, the median, the mode, the top k."""

from __future__ import annotations

import numpy as np

from .._core.numpy_namespace import is_half
from .order import chooses, dense, has_nan, number, order_of, picked
from .reduce import shares

SHORT = 256  # elements up to which a row is sorted to find one of them
LONG = 1 << 15  # elements from which looking several times for the largest is quicker than any order
FEW = 64  # a row this many times longer than what is wanted of it is not sorted as a whole


def _comparable(x):
    """Return numbers that NumPy orders as torch does; it does not know where bfloat16's NaN belongs."""
    return x.astype(np.float32) if is_half(x.dtype) else x


def _pick(xp, x, at, axis, keepdims):
    """Read one element of each row; `at` has the axis as length one."""
    values = picked(xp, x, at, axis)
    return dense(values, at) if keepdims else dense(values.squeeze(axis), at.squeeze(axis))


def _by_rank(xp, x, rank, axis, keepdims):
    """Choose the element of a rank in each row; equals rank in the order of their places."""
    numbers = _comparable(x)
    if x.shape[axis] <= SHORT:
        here = [rank] if keepdims else rank
        at = order_of(xp, numbers, axis).take(here, axis)
        return dense(picked(xp, x, at, axis, keepdims), at)
    value = xp.module.partition(numbers, rank, axis)[(*(slice(None),) * axis, slice(rank, rank + 1))]
    is_it, below = numbers == value, numbers < value
    if numbers.dtype.kind == "f" and has_nan(value):
        missing, wanted = xp.module.isnan(numbers), xp.module.isnan(value)
        is_it |= missing & wanted
        below |= ~missing & wanted
    if int(xp.module.count_nonzero(is_it)) > value.size:
        is_it &= is_it.cumsum(axis) > rank - below.sum(axis, keepdims=True)
    return _pick(xp, x, is_it.argmax(axis, keepdims=True), axis, keepdims)


def _kthvalue(xp, x, *, k, axis, keepdims):
    if not x.ndim:
        return number(xp, x)
    values, at = _by_rank(xp, x, k - 1, axis, keepdims)
    if xp.module is np and len(tied := _tied_rows(x, values, axis, keepdims)):
        rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        at = np.array(at)
        for row in tied:
            ranks = np.unique(_comparable(rows[row]), return_inverse=True)[1]  # NaN ranks last
            at.reshape(-1)[row] = _selected(ranks, k - 1)
        values = picked(xp, x, at, axis, keepdims)
    return values, at


def _tied_rows(x, values, axis, keepdims):
    """Return the numbers of the rows in which a value stands several times, or is NaN."""
    if x.ndim == 1:
        return () if np.count_nonzero(x == values) == 1 else (0,)
    is_it = x == (values if keepdims else np.expand_dims(values, axis))
    return np.flatnonzero(is_it.sum(axis) != 1)


def _selected(keys, rank):
    """Return where the element of a rank stood before Sedgewick's quickselect, the pivot being a median of three, brought it there.

    The pointers of a partition stop, one at each key that is not below the pivot, the other at each that is not above it, and what
    they stop at changes places: so all exchanges are known at once.
    """
    places = np.arange(len(keys))

    def exchange(a, b):
        for one in (keys, places):
            one[a], one[b] = one[b].copy(), one[a].copy()

    low, high = 0, len(keys) - 1
    while high > low + 1:
        exchange(low + (high - low) // 2, low + 1)
        for first, second in ((low + 1, high), (low, high), (low + 1, low)):
            if keys[first] > keys[second]:
                exchange(first, second)
        pivot = keys[low]
        rising = np.flatnonzero(keys[low + 2 : high + 1] >= pivot) + (low + 2)
        falling = np.flatnonzero(keys[low + 1 : high] <= pivot)[::-1] + (low + 1)
        both = min(len(rising), len(falling))
        met = np.count_nonzero(rising[:both] <= falling[:both])
        exchange(rising[:met], falling[:met])
        up = rising[met - 1] + 1 if met else low + 2
        down = falling[met - 1] - 1 if met else high - 1
        up += (keys[up : high + 1] >= pivot).argmax()
        down -= (keys[low + 1 : down + 1][::-1] <= pivot).argmax()
        exchange(low, down)
        if down <= rank:
            low = up
        if down >= rank:
            high = down - 1
    if high == low + 1 and keys[low] > keys[high]:
        exchange(low, high)
    return places[rank]


kthvalue = chooses(_kthvalue, "kthvalue", "kthvalue")


# ---- medians: the lower of two middle elements ----
def _median_at(xp, x, *, axis, keepdims):
    if not x.ndim:
        return number(xp, x)
    if x.dtype.kind in "fV" and has_nan(x):
        missing = xp.module.isnan(x)
        first = missing.argmax(axis, keepdims=True)  # a NaN wins
        _, at = _by_rank(xp, x, (x.shape[axis] - 1) // 2, axis, True)
        return _pick(xp, x, xp.module.where(missing.any(axis, keepdims=True), first, at), axis, keepdims)
    return _by_rank(xp, x, (x.shape[axis] - 1) // 2, axis, keepdims)


def _nanmedian_at(xp, x, *, axis, keepdims):
    if not x.ndim or x.dtype.kind not in "fV" or not has_nan(x):
        return _median_at(xp, x, axis=axis, keepdims=keepdims)
    present = x.shape[axis] - xp.module.isnan(x).sum(axis, keepdims=True)
    order = order_of(xp, x, axis)  # NaN comes last
    return _pick(xp, x, xp.take_along(order, xp.module.maximum(present - 1, 0) // 2, axis=axis), axis, keepdims)


median_at = chooses(_median_at, "median_at", "median")
nanmedian_at = chooses(_nanmedian_at, "nanmedian_at", "nanmedian")


def _of_all(of_rows):
    """Make the median of all elements under `axis` of one of each row."""

    def run(xp, x, *, axis, keepdims):
        if len(axis) == x.ndim:
            rows = x.reshape(-1)
        else:
            kept = tuple(a for a in range(x.ndim) if a not in axis)
            rows = x.transpose((*kept, *axis)).reshape((*(x.shape[a] for a in kept), -1))
        if rows.ndim == 1 and 0 < rows.size <= SHORT and type(x) is np.ndarray and x.itemsize > 2:
            ordered = rows.copy()
            ordered.sort()
            if (last := ordered[-1]) == last:  # NaN comes last
                return ordered[(rows.size - 1) // 2]
        if not rows.shape[-1]:
            return xp.module.full(rows.shape[:-1], np.nan).astype(x.dtype)
        return of_rows(xp, rows, axis=rows.ndim - 1, keepdims=False)[0]

    return run


median = shares(_of_all(_median_at), "median", "median")
nanmedian = shares(_of_all(_nanmedian_at), "nanmedian", "nanmedian", nan_wins=False)


# ---- the most frequent element ----
def _mode(xp, x, *, axis, keepdims):
    """The smallest of the most frequent elements, at its last place."""
    if not x.ndim:
        return number(xp, x)
    module = xp.module
    if x.size <= SHORT and axis == x.ndim - 1 and module is np and not (x.dtype.kind in "fV" and has_nan(x)):
        return _short_mode(x, keepdims)
    rows = module.moveaxis(x, axis, -1)
    order = order_of(xp, rows, rows.ndim - 1)
    ordered = xp.take_along(rows, order, axis=rows.ndim - 1)
    length = rows.shape[-1]
    places = module.arange(length)
    starts = module.ones(rows.shape, bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    # how many equals each place has behind it in its run: the longest run is the mode, the first of equally long ones
    begun = _last_start(module, starts, places)
    last = (places - begun).argmax(-1, keepdims=True)
    at = module.moveaxis(xp.take_along(order, last, axis=rows.ndim - 1), -1, axis)
    return _pick(xp, x, at, axis, keepdims)


def _short_mode(x, keepdims):
    """Count in Python, which is quicker for few elements."""
    values, places = [], []
    for row in _comparable(x).reshape(-1, x.shape[-1]).tolist():
        if len(set(row)) == len(row):
            found = min(row)
        else:
            counts: dict = {}
            for one in row:
                counts[one] = counts.get(one, 0) + 1
            most = max(counts.values())
            found = min([one for one, count in counts.items() if count == most])
        values.append(found)
        places.append(len(row) - 1 - row[::-1].index(found))
    shape = (*x.shape[:-1], 1) if keepdims else x.shape[:-1]
    return np.array(values, x.dtype).reshape(shape), np.array(places, np.int64).reshape(shape)


def _last_start(module, starts, places):
    """Return where the run of each place begins."""
    marked = module.where(starts, places, 0)
    if module is np:
        return np.maximum.accumulate(marked, axis=-1)
    reach = 1
    while reach < marked.shape[-1]:  # CuPy cannot accumulate
        marked[..., reach:] = module.maximum(marked[..., reach:], marked[..., :-reach])
        reach *= 2
    return marked


mode = chooses(_mode, "mode", "mode")


# ---- the largest or smallest few ----
def _repeatedly(x, k, axis, largest):
    """Take the extreme k times, each time without those before; None where it is not told from what stands for them."""
    rest = x.copy()
    gone = -np.inf if largest else np.inf
    found = []
    for _ in range(k):
        at = (rest.argmax if largest else rest.argmin)(axis, keepdims=True)
        places = (*np.ogrid[tuple(slice(0, n) for n in at.shape)],)
        index = (*places[:axis], at, *places[axis + 1 :])
        value = rest[index]
        if (value == gone).any() or (value != value).any():
            return None
        rest[index] = gone
        found.append(at)
    return np.concatenate(found, axis=axis)


def _topk(xp, x, *, k, axis, largest):
    if not x.ndim:
        return number(xp, x)
    module = xp.module
    every = (slice(None),) * axis
    at = None
    if module is np and 0 < k <= 4 and x.size >= LONG and x.dtype.kind == "f":
        at = _repeatedly(x, k, axis, largest)
    if at is None and module is np and k and k * FEW <= x.shape[axis]:
        numbers = _comparable(x)
        size = numbers.shape[axis]
        parted = np.argpartition(numbers, size - k if largest else k - 1, axis=axis)
        some = parted[(*every, slice(size - k, None) if largest else slice(0, k))]
        some.sort(axis=axis)  # equals in the order of their places
        at = order_of(xp, xp.take_along(x, some, axis=axis), axis, largest)
        at = xp.take_along(some, at, axis=axis)
    elif at is None:
        at = order_of(xp, x, axis, largest)[(*every, slice(0, k))]
    return dense(picked(xp, x, at, axis), at)


topk = chooses(_topk, "topk", "topk", reduces=False)
