"""Loops: which values are computed where, in which loop and in which pass over a row.

Note [Items, rows and lanes]
A kernel works on items, numbered from 0: a call takes those of a range, so that threads share them. An item is a row: all that one index
of the outer dimensions has, or a block of it where nothing is reduced. The inner dimensions are those of the row.
- *rows*: values are read along the row, and a reduction is a number that the loop carries. What depends on a reduction is computed in a
  pass of its own over the row, which is in the cache by then: a softmax has three passes, a layer norm three.
- *lanes*: the reduced dimensions are not the last in memory. An item is a block of neighbours (lanes) in the last dimension, a
  reduction an array with a number for each lane.
- *columns*: an output that is summed over the items. Each chunk of items has a row of its own to add to; the caller adds the rows.
What is read from where is the operand's pattern: for each dimension "0" (the same for all), "1" (elements that are neighbours) or "s".

Values, steps and loops are what renderers get (`llvm`): steps have an operation, a type and arguments, loops a counter, carried values
and a body. There is nothing about a target in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

from . import expression as ex
from .expression import I64, Expr

SPILL: Final = 10  # operations: a value that takes as many is quicker stored and read again than computed again
LOOKED_FOR: Final = 8  # operations that are worth a look for what is rare
SIDE_BY_SIDE: Final = 256  # elements of a row from which several vectors side by side pay
# operations that take longer than to wait for memory
HEAVY: Final = frozenset({"call", "reduce", "div", "rem", "sqrt", "cast", "rounded"})
LANES: Final = 256  # numbers of a block of lanes: a few arrays of them stay in the first cache
STREAMED: Final = 2048  # numbers of a block that is streamed
STRETCH: Final = 2048  # float32 numbers of a long sum that are added in float32, in all lanes

# what a reduction begins with, by its operation
_INFINITY = float("inf")
START: Final[dict[str, Any]] = {
    "sum": 0.0, "prod": 1, "max": -_INFINITY, "min": _INFINITY, "any": False, "all": True,
    "ordered_max": -_INFINITY, "ordered_min": _INFINITY,
}  # fmt: skip
COMBINE: Final = {
    "ordered_max": "ordered_max",
    "ordered_min": "ordered_min",
    "sum": "sum_add",
    "prod": "prod_mul",
    "max": "maximum",
    "min": "minimum",
    "any": "or",
    "all": "and",
}


@dataclass(eq=False, slots=True)
class Step:
    """One operation; it is the value that it computes."""

    op: str
    type: str
    args: tuple[Any, ...] = ()
    detail: Any = None


@dataclass(eq=False, slots=True)
class Carried:
    """A value that goes from one turn of a loop to the next; it is the value before the turn, and after the loop the last one."""

    type: str
    start: Any
    next: Any = None


@dataclass(eq=False, slots=True)
class Loop:
    """Count from `begin` to `end`; `free` says that its turns do not depend on one another, but for what is carried.

    `short` says that turns are few: what is left over of the last vector is worth a masked one. `whole` says that their number is known
    and makes whole vectors: they are not to be written out one by one. `single` says that a turn has as many values as there are
    registers: one vector is computed at a time. `long` says that functions are called, and often enough for several vectors side by side.
    """

    index: Step
    begin: Any
    end: Any
    free: bool = False
    carried: list[Carried] = field(default_factory=list)
    body: list[Any] = field(default_factory=list)
    short: bool = False
    whole: bool = False
    single: bool = False
    long: bool = False


@dataclass(frozen=True, slots=True)
class Operand:
    """An array as a kernel sees it: how numbers are stored, the pattern of the outer and of the inner dimensions."""

    storage: str
    outer: str
    inner: str


@dataclass(frozen=True, slots=True)
class Output:
    """What is stored: an expression, once for each element, once for each row, or summed over the items for each column.

    A "room" is memory for one row of each chunk of items, in which costly values wait for a later pass; its expression says their type.
    """

    value: Expr
    level: str  # "element", "row", "column", "room"
    operand: Operand
    reduction: str = ""  # of a column: how the values of items are joined
    streamed: bool = False  # an element: its memory is not read before it is written, nor kept in the cache


@dataclass(frozen=True, slots=True)
class Kernel:
    """What loops are made of. `form` is "rows" or "lanes", `blocked` says whether items are blocks of the last inner dimension, `long`
    whether this dimension has at least SIDE_BY_SIDE elements.
    """

    inputs: tuple[Operand, ...]
    outputs: tuple[Output, ...]
    outer: int
    inner: int
    form: str = "rows"
    blocked: bool = False
    long: bool = False


@dataclass(slots=True)
class Function:
    """A kernel as loops: `body` reads its arguments by steps "pointer", "size", "scalar" and "bound" (of the items)."""

    body: list[Any]
    scratch: int = 0  # arrays of numbers
    length: int = LANES  # of these arrays
    room: int = 0  # bytes of memory on the stack, for steps "room" (`vectors` alone)
    light: bool = False  # it waits for memory, not for what it computes


class _Writer:
    """Writes the body of one function. `at` is the list that steps are appended to."""

    def __init__(self) -> None:
        self.body: list[Any] = []
        self.at = self.body
        self.scratch = 0

    def step(self, op: str, type: str, *args: Any, detail: Any = None) -> Step:
        made = Step(op, type, args, detail)
        self.at.append(made)
        return made

    def number(self, value: int) -> Step:
        return Step("const", I64, (), value)

    def add(self, x: Any, y: Any) -> Any:
        return self.step("add", I64, x, y)

    def mul(self, x: Any, y: Any) -> Any:
        return self.step("mul", I64, x, y)

    def open(self, begin: Any, end: Any, free: bool = False, long: bool = False) -> tuple[Loop, list[Any]]:
        """Begin a loop; steps go into it until its second part is given back to `at`."""
        loop = Loop(Step("index", I64), begin, end, free, long=long)
        self.at.append(loop)
        outside, self.at = self.at, loop.body
        return loop, outside


class _Lowering:
    """Makes the function of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.w = _Writer()
        operations = {n.op for n in ex.nodes_of(*[o.value for o in kernel.outputs])}
        storages = {o.storage for o in (*kernel.inputs, *[o.operand for o in kernel.outputs])}
        self.light = not operations & HEAVY and not storages & {"f16", "bf16"}
        self.long = kernel.long and "call" in operations
        expanded = _expanded([o.value for o in kernel.outputs], _rounded_next(kernel.outputs))
        if kernel.form == "rows":
            expanded = _with_quick_extremes(expanded)
        self.outputs = [
            Output(v, o.level, o.operand, o.reduction, o.streamed)
            for v, o in zip(expanded, kernel.outputs, strict=True)
        ]
        self.needed = ex.nodes_of(*[o.value for o in self.outputs])
        self.depth: dict[Expr, int] = {}
        for node in self.needed:
            self.depth[node] = self._depth_of(node)
        self.rooms: dict[int, Any] = {}  # outputs that are streamed: where a block of them is collected
        self.row: dict[Expr, Any] = {}  # values that stay the same in an item
        self.pieces: dict[Expr, Any] = {}  # lanes: scratch arrays of values of the row
        self.kept: tuple[Expr, int] | None = (
            None  # rows: a value that waits in the memory of an output for a later pass
        )

    def _depth_of(self, node: Expr) -> int:
        """Return how many inner loops a value needs around it."""
        if node.op == "input":
            inner = self.kernel.inputs[node.detail].inner
            return max([k + 1 for k, c in enumerate(inner) if c != "0"], default=0)
        if node.op == "position":
            return self.kernel.inner
        if node.op == "reduce":
            return 0
        return max([self.depth[a] for a in node.args], default=0)

    # ---- arguments of the function ----
    def _read_arguments(self) -> None:
        w, kernel = self.w, self.kernel
        at = 0

        def sizes(count: int) -> list[Any]:
            nonlocal at
            found = [w.step("size", I64, detail=at + k) for k in range(count)]
            at += count
            return found

        self.outer = sizes(kernel.outer)
        self.inner = sizes(kernel.inner)
        self.block, self.blocks, self.chunk = sizes(3)
        operands = [*kernel.inputs, *[o.operand for o in self.outputs]]
        self.strides = [sizes(kernel.outer + kernel.inner) for _ in operands]
        self.pointers = [w.step("pointer", "ptr", detail=k) for k in range(len(operands))]

    # ---- one item ----
    def lower(self) -> Function:
        w, kernel = self.w, self.kernel
        self._read_arguments()
        low, high = w.step("bound", I64, detail=0), w.step("bound", I64, detail=1)
        item, outside = w.open(low, high)
        rest: Any = item.index
        self.start, self.stop = w.number(0), self.inner[-1] if self.inner else w.number(1)
        if kernel.blocked:
            at = w.step("urem", I64, rest, self.blocks)
            rest = w.step("udiv", I64, rest, self.blocks)
            self.start = w.mul(at, self.block)
            self.stop = w.step("imin", I64, w.add(self.start, self.block), self.inner[-1])
        self.item = item.index
        where: list[Any] = []
        for k in reversed(range(kernel.outer)):
            where.insert(0, w.step("urem", I64, rest, self.outer[k]) if k else rest)
            if k:
                rest = w.step("udiv", I64, rest, self.outer[k])
        self.bases = []
        for number, operand in enumerate([*kernel.inputs, *[o.operand for o in self.outputs]]):
            base = self.pointers[number]
            for k, kind in enumerate(operand.outer):
                if kind != "0":
                    base = w.step("offset", "ptr", base, w.mul(where[k], self.strides[number][k]))
            self.bases.append(base)
        # the rows of partial sums and rooms: one for each chunk of items
        for number, output in enumerate(self.outputs, len(kernel.inputs)):
            if output.level in ("column", "room"):
                chunk = w.step("udiv", I64, low, self.chunk)
                self.bases[number] = w.step(
                    "offset", "ptr", self.pointers[number], w.mul(chunk, self.strides[number][0])
                )
        if kernel.form == "lanes":
            self._lanes()
        else:
            self._rows()
        w.at = outside
        if self.rooms:
            w.step("fence", "void")  # what is streamed may come later than what is written after it
        return Function(w.body, w.scratch, STREAMED if self.rooms else LANES, light=self.light)

    # ---- values ----
    def _value(self, node: Expr, known: list[dict[Expr, Any]], where: list[Any]) -> Any:
        """Write what computes a value at the present depth; `known[d]` holds those that need d loops."""
        depth = self.depth[node]
        for scope in known:
            if node in scope:
                return scope[node]
        if node.op == "const":
            return Step("const", node.type, (), ex.value_of(node))
        if self.kept is not None and node is self.kept[0]:
            number = self.kept[1]
            operand = self.outputs[number - len(self.kernel.inputs)].operand
            base, index = self._address(number, operand.inner, where)
            made: Any = self.w.step("load", node.type, base, index, detail=operand.storage)
        elif node.op == "scalar":
            made = self.w.step("scalar", node.type, detail=node.detail)
        elif node.op == "position":
            made = where[-1]
            for k in range(len(where) - 2, -1, -1):
                size: Any = self.inner[k + 1]
                for later in self.inner[k + 2 :]:
                    size = self.w.mul(size, later)
                made = self.w.add(made, self.w.mul(where[k], size))
        elif node.op == "input":
            made = self._load(node.detail, node.type, where)
        else:
            args = [self._value(a, known, where) for a in node.args]
            made = self.w.step(node.op, node.type, *args, detail=node.detail)
        known[min(depth, len(known) - 1)][node] = made
        return made

    def _address(self, number: int, pattern: str, where: list[Any]) -> tuple[Any, Any]:
        """Return a pointer and the index of the element behind it; None for the index where the pointer is the element's."""
        base, index = self.bases[number], None
        for k, kind in enumerate(pattern):
            if kind == "0":
                continue
            if kind == "1" and k == len(pattern) - 1:
                index = where[k]
            else:
                base = self.w.step(
                    "offset", "ptr", base, self.w.mul(where[k], self.strides[number][self.kernel.outer + k])
                )
        return base, index

    def _load(self, number: int, type: str, where: list[Any]) -> Any:
        operand = self.kernel.inputs[number]
        base, index = self._address(number, operand.inner, where)
        return self.w.step("load", type, base, index, detail=operand.storage)

    def _store(self, number: int, node: Expr, value: Any, where: list[Any], joined: str | None = None) -> None:
        operand = self.outputs[number - len(self.kernel.inputs)].operand
        base, index = self._address(number, operand.inner, where)
        if number in self.rooms:
            base, index = self.rooms[number], self.w.step("sub", I64, where[-1], self.start)
        if joined is not None:
            before = self.w.step("load", value.type, base, index, detail=operand.storage)
            value = self.w.step(joined, value.type, before, value)
        exact = () if joined is not None or not self._fits(node, operand.storage) else (True,)
        self.w.step("store", "void", base, index, value, *exact, detail=operand.storage)

    def _fits(self, node: Expr, storage: str) -> bool:
        """Tell whether a value has no more digits than its storage in half precision: it was read from there, and chosen or turned."""
        if storage not in ("f16", "bf16"):
            return False
        if node.op == "input":
            return bool(self.kernel.inputs[node.detail].storage == storage)
        if node.op == "const":
            return node.type == "f32" and ex.value_of(node) in (0.0, 1.0, -1.0, 0.5, -0.5)
        if node.op in ("neg", "abs", "maximum", "minimum", "select"):
            return all(self._fits(a, storage) for a in node.args[node.op == "select" :])
        return node.op == "rounded" and node.detail == storage

    def _places(self, wanted: Iterable[Expr]) -> list[list[Expr]]:
        """Sort what has to be known inside of loops by their depth: all that a wanted value reads from an outer one."""
        found: list[list[Expr]] = [[] for _ in range(self.kernel.inner + 1)]
        for node in ex.nodes_of(*wanted):
            if node.op != "const":
                found[self.depth[node]].append(node)
        return found

    # ---- rows ----
    def _rows(self) -> None:
        reductions = [node for node in self.needed if node.op == "reduce"]
        keep = self._worth_keeping(reductions)
        for number in range(max([r.reductions for r in reductions], default=0)):
            group = [r for r in reductions if r.reductions == number + 1]
            if keep is not None and keep[0] in ex.nodes_of(*[r.args[0] for r in group]):
                self._pass(group, [(keep[1], Output(keep[0], "element", self._operand(keep[1])))])
                self.kept, keep = keep, None
            else:
                self._pass(group, [])
        stores = [
            (k, o) for k, o in enumerate(self.outputs, len(self.kernel.inputs)) if o.level in ("element", "column")
        ]
        if stores:
            self.rooms = {number: self._array() for number, output in stores if output.streamed}
            self._store_all(stores)
            for number, room in self.rooms.items():
                storage = self._operand(number).storage
                target = self.w.step("place", "ptr", self.bases[number], self.start, detail=storage)
                count = self.w.step("sub", I64, self.stop, self.start)
                self.w.step("stream", "void", target, room, count, detail=storage)
        for number, output in enumerate(self.outputs, len(self.kernel.inputs)):
            if output.level == "row":
                value = self._value(output.value, [self.row], [])
                base = self.bases[number]
                if self.kernel.blocked:  # one for each item
                    base = self.w.step(
                        "offset", "ptr", self.pointers[number], self.w.mul(self.item, self.strides[number][0])
                    )
                self.w.step("store", "void", base, None, value, detail=output.operand.storage)

    def _store_all(self, stores: Sequence[tuple[int, Output]]) -> None:
        """Go over the row and store; a block in which no condition of `expression.rare` holds, by a loop without what it selects."""
        wanted = [output.value for _, output in stores]
        seldom = [node.args[0] for node in ex.nodes_of(*wanted) if node.op == "select" and node.detail == ex.RARE]
        if not seldom or not self.kernel.blocked or sum(map(_is_step, ex.nodes_of(*seldom))) > LOOKED_FOR:
            self._pass([], stores)
            return
        common = _without_rare(wanted)
        some = ex.reduce("any", reduce(Expr.__or__, seldom))
        for node in ex.nodes_of(some, *common):
            self.depth[node] = self._depth_of(node)
        self._pass([some], [])
        start, stop = self.start, self.stop
        self.stop = self.w.step("select", I64, self.row[some], start, stop)
        self._pass([], [(number, replace(o, value=v)) for (number, o), v in zip(stores, common, strict=True)])
        self.stop = self.w.step("select", I64, self.row[some], stop, start)
        self._pass([], stores)
        self.stop = stop

    def _operand(self, number: int) -> Operand:
        return [*self.kernel.inputs, *[o.operand for o in self.outputs]][number]

    def _worth_keeping(self, reductions: Sequence[Expr]) -> tuple[Expr, int] | None:
        """Return the costliest value that a reduction and an output need, with the number of an output whose memory can hold it.

        A softmax stores its exponentials where its result will stand, sums them, and divides what it finds there.
        """
        rooms: dict[str, int] = {}
        for number, output in enumerate(self.outputs, len(self.kernel.inputs)):
            if output.level in ("element", "room") and output.operand.storage == output.value.type:
                rooms.setdefault(output.value.type, number)
        before = set(ex.nodes_of(*[r.args[0] for r in reductions]))
        best: tuple[int, Expr] | None = None
        for node in ex.nodes_of(*[o.value for o in self.outputs if o.level == "element"]):
            if node not in before or node.type not in rooms or self.depth[node] < self.kernel.inner or not node.args:
                continue
            cost = sum(self.depth[n] == self.kernel.inner and n.op != "const" for n in ex.nodes_of(node))
            if cost >= SPILL and (best is None or cost > best[0]):
                best = cost, node
        return None if best is None else (best[1], rooms[best[1].type])

    def _pass(self, reductions: Sequence[Expr], stores: Sequence[tuple[int, Output]]) -> None:
        """Go over the row once."""
        wanted = [r.args[0] for r in reductions] + [o.value for _, o in stores]
        places = self._places(self._within_pass(wanted))
        known = [self.row, *[{} for _ in range(self.kernel.inner)]]
        for node in places[0]:
            self._value(node, [self.row], [])
        totals: list[Any] = _starts(reductions)
        opened: list[tuple[Loop, list[Any]]] = []
        where: list[Any] = []
        for depth in range(1, self.kernel.inner):
            loop, outside = self.w.open(self.w.number(0), self.inner[depth - 1])
            opened.append((loop, outside))
            loop.carried = [Carried(r.type, total) for r, total in zip(reductions, totals, strict=True)]
            totals = list(loop.carried)
            where = [*where, loop.index]
            for node in places[depth]:
                self._value(node, known[: depth + 1], where)
        if self.kernel.long and reductions and not stores and all(map(_is_wide_sum, reductions)):
            values = self._in_stretches(reductions, totals, known, where)
        else:
            values = self._along(self.start, self.stop, reductions, totals, known, where, stores)
        for loop, outside in reversed(opened):
            for carried, value in zip(loop.carried, values, strict=True):
                carried.next = value
            values = list(loop.carried)
            self.w.at = outside
        for r, value in zip(reductions, values, strict=True):
            self.row[r] = value

    def _along(
        self, begin: Any, end: Any, reductions: Sequence[Expr], totals: Sequence[Any], known: Sequence[dict[Expr, Any]],
        where: Sequence[Any], stores: Sequence[tuple[int, Output]] = (),
    ) -> list[Any]:  # fmt: skip
        """Go along the last dimension, and return the totals behind it."""
        loop, outside = self.w.open(begin, end, free=True, long=self.long)
        loop.carried = [Carried(r.type, total) for r, total in zip(reductions, totals, strict=True)]
        inside, place = [*known[:-1], {}], [*where, loop.index]
        for r, carried in zip(reductions, loop.carried, strict=True):
            carried.next = self._added(r, carried, self._value, inside, place)
        for number, output in stores:
            value = self._value(output.value, inside, place)
            self._store(number, output.value, value, place, COMBINE.get(output.reduction))
        self.w.at = outside
        return list(loop.carried)

    def _in_stretches(
        self, reductions: Sequence[Expr], totals: Sequence[Any], known: Sequence[dict[Expr, Any]], where: Sequence[Any]
    ) -> list[Any]:
        """Add float32 numbers up in float64: stretches of them in float32, in half the time, and again if that overflows."""
        w = self.w
        narrow = [ex.reduce("sum", r.args[0].args[0]) for r in reductions]
        length = w.step("sub", I64, self.stop, self.start)
        count = w.step("udiv", I64, w.add(length, w.number(STRETCH - 1)), w.number(STRETCH))
        loop, outside = w.open(w.number(0), count)
        loop.carried = [Carried(r.type, total) for r, total in zip(reductions, totals, strict=True)]
        begin = w.add(self.start, w.mul(loop.index, w.number(STRETCH)))
        end = w.step("imin", I64, w.add(begin, w.number(STRETCH)), self.stop)
        sums = self._along(begin, end, narrow, _starts(narrow), known, where)
        differences = [w.step("sub", "f32", one, one) for one in sums]
        finite = reduce(lambda x, y: w.step("and", "i1", x, y), [w.step("eq", "i1", d, d) for d in differences])
        again = self._along(
            w.step("select", I64, finite, end, begin), end, reductions, _starts(reductions), known, where
        )
        for carried, quick, sure in zip(loop.carried, sums, again, strict=True):
            stretch = w.step("select", "f64", finite, w.step("cast", "f64", quick), sure)
            carried.next = w.step("sum_add", "f64", carried, stretch)
        w.at = outside
        return list(loop.carried)

    def _added(self, r: Expr, total: Any, value_of: Callable[..., Any], *place: Any) -> Any:
        """Add an element to a running total; a product that is not there yet is added in one step."""
        value, known = r.args[0], place[0]
        there = any(value in k for k in (*known, self.pieces)) or (self.kept is not None and value is self.kept[0])
        if r.detail == "sum" and value.op == "mul" and r.type in ex.FLOATS and not there:
            x, y = [value_of(a, *place) for a in value.args]
            return self.w.step("sum_fma", r.type, x, y, total)
        return self.w.step(COMBINE[r.detail], r.type, total, value_of(value, *place))

    def _within_pass(self, wanted: Sequence[Expr]) -> list[Expr]:
        """Return the nodes that a pass computes: those before earlier reductions are known by now."""
        found: list[Expr] = []
        stack = list(wanted)
        seen: set[Expr] = set()
        while stack:
            node = stack.pop()
            if node in seen or node in self.row:
                continue
            seen.add(node)
            found.append(node)
            if node.op != "reduce":
                stack.extend(node.args)
        return found

    # ---- lanes ----
    def _lanes(self) -> None:
        """Reduce the inner dimensions but the last, for each lane of the last one."""
        w = self.w
        reductions = [node for node in self.needed if node.op == "reduce"]
        self.bases_of_block = self.bases
        for number in range(max([r.reductions for r in reductions], default=0)):
            group = [r for r in reductions if r.reductions == number + 1]
            arrays = [self._array() for _ in group]
            loop, outside = w.open(self.start, self.stop, free=True)
            lane = w.step("sub", I64, loop.index, self.start)
            for r, array in zip(group, arrays, strict=True):
                first = Step("const", r.type, (), start_of(r.detail, r.type))
                w.step("store", "void", array, lane, first, detail=r.type)
            w.at = outside
            self._lane_pass(group, arrays, [])
            for r, array in zip(group, arrays, strict=True):
                self.pieces[r] = array
            self._keep_row_values()
        stores = [(k, o) for k, o in enumerate(self.outputs, len(self.kernel.inputs)) if o.level == "element"]
        if stores:
            self._lane_pass([], [], stores)
        rows = [(k, o) for k, o in enumerate(self.outputs, len(self.kernel.inputs)) if o.level == "row"]
        if rows:
            loop, outside = w.open(self.start, self.stop, free=True)
            where = [w.number(0)] * (self.kernel.inner - 1) + [loop.index]
            known: list[dict[Expr, Any]] = [{}]
            for number, output in rows:
                self._store(number, output.value, self._lane_value(output.value, known, where), where)
            w.at = outside

    def _array(self) -> Any:
        self.w.scratch += 1
        return Step("scratch", "ptr", (), self.w.scratch - 1)

    def _is_of_lane(self, node: Expr) -> bool:
        """Tell whether a value is the same along the reduced dimensions."""
        if node.op == "input":
            return all(c == "0" for c in self.kernel.inputs[node.detail].inner[:-1])
        if node.op == "reduce":
            return True
        return node.op != "position" and all(self._is_of_lane(a) for a in node.args)

    def _keep_row_values(self) -> None:
        """Compute once for each lane what later passes read of reductions: a quotient or a root is not repeated for each element."""
        kept: list[Expr] = []
        for node in self.needed:
            for arg in node.args:
                if not self._is_of_lane(arg) or self._is_of_lane(node) or arg.op in ("reduce", "input", "const"):
                    continue
                ready = all(n.op != "reduce" or n in self.pieces for n in ex.nodes_of(arg))
                if arg.reductions and ready and arg not in self.pieces and arg not in kept:
                    kept.append(arg)
        if not kept:
            return
        w = self.w
        loop, outside = w.open(self.start, self.stop, free=True)
        where = [w.number(0)] * (self.kernel.inner - 1) + [loop.index]
        known: list[dict[Expr, Any]] = [{}]
        arrays = {}
        for node in kept:
            arrays[node] = self._array()
            value = self._lane_value(node, known, where)
            w.step("store", "void", arrays[node], w.step("sub", I64, loop.index, self.start), value, detail=node.type)
        w.at = outside
        self.pieces.update(arrays)

    def _lane_value(self, node: Expr, known: list[dict[Expr, Any]], where: list[Any]) -> Any:
        scope = known[0]
        if node in scope:
            return scope[node]
        if node in self.pieces:
            lane = self.w.step("sub", I64, where[-1], self.start)
            made: Any = self.w.step("load", node.type, self.pieces[node], lane, detail=node.type)
        elif node.op == "position":
            made = where[-2]
        elif node.op in ("const", "scalar", "input"):
            return self._value(node, known, where)
        else:
            args = [self._lane_value(a, known, where) for a in node.args]
            made = self.w.step(node.op, node.type, *args, detail=node.detail)
        scope[node] = made
        return made

    def _lane_pass(self, group: Sequence[Expr], arrays: Sequence[Any], stores: Sequence[tuple[int, Output]]) -> None:
        w = self.w
        where: list[Any] = []
        outsides: list[list[Any]] = []
        for depth in range(self.kernel.inner):
            last = depth == self.kernel.inner - 1
            begin, end = (self.start, self.stop) if last else (w.number(0), self.inner[depth])
            loop, outside = w.open(begin, end, free=last, long=last and self.long)
            outsides.append(outside)
            where.append(loop.index)
        known: list[dict[Expr, Any]] = [{}]
        lane = w.step("sub", I64, where[-1], self.start)
        for r, array in zip(group, arrays, strict=True):
            before = w.step("load", r.type, array, lane, detail=r.type)
            after = self._added(r, before, self._lane_value, known, where)
            w.step("store", "void", array, lane, after, detail=r.type)
        for number, output in stores:
            self._store(number, output.value, self._lane_value(output.value, known, where), where)
        w.at = outsides[0]


