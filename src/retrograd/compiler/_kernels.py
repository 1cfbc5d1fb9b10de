"""Kernels of small steps: loops over one element after the other, sizes and strides as constants. See Note [Groups] in `_groups.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np

from .._generated import emit
from .._native import blas, llvm, machine
from .._native import expression as ex
from .._native.expression import I64, Expr
from .._native.loops import COMBINE, Carried, Function, Loop, _expanded, start_of
from .._native.loops import Step as Operation
from .._native.trace import STORAGE
from ._lowering import Map, Product, Reduction, Store, View
from ._program import Buffer, Step, Value

SMALL = 1 << 14  # elements of an array: larger ones are worth a call of their own
FLOPS = 1 << 22  # of a product: larger ones, too
DATA = object.__basicsize__  # where an array keeps the address of its memory


def is_small(step: Step, what: Any) -> bool:
    """Tell whether a step is worth a part of a kernel, rather than a call of its own."""
    if isinstance(what, Store):
        return math.prod(what.target.shape) <= SMALL
    if not isinstance(what, Product):
        return all(math.prod(v.shape) <= SMALL for v in (*step.makes, *step.values))
    work = math.prod(what.x.shape) * step.makes[0].shape[1]
    known = STORAGE[step.makes[0].dtype] in blas.addresses()
    return work <= FLOPS and known and _step_of(what.x) is not None and _step_of(what.y) is not None


def is_fixed(value: Value) -> bool:
    """Tell whether a value is a constant that no step writes: such a one is part of the kernel's call."""
    return value.constant is not None and not value.buffer.written


