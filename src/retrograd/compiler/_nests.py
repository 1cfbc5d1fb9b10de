"""Nests of loops: nodes of a program that go over the same elements, computed together.

Note [Nests]
A nest has a shape. Maps and stores of that shape share its loops: what one makes the others have in registers, and it is stored only if
somebody else reads it. A reduction over some axes divides the nest: these axes are gone over inside, the others outside, where there is
one *row* for each of their indices. What depends on a reduction is computed in a later *pass* over the row, which is in the cache by
then, and maps of what there is once for each row are computed between passes. So a softmax is one nest of three passes.

A node may join if what it reads of the nest's own values it reads at the place where they are made: by the same strides. Views need no
rule for that. Others come in a later stage (Note [Stages] in `_stages.py`).

What a later pass reads waits in memory, unless it is made again of what is there anyway by a few operations: these cost less than memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .._native import expression as ex
from .._native.expression import I64, Expr
from .._native.loops import COMBINE, Carried, Function, Loop, _expanded, start_of
from .._native.loops import Step as Operation
from .._native.trace import STORAGE
from ._lowering import Map, Node, Reduction, Store, computed
from ._program import Buffer, Value

MOST = 400  # operations of a nest: LLVM takes longer than in proportion
STREAMS = 24  # arrays that one loop goes over, unless it is short
LONG = 1024  # float32 numbers that are added one after the other: more are added in float64
SHORT_ROW = 12  # elements of a row that is not worth a loop of its own beside a flat one over all rows
BLOCK = 1 << 12  # elements of an item
FEW = 6  # operations by which a value is rather made again than kept for a later pass
# what operations cost, in those of a vector
COST = {"call": 20, "div": 6, "sqrt": 8, "const": 0, "input": 0}

Strides = tuple[int, ...]


def number(value: int) -> Any:
    """Return a whole number of the kernel."""
    return Operation("const", I64, (), value)


def strides_of(value: Value, axes: tuple[int, ...], rank: int) -> Strides:
    """Return how far elements of a value are apart along each axis of a nest; `axes` says where a node's own axes are."""
    found = [0] * rank
    lead = len(axes) - len(value.shape)
    for k, (n, stride) in enumerate(zip(value.shape, value.strides, strict=True)):
        if n != 1:
            found[axes[k + lead]] = stride
    return tuple(found)


# ---- writing ----
class Access(NamedTuple):
    """Elements of a value are read, or written: where they lie for each turn of the loops."""

    writes: bool
    buffer: Buffer
    place: tuple[int, Strides]


@dataclass(slots=True)
class _Level:
    """A loop that is open: what is written at its beginning, and behind that."""

    index: Any
    loop: Loop | None
    before: list[Any] = field(default_factory=list)
    body: list[Any] = field(default_factory=list)
    pointers: dict[Any, Any] = field(default_factory=dict)