def _rounded_next(outputs: Sequence[Output]) -> set[Expr]:
    """Return the calls whose results are rounded to half precision, after products and choices at most."""
    order = ex.nodes_of(*[o.value for o in outputs])
    precise = {o.value for o in outputs if o.operand.storage not in ("f16", "bf16")}
    for node in reversed(order):  # what uses a value comes before it
        if node.op == "rounded" or (node.op in ("mul", "neg") and node not in precise):
            continue
        chosen = node.op == "select" and node not in precise
        precise.update(node.args[:1] if chosen else node.args)
    return {node for node in order if node.op == "call" and node not in precise}


def _expanded(results: Sequence[Expr], rounded: Collection[Expr] = ()) -> list[Expr]:
    """Write functions of `math` out; those that are `rounded` next in the form for half precision, if there is one."""
    from .math import FUNCTIONS, HALF

    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(*results):
        args = tuple(done[a] for a in node.args)
        if node.op == "call":
            function = HALF.get(node.detail, FUNCTIONS[node.detail]) if node in rounded else FUNCTIONS[node.detail]
            done[node] = _expanded([function(*args)])[0]
        else:
            done[node] = node if args == node.args else ex.node(node.op, args, node.type, node.detail)
    return [done[r] for r in results]


def _is_wide_sum(r: Expr) -> bool:
    """Tell whether a reduction adds float32 numbers in float64."""
    value = r.args[0]
    return r.detail == "sum" and r.type == "f64" and value.op == "cast" and value.args[0].type == "f32"