def _step_of(value: Value) -> tuple[bool, int] | None:
    """Say whether a matrix lies transposed in memory, and how far its rows are apart; None if BLAS cannot read it."""
    (rows, columns), (far, near), width = value.shape, value.strides, value.dtype.itemsize
    if (near == width or columns == 1) and far % width == 0 and (far // width >= columns or rows == 1):
        return False, max(far // width, columns)
    if (far == width or rows == 1) and near % width == 0 and (near // width >= rows or columns == 1):
        return True, max(near // width, rows)
    return None


class _Nest:
    """A loop nest that is being written: maps of one shape share it."""

    __slots__ = ("body", "dims", "indices", "made", "shape")

    def __init__(self, shape: tuple[int, ...], body: list[Any], dims: list[int], indices: list[Any]) -> None:
        self.shape, self.body, self.dims, self.indices = shape, body, dims, indices
        self.made: dict[Value, Any] = {}


class _Kernel:
    """Writes the kernel of a group."""

    def __init__(
        self, steps: list[Step], known: dict[Step, Any], outside: set[Value], readers: dict[Value, list[Step]]
    ) -> None:
        self.steps, self.known = steps, known
        self.body: list[Any] = []
        self.members = {made: step for step in steps for made in step.makes}
        self.uses: dict[Value, int] = {}
        mine = set(steps)
        for step in steps:
            for value in _operands(known[step]):
                self.uses[value] = self.uses.get(value, 0) + 1
        # memory that others see: values that are read outside, themselves or by views
        self.roots = {made.buffer: made for made in self.members}
        self.shown: set[Buffer] = set()
        viewed: set[Buffer] = set()
        for value, users in readers.items():
            if value.buffer in self.roots:
                for user in users:
                    if user in mine:
                        if value not in self.members:
                            viewed.add(value.buffer)
                    elif not isinstance(known.get(user), View):
                        self.shown.add(value.buffer)
        for value in outside:
            if value.buffer in self.roots:
                self.shown.add(value.buffer)
        self.viewed = viewed
        self.pointers: dict[Buffer, Any] = {}
        self.inputs: list[Value] = []  # arrays that a call is given
        self.outputs: list[Value] = []
        self.scratch = 0
        self.head: list[Any] = []  # pointers, before all loops
        self.places: list[Any] = []
        self.cells: list[Any] = []  # what each pointer of the call is: a Value, "scratch" or a type of products
        self.nest: _Nest | None = None
        self.inlined: set[Value] = set()

    # ---- memory ----
    def _cell(self, what: Any) -> Any:
        if what in self.cells:
            number = self.cells.index(what)
        else:
            number = len(self.cells)
            self.cells.append(what)
            self.head.append(Operation("pointer", "ptr", (), number))
            self.places.append(self.head[-1])
        return self.places[number]

    def _behind(self, pointer: Any, bytes: int) -> Any:
        moved = Operation("offset", "ptr", (pointer, _number(bytes)))
        self.head.append(moved)
        return moved

    def pointer(self, value: Value) -> Any:
        """Return the pointer to the first element of a value."""
        buffer: Any = value.buffer
        known = self.pointers.get(buffer)
        if known is None:
            root = self.roots.get(buffer)
            if root is None:
                given = self._origin(value)
                self.inputs.append(given)
                known = (self._cell(given), given.offset)
            elif buffer in self.shown:
                self.outputs.append(root)
                known = (self._cell(root), root.offset)
            else:
                known = (self._behind(self._cell("scratch"), self.scratch), root.offset)
                self.scratch += -(-max(math.prod(root.shape), 1) * root.dtype.itemsize // 64) * 64
            self.pointers[buffer] = known
        pointer, start = known
        return pointer if value.offset == start else self._behind(pointer, value.offset - start)

    def _origin(self, value: Value) -> Value:
        """Return what a view shows, as far as it is there without the view."""
        while value.step in self.known and isinstance(self.known[value.step], View):
            value = next(one for one in value.step.values if one.buffer is value.buffer)
        return value

    # ---- loops ----
    def write(self) -> Function:
        for step in self.steps:
            what = self.known[step]
            if isinstance(what, Store):
                self._write(what)
                continue
            out = step.makes[0]
            if isinstance(what, Map):
                if self._may_inline(out):
                    self.inlined.add(out)
                else:
                    self._map(out, what)
            elif isinstance(what, Reduction):
                self._reduce(out, what)
            else:
                self._multiply(out, what)
        return Function([*self.head, *self.body], 0)

    def _may_inline(self, value: Value) -> bool:
        """Tell whether a value is computed where it is read, and not stored."""
        if value.buffer in self.shown or value.buffer in self.viewed or self.uses.get(value, 0) != 1:
            return False
        begun, reads = False, self._reads(value)
        for step in self.steps:
            what = self.known[step]
            if value in _operands(what):
                if isinstance(what, Store):  # element by element, what is read lies where it is written
                    return all(one is what.target for one in reads if one.buffer is what.target.buffer)
                if isinstance(what, Map):
                    return step.makes[0].shape == value.shape
                return isinstance(what, Reduction)
            begun = begun or value in step.makes
            if begun and isinstance(what, Store) and any(one.buffer is what.target.buffer for one in reads):
                return False  # it would be computed of what is written by then
        return False

    def _reads(self, value: Value) -> list[Value]:
        """Return the values that are read where a value is computed."""
        found: list[Value] = []
        for one in _operands(self.known[self.members[value]]):
            found += self._reads(one) if one in self.inlined else [one]
        return found

    def _write(self, what: Store) -> None:
        """Write a store. What follows reads memory anew."""
        nest, target = self.nest, what.target
        apart = nest is not None and any(one.buffer is target.buffer and one is not target for one in nest.made)
        if (
            nest is None
            or nest.shape != target.shape
            or apart
            or not self._may_join(nest, self._as_map(what), target.shape)
        ):
            nest = self._open(target.shape)
        self._store(target, self._read(what.value, STORAGE[target.dtype], nest), nest)
        self.nest = None

    def _as_map(self, what: Store) -> Map:
        return Map(ex.input(0, STORAGE[what.value.dtype]), [what.value])

    def _open(self, shape: tuple[int, ...]) -> _Nest:
        dims = [k for k, n in enumerate(shape) if n != 1]
        body, indices = self.body, []
        for depth, k in enumerate(dims):
            loop = Loop(Operation("index", I64), _number(0), _number(shape[k]), free=depth == len(dims) - 1)
            body.append(loop)
            body = loop.body
            indices.append(loop.index)
        self.nest = _Nest(shape, body, dims, indices)
        return self.nest

    def _map(self, out: Value, what: Map) -> None:
        nest = self.nest
        if nest is None or nest.shape != out.shape or not self._may_join(nest, what, out.shape):
            nest = self._open(out.shape)
        value = self._element(out, what, nest)
        nest.made[out] = value
        self._store(out, value, nest)

    def _may_join(self, nest: _Nest, what: Map, shape: tuple[int, ...]) -> bool:
        """Tell whether a map can share a nest: what the nest has made it reads element by element, not otherwise."""
        buffers = {value.buffer for value in nest.made}
        for operand in what.operands:
            if operand in nest.made:
                if operand.shape != shape:
                    return False
            elif operand.buffer in buffers:
                return False
            elif operand in self.inlined:
                inner = self.known[self.members[operand]]
                if not self._may_join(nest, inner, shape):
                    return False
        return True

    def _element(self, out: Value, what: Map, nest: _Nest) -> Any:
        """Write what computes an element of a map."""
        (expression,) = _expanded([what.expression])
        done: dict[Expr, Any] = {}
        for node in ex.nodes_of(expression):
            if node.op == "const":
                done[node] = Operation("const", node.type, (), ex.value_of(node))
            elif node.op == "input":
                done[node] = self._read(what.operands[node.detail], node.type, nest)
            else:
                made = Operation(node.op, node.type, tuple([done[a] for a in node.args]), node.detail)
                nest.body.append(made)
                done[node] = made
        return done[expression]

    def _read(self, value: Value, type: str, nest: _Nest) -> Any:
        found = nest.made.get(value)
        if found is not None:
            return found
        if value in self.inlined:
            what = self.known[self.members[value]]
            found = nest.made[value] = self._element(value, what, nest)
            return found
        if is_fixed(value) and not value.shape:
            number = value.constant.item()
            return Operation("const", type, (), number)
        base, index = self._place(value, nest)
        found = Operation("load", type, (base, index), STORAGE[value.dtype])
        nest.body.append(found)
        nest.made[value] = found
        return found

    def _place(self, value: Value, nest: _Nest) -> tuple[Any, Any]:
        """Return the pointer to the element of a value at the indices of a nest, and its index behind that."""
        base, index = self.pointer(value), None
        lead = len(nest.shape) - len(value.shape)
        for k, at in zip(nest.dims, nest.indices, strict=True):
            if k < lead or value.shape[k - lead] == 1:
                continue
            stride = value.strides[k - lead]
            if at is nest.indices[-1] and stride == value.dtype.itemsize:
                index = at
                continue
            step = Operation("mul", I64, (at, _number(stride)))
            moved = Operation("offset", "ptr", (base, step))
            nest.body += [step, moved]
            base = moved
        return base, index

    def _store(self, out: Value, value: Any, nest: _Nest) -> None:
        base, index = self._place(out, nest)
        nest.body.append(Operation("store", "void", (base, index, value), STORAGE[out.dtype]))

    def _reduce(self, out: Value, what: Reduction) -> None:
        """Write a reduction: loops over what stays, and inside over what goes."""
        self.nest = None
        x, type = what.operand, STORAGE[out.dtype]
        kept = [k for k in range(len(x.shape)) if k not in what.axes and x.shape[k] != 1]
        gone = [k for k in what.axes if x.shape[k] != 1]
        body, indices = self.body, {}
        for k in kept:
            loop = Loop(Operation("index", I64), _number(0), _number(x.shape[k]))
            body.append(loop)
            body = loop.body
            indices[k] = loop.index
        outer = body
        total: Any = Operation("const", type, (), start_of(what.operation, type))
        loops: list[tuple[Loop, Carried]] = []
        for depth, k in enumerate(gone):
            loop = Loop(Operation("index", I64), _number(0), _number(x.shape[k]), free=depth == len(gone) - 1)
            carried = Carried(type, total)
            loop.carried = [carried]
            body.append(loop)
            loops.append((loop, carried))
            body, total = loop.body, carried
            indices[k] = loop.index
        order = [*kept, *gone]
        nest = _Nest(x.shape, body, order, [indices[k] for k in order])
        value = self._read(x, type, nest)
        result: Any = Operation(COMBINE[what.operation], type, (total, value))
        body.append(result)
        for _, carried in reversed(loops):
            carried.next = result
            result = carried
        if what.count != 1:
            result = Operation("div", type, (result, Operation("const", type, (), float(what.count))))
            outer.append(result)
        # where the result goes: its axes are those that stay, whether or not the others are kept with one element
        dropped = len(out.shape) != len(x.shape)
        place = self.pointer(out)
        left = [k for k in range(len(x.shape)) if k not in what.axes]
        for k in kept:
            own = (len(out.shape) - len(left) + left.index(k)) if dropped else k
            step = Operation("mul", I64, (indices[k], _number(out.strides[own])))
            moved = Operation("offset", "ptr", (place, step))
            outer += [step, moved]
            place = moved
        outer.append(Operation("store", "void", (place, None, result), type))

    def _multiply(self, out: Value, what: Product) -> None:
        self.nest = None
        type = STORAGE[out.dtype]
        rows, columns = out.shape
        inner = what.x.shape[0 if what.turned[0] else 1]
        if what.bias is not None:  # which the product is added to
            nest = self._open(out.shape)
            self._store(out, self._read(what.bias, type, nest), nest)
            self.nest = None
        (x_lies, x_step), (y_lies, y_step) = _step_of(what.x), _step_of(what.y)  # type: ignore[misc]
        cell = self._cell(f"product {type}")
        pointers = [self.pointer(what.x), self.pointer(what.y), self.pointer(out)]
        sizes = [_number(n) for n in (rows, columns, inner, x_step, y_step, columns)]
        detail = what.turned[0] != x_lies, what.turned[1] != y_lies, what.bias is not None
        self.body.append(Operation("product", type, (cell, *pointers, *sizes), detail))


def _number(value: int) -> Any:
    return Operation("const", I64, (), value)


def _operands(what: Any) -> list[Value]:
    if isinstance(what, Map):
        return what.operands
    if isinstance(what, Reduction):
        return [what.operand]
    if isinstance(what, Store):
        return [what.value]
    return [one for one in (what.x, what.y, what.bias) if one is not None]


def kernel_of(steps: list[Step], known: dict[Step, Any], outside: set[Value], readers: dict[Value, list[Step]]) -> Step:
    """Make one step of several."""
    kernel = _Kernel(steps, known, outside, readers)
    function = machine.compiled(llvm.render(kernel.write(), "KERNEL"))
    call = _caller(kernel, function)
    inputs = [value for value in kernel.inputs if not is_fixed(value)]
    made = Step("call", call, "kernel", tuple(inputs), {}, name="kernel")
    made.fused = steps
    made.makes, made.several = kernel.outputs, True
    made.writes = [buffer for step in steps for buffer in step.writes]
    made.read = tuple([(value, 0) for value in inputs])
    made.place = steps[0].place
    for value in kernel.outputs:
        value.step = made
    return made


def _caller(kernel: _Kernel, function: Any) -> Callable[..., Any]:
    """Write the function that makes room for results, and calls a kernel."""
    scope: dict[str, Any] = {
        "empty": np.empty, "asarray": np.asarray,
        "kernel": function, "pack": Struct(f"{len(kernel.cells)}Q").pack, "u8": np.dtype(np.uint8),
    }  # fmt: skip
    given = [value for value in kernel.inputs if not is_fixed(value)]
    lines = [f"def call({', '.join(value.name for value in given)}):"]
    for value in given:
        if not value.shape:
            lines.append(f"    {value.name} = asarray({value.name})")
    for value in kernel.outputs:
        scope[f"d_{value.name}"] = value.dtype
        lines.append(f"    {value.name} = {_room(value)}")
    if kernel.scratch:
        lines.append(f"    scratch = empty({kernel.scratch}, u8)")
    cells = []
    for cell in kernel.cells:
        if isinstance(cell, Value):
            if is_fixed(cell):
                scope[cell.name] = cell.constant
            cells.append(f"id({cell.name}) + {DATA}")
        elif cell == "scratch":
            cells.append(f"id(scratch) + {DATA}")
        else:
            name = cell.replace(" ", "_")
            scope[name] = blas.cell(cell.split()[1])
            cells.append(f"id({name}) + {DATA}")
    lines.append(f"    kernel(pack({', '.join(cells)}), b'', b'', 0, 1)")
    lines.append(f"    return ({''.join(f'{value.name}, ' for value in kernel.outputs)})")
    return emit("a call of a kernel", "\n".join(lines), scope)["call"]  # type: ignore[no-any-return]


def _room(value: Value) -> str:
    """Write what makes memory for a value, laid out as eager does."""
    order = sorted(range(len(value.shape)), key=lambda k: (-value.strides[k], k))
    sized = [k for k in order if value.shape[k] != 1]
    if sized == sorted(sized):
        return f"empty({value.shape}, d_{value.name})"
    shape = tuple(value.shape[k] for k in order)
    back = tuple(order.index(k) for k in range(len(order)))
    return f"empty({shape}, d_{value.name}).transpose({back})"
