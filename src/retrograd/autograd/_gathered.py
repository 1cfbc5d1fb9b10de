"""Weights that are used again and again: one product for many uses.

A loop over time steps gives the gradient of a matrix of weights as a sum of products of few rows each. BLAS is slow at such
products, and adding them up reads and writes the whole matrix every time. The rows of several uses, one below the other,
give the same sum as a single product. So a run of the engine copies the rows of small uses into blocks, and computes the
product when a block is full, or when the last gradient of the weights has arrived.

Operations declare such products (`Primitive.gathers`). The sum is the same except for rounding: a run that makes a graph,
selects inputs or unpacks checkpoints adds one product after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.passes import ones
from .._graph.node import Slot
from .._thresholds import GATHERED_ROOM as ROOM
from .._thresholds import GATHERED_ROWS as FEW_ROWS
from .._thresholds import GATHERED_SMALL as SMALL
from .._thresholds import GATHERED_USES as MANY


class Block:
    """Rows of the uses of one matrix of weights, whose gradient is the sum of `left.T @ right`."""

    __slots__ = ("bias", "filled", "left", "product", "right", "room", "total")

    def __init__(self, bias: Any, left: Any, right: Any) -> None:
        self.bias = bias  # whose gradient is the sum of the rows of `left`, or None
        rows, columns = left.shape[-1], right.shape[-1]
        self.room = ROOM // 2 if rows * columns < SMALL else ROOM
        self.left = np.empty((self.room, rows), left.dtype)
        self.right = np.empty((self.room, columns), right.dtype)
        self.filled = 0
        self.product: Any = None  # of earlier rows
        self.total: Any = None

    def add(self, left: Any, right: Any, rows: int) -> None:
        """Add the rows of a use."""
        start = self.filled
        if start + rows > self.room:
            self.product, self.total = self._product(), self._total()
            start = 0
        end = self.filled = start + rows
        self.left[start:end] = left
        self.right[start:end] = right

    def gradient_of(self, edge: Any) -> Any:
        """Return the gradient of the weights, or of the bias."""
        return self._total() if edge is self.bias else self._product()

    def _product(self) -> Any:
        found = self.left[: self.filled].T.dot(self.right[: self.filled])
        if self.product is not None:
            found += self.product
        return found

    def _total(self) -> Any:
        if self.bias is None:
            return None
        found = ones(self.filled, self.left.dtype).dot(self.left[: self.filled])
        if self.total is not None:
            found += self.total
        return found


def gather(task: Any, bias: Any, weights: Any, left: Any, right: Any) -> bool:
    """Take the rows of a use of weights (and bias) instead of its gradients, unless that is not worth it."""
    rows = left.shape[0]
    if rows > FEW_ROWS:
        return False
    gathered = task.gathered
    block = gathered.get(weights)
    if block is None:
        counts = task.counts
        if type(weights) is Slot or counts[weights] < MANY:
            return False
        block = Block(bias, left, right)
        if bias is not None:
            if type(bias) is Slot or bias in gathered or counts[bias] < MANY:
                return False
            gathered[bias] = block
        gathered[weights] = block
    elif block.bias is not bias:  # the weights go with another bias elsewhere
        return False
    block.add(left, right, rows)
    return True
