"""Loops as text for LLVM that says what stands in vectors, instead of leaving that to LLVM's loop vectoriser.

Kernels of compiled programs know their sizes. So a loop of 10 turns is one vector of which 10 lanes are read and written, and one of 100
is six vectors and a masked rest; products of matrices keep a tile of the result in registers. LLVM then has little to find out, which
takes it half the time. What is computed is the same as in `llvm`, whose tables are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import machine
from .expression import FLOATS, WIDTH
from .llvm import BYTES, STORED, TYPES, Text
from .loops import START, Function, Loop, Step, start_of

STRAIGHT: Final = 96  # steps that are written out one after the other, rather than as a loop
SUMS: Final = 4  # running sums side by side: an addition takes four cycles
# how what a loop carries is joined in the end, and what changes nothing
JOINED: Final = {
    "sum_add": "sum", "sum_fma": "sum", "prod_mul": "prod", "maximum": "max", "minimum": "min",
    "ordered_max": "ordered_max", "ordered_min": "ordered_min", "or": "any", "and": "all",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tile:
    """Part of a product of matrices that stays in registers: out[m, n] = sum over k of x[m, k] * y[k, n], for n in lanes.

    Distances are in bytes. Without `x` it is the sum of y's rows. `turned` says that n counts the rows of what is written, and m its
    columns; `add` that the product is added to what is there.
    """

    rows: int
    columns: int
    inner: int
    x_row: int
    x_step: int
    y_step: int
    out_row: int
    add: bool = False
    turned: bool = False


class VectorText(Text):
    """The text of one function. See the module's text."""

    def __init__(self) -> None:
        super().__init__()
        self.wide: set[int] = set()  # values that differ from lane to lane, by their id
        self.index: Step | None = None  # of the loop that is being written in vectors
        self.positions = ""  # its value in each lane, once somebody asks
        self.mask = ""  # which lanes are read and written; all if empty
        self.width = 0  # lanes of that loop

    # ---- values ----
    def of(self, value: Any) -> str:
        if not self.lanes or (isinstance(value, Step) and value.op == "const"):
            return super().of(value)
        if value is self.index:
            if not self.positions:
                numbers = ", ".join(f"i64 {k}" for k in range(self.lanes))
                first = self.splat(self.names[id(value)], "i64")
                self.positions = self.put(f"add {self.type('i64')} {first}, <{numbers}>")
            return self.positions
        return super().of(value) if id(value) in self.wide else self.splat(super().of(value), TYPES[value.type])

    def splat(self, text: str, type: str) -> str:
        """Put one number into all lanes."""
        return self.splat_of(text, type, self.lanes)

    def splat_of(self, text: str, type: str, lanes: int) -> str:
        vector = f"<{lanes} x {type}>"
        first = self.put(f"insertelement {vector} poison, {type} {text}, i32 0")
        return self.put(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def _is_wide(self, value: Any) -> bool:
        return value is not None and (value is self.index or id(value) in self.wide)

    def step(self, step: Step) -> str:
        if not self.width:
            return super().step(step)
        self.lanes = self.width if any(map(self._is_wide, step.args)) else 0
        if self.lanes:
            self.wide.add(id(step))
        else:
            self.wide.discard(id(step))
        text = super().step(step)
        self.lanes = 0
        return text

    # ---- memory ----
    def _offset(self, step: Step) -> str:
        base, distance = step.args
        if not self.lanes:
            return super()._offset(step)
        at = f"{self.lanes} x ptr" if self._is_wide(base) else ""
        text = self.names[id(base)]
        return self.put(
            f"getelementptr i8, {f'<{at}>' if at else 'ptr'} {text}, {self.type('i64')} {self.of(distance)}"
        )

    def _pointers(self, base: Any, index: Any, storage: str) -> str:
        """Return the address of each lane's element."""
        if index is None:
            return self.names[id(base)]
        kind = f"<{self.lanes} x ptr>" if self._is_wide(base) else "ptr"
        return self.put(
            f"getelementptr {STORED[storage]}, {kind} {self.names[id(base)]}, {self.type('i64')} {self.of(index)}"
        )

    def _is_dense(self, base: Any, index: Any) -> bool:
        return index is self.index and not self._is_wide(base)

    def _first(self, base: Any, storage: str) -> str:
        """Return the address of the first lane's element."""
        index = self.names[id(self.index)]
        return self.put(f"getelementptr {STORED[storage]}, ptr {self.names[id(base)]}, i64 {index}")

    def read(self, base: Any, index: Any, storage: str) -> str:
        if not self.lanes:
            return super().read(base, index, storage)
        kind, align = self.stored(storage), BYTES[storage]
        if self._is_dense(base, index):
            return self.read_lanes(self._first(base, storage), storage, self.lanes, self.mask)
        mask = self.mask or self.number(True, "i1")
        name = f"@llvm.masked.gather.{_plain(kind)}.v{self.lanes}p0"
        pointers, truths = f"<{self.lanes} x ptr>", self.type("i1")
        self.intrinsics[name] = f"declare {kind} {name}({pointers}, i32, {truths}, {kind})"
        places = self._pointers(base, index, storage)
        return self.put(
            f"call {kind} {name}({pointers} {places}, i32 {align}, {truths} {mask}, {kind} zeroinitializer)"
        )

    def write(self, base: Any, index: Any, storage: str, text: str) -> None:
        if not self.lanes:
            super().write(base, index, storage, text)
            return
        kind, align = self.stored(storage), BYTES[storage]
        if self._is_dense(base, index):
            self.write_lanes(self._first(base, storage), storage, text, self.lanes, self.mask)
            return
        mask = self.mask or self.number(True, "i1")
        name = f"@llvm.masked.scatter.{_plain(kind)}.v{self.lanes}p0"
        pointers, truths = f"<{self.lanes} x ptr>", self.type("i1")
        self.intrinsics[name] = f"declare void {name}({kind}, {pointers}, i32, {truths})"
        places = self._pointers(base, index, storage)
        self.line(f"call void {name}({kind} {text}, {pointers} {places}, i32 {align}, {truths} {mask})")

    def read_lanes(self, place: str, storage: str, lanes: int, mask: str) -> str:
        """Read neighbours, all or those of a mask."""
        kind, align = f"<{lanes} x {STORED[storage]}>", BYTES[storage]
        if not mask:
            return self.put(f"load {kind}, ptr {place}, align {align}")
        name = f"@llvm.masked.load.{_plain(kind)}.p0"
        self.intrinsics[name] = f"declare {kind} {name}(ptr, i32, <{lanes} x i1>, {kind})"
        return self.put(f"call {kind} {name}(ptr {place}, i32 {align}, <{lanes} x i1> {mask}, {kind} zeroinitializer)")

    def write_lanes(self, place: str, storage: str, text: str, lanes: int, mask: str) -> None:
        """Write neighbours, all or those of a mask."""
        kind, align = f"<{lanes} x {STORED[storage]}>", BYTES[storage]
        if not mask:
            self.line(f"store {kind} {text}, ptr {place}, align {align}")
            return
        name = f"@llvm.masked.store.{_plain(kind)}.p0"
        self.intrinsics[name] = f"declare void {name}({kind}, ptr, i32, <{lanes} x i1>)"
        self.line(f"call void {name}({kind} {text}, ptr {place}, i32 {align}, <{lanes} x i1> {mask})")

    # ---- loops ----
    def loop(self, loop: Loop) -> None:
        begin, end = _known(loop.begin), _known(loop.end)
        count = None if begin is None or end is None else end - begin
        if count == 1:
            self._once(loop)
            return
        if not loop.free or any(isinstance(step, Loop) for step in loop.body):
            super().loop(loop)
            return
        self.width = self._width(loop)
        totals = self._in_vectors(loop, self.of(loop.begin), count)
        self.width = 0
        for carried, total in zip(loop.carried, totals, strict=True):
            self.names[id(carried)] = total

    def _once(self, loop: Loop) -> None:
        """Write the one turn of a loop."""
        self.names[id(loop.index)] = self.of(loop.begin)
        for carried in loop.carried:
            self.names[id(carried)] = self.of(carried.start)
        self.body(loop.body)
        after = [self.of(carried.next) for carried in loop.carried]
        for carried, text in zip(loop.carried, after, strict=True):
            self.names[id(carried)] = text

    def _width(self, loop: Loop) -> int:
        """Return how many lanes a loop has: as many as numbers of the width that it computes with fill a vector."""
        types = {step.type for step in loop.body if step.type in FLOATS} or {
            step.type for step in loop.body if step.type in WIDTH and step.type != "i1" and step.op != "mul"
        }
        widths = [WIDTH[type] for type in types]
        return machine.vector_bytes() * 8 // max(min(widths, default=32), 32)

    def _in_vectors(self, loop: Loop, begin: str, count: int | None) -> list[str]:
        """Write a loop in vectors, and return what it carries out."""
        lanes = self.width
        joined = [JOINED[c.next.op] for c in loop.carried]
        if count is None:
            return self._of_any_length(loop, begin, joined)
        full, rest = divmod(count, lanes)
        sums = SUMS if loop.carried and full >= SUMS else 1
        totals = [[self._nothing(c, op) for c, op in zip(loop.carried, joined, strict=True)] for _ in range(sums)]
        at = int(begin) if begin.lstrip("-").isdigit() else None
        done = 0
        if full * len(loop.body) > STRAIGHT and full >= 2 * sums:
            turns = full // sums
            totals = self._counted(loop, begin, turns, totals)
            done = turns * sums
        for k in range(done, full + bool(rest)):
            place = str(at + k * lanes) if at is not None else self.put(f"add i64 {begin}, {k * lanes}")
            mask = "" if k < full else f"<{', '.join(f'i1 {str(n < rest).lower()}' for n in range(lanes))}>"
            totals[k % sums] = self._one_vector(loop, place, mask, totals[k % sums])
        return [
            self._join(c, op, [one[k] for one in totals])
            for k, (c, op) in enumerate(zip(loop.carried, joined, strict=True))
        ]

    def _counted(self, loop: Loop, begin: str, turns: int, starts: list[list[str]]) -> list[list[str]]:
        """Write a loop of a known number of turns, each of as many vectors as there are running sums."""
        self.loops += 1
        n, step = self.loops, self.width * len(starts)
        self.line(f"br label %before{n}")
        self.lines.append(f"before{n}:")
        self.line(f"br label %head{n}")
        self.lines.append(f"head{n}:")
        index, at = self.fresh(), len(self.lines)
        names = [[self.fresh() for _ in one] for one in starts]
        ends = []
        for k, one in enumerate(names):
            place = index if not k else self.put(f"add i64 {index}, {k * self.width}")
            ends.append(self._one_vector(loop, place, "", one))
        after = self.put(f"add nsw i64 {index}, {step}")
        last = begin if begin.lstrip("-").isdigit() else None
        bound = str(int(last) + turns * step) if last is not None else self.put(f"add i64 {begin}, {turns * step}")
        go = self.put(f"icmp slt i64 {after}, {bound}")
        self.line(f"br label %latch{n}")
        self.lines.append(f"latch{n}:")
        self.line(f"br i1 {go}, label %head{n}, label %after{n}")
        self.lines.append(f"after{n}:")
        phis = [f"  {index} = phi i64 [ {begin}, %before{n} ], [ {after}, %latch{n} ]"]
        for one, first, last_ in zip(names, starts, ends, strict=True):
            for name, start, end, carried in zip(one, first, last_, loop.carried, strict=True):
                kind = f"<{self.width} x {TYPES[carried.type]}>"
                phis.append(f"  {name} = phi {kind} [ {start}, %before{n} ], [ {end}, %latch{n} ]")
        self.lines[at:at] = phis
        return ends

    def _of_any_length(self, loop: Loop, begin: str, joined: list[str]) -> list[str]:
        """Write a loop whose number of turns comes with a call: the last turn is masked."""
        self.loops += 1
        n, lanes = self.loops, self.width
        end = self.of(loop.end)
        starts = [self._nothing(c, op) for c, op in zip(loop.carried, joined, strict=True)]
        self.line(f"br label %before{n}")
        self.lines.append(f"before{n}:")
        self.line(f"br label %head{n}")
        self.lines.append(f"head{n}:")
        index, at = self.fresh(), len(self.lines)
        names = [self.fresh() for _ in starts]
        whole = self.put(f"add nsw i64 {index}, {lanes}")
        go = self.put(f"icmp sle i64 {whole}, {end}")
        self.line(f"br i1 {go}, label %body{n}, label %rest{n}")
        self.lines.append(f"body{n}:")
        ends = self._one_vector(loop, index, "", names)
        self.line(f"br label %latch{n}")
        self.lines.append(f"latch{n}:")
        self.line(f"br label %head{n}")
        self.lines.append(f"rest{n}:")
        left = self.put(f"icmp slt i64 {index}, {end}")
        self.line(f"br i1 {left}, label %some{n}, label %after{n}")
        self.lines.append(f"some{n}:")
        self.lanes = lanes
        places = self.put(
            f"add {self.type('i64')} {self.splat(index, 'i64')}, <{', '.join(f'i64 {k}' for k in range(lanes))}>"
        )
        mask = self.put(f"icmp slt {self.type('i64')} {places}, {self.splat(end, 'i64')}")
        self.lanes = 0
        last = self._one_vector(loop, index, mask, names)
        self.line(f"br label %done{n}")
        self.lines.append(f"done{n}:")
        self.line(f"br label %after{n}")
        self.lines.append(f"after{n}:")
        totals = []
        for carried, name, some in zip(loop.carried, names, last, strict=True):
            kind = f"<{lanes} x {TYPES[carried.type]}>"
            totals.append(self.put(f"phi {kind} [ {name}, %rest{n} ], [ {some}, %done{n} ]"))
        phis = [f"  {index} = phi i64 [ {begin}, %before{n} ], [ {whole}, %latch{n} ]"]
        for carried, name, start, one in zip(loop.carried, names, starts, ends, strict=True):
            kind = f"<{lanes} x {TYPES[carried.type]}>"
            phis.append(f"  {name} = phi {kind} [ {start}, %before{n} ], [ {one}, %latch{n} ]")
        self.lines[at:at] = phis
        return [self._join(c, op, [one]) for c, op, one in zip(loop.carried, joined, totals, strict=True)]

    def _nothing(self, carried: Any, joined: str) -> str:
        """Return what a running total begins with in each lane."""
        self.lanes = self.width
        start = START[joined]
        if carried.type not in FLOATS and carried.type != "i1":
            start = start_of(joined, carried.type)
        text = self.number(start, carried.type)
        self.lanes = 0
        return text

    def _one_vector(self, loop: Loop, place: str, mask: str, before: Sequence[str]) -> list[str]:
        """Write one turn, from the lane at `place` on, and return what it carries on."""
        self.index, self.positions, self.mask = loop.index, "", mask
        self.names[id(loop.index)] = place
        for carried, text in zip(loop.carried, before, strict=True):
            self.names[id(carried)] = text
            self.wide.add(id(carried))
        self.body(loop.body)
        self.lanes = self.width
        found = []
        for carried, text in zip(loop.carried, before, strict=True):
            after = self.of(carried.next)
            if mask:
                kind = self.type(carried.type)
                after = self.put(f"select {self.type('i1')} {mask}, {kind} {after}, {kind} {text}")
            found.append(after)
        self.lanes = 0
        for carried in loop.carried:
            self.wide.discard(id(carried))
        self.index, self.mask = None, ""
        return found

    def _join(self, carried: Any, joined: str, totals: list[str]) -> str:
        """Join the running totals of all lanes, in halves, and what there was before the loop."""
        op, type = carried.next.op if carried.next.op != "sum_fma" else "sum_add", carried.type
        self.lanes = self.width
        while len(totals) > 1:
            half = len(totals) // 2
            totals = [
                self.put(self.operation(op, type, {"a": a, "b": b}))
                for a, b in zip(totals[:half], totals[half:], strict=True)
            ]
        (total,) = totals
        while self.lanes > 1:
            kind, self.lanes = self.type(type), self.lanes // 2
            parts = [
                self.put(
                    f"shufflevector {kind} {total}, {kind} poison, <{self.lanes} x i32> "
                    f"<{', '.join(f'i32 {k}' for k in range(first, first + self.lanes))}>"
                )
                for first in (0, self.lanes)
            ]
            total = self.put(self.operation(op, type, dict(zip("ab", parts, strict=True))))
        kind, self.lanes = self.type(type), 0
        total = self.put(f"extractelement {kind} {total}, i32 0")
        start = carried.start
        if isinstance(start, Step) and start.op == "const" and start.detail == START.get(joined):
            return total
        return self.put(self.operation(op, type, {"a": self.of(start), "b": total}))

    # ---- tiles of matrices ----
    def _product_tile(self, step: Step) -> str:
        """Compute a tile of a product: the arguments are pointers to x (or None), y and out. See `Tile`."""
        tile: Tile = step.detail
        x, y, out = step.args
        x, y, out = None if x is None else self.of(x), self.of(y), self.of(out)
        lanes = lanes_of(step.type)
        parts = [min(lanes, tile.columns - at) for at in range(0, tile.columns, lanes)]
        width = BYTES[step.type]
        places = [(m, j) for m in range(tile.rows) for j in range(len(parts))]
        masks = ["" if n == lanes else _first_lanes(n, lanes) for n in parts]
        if tile.add and not tile.turned:
            starts = {
                (m, j): self.read_lanes(
                    self._behind(out, m * tile.out_row + j * lanes * width), step.type, lanes, masks[j]
                )
                for m, j in places
            }
        else:
            starts = dict.fromkeys(places, "zeroinitializer")
        totals = self._multiplied(tile, step.type, x, y, masks, starts)
        if tile.turned:
            self._write_turned(tile, step.type, out, parts, totals)
        else:
            for m, j in places:
                place = self._behind(out, m * tile.out_row + j * lanes * width)
                self.write_lanes(place, step.type, totals[m, j], lanes, masks[j])
        return ""

    def _behind(self, pointer: str, bytes: int) -> str:
        return self.put(f"getelementptr i8, ptr {pointer}, i64 {bytes}") if bytes else pointer

    def _multiplied(
        self, tile: Tile, type: str, x: str | None, y: str, masks: list[str], starts: dict[Any, str]
    ) -> dict[Any, str]:
        """Write the loop over what is summed, and return the totals."""
        lanes, width = lanes_of(type), BYTES[type]
        kind = f"<{lanes} x {TYPES[type]}>"
        name = f"@llvm.fma.v{lanes}{type}"
        self.intrinsics[name] = f"declare {kind} {name}({kind}, {kind}, {kind})"

        def turn(x: str | None, y: str, before: dict[Any, str]) -> dict[Any, str]:
            row = [
                self.read_lanes(self._behind(y, j * lanes * width), type, lanes, mask) for j, mask in enumerate(masks)
            ]
            found = {}
            for m in range(tile.rows):
                if x is not None:
                    number = self.put(f"load {TYPES[type]}, ptr {self._behind(x, m * tile.x_row)}, align {width}")
                    spread = self.splat_of(number, TYPES[type], lanes)
                for j, one in enumerate(row):
                    if x is None:
                        found[m, j] = self.put(f"fadd {kind} {before[m, j]}, {one}")
                    else:
                        found[m, j] = self.put(
                            f"call {kind} {name}({kind} {spread}, {kind} {one}, {kind} {before[m, j]})"
                        )
            return found

        if tile.inner == 1:
            return turn(x, y, starts)
        self.loops += 1
        n = self.loops
        self.line(f"br label %before{n}")
        self.lines.append(f"before{n}:")
        self.line(f"br label %head{n}")
        self.lines.append(f"head{n}:")
        at = len(self.lines)
        index, x_at, y_at = self.fresh(), self.fresh(), self.fresh()
        names = {key: self.fresh() for key in starts}
        ends = turn(None if x is None else x_at, y_at, names)
        after = self.put(f"add nuw nsw i64 {index}, 1")
        y_next = self.put(f"getelementptr i8, ptr {y_at}, i64 {tile.y_step}")
        x_next = "" if x is None else self.put(f"getelementptr i8, ptr {x_at}, i64 {tile.x_step}")
        go = self.put(f"icmp ult i64 {after}, {tile.inner}")
        self.line(f"br i1 {go}, label %head{n}, label %after{n}")
        self.lines.append(f"after{n}:")
        phis = [
            f"  {index} = phi i64 [ 0, %before{n} ], [ {after}, %head{n} ]",
            f"  {y_at} = phi ptr [ {y}, %before{n} ], [ {y_next}, %head{n} ]",
        ]
        if x is not None:
            phis.append(f"  {x_at} = phi ptr [ {x}, %before{n} ], [ {x_next}, %head{n} ]")
        phis += [
            f"  {names[key]} = phi {kind} [ {starts[key]}, %before{n} ], [ {ends[key]}, %head{n} ]" for key in starts
        ]
        self.lines[at:at] = phis
        return ends

    def _write_turned(self, tile: Tile, type: str, out: str, parts: list[int], totals: dict[Any, str]) -> None:
        lanes = lanes_of(type)
        for j, count in enumerate(parts):
            rows = self.transposed([totals[m, j] for m in range(tile.rows)], type, lanes)
            wide = 1 << (tile.rows - 1).bit_length()
            mask = "" if wide == tile.rows else _first_lanes(tile.rows, wide)
            for k in range(count):
                place = self._behind(out, (j * lanes + k) * tile.out_row)
                text = rows[k]
                if tile.add:
                    before = self.read_lanes(place, type, wide, mask)
                    text = self.put(f"fadd <{wide} x {TYPES[type]}> {before}, {text}")
                self.write_lanes(place, type, text, wide, mask)

    def transposed(self, rows: list[str], type: str, lanes: int) -> list[str]:
        """Transpose rows in registers: `lanes` vectors, as wide as a power of two that holds all rows."""
        number = TYPES[type]
        wide = 1 << (len(rows) - 1).bit_length()
        vectors = [*rows, *["poison"] * (wide - len(rows))]
        kind = f"<{lanes} x {number}>"
        # Rounds of interleaving a vector with the one half of them behind it: afterwards all numbers stand in the other order.
        for _ in range(wide.bit_length() - 1):
            half, found = len(vectors) // 2, []
            for a, b in zip(vectors[:half], vectors[half:], strict=True):
                for first in (0, lanes // 2):
                    order = ", ".join(f"i32 {k}, i32 {k + lanes}" for k in range(first, first + lanes // 2))
                    found.append(self.put(f"shufflevector {kind} {a}, {kind} {b}, <{lanes} x i32> <{order}>"))
            vectors = found
        if wide == lanes:
            return vectors
        found = []
        for k in range(lanes):  # of `wide` numbers each
            if wide < lanes:
                vector, first = vectors[k * wide // lanes], k * wide % lanes
                order = ", ".join(f"i32 {n}" for n in range(first, first + wide))
                found.append(self.put(f"shufflevector {kind} {vector}, {kind} poison, <{wide} x i32> <{order}>"))
        if wide > lanes:
            raise ValueError("more rows than lanes")
        return found

    def _transpose(self, step: Step) -> str:
        """Transpose a block of a matrix: the arguments are pointers, `detail` its rows and columns and how far both's rows are apart."""
        source, target = map(self.of, step.args)
        rows, columns, source_row, target_row = step.detail
        lanes = lanes_of(step.type)
        mask = "" if columns == lanes else _first_lanes(columns, lanes)
        read = [self.read_lanes(self._behind(source, m * source_row), step.type, lanes, mask) for m in range(rows)]
        wide = 1 << (rows - 1).bit_length()
        mask = "" if wide == rows else _first_lanes(rows, wide)
        for k, text in enumerate(self.transposed(read, step.type, lanes)[:columns]):
            self.write_lanes(self._behind(target, k * target_row), step.type, text, wide, mask)
        return ""

    def _room(self, step: Step) -> str:
        return "%room"


def _plain(kind: str) -> str:
    """Return a type of vectors as it stands in the names of LLVM's functions."""
    lanes, number = kind.strip("<>").split(" x ")
    return f"v{lanes}" + {"float": "f32", "double": "f64", "half": "f16"}.get(number, number)


def _first_lanes(count: int, lanes: int) -> str:
    return f"<{', '.join(f'i1 {str(n < count).lower()}' for n in range(lanes))}>"


def _known(value: Any) -> int | None:
    return value.detail if isinstance(value, Step) and value.op == "const" else None


def lanes_of(type: str) -> int:
    """Return how many numbers a vector of this processor holds."""
    return machine.vector_bytes() * 8 // WIDTH[type]


def tile_shape(height: int, length: int, type: str, turned: bool) -> tuple[int, int]:
    """Return how many vectors a row of a tile has, and how many rows, so that it fits into the registers of this processor."""
    lanes = lanes_of(type)
    vectors = 1 if length <= lanes else 2
    many = machine.vector_bytes() != 32  # 32 registers, or 16
    rows = (8 if vectors == 2 else 16) if many else (4 if turned else 6) if vectors == 2 else 8
    if turned:
        rows = min(rows, lanes)
    return vectors, min(rows, height)


def ending(text: VectorText) -> list[str]:
    """Return the end of a function's text, and what stands behind it."""
    return [
        "  ret void",
        "}",
        f'attributes #0 = {{ nounwind "no-builtins" "no-trapping-math"="true" "prefer-vector-width"="{machine.vector_bytes() * 8}" }}',
        *[f"!{k} = {entry}" for k, entry in enumerate(text.metadata)],
    ]


def render(function: Function, name: str) -> str:
    """Return the text of a function: name(cells, sizes, scalars, low, high), as `llvm.render` does."""
    text = VectorText()
    text.body(function.body)
    room = [f"  %room = alloca [{function.room} x i8], align 64"] if function.room else []
    lines = [
        *text.intrinsics.values(),
        f"define void @{name}(ptr noalias %cells, ptr noalias %sizes, ptr noalias %scalars, i64 %low, i64 %high) #0 {{",
        "entry:",
        *room,
        *text.lines,
        *ending(text),
    ]
    return "\n".join(lines) + "\n"
