"""Products of matrices, and sums of their rows, as stages of a program.

Note [Products]
A tile of the result stays in registers while both matrices are gone through once along what is summed over (`vectors.Tile`): rows of the
one, of which each number is put into all lanes, times neighbours in a row of the other. Sizes are known, so nothing is laid out anew for
the sake of a loop that serves all sizes: at up to a few hundred rows and columns that is what BLAS's products spend a third of their
time on. Only lanes must be neighbours in memory. Lanes go along the columns of the result, or along its rows, and then the tile is
transposed as it is written; whichever takes less. Where the lanes of a matrix are not neighbours it is transposed first. For a few rows
that would take longer than the product: lanes go along what is summed over, and each number of the result is a sum by itself.

Maps of the result join the product (`Nest`): they are computed for a block of it at a time, which is still in the nearest cache. If nobody
else reads the product itself, the block is all that there ever is of it: an update of weights by a gradient that nobody keeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .._native import expression as ex
from .._native.expression import I64
from .._native.trace import STORAGE
from .._native.vectors import Tile, lanes_of, tile_shape
from ._lowering import FLOATS, Map, Matrices, Node, Product, Reduction, Store, between
from ._nests import Nest, Strides, Writer, _Body, _Made, number, strides_of
from ._program import Buffer, Value

ROWS = 64  # of a block
SUMMED = 1024  # numbers that are added one after the other, before their sum is
COLUMNS = 8  # vectors of a sum of rows
FEW = 4  # rows of a product that are not worth laying the other matrix out anew


@dataclass(slots=True)
class _Span:
    """A part of a dimension that is divided alike: from where, how many pieces, of what size."""

    begin: int
    count: int
    size: int


def _spans(length: int, size: int) -> list[_Span]:
    full, rest = divmod(length, size)
    return [_Span(0, full, size)] * bool(full) + [_Span(full * size, 1, rest)] * bool(rest)


class ProductStage:
    """A product, and the maps of its result. See Note [Products]."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.type = STORAGE[product.out.dtype]
        self.width = product.out.dtype.itemsize
        self.turned = _is_better_turned(product)
        rows, columns, self.inner = product.sizes
        self.x, self.y = (product.y.turned(), product.x.turned()) if self.turned else (product.x, product.y)
        self.height, self.length = (columns, rows) if self.turned else (rows, columns)  # of tiles; of lanes
        self.rank = len(product.out.shape)
        self.nest = Nest(product.out.shape)
        self.nest.may_reduce = False
        strides = strides_of(product.out, tuple(range(self.rank)), self.rank)
        self.nest.made[product.out.buffer] = _Made(product.out, strides, False, 0)

    @property
    def nodes(self) -> list[Node]:
        return [self.product, *self.nest.nodes]

    def packed(self) -> tuple[Matrices, tuple[int, int]] | None:
        """Return the matrix whose lanes are not neighbours, and its sizes, the lanes last."""
        if self.length == 1 or self.y.column == self.width:
            return None
        return self.y, (self.inner, self.length)

    def take(self, matrices: Matrices) -> None:
        """Read another matrix in the place of the one whose lanes are not neighbours."""
        self.y = matrices

    def add(self, node: Node) -> bool:
        """Add a map or a store of the result, if its memory can be gone over block by block."""
        if not isinstance(node, (Map, Store)):
            return False
        to = node.out if isinstance(node, Map) else node.target
        # what is stored must not be what the product still reads for other blocks
        if to.shape != self.nest.shape or to.buffer in (self.x.value.buffer, self.y.value.buffer):
            return False
        axes = tuple(range(self.rank))
        values = [*node.operands, to]
        return all(self._folds(strides_of(one, axes, self.rank)) for one in values) and self.nest.add(node)

    def _folds(self, strides: Strides) -> bool:
        """Tell whether rows follow one another, of which a matrix of the batch may have several axes."""
        shape = self.product.out.shape
        sized = [k for k in range(len(self.product.batch), self.rank - 1) if shape[k] != 1]
        return all(strides[k] == strides[after] * shape[after] for k, after in pairwise(sized))

    def work(self) -> int:
        product = math.prod(self.product.batch) * self.height * self.inner * -(-self.length // lanes_of(self.type))
        return product + (self.nest.work() if self.nest.members else 0)

    # ---- writing ----
    def write(self, writer: Writer, kept: set[Buffer], parallel: bool) -> int:
        """Write the loops, and return how many items there are."""
        self.writer, self.kept = writer, kept
        lanes = lanes_of(self.type)
        vectors, self.tile_rows = tile_shape(self.height, self.length, self.type, self.turned)
        blocks = -(-self.height // ROWS)
        share = -(-self.height // blocks)
        height = -(-share // self.tile_rows) * self.tile_rows
        out = self.product.out
        self.local = bool(self.nest.members) and out.buffer not in kept
        bounds = writer.bounds() if parallel else None
        done = 0
        for span in _spans(self.length, vectors * lanes):
            for block in _spans(self.height, min(height, self.height)):
                count = math.prod(self.product.batch) * span.count * block.count
                self._items(bounds, done, count, span, block)
                done += count
        return done

    def _items(self, bounds: Any, first: int, count: int, span: _Span, block: _Span) -> None:
        """Write the loop over the items of blocks of one size: batches, in them spans of lanes, in them blocks of rows."""
        writer = self.writer
        at = _item(writer, bounds, first, count)
        *batch, along, down = _divided(writer, at, (*self.product.batch, span.count, block.count))
        self._block(batch, (along, span), (down, block))
        writer.close()

    def _block(self, batch: list[Any], along: tuple[Any, _Span], down: tuple[Any, _Span]) -> None:
        """Write what computes a block of the result: tiles, and the maps of it."""
        writer, width = self.writer, self.width
        lanes_at, span = _begin(writer, *along)
        rows_at, block = _begin(writer, *down)

        def moved(matrices: Matrices, row: Any, row_step: int, column: Any, column_step: int) -> Any:
            base = writer.pointer(matrices.value.buffer, matrices.value.offset)
            for index, step in zip((*batch, row, column), (*matrices.batch, row_step, column_step), strict=True):
                base = _behind(writer, base, index, step)
            return base

        x = moved(self.x, rows_at, self.x.row, number(0), 0)
        y = moved(self.y, number(0), 0, lanes_at, self.y.column or width)
        to = self.product.to
        out_rows, out_columns = (lanes_at, rows_at) if self.turned else (rows_at, lanes_at)
        if self.local:
            place = writer.early("room", "ptr")
            step = (block.size if self.turned else span.size) * width
            self.writer.room = max(self.writer.room, block.size * span.size * width)
        else:
            place, step = moved(to, out_rows, to.row, out_columns, to.column or width), to.row
        self._tiles(x, y, place, step, span, block)
        if self.nest.members:
            self._followers(batch, (out_rows, out_columns), place, step, span, block)

    def _tiles(self, x: Any, y: Any, out: Any, out_step: int, span: _Span, block: _Span) -> None:
        writer = self.writer
        for part, add in _parts(self.inner):
            turn = writer.open(number(0), number(part.count))
            x_here = _behind(
                writer, _behind(writer, x, number(part.begin), self.x.column), turn, part.size * self.x.column
            )
            y_here = _behind(writer, _behind(writer, y, number(part.begin), self.y.row), turn, part.size * self.y.row)
            for rows in _spans(block.size, self.tile_rows):
                index = writer.open(number(0), number(rows.count))
                step = self.width if self.turned else out_step
                x_tile = _behind(
                    writer, _behind(writer, x_here, number(rows.begin), self.x.row), index, rows.size * self.x.row
                )
                out_tile = _behind(writer, _behind(writer, out, number(rows.begin), step), index, rows.size * step)
                detail = Tile(
                    rows.size, span.size, part.size, self.x.row, self.x.column, self.y.row, out_step, add, self.turned
                )
                writer.operation("product_tile", self.type, x_tile, y_here, out_tile, detail=detail)
                writer.close()
            writer.close()

    def _followers(
        self, batch: list[Any], begins: tuple[Any, Any], place: Any, step: int, span: _Span, block: _Span
    ) -> None:
        """Write the maps of a block."""
        writer, nest = self.writer, self.nest
        rows, columns = (span.size, block.size) if self.turned else (block.size, span.size)
        count = len(self.product.batch)
        sized = [k for k in range(count, self.rank - 1) if nest.shape[k] != 1]
        row_axis, column_axis = [sized[-1]] if sized else [], [self.rank - 1]
        body = _Region(nest, writer, self.kept, {self.product.out.buffer: (place, step)} if self.local else {})
        where = [*zip(batch, range(count), strict=True), (begins[1], self.rank - 1)]
        if sized:
            where.append((begins[0], sized[-1]))
        body.where = where
        if rows > 1:
            writer.open(number(0), number(rows))
            body.dims.append(row_axis)
        body.write_row([(number(0), number(columns), column_axis)])
        if rows > 1:
            writer.close()
            body.dims.pop()


class _Region(_Body):
    """Writes the maps of a block: memory begins where the block does, and that of the product may be a room of its own."""

    def __init__(self, nest: Nest, writer: Writer, kept: set[Buffer], rooms: dict[Buffer, tuple[Any, int]]) -> None:
        super().__init__(nest, writer, kept)
        self.rooms = rooms
        self.where: list[tuple[Any, int]] = []  # where the block begins along axes
        self.depth = len(writer.levels) - 1

    def base(self, value: Value, strides: Strides) -> Any:
        if value.buffer in self.rooms:
            return self.rooms[value.buffer][0]
        key = value.buffer, value.offset, strides
        found = self.bases.get(key)
        if found is None:
            found = self.writer.pointer(value.buffer, value.offset)
            level = self.writer.levels[self.depth]
            for index, axis in self.where:
                found = self.writer.moved(found, index, strides[axis], level)
            self.bases[key] = found
        return found

    def _address(self, value: Value, strides: Strides) -> tuple[Any, Any]:
        if value.buffer in self.rooms:
            own = list(strides)
            for axis in range(self.rank):
                own[axis] = value.dtype.itemsize if axis == self.rank - 1 else self.rooms[value.buffer][1]
            strides = tuple(own)
        return super()._address(value, strides)


def _parts(length: int) -> list[tuple[_Span, bool]]:
    """Divide what is summed over, so that no sum takes too many numbers one after the other; tell which parts are added to others."""
    if length <= 2 * SUMMED:
        return [(_Span(0, 1, length), False)]
    full, rest = divmod(length, SUMMED)
    found = [(_Span(0, 1, SUMMED), False), (_Span(SUMMED, full - 1, SUMMED), True)]
    return [*found, (_Span(full * SUMMED, 1, rest), True)] if rest else found


def _begin(writer: Writer, index: Any, span: _Span) -> tuple[Any, _Span]:
    """Return where a piece of a dimension begins."""
    if span.count == 1:
        return number(span.begin), span
    at = writer.early("mul", I64, index, number(span.size))
    return (writer.early("add", I64, at, number(span.begin)) if span.begin else at), span


def _behind(writer: Writer, pointer: Any, index: Any, step: int) -> Any:
    """Write a pointer that is `index` times `step` bytes behind another."""
    if index.op == "const":
        distance = index.detail * step
        return writer.early("offset", "ptr", pointer, number(distance)) if distance else pointer
    if not step:
        return pointer
    return writer.early("offset", "ptr", pointer, writer.early("mul", I64, index, number(step)))


def _item(writer: Writer, bounds: tuple[Any, Any] | None, first: int, count: int) -> Any:
    """Open the loop over the items from `first` on, as far as they lie in the bounds of a call, and return which of them it is at."""
    begin, end = number(first), number(first + count)
    if bounds is not None:
        begin = writer.early("imax", I64, bounds[0], begin)
        end = writer.early("imin", I64, bounds[1], end)
    index = writer.open(begin, end)
    return writer.early("sub", I64, index, number(first)) if first else index


def _divided(writer: Writer, at: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Make of a number the indices of several dimensions, the last of which counts quickest."""
    found: list[Any] = []
    for k, size in enumerate(reversed(sizes)):
        if size == 1:
            found.insert(0, number(0))
        elif all(n == 1 for n in sizes[: len(sizes) - 1 - k]):
            found.insert(0, at)
        else:
            found.insert(0, writer.early("urem", I64, at, number(size)))
            at = writer.early("udiv", I64, at, number(size))
    return found


def _is_better_turned(product: Product) -> bool:
    """Tell whether lanes are to go along the rows of the result."""
    rows, columns, inner = product.sizes
    width = product.out.dtype.itemsize
    lanes = lanes_of(STORAGE[product.out.dtype])

    def cost(height: int, length: int, neighbours: bool, turned: bool) -> float:
        vectors = -(-length // lanes)
        transposing = 0.5 * length * inner if not neighbours and length > 1 else 0.0
        return height * inner * vectors + transposing + 0.15 * turned * height * length + 8 * height * vectors

    straight = cost(rows, columns, product.y.column == width, False)
    across = cost(columns, rows, product.x.row == width, True)
    return product.to.column == width and across < straight


def sums_of(product: Product) -> tuple[Map, Reduction] | None:
    """Return a product with few rows or columns as sums along rows of both matrices; None if it has many, or these are not neighbours."""
    x, y, width = product.x, product.y, product.out.dtype.itemsize
    rows, columns, inner = product.sizes
    if min(rows, columns) > FEW or x.column != width or y.row != width or inner < lanes_of(STORAGE[product.out.dtype]):
        return None

    def shown(matrices: Matrices, shape: tuple[int, ...], strides: tuple[int, ...]) -> Value:
        made = Value("shown", None, None)
        made.buffer, made.offset, made.dtype = matrices.value.buffer, matrices.value.offset, matrices.value.dtype
        made.shape, made.strides = (*product.batch, *shape), (*matrices.batch, *strides)
        return made

    factors = [shown(x, (rows, 1, inner), (x.row, 0, width)), shown(y, (1, columns, inner), (0, y.column, width))]
    type = STORAGE[product.out.dtype]
    made = between((*product.batch, rows, columns, inner), product.out.dtype)
    axis = len(made.shape) - 1
    total = shown(product.to, (rows, columns), (product.to.row, product.to.column))
    product_of_two = ex.mul(ex.input(0, type), ex.input(1, type))
    return Map(made, product_of_two, factors), Reduction(total, "sum", made, (axis,), whole=product.out)


class TurnStage:
    """Lays matrices out with their lanes as neighbours."""

    def __init__(self, source: Matrices, batch: tuple[int, ...], sizes: tuple[int, int]) -> None:
        self.source, self.sizes = source, sizes
        # axes of the batch along which the matrix is the same are not laid out again and again
        self.batch = tuple([1 if not step else n for n, step in zip(batch, source.batch, strict=True)])
        self.out = between((*self.batch, *sizes), source.value.dtype)
        self.type = STORAGE[self.out.dtype]
        self.nodes: list[Node] = []

    def matrices(self) -> Matrices:
        """Return what it makes."""
        steps = [0 if n == 1 else s for n, s in zip(self.batch, self.out.strides, strict=False)]
        return Matrices(self.out, tuple(steps), self.out.strides[-2], self.out.strides[-1])

    def work(self) -> int:
        return math.prod(self.out.shape) // 2

    def write(self, writer: Writer, kept: set[Buffer], parallel: bool) -> int:
        """Write the loops, and return how many items there are: blocks of rows that become lanes."""
        inner, length = self.sizes
        lanes, width = lanes_of(self.type), self.out.dtype.itemsize
        bounds = writer.bounds() if parallel else None
        done = 0
        for span in _spans(length, lanes):
            count = math.prod(self.batch) * span.count
            *batch, along = _divided(writer, _item(writer, bounds, done, count), (*self.batch, span.count))
            row, _ = _begin(writer, along, span)
            source = writer.pointer(self.source.value.buffer, self.source.value.offset)
            target = writer.pointer(self.out.buffer, 0)
            for one, step, own in zip(batch, self.source.batch, self.matrices().batch, strict=True):
                source, target = _behind(writer, source, one, step), _behind(writer, target, one, own)
            source, target = _behind(writer, source, row, self.source.column), _behind(writer, target, row, width)
            for part in _spans(inner, lanes):
                self._columns(writer, source, target, span, part)
            writer.close()
            done += count
        return done

    def _columns(self, writer: Writer, source: Any, target: Any, span: _Span, part: _Span) -> None:
        width, row = self.out.dtype.itemsize, self.out.strides[-2]
        index = writer.open(number(0), number(part.count))
        source = _behind(writer, _behind(writer, source, number(part.begin), width), index, part.size * width)
        target = _behind(writer, _behind(writer, target, number(part.begin), row), index, part.size * row)
        detail = span.size, part.size, self.source.column, row
        writer.operation("transpose", self.type, source, target, detail=detail)
        writer.close()


class ColumnStage:
    """Sums rows of matrices: each lane has the sum of its column."""

    def __init__(self, node: Reduction, batch: list[int], summed: list[int], lanes: list[int]) -> None:
        self.node = node
        self.type = STORAGE[node.out.dtype]
        x, out = node.operand, node.out
        rank = len(x.shape)
        kept = tuple(range(rank)) if len(out.shape) >= rank else tuple([k for k in range(rank) if k not in node.axes])
        own, to = strides_of(x, tuple(range(rank)), rank), strides_of(out, kept, rank)
        self.batch = tuple([x.shape[k] for k in batch])
        self.steps = [own[k] for k in batch], [to[k] for k in batch]
        self.inner, self.step = math.prod(x.shape[k] for k in summed), own[summed[-1]]
        self.length = math.prod(x.shape[k] for k in lanes)
        self.nodes: list[Node] = [node]

    @staticmethod
    def of(node: Reduction) -> ColumnStage | None:
        """Return the stage of a sum whose results are neighbours where what is summed is not; None for others."""
        x, width = node.operand, node.out.dtype.itemsize
        if node.operation != "sum" or node.out.dtype not in FLOATS:
            return None
        shape = x.shape
        order = sorted([k for k, n in enumerate(shape) if n != 1], key=lambda k: -x.strides[k])
        if not order or x.strides[order[-1]] != width or any(x.strides[k] <= 0 for k in order):
            return None
        groups: list[list[int]] = []
        for k in order:
            follows = groups and x.strides[groups[-1][-1]] == x.strides[k] * shape[k]
            if follows and (groups[-1][-1] in node.axes) == (k in node.axes):
                groups[-1].append(k)
            else:
                groups.append([k])
        summed = [group for group in groups if group[0] in node.axes]
        if len(summed) != 1 or groups[-1] is summed[0]:
            return None
        rank = len(shape)
        kept = (
            tuple(range(rank)) if len(node.out.shape) >= rank else tuple([k for k in range(rank) if k not in node.axes])
        )
        to = strides_of(node.out, kept, rank)
        lanes = groups[-1]
        step = width
        for k in reversed(lanes):  # neighbours in the result, too
            if to[k] != step:
                return None
            step *= shape[k]
        batch = [k for group in groups[:-1] if group is not summed[0] for k in group]
        return ColumnStage(node, batch, summed[0], lanes)

    def work(self) -> int:
        return math.prod(self.batch) * self.inner * -(-self.length // lanes_of(self.type)) * 2

    def write(self, writer: Writer, kept: set[Buffer], parallel: bool) -> int:
        """Write the loops, and return how many items there are."""
        width = self.node.out.dtype.itemsize
        bounds = writer.bounds() if parallel else None
        done = 0
        for span in _spans(self.length, COLUMNS * lanes_of(self.type)):
            count = math.prod(self.batch) * span.count
            *batch, along = _divided(writer, _item(writer, bounds, done, count), (*self.batch, span.count))
            lane, _ = _begin(writer, along, span)
            source = writer.pointer(self.node.operand.buffer, self.node.operand.offset)
            target = writer.pointer(self.node.out.buffer, self.node.out.offset)
            for one, step, own in zip(batch, *self.steps, strict=True):
                source, target = _behind(writer, source, one, step), _behind(writer, target, one, own)
            source, target = _behind(writer, source, lane, width), _behind(writer, target, lane, width)
            for part, add in _parts(self.inner):
                turn = writer.open(number(0), number(part.count))
                here = _behind(
                    writer, _behind(writer, source, number(part.begin), self.step), turn, part.size * self.step
                )
                detail = Tile(1, span.size, part.size, 0, 0, self.step, 0, add)
                writer.operation("product_tile", self.type, None, here, target, detail=detail)
                writer.close()
            writer.close()
            done += count
        return done