class Writer:
    """Writes the function of a stage: loops, and the places in memory that it goes through."""

    def __init__(self) -> None:
        self.places: list[tuple[Buffer, int]] = []  # what each pointer is: memory, and a distance in it
        self.levels = [_Level(None, None)]
        self.room = 0
        self.accesses: list[list[Access]] = []  # what each body goes over, in the order in which it does

    def function(self) -> Function:
        root = self.levels[0]
        return Function([*root.before, *root.body], room=self.room)

    @property
    def body(self) -> list[Any]:
        return self.levels[-1].body

    def operation(self, op: str, type: str, *args: Any, detail: Any = None) -> Any:
        """Write an operation where the writing is."""
        made = Operation(op, type, args, detail)
        self.body.append(made)
        return made

    def early(self, op: str, type: str, *args: Any, detail: Any = None) -> Any:
        """Write an operation at the beginning of the loop that is open, before all that is computed there."""
        made = Operation(op, type, args, detail)
        self.levels[-1].before.append(made)
        return made

    def bounds(self) -> tuple[Any, Any]:
        """Return the range of items of a call."""
        return self.early("bound", I64, detail=0), self.early("bound", I64, detail=1)

    def open(self, begin: Any, end: Any, free: bool = False) -> Any:
        """Begin a loop, and return its index."""
        loop = Loop(Operation("index", I64), begin, end, free)
        self.body.append(loop)
        self.levels.append(_Level(loop.index, loop))
        return loop.index

    def close(self) -> Loop:
        """End the innermost loop."""
        level = self.levels.pop()
        assert level.loop is not None
        level.loop.body = [*level.before, *level.body]
        return level.loop

    def pointer(self, buffer: Buffer, offset: int) -> Any:
        """Return the pointer to a place."""
        root = self.levels[0]
        found = root.pointers.get((buffer, offset))
        if found is None:
            found = root.pointers[buffer, offset] = Operation("pointer", "ptr", (), len(self.places))
            self.places.append((buffer, offset))
            root.before.append(found)
        return found

    def moved(self, pointer: Any, index: Any, stride: int, level: _Level) -> Any:
        """Write a pointer that is `index` times `stride` bytes behind another."""
        if stride == 0:
            return pointer
        step = Operation("mul", I64, (index, number(stride)))
        made = Operation("offset", "ptr", (pointer, step))
        level.before += [step, made]
        return made

    def address(self, base: Any, key: Any, strides: list[int], width: int) -> tuple[Any, Any]:
        """Return the pointer to an element, and the index behind it: `strides` are those along the loops that are open."""
        pointer, opened = base, self.levels[len(self.levels) - len(strides) :]
        for depth, (level, stride) in enumerate(zip(opened, strides, strict=True)):
            last = level is opened[-1]
            if last and level.loop is not None and level.loop.free and stride == width:
                return pointer, level.index
            if stride:
                known = (key, tuple(strides[: depth + 1]))
                if known not in level.pointers:
                    level.pointers[known] = self.moved(pointer, level.index, stride, level)
                pointer = level.pointers[known]
        return pointer, None


# ---- nests ----
@dataclass(slots=True)
class _Made:
    """A value that a nest makes: where its elements lie, and in (or, of a row, after) which pass it is known."""

    value: Value
    strides: Strides
    of_row: bool
    at: int


@dataclass(slots=True)
class _Member:
    """A node of a nest: which of the nest's axes its own are, and its pass."""

    node: Any
    axes: tuple[int, ...]
    at: int
    of_row: bool


