"""Sizes that kernels read from memory, so that they serve all of them.

Note [Sizes]
A program is made for the sizes of one call, and its kernels know them: a loop of ten turns is one vector, tiles of matrices have a rest
of so many rows. A function that is called with ever new sizes would compile kernels for each. So the programs for its first sizes
(`KNOWN`) are made that way, and those for others of kernels that *read* sizes: whole numbers, and numbers that look like counts or parts
of one (the share of a mean), stand in memory that belongs to the program. The text of such a kernel is the same for all sizes, and it is
compiled once. What is left to do for new sizes is to record the call, and to try the record, in which nothing is guessed: what a program
does for sizes was seen for these sizes. Where text depends on sizes all the same (tiles of products and of sums over columns), NumPy is
called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._native.expression import I64
from .._native.loops import Function, Loop
from .._native.loops import Step as Operation
from ._program import Buffer

KNOWN = 3  # sets of sizes that have kernels of their own
STORED: dict[str, np.dtype[Any]] = {I64: np.dtype(np.int64), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
SMALL = 16  # factors up to this one belong to formulas
CELL = 8  # bytes

_read: ContextVar[bool] = ContextVar("retrograd_compiler_sizes_are_read", default=False)
are_read = _read.get


@contextmanager
def read_from_memory(yes: bool) -> Iterator[None]:
    """Make kernels that read sizes, or know them."""
    token = _read.set(yes)
    try:
        yield
    finally:
        _read.reset(token)


def taken_out(function: Function, places: list[tuple[Buffer, int]]) -> tuple[Buffer, np.ndarray]:
    """Let a kernel read its sizes, from a place that is added to its own: the memory, and what stands there."""
    pointer = Operation("pointer", "ptr", (), len(places))
    first: list[Any] = [pointer]
    numbers: list[Operation] = []
    found: dict[int, Operation] = {}

    def value(of: Any) -> Any:
        if not isinstance(of, Operation) or of.op != "const" or not _is_size(of):
            return of
        if id(of) not in found:
            place = Operation("offset", "ptr", (pointer, Operation("const", I64, (), CELL * len(numbers))))
            found[id(of)] = Operation("load", of.type, (place, None), of.type)
            first.extend([place, found[id(of)]])
            numbers.append(of)
        return found[id(of)]

    def change(body: list[Any]) -> None:
        for one in body:
            if not isinstance(one, Loop):
                one.args = tuple([value(arg) for arg in one.args])
                continue
            one.begin, one.end = value(one.begin), value(one.end)
            for carried in one.carried:
                carried.start, carried.next = value(carried.start), value(carried.next)
            change(one.body)

    change(function.body)
    function.body[:0] = first
    memory = np.zeros(max(len(numbers), 1), np.uint64)
    cells = memory.view(np.uint8).reshape(-1, CELL)
    for cell, number in zip(cells, numbers, strict=False):
        dtype = STORED[number.type]
        cell[: dtype.itemsize] = np.array([number.detail], dtype).view(np.uint8)
    buffer = Buffer(-5, False)
    places.append((buffer, 0))
    return buffer, memory


def _is_size(constant: Operation) -> bool:
    """Tell whether a constant may be another for other sizes. 0 and 1 are not: few things are done alike for them."""
    number: float = constant.detail
    if constant.type == I64:
        return number not in (0, 1)
    if constant.type not in STORED or not math.isfinite(number) or not number:
        return False
    size = max(abs(number), abs(1 / number))
    return size > SMALL and abs(2 * size - round(2 * size)) <= 1e-6 * size
