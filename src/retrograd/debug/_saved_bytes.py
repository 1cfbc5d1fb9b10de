"""Which lines of a program keep memory alive for backward."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import Batched, Dual, LevelArray, owner_of_memory
from .._graph.node import Freed, Node, Packed
from .._graph.walk import graph_of
from .._places import at_line, line_of
from .._readable import readable_bytes
from ..autograd._function_attributes import users_attributes
from ..autograd._function_node import BackwardCFunction, Saved
from ..tensor import _base


@dataclass(frozen=True)
class Line:
    """The arrays that the operations of one source line keep."""

    file: str
    line: int
    source: str
    operations: tuple[str, ...]
    bytes: int


class SavedBytes:
    """What a graph keeps for backward, by source line, the largest first. Printing it gives a table."""

    def __init__(self, lines: list[Line], parameters: int) -> None:
        self.lines = lines
        self.parameters = parameters  # bytes of leaves that are saved as well: they exist in any case

    @property
    def total(self) -> int:
        """Return the bytes of all lines."""
        return sum(line.bytes for line in self.lines)

    def __repr__(self) -> str:
        rows = [("bytes", "operations", "line")]
        rows += [(readable_bytes(one.bytes), ", ".join(one.operations), _where(one)) for one in self.lines]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        table = [f"{row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in rows]
        return "\n".join(
            [
                *table,
                f"{readable_bytes(self.total)} kept for backward; {readable_bytes(self.parameters)} of leaves are saved too, "
                "which are there in any case",
            ]
        )


def _where(line: Line) -> str:
    return at_line(line.file, line.line) + (f"  {line.source}" if line.source else "")


def saved_bytes(*outputs: Any) -> SavedBytes:
    """Say which source line keeps how many bytes for the backward of `outputs`.

    An array that several operations saved, or several views of it, counts once, for the first of them in the program.
    What a fused operation keeps for itself counts, and tensors that are attributes of a custom Function's ctx.

    Args:
        *outputs: tensors, such as a loss

    Example:
        >>> x = torch.ones(1000, requires_grad=True)
        >>> torch.debug.saved_bytes(x.exp().sum()).total
        4000
    """
    for output in outputs:
        if not isinstance(output, _base.Tensor):
            listed = isinstance(output, (list, tuple)) and all(isinstance(one, _base.Tensor) for one in output)
            hint = "\nHint: give them one by one: saved_bytes(*outputs)." if listed else ""
            raise TypeError(f"saved_bytes(): expected tensors, but got {type(output).__name__}{hint}")
    nodes, leaves = graph_of([output._edge for output in outputs if output._edge is not None])
    owned = {key for leaf in leaves for key, _ in _buffers(leaf._array)}
    seen: set[int] = set()
    parameters = 0
    found: dict[tuple[str, int], tuple[dict[str, None], int]] = {}
    for node in sorted(nodes, key=lambda n: n.seq):
        for key, size in _saved_buffers(node):
            if key in seen:
                continue
            seen.add(key)
            if key in owned:
                parameters += size
                continue
            where = ("<unknown>", 0) if node.code is None else (node.code.co_filename, line_of(node.code, node.lasti))
            names, total = found.get(where, ({}, 0))
            found[where] = (names | {node.name(): None}, total + size)
    lines = [
        Line(file, line, linecache.getline(file, line).strip(), tuple(names), total)
        for (file, line), (names, total) in found.items()
    ]
    return SavedBytes(sorted(lines, key=lambda one: -one.bytes), parameters)


def saved_values(node: Node) -> Iterator[tuple[str, Any]]:
    """Return what a node keeps for backward, with its names: of a custom Function, also tensors that its ctx has as attributes."""
    if isinstance(node, BackwardCFunction):
        yield "saved_tensors", node._kept
        yield from users_attributes(node).items()  # which are not freed
    if type(node.guard) is Freed:
        return
    packed = {} if node.guard is None else node.guard.packed
    for name in (*node.array_names, "residuals"):  # residuals: what a fused operation keeps for itself
        yield name, packed[name] if name in packed else getattr(node, name, None)


def _saved_buffers(node: Node) -> Iterator[tuple[int, int]]:
    for _, value in saved_values(node):
        yield from pieces_of(value)


def pieces_of(value: Any) -> Iterator[tuple[int, int]]:
    """Return the pieces of memory behind a saved value: an array, a tensor, what a pack hook returned, or several."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from pieces_of(part)
    elif isinstance(value, dict):
        yield from pieces_of(list(value.values()))
    elif isinstance(value, Packed):
        yield from pieces_of(value.value)
        call = getattr(value.unpack, "__self__", None)  # of a checkpoint, which keeps the arguments
        yield from pieces_of(getattr(getattr(call, "arguments", None), "kept", ()))
    elif isinstance(value, Saved):
        yield from pieces_of(value.array if value.packed is None else value.packed)
    else:
        yield from _buffers(value._array if isinstance(value, _base.Tensor) else value)


def _buffers(array: Any) -> Iterator[tuple[int, int]]:
    """Return a key and the size in bytes of each piece of memory behind an array."""
    for owner in owners_of(array):
        yield id(owner), owner.nbytes


def owners_of(array: Any) -> Iterator[Any]:
    """Return the raw arrays whose memory an array uses."""
    if isinstance(array, Dual):
        for part in (array.primal, array.tangent):
            if part is not None:
                yield from owners_of(part)
    elif isinstance(array, Batched):
        yield from owners_of(array.array)
    elif isinstance(array, np.ndarray):
        yield owner_of_memory(array)
    elif not isinstance(array, LevelArray) and hasattr(array, "nbytes"):
        yield array