class Nest:
    """Loops over elements. See Note [Nests]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.inner: frozenset[int] = frozenset()  # axes that reductions go over
        self.members: list[_Member] = []
        self.made: dict[Buffer, _Made] = {}
        self.reads: dict[Buffer, list[tuple[int, Strides, int]]] = {}  # of others' memory: offset, strides, pass
        self.stored: dict[Buffer, Value] = {}
        self.cost = 0
        self.may_reduce = True

    @property
    def nodes(self) -> list[Node]:
        return [member.node for member in self.members]

    # ---- joining ----
    def add(self, node: Node) -> bool:
        """Add a node, if it can be computed here."""
        member = self._placed(node)
        if member is None:
            return False
        rank = len(self.shape)
        if isinstance(node, Reduction):
            self.inner = frozenset(node.axes)
        for operand in node.operands:
            if operand.buffer not in self.made and not is_number(operand):
                place = operand.offset, strides_of(operand, member.axes, rank), member.at
                self.reads.setdefault(operand.buffer, []).append(place)
        if isinstance(node, Store):
            self.stored[node.target.buffer] = node.target
        elif isinstance(node, Reduction):
            kept = _axes_of_result(node)
            self.made[node.out.buffer] = _Made(node.out, strides_of(node.out, kept, rank), True, member.at)
        elif isinstance(node, Map):
            strides = strides_of(node.out, member.axes, rank)
            self.made[node.out.buffer] = _Made(node.out, strides, member.of_row, member.at)
        self.members.append(member)
        self.cost += cost_of(node)
        return True

    def of_others(self, nodes: Sequence[Node]) -> Nest | None:
        """Return a nest like this one with other nodes; None if it cannot have them."""
        found, own = Nest(self.shape), {node.out.buffer for node in self.nodes if isinstance(node, (Map, Reduction))}
        found.inner, found.may_reduce = self.inner, self.may_reduce
        found.made = {buffer: made for buffer, made in self.made.items() if buffer not in own}
        return found if all([found.add(node) for node in nodes]) else None

    def _placed(self, node: Node) -> _Member | None:
        """Return how a node would be part of the nest; None if it cannot be."""
        if len(self.members) >= MOST or (len(self.streams()) > STREAMS and math.prod(self.shape) > 256):
            return None
        shape = node.out.shape if isinstance(node, Map) else node.operand.shape if isinstance(node, Reduction) else None
        if isinstance(node, Store):
            shape = node.target.shape
        if shape is None or (isinstance(node, Map) and node.out.buffer in self.made):  # another part of the same memory
            return None
        of_row = False
        axes = tuple(range(len(self.shape)))
        if shape != self.shape:
            kept = tuple([k for k in axes if k not in self.inner])
            if not self.inner or isinstance(node, Reduction):
                return None
            of_row = True
            if shape == tuple([self.shape[k] for k in kept]):
                axes = kept
            elif shape != tuple([1 if k in self.inner else n for k, n in enumerate(self.shape)]):
                return None
        if isinstance(node, Reduction) and not self._may_reduce(node):
            return None
        at = 0
        for operand in node.operands:
            if is_number(operand):
                continue
            strides = strides_of(operand, axes, len(self.shape))
            made = self.made.get(operand.buffer)
            if made is not None:
                if made.value.offset != operand.offset or made.strides != strides or made.value.dtype != operand.dtype:
                    return None
                at = max(at, made.at + (made.of_row and not of_row))
            elif operand.buffer in self.stored:
                return None
        if isinstance(node, Store):
            target = node.target
            if target.buffer in self.stored or target.buffer in self.made:
                return None
            own = target.offset, strides_of(target, axes, len(self.shape))
            for *place, when in self.reads.get(target.buffer, ()):
                if tuple(place) != own:
                    return None
                at = max(at, when)
        return _Member(node, axes, at, of_row)

    def _may_reduce(self, node: Reduction) -> bool:
        """Tell whether a reduction goes over rows of this nest."""
        if not self.may_reduce:
            return False
        if self.inner:
            return self.inner == frozenset(node.axes)
        row = math.prod(self.shape[k] for k in node.axes)
        rows = math.prod(self.shape) // max(row, 1)
        # few long rows would leave threads without work; many short ones would leave lanes without any
        return row >= SHORT_ROW and (rows >= 16 or math.prod(self.shape) <= BLOCK) and goes_along_rows(node)

    def streams(self) -> set[Buffer]:
        """Return the memory that it goes over."""
        return {*self.reads, *self.stored, *self.made}

    # ---- writing ----
    def write(self, writer: Writer, kept: set[Buffer], parallel: bool) -> int:
        """Write the loops, and return how many items there are. `kept` is memory that others read."""
        body = _Body(self, writer, kept)
        outer = [k for k in range(len(self.shape)) if k not in self.inner and self.shape[k] != 1]
        inner = [k for k in self.inner if self.shape[k] != 1]
        dims = [body.merged(outer), body.merged(inner)]
        if not self.inner:
            dims = [dims[0][:-1], dims[0][-1:]]
        if not parallel:
            body.write_rows(dims[0], dims[1])
            return 1
        if not dims[0]:  # one row: only one that is not reduced can be divided
            if self.inner or not dims[1]:
                body.write_rows([], dims[1])
                return 1
            return body.write_blocks(dims[1][0])
        return body.write_items(*dims)

    def work(self) -> int:
        """Estimate how long it takes, in operations of vectors."""
        return math.prod(self.shape) * (self.cost + 2 * len(self.streams())) // 16


def goes_along_rows(node: Reduction) -> bool:
    """Tell whether the elements that a reduction joins are neighbours in memory, rather than those that stay apart."""
    sized = [
        (abs(s), k)
        for k, (n, s) in enumerate(zip(node.operand.shape, node.operand.strides, strict=True))
        if n != 1 and s
    ]
    return not sized or min(sized)[1] in node.axes


def is_number(value: Value) -> bool:
    """Tell whether a value is a number that is part of the kernel."""
    return value.constant is not None and not value.buffer.written and not value.shape


def cost_of(node: Node) -> int:
    """Estimate what an element costs."""
    if not isinstance(node, Map):
        return 1
    return sum(COST.get(one.op, 1) for one in ex.nodes_of(node.expression))


def _axes_of_result(node: Reduction) -> tuple[int, ...]:
    """Return which axes of the operand those of the result are. Leading ones may be dropped while others stay with one element."""
    rank, left = len(node.operand.shape), len(node.out.shape)
    if left == rank - len(node.axes):
        return tuple([k for k in range(rank) if k not in node.axes])
    return tuple(range(rank - left, rank))


class _Body:
    """Writes what a nest does to an element, and between rows."""

    def __init__(self, nest: Nest, writer: Writer, kept: set[Buffer]) -> None:
        self.nest, self.writer = nest, writer
        self.rank = len(nest.shape)
        self.kept = kept
        self.passes = max([member.at for member in nest.members], default=0) + 1
        self.values: dict[Buffer, Any] = {}  # what is known in the loop that is open: elements
        self.rows: dict[Buffer, Any] = {}  # and what is known of the row
        self.loads: dict[Any, Any] = {}
        self.bases: dict[Any, Any] = {}  # pointers to where the loops begin, if that is not where the memory does
        self.dims: list[list[int]] = []  # the axes of each loop that is open
        self.accessed: list[Access] = []
        writer.accesses.append(self.accessed)
        self.again = self._made_again()
        self.later = self._read_later()

    def _made_again(self) -> dict[Buffer, _Member]:
        """Return the maps whose values every pass that reads them makes by itself, of memory that nobody writes in between."""
        nest, found = self.nest, dict[Buffer, _Member]()
        costs: dict[Buffer, int] = {}
        for member in nest.members if self.passes > 1 else ():
            node = member.node
            if not isinstance(node, Map) or member.of_row or node.out.buffer in self.kept:
                continue
            cost = cost_of(node)
            for operand in node.operands:
                made = nest.made.get(operand.buffer)
                if operand.buffer in nest.stored:
                    cost = FEW + 1
                elif made is not None and not made.of_row and operand.buffer not in self.kept:
                    cost += costs.get(operand.buffer, FEW + 1)
            if cost <= FEW:
                found[node.out.buffer], costs[node.out.buffer] = member, cost
        return found

    def _read_later(self) -> set[Buffer]:
        """Return the values of elements that a later pass reads: they wait in memory."""
        found = set()
        for member in self.nest.members:
            for operand in member.node.operands:
                made = self.nest.made.get(operand.buffer)
                if made is not None and not made.of_row and made.at < member.at and operand.buffer not in self.again:
                    found.add(operand.buffer)
        return found

    def accesses(self) -> list[Strides]:
        """Return the strides of all memory that is gone over."""
        nest = self.nest
        found = [strides for places in nest.reads.values() for _, strides, _ in places]
        found += [made.strides for buffer, made in nest.made.items() if buffer in self.kept or buffer in self.later]
        axes = tuple(range(self.rank))
        for member in nest.members:
            if isinstance(member.node, Store):
                found.append(strides_of(member.node.target, member.axes or axes, self.rank))
        return found

    def merged(self, axes: list[int]) -> list[list[int]]:
        """Order axes as they lie in memory, and join those that follow one another in all memory."""
        accesses = self.accesses()
        main = next((one for one in reversed(accesses) if all(one[k] for k in axes)), None)
        if main is not None:
            axes = sorted(axes, key=lambda k: (-abs(main[k]), k))
        found: list[list[int]] = []
        for axis in axes:
            if found and all(one[found[-1][-1]] == one[axis] * self.nest.shape[axis] for one in accesses):
                found[-1].append(axis)
            else:
                found.append([axis])
        return found

    def size(self, dim: list[int]) -> int:
        return math.prod(self.nest.shape[k] for k in dim)

    # ---- loops ----
    def write_rows(self, outer: list[list[int]], inner: list[list[int]]) -> None:
        """Write all loops, from the first element to the last."""
        for dim in outer:
            self.writer.open(number(0), number(self.size(dim)))
            self.dims.append(dim)
        self.write_row([(number(0), number(self.size(dim)), dim) for dim in inner])
        for _ in outer:
            self.writer.close()
            self.dims.pop()

    def write_blocks(self, dim: list[int]) -> int:
        """Write the loop over one dimension, a block of which is an item."""
        writer, size = self.writer, self.size(dim)
        low, high = writer.bounds()
        block = writer.early("mul", I64, low, number(BLOCK))
        end = writer.early("mul", I64, high, number(BLOCK))
        self.write_row([(block, writer.early("imin", I64, end, number(size)), dim)])
        return -(-size // BLOCK)

    def write_items(self, outer: list[list[int]], inner: list[list[int]]) -> int:
        """Write the loops over rows, of which threads take their parts."""
        writer = self.writer
        first = [outer[0]]
        while len(first) < len(outer) and math.prod(map(self.size, first)) < 16:
            first.append(outer[len(first)])
        low, high = writer.bounds()
        index = writer.open(low, high)
        if len(first) == 1:
            self.dims.append(first[0])
        else:
            self._divide(index, first)
        for dim in outer[len(first) :]:
            writer.open(number(0), number(self.size(dim)))
            self.dims.append(dim)
        self.write_row([(number(0), number(self.size(dim)), dim) for dim in inner])
        for _ in outer[len(first) - 1 :]:
            writer.close()
        self.dims.clear()
        return math.prod(map(self.size, first))

    def _divide(self, index: Any, dims: list[list[int]]) -> None:
        """Make of the number of an item the indices of several dimensions: bases are moved there."""
        level = self.writer.levels[-1]
        rest = index
        where: list[Any] = []
        for dim in reversed(dims[1:]):
            size = number(self.size(dim))
            where.insert(0, Operation("urem", I64, (rest, size)))
            rest_next = Operation("udiv", I64, (rest, size))
            level.before += [where[0], rest_next]
            rest = rest_next
        where.insert(0, rest)
        self.item = [(at, dim) for at, dim in zip(where, dims, strict=True)]
        self.dims.append([])

    item: list[tuple[Any, list[int]]] = []  # noqa: RUF012 - replaced, never changed

    def write_row(self, inner: list[tuple[Any, Any, list[int]]]) -> None:
        """Write the passes over a row."""
        members = self.nest.members
        self.rows = {}
        self.row_loads: dict[Any, Any] = {}
        for at in range(self.passes):
            elements = [one for one in members if one.at == at and not one.of_row]
            if elements:
                self._pass(elements, inner)
            for member in members:
                if member.at == at and member.of_row:
                    self._row_member(member)

    def _pass(self, members: list[_Member], inner: list[tuple[Any, Any, list[int]]]) -> None:
        writer = self.writer
        reductions = [one for one in members if isinstance(one.node, Reduction)]
        types = [self._type_of_total(one.node, inner) for one in reductions]
        totals: list[Any] = [
            Operation("const", type, (), start_of(one.node.operation, type))
            for one, type in zip(reductions, types, strict=True)
        ]
        carried: list[list[Carried]] = []
        for depth, (begin, end, dim) in enumerate(inner):
            writer.open(begin, end, free=depth == len(inner) - 1)
            loop = writer.levels[-1].loop
            assert loop is not None
            loop.carried = [Carried(type, total) for type, total in zip(types, totals, strict=True)]
            totals = list(loop.carried)
            carried.append(loop.carried)
            self.dims.append(dim)
        self.values, self.loads = {}, {}
        self.at = members[0].at
        found: list[Any] = []
        for member in members:
            node = member.node
            if isinstance(node, Reduction):
                total, type = totals[len(found)], types[len(found)]
                value = self._read(node.operand, member, computed(node.operand))
                value = self._cast(value, type)
                found.append(writer.operation(COMBINE[node.operation], type, total, value))
            elif isinstance(node, Map):
                self.values[node.out.buffer] = value = self._computed(node, member)
                if node.out.buffer in self.kept or node.out.buffer in self.later:
                    self._write(node.out, member, value)
            else:
                self._write(node.target, member, self._read(node.value, member, computed(node.value)))
        for loop_carried in reversed(carried):
            for one, value in zip(loop_carried, found, strict=True):
                one.next = value
            found = list(loop_carried)
            writer.close()
            self.dims.pop()
        for member, total, type in zip(reductions, found, types, strict=True):
            self._finish(member, total, type)

    def _type_of_total(self, node: Reduction, inner: list[Any]) -> str:
        """Return the type that a reduction is computed in: long sums of float32 take float64."""
        type = computed(node.operand)
        length = math.prod(self.size(dim) for _, _, dim in inner)
        return "f64" if type == "f32" and node.operation == "sum" and length > 16 * LONG else type

    def _cast(self, value: Any, type: str) -> Any:
        return value if value.type == type else self.writer.operation("cast", type, value)

    def _finish(self, member: _Member, total: Any, type: str) -> None:
        """Make the result of a reduction of its total."""
        node, writer = member.node, self.writer
        if node.count != 1:
            total = writer.operation("div", type, total, Operation("const", type, (), float(node.count)))
        total = self._cast(total, STORAGE[node.out.dtype])
        self.rows[node.out.buffer] = total
        if node.out.buffer in self.kept:
            self._store(node.out, self.nest.made[node.out.buffer].strides, total)

    def _row_member(self, member: _Member) -> None:
        """Write a node that there is once for each row."""
        self.values, self.loads = {}, self.row_loads
        node = member.node
        if isinstance(node, Store):
            self._write(node.target, member, self._read(node.value, member, computed(node.value)))
            return
        self.rows[node.out.buffer] = value = self._computed(node, member)
        if node.out.buffer in self.kept:
            self._write(node.out, member, value)

    # ---- elements ----
    def _computed(self, node: Map, member: _Member) -> Any:
        """Write what computes an element of a map."""
        (expression,) = _expanded([node.expression])
        done: dict[Expr, Any] = {}
        for one in ex.nodes_of(expression):
            if one.op == "const":
                done[one] = Operation("const", one.type, (), ex.value_of(one))
            elif one.op == "input":
                done[one] = self._read(node.operands[one.detail], member, one.type)
            else:
                done[one] = self.writer.operation(one.op, one.type, *[done[a] for a in one.args], detail=one.detail)
        return done[expression]

    def _read(self, value: Value, member: _Member, type: str) -> Any:
        if is_number(value):
            return Operation("const", type, (), value.constant.item())
        found = self.values.get(value.buffer, self.rows.get(value.buffer))
        if found is not None:
            return found
        if (made := self.again.get(value.buffer)) is not None:
            self.values[value.buffer] = found = self._computed(made.node, made)
            return found
        strides = strides_of(value, member.axes, self.rank)
        key = value.buffer, value.offset, strides, value.dtype
        found = self.loads.get(key)
        if found is None:
            base, index = self._address(value, strides)
            self.accessed.append(Access(False, value.buffer, (value.offset, strides)))
            found = Operation("load", type, (base, index), STORAGE[value.dtype])
            self._place_of_load(value, strides).append(found)
            self.loads[key] = found
        return found

    def _place_of_load(self, value: Value, strides: Strides) -> list[Any]:
        """Return where an element is read: before the loops along which it stays the same, unless it is made there."""
        levels = self.writer.levels
        if value.buffer in self.nest.made:
            return levels[-1].body
        for level, dim in zip(reversed(levels), reversed(self.dims), strict=False):
            if dim == [] or strides[dim[-1]]:
                return level.body if level is levels[-1] else level.before
        if len(self.dims) < len(levels) - 1:  # inside of others' loops
            return levels[len(levels) - len(self.dims) - 1].before
        return levels[0].before if self.dims else levels[-1].body

    def _write(self, out: Value, member: _Member, value: Any) -> None:
        self._store(out, strides_of(out, member.axes, self.rank), value)

    def _store(self, out: Value, strides: Strides, value: Any) -> None:
        base, index = self._address(out, strides)
        self.accessed.append(Access(True, out.buffer, (out.offset, strides)))
        self.writer.operation("store", "void", base, index, value, detail=STORAGE[out.dtype])

    def _address(self, value: Value, strides: Strides) -> tuple[Any, Any]:
        """Return the pointer to the element of a value that the loops are at, and the index behind it."""
        key = value.buffer, value.offset
        base = self.base(value, strides)
        steps = [strides[dim[-1]] if dim else 0 for dim in self.dims]
        return self.writer.address(base, (key, strides), steps, value.dtype.itemsize)

    def base(self, value: Value, strides: Strides) -> Any:
        """Return the pointer to where the loops begin in a value."""
        base = self.writer.pointer(value.buffer, value.offset)
        if not self.item:
            return base
        key = value.buffer, value.offset, strides
        found = self.bases.get(key)
        if found is None:
            level = self.writer.levels[1]
            found = base
            for at, dim in self.item:
                found = self.writer.moved(found, at, strides[dim[-1]], level)
            self.bases[key] = found
        return found
