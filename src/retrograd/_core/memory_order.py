"""How dense memory follows the order of dimensions: strides in elements, and the order of a result's dimensions."""

from __future__ import annotations

from typing import Any


def dense_strides(shape: Any) -> tuple[int, ...]:
    """Return the strides of new memory."""
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))


def output_order(shape: Any, operands: Any) -> list[int]:
    """Order dimensions from the innermost outwards, as torch's TensorIterator does for a result.

    `operands` are strides of the inputs, 0 where they are broadcast, in the order of the arguments.
    """
    order = list(range(len(shape) - 1, -1, -1))

    def comes_after(a: int, b: int) -> int:
        for steps in operands:
            if steps[a] == 0 or steps[b] == 0:
                continue
            if steps[a] != steps[b]:
                return -1 if steps[a] < steps[b] else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    for i in range(1, len(shape)):  # insertion sort that leaves ambiguous pairs as they are
        at = i
        for k in range(i - 1, -1, -1):
            found = comes_after(order[k], order[at])
            if found > 0:
                order[k], order[at] = order[at], order[k]
                at = k
            elif found < 0:
                break
    return order
