"""Stages: the nodes of a group of steps as kernels that run one after the other, in one call from Python.

Note [Stages]
Nodes come in an order in which each follows what it reads. A node joins the first stage that can compute it together with what is there
(`Nest`, `ProductStage`), not before the stages that make what it reads; a store not before those that read what it overwrites. If there is
none, it gets a stage of its own at the end. Then
- a map whose value only one later nest reads moves there, if what it reads itself is there anyway: so nothing is stored for it;
- stages that are long enough are shared by threads, if the whole is worth waking them. Before a stage that touches memory which a stage
  since the last meeting has touched, one of them writing, all threads meet;
- values that others see get memory of their own, as eager lays it out. All else shares one piece of memory, the arena: a value takes
  room that no other needs between the meetings around its first and its last use. The memory of a result is room, too, until that is
  made, and so is an input that nobody reads any more. A value that a loop makes where it reads another for the last time takes
  the place of that (`_rooms.py`);
- equal stages are one kernel: loops that were unrolled in Python are compiled once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._native import driver, machine, threads, vectors
from .._native import expression as ex
from .._native.loops import Step as Operation
from .._native.trace import STORAGE
from .._settings import get_num_threads
from ._lowering import Check, Map, Matrices, Node, Product, Reduction, Store, between
from ._nests import Access, Nest, Writer, goes_along_rows, is_number, number
from ._products import ColumnStage, ProductStage, TurnStage, sums_of
from ._program import Buffer, Step, Value
from ._rooms import Kind, Rooms
from ._sizes import are_read, taken_out

LARGEST = 1 << 20  # elements of an array: larger ones leave the caches, where fewer passes are all that counts
WORK = 1 << 30  # multiplications of a product: larger ones are BLAS's, which lays matrices out anew
SHARED = 3000  # operations of vectors, about a microsecond: a stage of more is worth two threads that are awake
WORTH_WAKING = 400_000  # operations of vectors of a whole program, above 100 us
LONG = 40_000  # operations of vectors: other threads of Python may run meanwhile
KEPT = 64 << 20  # bytes of an arena that is kept for the next call


def is_native(step: Step, what: Any) -> bool:
    """Tell whether a step can be part of a native program."""
    if type(what) is not list:
        return False
    for node in what:
        if are_read() and (isinstance(node, Product) or _has_tiles(node)):
            return False
        if isinstance(node, Product) and math.prod((*node.batch, *node.sizes)) > WORK:
            return False
        if any(math.prod(value.shape) > LARGEST for value in (*node.operands, *_made_by(node))):
            return False
    return True


def _has_tiles(node: Node) -> bool:
    """Tell whether a node is the sum of columns in tiles."""
    return isinstance(node, Reduction) and not goes_along_rows(node) and ColumnStage.of(node) is not None


def _made_by(node: Node) -> list[Value]:
    return [] if isinstance(node, Check) else [node.target] if isinstance(node, Store) else [node.out]


class CheckStage:
    """Asks whether a value is what it was, and notes its own number if not."""

    def __init__(self, node: Check, number: int) -> None:
        self.node, self.number = node, number
        self.nodes: list[Node] = [node]

    def work(self) -> int:
        return 1

    def write(self, writer: Writer, kept: set[Buffer], parallel: bool) -> int:
        value = self.node.value
        type = STORAGE[value.dtype]
        place = writer.pointer(value.buffer, value.offset)
        found = writer.operation("load", "f32" if type in ("f16", "bf16") else type, place, None, detail=type)
        truth = writer.operation("cast", "i1", found) if found.type != "i1" else found
        wrong = writer.operation("xor", "i1", truth, Operation("const", "i1", (), self.node.outcome))
        status = writer.pointer(STATUS, 0)
        before = writer.operation("load", "i64", status, None, detail="i64")
        now = writer.operation("select", "i64", wrong, number(self.number), before)
        writer.operation("store", "void", status, None, now, detail="i64")
        return 1


class StopStage:
    """Ends the program if a check has failed."""

    nodes: Sequence[Node] = ()

    def __init__(self, number: int) -> None:
        self.number = number

    def work(self) -> int:
        return 0


STATUS = Buffer(-4, False)  # what checks have found


class Stages:
    """Distributes nodes. See Note [Stages]. `shown` is the memory that others see."""

    def __init__(self, nodes: Sequence[Node], shown: set[Buffer]) -> None:
        self.stages: list[Any] = []
        self.written: dict[Buffer, int] = {}  # the stage that has written memory last
        self.read: dict[Buffer, int] = {}  # and the last one that reads it
        self.turned: dict[Any, Matrices] = {}
        self.stop = -1  # the stage behind the checks
        self.checks = 0
        for node in nodes:
            self._place(node)
        self._move(shown)

    def _place(self, node: Node) -> None:
        first = max([self.written.get(operand.buffer, -1) for operand in node.operands], default=-1)
        if isinstance(node, Store):
            target = node.target.buffer
            first = max(first, self.written.get(target, -1), self.read.get(target, -1))
        if isinstance(node, Check):
            self._check(node)
            return
        if isinstance(node, Product):
            self._multiply(node)
            return
        if isinstance(node, Reduction) and not goes_along_rows(node) and (column := ColumnStage.of(node)) is not None:
            self._sum_columns(node, column)
            return
        at = self._joined(node, first)
        if at is None:
            nest = Nest(node.operand.shape if isinstance(node, Reduction) else _made_by(node)[0].shape)
            if isinstance(node, Reduction):
                nest.inner = frozenset(node.axes)
            added = nest.add(node)
            assert added, "a nest of its own takes any node"
            self.stages.append(nest)
            at = len(self.stages) - 1
        self._note(node, at)

    def _joined(self, node: Node, first: int) -> int | None:
        """Return the stage that a node has joined: one that it shares memory with, or else any."""
        begin = max(first, 0)
        if isinstance(node, Store):
            begin = max(begin, self.stop + 1)
        own = {operand.buffer for operand in node.operands}
        candidates = [k for k in range(begin, len(self.stages)) if isinstance(self.stages[k], (Nest, ProductStage))]
        for shares in (True, False):
            for k in candidates:
                stage = self.stages[k]
                nest = stage if isinstance(stage, Nest) else stage.nest
                if shares is not own.isdisjoint(nest.streams()) and stage.add(node):
                    return k
        return None

    def _note(self, node: Node, at: int) -> None:
        for operand in node.operands:
            self.read[operand.buffer] = max(at, self.read.get(operand.buffer, -1))
        for value in _made_by(node):
            self.written[value.buffer] = max(at, self.written.get(value.buffer, -1))  # parts of it may come early

    def _append(self, stage: Any, node: Node) -> None:
        self.stages.append(stage)
        self._note(node, len(self.stages) - 1)

    def _check(self, node: Check) -> None:
        self.checks += 1
        self._append(CheckStage(node, self.checks), node)
        self.stages.append(StopStage(self.checks))
        self.stop = len(self.stages) - 1

    def _sum_columns(self, node: Reduction, column: ColumnStage) -> None:
        if node.count == 1:
            self._append(column, node)
            return
        type = STORAGE[node.out.dtype]
        total = between(node.out.shape, node.out.dtype)
        self._place(Reduction(total, node.operation, node.operand, node.axes))
        share = ex.div(ex.input(0, type), ex.const(node.count, type))
        self._place(Map(node.out, share, [total]))

    def _multiply(self, node: Product) -> None:
        stage = ProductStage(node)
        found = stage.packed()
        if found is not None and (sums := sums_of(node)) is not None:
            made, total = sums
            nest = Nest(made.out.shape)
            nest.inner = frozenset(total.axes)
            if nest.add(made) and nest.add(total):
                self._append(nest, made)
                self._note(total, len(self.stages) - 1)
                return
        if found is not None:
            stage.take(self._with_lanes(node, *found))
        self._append(stage, node)
        self.read[stage.y.value.buffer] = len(self.stages) - 1

    def _with_lanes(self, node: Product, source: Matrices, sizes: tuple[int, int]) -> Matrices:
        """Return matrices laid out with their lanes as neighbours."""
        value = source.value
        batch = node.batch
        key = value.buffer, value.offset, source.batch, source.row, source.column, sizes, self.written.get(value.buffer)
        known = self.turned.get(key)
        if known is not None:
            return known
        turn = TurnStage(source, batch, sizes)
        if source.row == value.dtype.itemsize:
            self.stages.append(turn)
            at = len(self.stages) - 1
            self.read[value.buffer] = max(at, self.read.get(value.buffer, -1))
            self.written[turn.out.buffer] = at
        else:  # neither rows nor columns are neighbours
            shown = Value("shown", None, None)
            shown.buffer, shown.offset, shown.dtype = value.buffer, value.offset, value.dtype
            shown.shape, shown.strides = turn.out.shape, (*source.batch, source.row, source.column)
            self._place(Map(turn.out, ex.input(0, STORAGE[value.dtype]), [shown]))
        self.turned[key] = turn.matrices()
        return self.turned[key]

    # ---- moving ----
    def _move(self, shown: set[Buffer]) -> None:
        """Move maps to the nests that read their values, the last ones first: so what they read can follow."""
        readers: dict[Buffer, set[int]] = {}
        writers: dict[Buffer, set[int]] = {}
        for at, stage in enumerate(self.stages):
            for memory, users in zip(_touched(stage), (readers, writers), strict=True):
                for buffer in memory:
                    users.setdefault(buffer, set()).add(at)
        for at in reversed(range(len(self.stages))):
            source = self.stages[at]
            nodes = source.nodes if isinstance(source, (Nest, ProductStage)) else ()
            for node in reversed(nodes):
                if not isinstance(node, Map) or node.whole is not None or node.out.buffer in shown:
                    continue
                to, *more = readers.get(node.out.buffer, {at})
                if more or to <= at or not isinstance(self.stages[to], Nest):
                    continue
                there = [
                    self._is_there(operand, node.out, at, to, shown, readers, writers) for operand in node.operands
                ]
                if all(there) and self._has_moved(node, at, to):
                    left, _ = _touched(self.stages[at])
                    for operand in node.operands:
                        own = readers.setdefault(operand.buffer, set())
                        own.add(to)
                        if operand.buffer not in left:
                            own.discard(at)
                    writers[node.out.buffer] = {to}
        self.stages = [stage for stage in self.stages if stage.nodes or not isinstance(stage, Nest)]

    @staticmethod
    def _is_there(
        operand: Value,
        out: Value,
        at: int,
        to: int,
        shown: set[Buffer],
        readers: dict[Buffer, set[int]],
        writers: dict[Buffer, set[int]],
    ) -> bool:
        """Tell whether a stage can read what an earlier one reads, and nothing has to be kept for that."""
        if is_number(operand):
            return True
        written = writers.get(operand.buffer, ())
        kept = operand.buffer in shown or max(readers.get(operand.buffer, ()), default=-1) >= to
        same = operand.strides == out.strides or operand.size < out.size
        return same and (kept or min(written, default=to) > at) and not any(at < one <= to for one in written)

    def _has_moved(self, node: Map, at: int, to: int) -> bool:
        """Move a map, if the stage can compute it."""
        source, target = self.stages[at], self.stages[to]
        nest = source if isinstance(source, Nest) else source.nest
        left = nest.of_others([one for one in nest.nodes if one is not node])
        grown = target.of_others([node, *target.nodes])
        if left is None or grown is None:
            return False
        self.stages[to] = grown
        if nest is source:
            self.stages[at] = left
        else:
            source.nest = left
        return True


def _touched(stage: Any) -> tuple[set[Buffer], set[Buffer]]:
    """Return the memory that a stage reads, and that it writes."""
    reads = {operand.buffer for node in stage.nodes for operand in node.operands if not is_number(operand)}
    writes = {value.buffer for node in stage.nodes for value in _made_by(node)}
    if isinstance(stage, TurnStage):
        return {stage.source.value.buffer}, {stage.out.buffer}
    if isinstance(stage, ProductStage):
        reads.add(stage.y.value.buffer)
    if isinstance(stage, CheckStage):
        writes.add(STATUS)
    return reads, writes


# ---- kernels ----
class Kernel:
    """A group of steps as stages, and how they are called."""

    def __init__(
        self, nodes: Sequence[Node], shown: set[Buffer], results: set[Buffer], ending: dict[Buffer, Value]
    ) -> None:
        """Lay out the stages. Others see memory that is `shown`, programs hand out `results`; only these nodes read what is `ending`."""
        self.stages = Stages(nodes, shown).stages
        touched = [_touched(stage) for stage in self.stages]
        made: dict[Buffer, Value] = {}
        for stage in self.stages:
            for node in stage.nodes:
                if not isinstance(node, (Check, Store)):
                    made[node.out.buffer] = getattr(node, "whole", None) or node.out
            if isinstance(stage, TurnStage):
                made[stage.out.buffer] = stage.out
        self.made = made
        works = [stage.work() for stage in self.stages]
        count = get_num_threads()
        shared = [work >= SHARED for work in works]
        worth = sum(work for work, one in zip(works, shared, strict=True) if one)
        self.threads = count if count > 1 and worth >= WORTH_WAKING and threads.is_possible() else 1
        self.long = sum(works) >= LONG
        self.checks = any(isinstance(stage, StopStage) for stage in self.stages)
        users: dict[Buffer, set[int]] = {}
        for at, (reads, writes) in enumerate(touched):
            for buffer in (*reads, *writes):
                users.setdefault(buffer, set()).add(at)
        self.meetings = self._meetings(touched)
        self.given: list[Buffer] = []  # memory that a call brings: inputs, then results
        self.sizes: dict[Buffer, np.ndarray] = {}  # memory from which stages read theirs
        self.table: list[tuple[int, list[tuple[Buffer, int]], int, int]] = []
        accesses: list[list[list[Access]]] = [[] for _ in self.stages]
        parallel = self.threads > 1
        kept = {buffer for buffer, own in users.items() if buffer in shown or len(own) > 1}
        for at, stage in enumerate(self.stages):
            flags = driver.WAITS * self.meetings[at][1]
            if isinstance(stage, StopStage):
                self.table.append((0, [], stage.number, flags | driver.STOPS))
                continue
            writer = Writer()
            items = stage.write(writer, kept, parallel and shared[at])
            accesses[at] = writer.accesses
            function = writer.function()
            if are_read():
                buffer, numbers = taken_out(function, writer.places)
                self.sizes[buffer] = numbers
            kernel = machine.address(vectors.render(function, "KERNEL"), as_it_is=True)
            alone = 0 if parallel and shared[at] and items > 1 else driver.ALONE
            self.table.append((kernel, writer.places, items, flags | alone))
        used = dict.fromkeys(buffer for _, places, _, _ in self.table for buffer, _ in places)
        self.outputs = [value for buffer, value in made.items() if buffer in shown and buffer in used]
        self.inputs = [buffer for buffer in used if buffer not in made and buffer is not STATUS]
        times = [at if self.threads == 1 else meeting for at, (meeting, _) in enumerate(self.meetings)]
        rooms = Rooms(self.stages, accesses, times, users)
        for buffer in self.inputs:
            if buffer in ending:
                rooms.add(ending[buffer], Kind.ENDING)
        for buffer, value in made.items():
            if buffer in used:
                shows = buffer in shown
                rooms.add(value, Kind.BETWEEN if not shows else Kind.RESULT if buffer in results else Kind.MADE)
        self.arena, self.offsets, self.taken = rooms.arranged()

    def _meetings(self, touched: list[tuple[set[Buffer], set[Buffer]]]) -> list[tuple[int, bool]]:
        """Return for each stage the number of meetings of threads before it, and whether one is right before it."""
        found = []
        count = 0
        reads: set[Buffer] = set()
        writes: set[Buffer] = set()
        for stage, (own_reads, own_writes) in zip(self.stages, touched, strict=True):
            meets = isinstance(stage, StopStage) or not (
                writes.isdisjoint(own_reads | own_writes) and reads.isdisjoint(own_writes)
            )
            if meets:
                count += 1
                reads, writes = set(), set()
            reads |= own_reads
            writes |= own_writes
            found.append((count, meets))
        return found

    # ---- calls ----
    def launcher(self, origins: dict[Buffer, Value], constants: dict[Buffer, np.ndarray]) -> Callable[[], Any]:
        """Return what makes functions that run it: of the arrays of inputs that are no constants, of results, and of the arena."""
        given = [buffer for buffer in self.inputs if buffer not in constants] + [value.buffer for value in self.outputs]
        fixed = [buffer for buffer in self.inputs if buffer in constants]
        order = {buffer: number for number, buffer in enumerate(given)}
        arena = len(given)
        count = len(given) + bool(self.arena)
        order |= {buffer: count + number for number, buffer in enumerate(fixed)}
        order[STATUS] = count + len(fixed)
        places: dict[tuple[int, int], int] = {}
        rows = []
        for kernel, own, items, flags in self.table:
            numbers = []
            for buffer, offset in own:
                home, begin = self.offsets.get(buffer, (buffer, 0))
                if home is None:
                    place = arena, begin + offset
                else:
                    origin = origins.get(home)
                    place = order[home], begin + offset - (origin.offset if origin is not None else 0)
                numbers.append(places.setdefault(place, len(places)))
            rows.append((kernel, numbers, items, flags))
        arrays = [constants[buffer] for buffer in fixed]

        def make() -> Any:
            return driver.launcher(
                [driver.Stage(*row) for row in rows], list(places), count, arrays, self.threads, self.long
            )

        return make


arenas: dict[int, list[np.ndarray]] = {}  # by their size; those that no call uses
memory = np.empty  # what gives new memory to arenas


def spoiled(shape: Any, dtype: Any) -> np.ndarray:
    """Return new memory that holds no number which could be right by chance."""
    made = np.empty(shape, dtype)
    made.view(np.uint8).fill(0xFF) if made.shape else made.fill(np.frombuffer(b"\xff" * made.itemsize, dtype)[0])
    return made


@contextmanager
def spoiled_memory(programs: Iterable[Any]) -> Iterator[None]:
    """Let programs find NaN in new memory, for a block, so that a trial sees what they read before they have written it, or never write.

    Memory that was just freed often holds the right numbers: those of the call in eager before.
    """
    global memory
    for kept in arenas.values():
        kept.clear()  # another thread could take what is written here
    places = [
        (scope, name) for scope in [one.__globals__ for one in programs] for name in scope if scope[name] is np.empty
    ]
    memory = spoiled  # type: ignore[assignment]
    for scope, name in places:
        scope[name] = spoiled
    try:
        yield
    finally:
        memory = np.empty
        for scope, name in places:
            scope[name] = np.empty


def arena_of(size: int) -> tuple[Callable[[], np.ndarray], Callable[[np.ndarray], None]]:
    """Return what takes memory for the values between stages, and what gives it back."""
    step = max(1 << size.bit_length() >> 4, 4096)  # programs of about the same size share it
    size = -(-size // step) * step
    kept = arenas.setdefault(size, [])

    def take() -> np.ndarray:
        try:
            return kept.pop()
        except IndexError:
            return memory(size, np.uint8)

    def give(memory: np.ndarray) -> None:
        if size <= KEPT:
            kept.append(memory)

    return take, give


def kernel_of(
    steps: list[Step],
    known: dict[Step, Any],
    shown: set[Buffer],
    results: set[Buffer],
    ending: dict[Buffer, Value],
    origin: Callable[[Value], Value],
) -> Step:
    """Make one step of several; `origin` finds what a view shows, as far as it is there without the view. For the others see `Kernel`."""
    nodes = [node for step in steps for node in known[step]]
    kernel = Kernel(nodes, shown, results, ending)
    origins: dict[Buffer, Value] = {}
    constants: dict[Buffer, np.ndarray] = dict(kernel.sizes)
    inputs = []
    for value in [value for node in nodes for value in (*node.operands, *_made_by(node))]:
        buffer = value.buffer
        if buffer in kernel.inputs and buffer not in origins:
            origins[buffer] = given = origin(value)
            if given.constant is not None and not buffer.written:
                constants[buffer] = given.constant
            else:
                inputs.append(given)
    inputs.sort(key=lambda value: kernel.inputs.index(value.buffer))
    for value in kernel.outputs:
        origins[value.buffer] = value
    made = Step("kernel", Launch(kernel, origins, constants), "kernel", tuple(inputs), {}, name="kernel")
    made.fused = steps
    made.makes, made.several = kernel.outputs, True
    made.writes = [buffer for step in steps for buffer in step.writes]
    made.read = tuple([(value, 0) for value in inputs])
    made.place = steps[0].place
    for value in kernel.outputs:
        value.step = made
    return made


class Launch:
    """How a kernel is called from a program's text."""

    def __init__(self, kernel: Kernel, origins: dict[Buffer, Value], constants: dict[Buffer, np.ndarray]) -> None:
        self.kernel = kernel
        self.make = kernel.launcher(origins, constants)
        self.free = [self.make()]  # functions that nobody runs just now
        self.arena = arena_of(kernel.arena) if kernel.arena else None
        self.__name__ = "kernel"

    def __call__(self, *arrays: Any) -> Any:
        raise TypeError("a kernel is called by a program's text: see `lines`")

    def lines(self, step: Step, named: Callable[[Any, str], str]) -> list[str]:
        """Write the call: room for results, a function that nobody else runs, and what happens if a check fails."""
        kernel = self.kernel
        empty, free, make = named(np.empty, "empty"), named(self.free, "free"), named(self.make, "make")
        lines, arrays = [], []
        for value in step.arguments:
            if not value.shape:
                lines.append(f"{value.name} = {named(np.asarray, 'asarray')}({value.name})")
            arrays.append(value.name)
        for value in kernel.outputs:
            before = kernel.taken.get(value.buffer)
            lines.append(f"{value.name} = {room(value, empty, named) if before is None else before.name}")
        arrays += [value.name for value in kernel.outputs]
        if self.arena is not None:
            take, give = (named(one, name) for one, name in zip(self.arena, ("take", "give"), strict=True))
            lines.append(f"arena = {take}()")
            arrays.append("arena")
        lines += [
            "try:",
            f"    run = {free}.pop()",
            "except IndexError:",
            f"    run = {make}()",
            f"fine = run({', '.join(arrays)})",
            f"{free}.append(run)",
        ]
        if self.arena is not None:
            lines.append(f"{give}(arena)")
        if kernel.checks:
            lines += ["if not fine:", "    return None"]
        return lines


def room(value: Value, empty: str, named: Callable[[Any, str], str]) -> str:
    """Write what makes memory for a value, laid out as eager does."""
    dtype = named(value.dtype, f"d_{value.dtype.name}")
    order = sorted(range(len(value.shape)), key=lambda k: (-value.strides[k], k))
    sized = [k for k in order if value.shape[k] != 1]
    if sized == sorted(sized):
        return f"{empty}({value.shape}, {dtype})"
    shape = tuple(value.shape[k] for k in order)
    back = tuple(order.index(k) for k in range(len(order)))
    return f"{empty}({shape}, {dtype}).transpose({back})"
