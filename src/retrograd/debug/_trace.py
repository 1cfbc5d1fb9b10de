"""What a recording holds: operations, the steps in which they ran, and where in the program they stand."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .._places import at_line, is_own, line_of, program_frames
from ._statistics import Statistics

FORWARD, BACKWARD, STEP = "forward", "backward", "optimizer"  # kinds of steps
OPERATION, PARAMETER, INPUT, READ, OPTIMIZER = (
    "operation",
    "parameter",
    "input",
    "read",
    "optimizer",
)  # of boxes, besides BACKWARD
LEAVES = (PARAMETER, INPUT)
ALL, SAVED, NONE = (
    "all",
    "saved",
    "none",
)  # which values were looked at: those of every operation, those that the graph has kept


@dataclass
class Value:
    """A tensor as it was when it was made."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    statistics: Statistics | None = None
    freed: int | None = None  # the step after which its memory was given back


@dataclass
class SavedValue:
    """A value that the graph kept for backward."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    source: int | None  # the operation that made it
    is_first: bool  # no other operation has saved this memory before, and no leaf owns it


@dataclass
class Operation:
    """A box of the graph: a call of the program, or a tensor that was there before."""

    name: str
    kind: str
    group: int  # of modules; -1: none
    stack: int  # the lines of the program that led to it, the outermost first; -1: unknown
    inputs: list[int] = field(default_factory=list)
    computed_by: int | None = (
        None  # one of them, if it ran in the forward of a custom Function: no gradient comes to it
    )
    values: list[Value] = field(default_factory=list)
    gradient: Statistics | None = None  # of the first output, as it arrived last
    node: str = ""  # its class in the graph
    saved: list[SavedValue] = field(default_factory=list)
    released: int | None = None  # the step after which what it saved was given back
    remark: str = ""  # why no gradient passes, what it raised
    cut: bool = False
    is_meant: bool = False  # the cut: a program writes detach() and no_grad() on purpose
    leaf: int | None = None  # which of the leaves it stands for, or has made
    stepped: int = 0  # how many parameters an optimizer has changed in it


@dataclass
class Step:
    """Something that ran: an operation, the backward of a node, an optimizer's step."""

    kind: str
    operation: int
    run: int  # which backward, counted from 1; 0 outside of one
    began: int  # nanoseconds since the beginning
    took: int  # without the time in which kernels were made
    live: int = 0  # bytes of all tensors that were alive after it
    compiled: int = 0  # kernels
    read: int = 0  # kernels that were in the cache
    making: int = 0  # nanoseconds in which kernels were compiled and read
    name: str = ""  # of the node
    finite: bool = True  # whether the gradient that arrived was
    spoiled: bool = False  # gradients that were not finite came out, though the one that arrived was
    stopped: bool = False  # zeros alone came out, though something else arrived


@dataclass
class Leaf:
    """A parameter or another tensor that takes a gradient."""

    name: str
    value: Value
    requires_grad: bool
    gradient: Statistics | None = None
    steps: list[int] = field(default_factory=list)  # in which gradients arrived
    remark: str = ""


@dataclass(frozen=True)
class Group:
    """One call of a module."""

    name: str
    module: str  # its class
    parent: int


@dataclass
class Finding:
    """Something that a reader should look at."""

    kind: str  # "nan", "vanished", "cut", "meant", "missing", "unused", "error"
    text: str
    operation: int | None = None
    step: int | None = None
    before: list[tuple[int, str]] = field(default_factory=list)  # operations that ran last before it, and their names
    number: int = 1  # of what it speaks

    def __str__(self) -> str:
        return self.text + (f"\nLast before it: {', '.join(name for _, name in self.before)}" if self.before else "")


class Places:
    """The lines of a program, numbered, and the stacks of lines that led to operations."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, int, str], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}

    def line(self, file: str, line: int, function: str) -> int:
        """Return the number of a line."""
        return self.lines.setdefault((file, line, function), len(self.lines))

    def stack(self, frame: FrameType | None, until: FrameType | None) -> int:
        """Return the number of the stack of the program's lines from a frame up to another."""
        found = []
        for one in program_frames(frame):
            code = one.f_code
            if not code.co_filename.startswith("<frozen"):
                found.append(self.line(code.co_filename, one.f_lineno, code.co_name))
            if one is until:
                break
        return self.stack_of(tuple(reversed(found)))

    def of_node(self, node: Any) -> int:
        """Return the number of the stack that is known of a node: one line."""
        if node.code is None or is_own(node.code.co_filename):
            return -1
        return self.stack_of((self.line(node.code.co_filename, line_of(node.code, node.lasti), node.code.co_name),))

    def stack_of(self, lines: tuple[int, ...]) -> int:
        """Return the number of a stack."""
        return self.stacks.setdefault(lines, len(self.stacks)) if lines else -1

    def written(self, stack: int) -> str:
        """Return the innermost line of a stack as words: ` (train.py:12)`; nothing, if it is not known."""
        if stack < 0:
            return ""
        file, line, _ = [*self.lines][[*self.stacks][stack][-1]]
        return f" ({at_line(file, line, short=True)})"

    def sources(self) -> dict[str, list[str]]:
        """Return the text of every file that is named."""
        return {file: linecache.getlines(file) for file, _, _ in self.lines}


@dataclass
class Trace:
    """All that was recorded."""

    title: str = ""
    operations: list[Operation] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    meant_cuts: list[Finding] = field(default_factory=list)
    places: Places = field(default_factory=Places)
    notes: list[str] = field(default_factory=list)
    is_whole: bool = False  # whether a recording has seen its program to the end
    values: str = ALL
    compiled: int = 0  # kernels; and those that were read from the cache, and the nanoseconds that both took
    read: int = 0
    making: int = 0