def _starts(reductions: Sequence[Expr]) -> list[Any]:
    return [Step("const", r.type, (), start_of(r.detail, r.type)) for r in reductions]


def _is_step(node: Expr) -> bool:
    return node.op not in ("const", "scalar", "input")


def _without_rare(results: Sequence[Expr]) -> list[Expr]:
    """Leave out what is selected where a condition of `expression.rare` holds."""
    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(*results):
        if node.op == "select" and node.detail == ex.RARE:
            done[node] = done[node.args[2]]
        else:
            args = tuple(done[a] for a in node.args)
            done[node] = node if args == node.args else ex.node(node.op, args, node.type, node.detail)
    return [done[r] for r in results]


def _with_quick_extremes(results: Sequence[Expr]) -> list[Expr]:
    """Look for NaN beside the largest number of a row: one that passes NaN on takes twice as long at each step."""
    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(*results):
        args = tuple(done[a] for a in node.args)
        if node.op == "reduce" and node.detail in ("max", "min") and node.type in ex.FLOATS:
            missing, extreme = ex.reduce("any", ex.is_nan(args[0])), ex.reduce(f"ordered_{node.detail}", args[0])
            done[node] = ex.select(missing, float("nan"), extreme)
        else:
            done[node] = node if args == node.args else ex.node(node.op, args, node.type, node.detail)
    return [done[r] for r in results]


def start_of(reduction: str, type: str) -> Any:
    """Return what a reduction begins with."""
    if type in ex.FLOATS or type == ex.I1:
        return START[reduction]
    if reduction in ("sum", "prod"):
        return int(reduction == "prod")
    width, signed = ex.WIDTH[type], type[0] == "i"
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return low if reduction == "max" else high


def lower(kernel: Kernel) -> Function:
    """Make the loops of a kernel."""
    return _Lowering(kernel).lower()
