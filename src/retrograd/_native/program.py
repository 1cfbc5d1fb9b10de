"""Formulas that arrays are given to: small arrays go through NumPy, large ones through a kernel made from the formula.

Note [Formulas]
A formula is a function of `xp` and arrays, written in the vocabulary `xp` with Python's operators and nothing else: it makes new
arrays, and reduces with `keepdims=True`. All arrays broadcast against each other. `formula` makes it an implementation of an
operation, `f(xp, *arrays, **params)`:
- arrays of a device, and small ones, are computed as it is written; small float arrays of one layout by NumPy's functions in a row,
  which are written down once (`numpy_text`);
- large ones by a kernel: the formula is traced once for each pattern of dtypes and strides (`trace`), lowered to loops (`loops`) and
  compiled;
- without llvmlite, or where it does what kernels cannot, large arrays go through NumPy in blocks that stay in the processor's cache.
Half precision is computed in float32 and rounded once. Parameters are part of the kernel, but for those named in `numbers`: they come with
each call (a learning rate, an epsilon), so that another value needs no other kernel.
What runs depends on the formula, dtypes and shapes alone: never on time, nor on what has been compiled.
"""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from .. import _thresholds
from .._core import parallel
from .._core.memory_order import output_order
from .._settings import get_num_threads
from . import expression as ex
from . import machine, turning
from .expression import Expr
from .threads import alone, share
from .trace import DTYPE, HALVES, STORAGE, Traced, TracedNamespace, UntraceableError

NDARRAY = np.ndarray
NATIVE: Final = _thresholds.NATIVE
BLOCK: Final = _thresholds.NATIVE_BLOCK
# Where in an array object the pointer to its memory stands: behind the header that every object has (PyArrayObject_fields).
DATA: Final = object.__basicsize__
LONG: Final = 1024  # float32 numbers that are added one after the other: more are added in float64
SHORT: Final = 64  # elements of a last axis that is not worth an item of its own
COLUMNS: Final = 1 << 14  # numbers of a row of partial sums, of which every chunk has one
PARTS: Final = 4  # for each thread: one that comes late, or is stopped, leaves some to the others
CHUNKS: Final = 16  # parts that threads take one after the other; partial sums have a row for each
_COMBINED: Final[dict[str, Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and,
}  # fmt: skip


class Formula:
    """A formula as Note [Formulas] describes it."""

    def __init__(
        self, function: Callable[..., Any], numbers: tuple[str, ...], wide: tuple[int, ...], slow: bool = False
    ) -> None:
        self.formula = function
        self.start = _thresholds.NATIVE_SLOW if slow else NATIVE
        self.stored: str | None = None  # how float32 is stored, whatever the first array is
        self.steps: dict[Any, Callable[..., Any] | None] = {}  # what NumPy does, by dtype and parameters
        self.__kwdefaults__ = getattr(function, "__kwdefaults__", None)
        code = function.__code__
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        self.is_fixed = not set(names) <= set(numbers)  # some parameters are part of a kernel
        self.numbers, self.named = numbers, frozenset(numbers)
        self.wide = frozenset(wide)
        self.plans: dict[Any, _Plan | None] = {}
        self.has_steps = True  # what it does to small arrays is what it does to large ones, and can be written down
        self.elementwise = False  # it is said to be, also where it cannot be traced
        self.independent: dict[Any, bool] = {}  # see _is_elementwise
        self.refused = ""  # why there is no kernel for the arrays that came last without one
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__code__ = function.__code__  # operations read their parameters' names there

    def __call__(self, xp: Any, first: Any, *rest: Any, **params: Any) -> Any:
        """Compute on raw arrays of one library."""
        if xp.module is np:
            start = self.start
            if type(first) is NDARRAY and first.size < start and (char := first.dtype.char) in "fd":
                has_steps = self.has_steps and first.ndim
                for other in rest:
                    if other.dtype is not first.dtype or other.size >= start:
                        break
                    if has_steps and (other.shape != first.shape or other.strides != first.strides):
                        has_steps = False
                else:  # most of the time
                    if not has_steps:
                        return self.formula(xp, first, *rest, **params)
                    key: Any = (char, len(rest)) if rest else char
                    if params:
                        if not self.numbers:
                            key = key, *params.items()
                        elif self.is_fixed or None in params.values():
                            key = key, self._fixed(params)
                    steps: Any = self.steps.get(key, self)
                    if steps is self:
                        steps = self.steps[key] = self._written((first, *rest), params)
                    if steps is not None:
                        return steps(first, *rest, **params)
                    return self.formula(xp, first, *rest, **params)
            for array in (first, *rest):
                if array.size >= start and type(array) is NDARRAY:
                    return self.large(xp, (first, *rest), params)
        for array in (first, *rest):
            if array.dtype.itemsize == 2:
                return self.small(xp, (first, *rest), params)
        return self.formula(xp, first, *rest, **params)

    def of_size(self, x: Any) -> Callable[..., Any]:
        """Return the formula itself where the largest array is small and of full precision: a call of it asks nothing."""
        small = type(x) is NDARRAY and x.size < self.start and x.dtype.itemsize > 2
        return self.formula if small else self

    def on(self, xp: Any) -> Callable[..., Any]:
        """Return the function of arrays of one library."""
        return partial(self.direct if xp.module is np else self, xp)

    @cached_property
    def direct(self) -> Callable[..., Any]:
        """Return this call as a function with the formula's own parameters, which asks little where steps are known.

        An object's call packs its arguments twice, which takes as long as a step.
        """
        from .numpy_text import direct

        code = self.__code__
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or self.is_fixed or self.__kwdefaults__:
            return self.__call__
        names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        count = code.co_argcount - 1
        return direct(self.__name__, names[:count], names[count:], self.__call__, self.steps, self.start)

    def _fixed(self, params: dict[str, Any]) -> tuple[Any, ...]:
        """Return the parameters that are part of a kernel: all but numbers that are given."""
        numbers = self.numbers
        if params.keys() == self.named and None not in params.values():
            return ()
        return tuple([(name, value) for name, value in params.items() if name not in numbers or value is None])

    def _written(self, arrays: Sequence[Any], params: dict[str, Any]) -> Callable[..., Any] | None:
        """Return what NumPy does to small arrays, written down; None if it cannot be."""
        from .numpy_text import written

        try:
            results, xp, several = self.traced(arrays, params, any_sizes=True)
        except UntraceableError:
            return None
        values = [r.expr for r in results]
        if any(n.op == "reduce" for n in ex.nodes_of(*values)):
            self.has_steps = False  # nor for other parameters: nobody asks again
            return None
        return written(self.__name__, values, xp.scalars, params, len(arrays), several)

    def small(self, xp: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """Compute as the formula is written; half precision in float32."""
        dtype = arrays[0].dtype
        halves = [a.dtype.itemsize == 2 and STORAGE.get(a.dtype) in HALVES for a in arrays]
        found = self.formula(
            xp, *[a.astype("float32") if h else a for a, h in zip(arrays, halves, strict=True)], **params
        )
        if not halves[0]:
            return found
        if type(found) is not tuple:
            return found if self.wide else _narrowed(found, dtype)
        return tuple(out if k in self.wide else _narrowed(out, dtype) for k, out in enumerate(found))

    def large(self, xp: Any, arrays: Sequence[Any], params: dict[str, Any], out: Any = None) -> Any:
        """Compute by a kernel, or in blocks."""
        for a in arrays:
            if type(a) is not NDARRAY:
                arrays = [np.asarray(a) for a in arrays]
                break
        plan, arrays = self._turned(arrays, params, () if out is None else tuple([o is not None for o in out]))
        return self._in_blocks(xp, arrays, params) if plan is None else plan.run(arrays, params, out)

    def _turned(
        self, arrays: Sequence[np.ndarray], params: dict[str, Any], taken: tuple[bool, ...]
    ) -> tuple[_Plan | None, Sequence[np.ndarray]]:
        """Return what computes large arrays, of which those that lie across the others are turned first."""
        plan = self.plan(arrays, params, taken)
        if plan is None or not plan.across:
            return plan, arrays
        turned = [turning.copied_in_order(a, plan.order) if k in plan.across else a for k, a in enumerate(arrays)]
        return self.plan(turned, params, taken), turned

    def plan(self, arrays: Sequence[np.ndarray], params: dict[str, Any], taken: tuple[bool, ...] = ()) -> _Plan | None:
        """Return what computes large arrays of these dtypes, shapes and strides; None if no kernel can.

        `taken` tells which results have memory already, perhaps that of an array.
        """
        streams = get_num_threads() > 1
        fixed = self._fixed(params) if params else ()
        key = (fixed, taken, streams, *[(a.dtype.num, a.shape, a.strides) for a in arrays])
        plan = self.plans.get(key, self)
        return self._kept(key, arrays, params, taken) if plan is self else plan  # type: ignore[return-value]

    def _kept(self, key: Any, *like: Any) -> _Plan | None:
        plan = self.plans.get(key, self)
        if plan is self:
            if len(self.plans) > 512:
                self.plans.clear()
            with machine.lock:  # which a fork waits for: planning imports and compiles
                plan = self.plans[key] = self._planned(*like)
        return plan  # type: ignore[return-value]

    def repeated(self, outs: Sequence[np.ndarray], *arrays: np.ndarray, apart: int) -> Repeated | None:
        """Prepare for computing parts of large arrays one after the other: see `Repeated`. None if there is no kernel for these.

        Parts are numbered along the first `apart` axes. `outs` have the shape of the whole, or less axes where parts share memory. They may
        lie in memory in any way, and it may be that of the arrays. On NumPy's arrays alone.
        """
        key = (apart, *[(a.dtype.num, a.shape, a.strides) for a in (*outs, *arrays)])
        plan = self._kept(key, arrays, {}, (True,) * len(outs), outs, apart)
        return None if plan is None else Repeated(plan, (*arrays, *outs))

    def prepared(self, written: Sequence[int], free: int, *arrays: np.ndarray, **params: Any) -> PreparedUpdate | None:
        """Prepare for updating arrays again and again: see `PreparedUpdate`. None if there is no kernel for these.

        Arrays are dense and have one shape, and elements do not depend on one another; `written` says which of them the results replace.
        """
        plan = self.plan(arrays, params, (True,) * len(written))
        if plan is None or any(made[1] != arrays[k].dtype for made, k in zip(plan.made, written, strict=False)):
            return None
        return PreparedUpdate(plan, arrays, written, free)

    def into(self, outs: Sequence[np.ndarray], *arrays: Any, **params: Any) -> None:
        """Compute into memory that is there, which may be that of the arrays if nothing is reduced; on NumPy's arrays alone."""
        plan: _Plan | None = None
        given: Sequence[np.ndarray] = arrays
        if outs[0].size >= self.start:
            plan, given = self._turned(arrays, params, (True,) * len(outs))
        if plan is not None:
            found = plan.run(given, params, outs)
        else:
            from .._core.numpy_namespace import numpy_namespace as xp

            run = self._in_blocks if outs[0].size >= self.start else self.small
            found = run(xp, arrays, params)
        for out, value in zip(outs, found if type(found) is tuple else (found,), strict=True):
            if value is not out:
                out[...] = value

    def traced(
        self, arrays: Sequence[Any], params: dict[str, Any], any_sizes: bool = False
    ) -> tuple[list[Traced], TracedNamespace, bool]:
        """Trace the formula: its results, the vocabulary with the numbers that a call brings, and whether there are several results.

        A sum over an axis of one element is none. With `any_sizes` nothing is taken from the sizes that these arrays happen to have.
        """
        rank = max(a.ndim for a in arrays)
        xp = TracedNamespace(rank)
        given = []
        for number, a in enumerate(arrays):
            if a.dtype not in STORAGE:
                raise UntraceableError(f"arrays of {a.dtype}")
            axes = frozenset(k + rank - a.ndim for k, size in enumerate(a.shape) if size != 1 or any_sizes)
            given.append(xp.operand(number, a.dtype, axes))
        double = any(a.dtype == np.float64 for a in arrays)
        known = {
            name: value if name not in self.numbers or value is None else xp.number(name, "f64" if double else "f32")
            for name, value in params.items()
        }
        found = self.formula(xp, *given, **known)
        results = found if type(found) is tuple else (found,)
        constant = [r if isinstance(r, Traced) else xp.constant(r, given[0]) for r in results]
        return constant, xp, type(found) is tuple

    def _planned(
        self, arrays: Sequence[Any], params: dict[str, Any], taken: tuple[bool, ...], outs: Sequence[Any] = (),
        apart: int = 0,
    ) -> _Plan | None:  # fmt: skip
        """Return how arrays of these dtypes, shapes and strides are computed; None if no kernel can."""
        if not machine.is_available():
            return None
        try:
            return _Plan(self, arrays, *self.traced(arrays, params), taken, outs, apart)
        except UntraceableError as error:
            self.refused = str(error)
            return None

    def _in_blocks(self, xp: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """Compute on NumPy: in blocks if elements do not depend on one another, else as a whole."""
        first = arrays[0]
        dense = all(a.shape == first.shape and a.flags.c_contiguous for a in arrays)
        if not dense or first.size <= 2 * _thresholds.KERNEL_BLOCK or not self._is_elementwise(arrays, params):
            return _each_its_own(self.small(xp, arrays, params), arrays)
        flat = [a.reshape(-1) for a in arrays]
        found = self.small(xp, [a[:1] for a in flat], params)  # to see how many there are, and their dtypes
        outs = [np.empty(first.shape, s.dtype) for s in (found if type(found) is tuple else (found,))]
        rows = [o.reshape(-1) for o in outs]

        def work(start: int, end: int) -> None:
            found = self.small(xp, [a[start:end] for a in flat], params)
            for row, value in zip(rows, found if type(found) is tuple else (found,), strict=True):
                row[start:end] = value

        parallel.over_blocks(work, first.size, _thresholds.KERNEL_BLOCK, first.size >= parallel.WIDE)
        return tuple(outs) if type(found) is tuple else outs[0]

    def _is_elementwise(self, arrays: Sequence[Any], params: dict[str, Any]) -> bool:
        """Tell whether elements do not depend on one another; asked once for each set of parameters and dtypes."""
        if self.elementwise:
            return True
        key = (self._fixed(params), *[a.dtype for a in arrays])
        known = self.independent.get(key)
        if known is None:
            try:
                results, _, _ = self.traced(arrays, params, any_sizes=True)
                nodes = ex.nodes_of(*[r.expr for r in results])
                known = not any(n.op in ("reduce", "position") for n in nodes)
            except UntraceableError:
                known = False
            self.independent[key] = known
        return known


def formula(
    function: Callable[..., Any] | None = None,
    *,
    numbers: tuple[str, ...] = (),
    wide: tuple[int, ...] = (),
    slow: bool = False,
) -> Any:
    """Make a formula an implementation. See Note [Formulas].

    `numbers` names the parameters that come with each call; `wide` the results that stay float32 where the first array is half
    precision. `slow`: it calls what NumPy computes one by one (log1p, expm1, erf), so that kernels pay sooner.
    """
    if function is None:
        return lambda f: Formula(f, numbers, wide, slow)
    return Formula(function, numbers, wide, slow)


def _each_its_own(found: Any, arrays: Sequence[Any]) -> Any:
    """Return results that share no memory with each other or with the operands: whoever takes one may write into it."""
    if type(found) is not tuple:
        return found.copy() if any(found is a for a in arrays) else found
    taken = {id(a) for a in arrays}
    apart = []
    for one in found:
        apart.append(one.copy() if id(one) in taken else one)
        taken.add(id(one))
    return tuple(apart)


def _narrowed(out: Any, dtype: Any) -> Any:
    return out.astype(dtype) if out.dtype == np.float32 else out


# ---- from a formula to a kernel ----


_NO_AXES: tuple[list[int], int] = ([], 1)


class _Geometry:
    """The axes of a call: their sizes, their order in memory, and the strides of every array along them."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.shape = np.broadcast_shapes(*[a.shape for a in arrays])
        rank = self.rank = len(self.shape)
        self.strides = []
        for a in arrays:
            missing = rank - a.ndim
            own = [0 if n == 1 else s for n, s in zip(a.shape, a.strides, strict=True)]
            self.strides.append([0] * missing + own)
        steps = [[abs(step) for step in own] for own in self.strides]
        self.axes = [k for k in reversed(output_order(self.shape, steps)) if self.shape[k] != 1]

    def dense(self, shape: Sequence[int]) -> list[int]:
        """Return the order of axes in which a new array lies in memory, as torch has it; those of one element come first."""
        rest = [k for k in range(self.rank) if k not in self.axes]
        return rest + self.axes


class _Plan:
    """A kernel and what a call of it needs: sizes, strides, room for results."""

    def __init__(
        self,
        formula: Formula,
        arrays: Sequence[np.ndarray],
        results: list[Traced],
        xp: TracedNamespace,
        several: bool,
        taken: tuple[bool, ...] = (),
        outs: Sequence[np.ndarray] = (),
        apart: int = 0,
    ) -> None:
        from . import llvm, loops

        self.outs, self.apart = [(out.shape, out.strides, out.dtype) for out in outs], apart

        geometry = _Geometry(arrays)
        if 0 in geometry.shape:
            raise UntraceableError("no elements")
        self.several, self.scalars = several, tuple(xp.scalars)
        self.shape = geometry.shape
        # arrays that lie the other way than the others
        self.order = geometry.dense(self.shape)
        last = self.order[-1] if geometry.axes else 0
        whole = [k for k, a in enumerate(arrays) if len(arrays) > 1 and a.shape == self.shape and geometry.axes]
        self.across = [k for k in whole if turning.lies_across(arrays[k], last)]
        nodes = ex.nodes_of(*[r.expr for r in results])
        stages = {n.detail[1] for n in nodes if n.op == "reduce"}
        self._choose(geometry, results, nodes, stages)
        rows = self.reduced
        # what is stored, and where
        half = formula.stored or (STORAGE[arrays[0].dtype] if STORAGE[arrays[0].dtype] in HALVES else None)
        outputs: list[tuple[Expr, str, str, str]] = []  # value, level, storage, operation of a column
        self.made: list[Any] = []
        for number, r in enumerate(results):
            storage = half if half and r.expr.type == "f32" and number not in formula.wide else r.expr.type
            level, value = "element", r.expr
            op = r.expr.detail[0] if r.expr.op == "reduce" else ""
            if r.expr.op == "reduce" and frozenset(r.expr.detail[1]) == self.columns:
                level, value = "column", r.expr.args[0]
            elif rows and not (r.axes & rows):
                level = "row"
            shape = tuple(
                1 if (level == "row" and k in rows) or (level == "column" and k in self.columns) else n
                for k, n in enumerate(self.shape)
            )
            self.made.append((shape, DTYPE[storage], self._order(geometry, shape, level), level))
            outputs.append((value, level, storage, op))
        if any(frozenset(n.detail[1]) not in (rows, self.columns) for n in nodes if n.op == "reduce"):
            raise UntraceableError("reductions over different axes")
        self._split(geometry)
        self._add_room(outputs, nodes, half)
        plain = _with_plain_reductions([value for value, *_ in outputs], self._sums_are_long())
        if self.columns and self.items > LONG:  # of which every column is one
            columns = [level == "column" and v.type == "f32" and op == "sum" for v, level, _, op in outputs]
            plain = [ex.cast(v, "f64") if wide else v for v, wide in zip(plain, columns, strict=True)]
        operands = [
            loops.Operand(STORAGE[a.dtype], *self._pattern(strides, a.itemsize))
            for a, strides in zip(arrays, self.in_strides, strict=True)
        ]
        stored = []
        self.streams = False
        for number, ((_, level, storage, op), value, strides) in enumerate(
            zip(outputs, plain, self.out_strides, strict=True)
        ):
            width = ex.WIDTH.get(storage, 16)
            outer, inner = self._pattern(strides, max(width // 8, 1))
            if level in ("column", "room"):
                storage, outer, inner = value.type, "0" * len(self.outer), "1"
            elif level == "row" and self.partial:
                storage, outer, inner = value.type, "0" * len(self.outer), "0"
            large = get_num_threads() > 1 and math.prod(self.shape) * width >= _thresholds.STREAMED * 8
            new = large and not any(taken[number : number + 1])
            streamed = new and level == "element" and self.blocked and self.form == "rows" and inner == "1"
            self.streams |= streamed
            operand = loops.Operand(storage, outer, inner)
            stored.append(loops.Output(value, level, operand, op if level == "column" else "", streamed))
        long = self.inner[-1][1] >= loops.SIDE_BY_SIDE
        kernel = loops.Kernel(
            tuple(operands), tuple(stored), len(self.outer), len(self.inner), self.form, self.blocked, long
        )
        self.function = machine.compiled(llvm.render(loops.lower(kernel), "KERNEL"))
        self._prepare(outputs, plain)

    def _sums_are_long(self) -> bool:
        """Tell whether a running sum takes so many numbers, one after the other, that float32 would lose digits."""
        if self.form == "lanes":
            return bool(math.prod(size for _, size in self.inner[:-1]) > LONG)
        last = self.inner[-1][1]
        together = min(last, SHORT) if last >= 8 else 1  # sums that LLVM has running side by side
        return (BLOCK if self.blocked else self.length) // together > LONG

    # ---- the shape of the loops ----
    def _choose(self, geometry: _Geometry, results: list[Traced], nodes: list[Expr], stages: set[Any]) -> None:
        """Choose which axes are the row, and how it is gone over. See Note [Items, rows and lanes] in `loops`."""
        axes = geometry.axes
        sets = [frozenset(s) for s in stages]
        self.columns: frozenset[int] = frozenset()
        self.form, self.blocked, self.partial = "rows", False, False
        if len(sets) == 2:  # those over rows, whose results others read, and those over the other axes
            read = {frozenset(a.detail[1]) for n in nodes for a in n.args if a.op == "reduce"}
            later = [s for s in sets if s not in read]
            if len(later) != 1 or later[0] | (sets[0] if sets[1] == later[0] else sets[1]) != frozenset(axes):
                raise UntraceableError("reductions over different axes")
            self.columns = later[0]
            sets.remove(later[0])
        elif len(sets) > 2:
            raise UntraceableError("reductions over different axes")
        self.reduced = sets[0] if sets else frozenset()
        if not self.reduced:
            self.outer_axes, self.inner_axes, self.blocked = axes[:-1], axes[-1:], True
            return
        kept = [k for k in axes if k not in self.reduced]
        single = max(n.reductions for n in nodes) == 1 and all(r.expr.op == "reduce" for r in results)
        if axes[-1] in self.reduced:
            self.outer_axes, self.inner_axes = kept, [k for k in axes if k in self.reduced]
            self.may_split = single and not self.columns
            return
        follow = len(_merged(kept, geometry.shape, geometry.strides)) == 1
        few = math.prod(geometry.shape[k] for k in kept) <= COLUMNS
        if single and few and not self.columns and kept == axes[-len(kept) :] and follow:
            self.columns, self.reduced = self.reduced, frozenset()
            self.outer_axes, self.inner_axes = [k for k in axes if k in self.columns], kept
            return
        if self.columns:
            raise UntraceableError("columns of lanes")
        self.form, self.blocked = "lanes", True
        self.outer_axes, self.inner_axes = kept[:-1], [*[k for k in axes if k in self.reduced], kept[-1]]

    may_split = False

    def _order(self, geometry: _Geometry, shape: Sequence[int], level: str) -> list[int] | None:
        """Return the order in which a result lies in memory; None for that of its axes."""
        order = geometry.dense(shape)
        sized = [k for k in order if shape[k] != 1]
        return None if sized == sorted(sized) or level != "element" else order

    def _split(self, geometry: _Geometry) -> None:
        """Merge neighbouring axes that all arrays go through alike, and find every array's strides along what remains."""
        strides = [list(s) for s in geometry.strides]
        for shape, dtype, order, level in self.made:
            dense = [0] * geometry.rank
            step = dtype.itemsize
            if level == "column":  # partial sums lie in the order of the loop
                order = [*[k for k in range(geometry.rank) if k not in self.inner_axes], *self.inner_axes]
            for k in reversed(order or range(geometry.rank)):
                dense[k] = 0 if shape[k] == 1 else step
                step *= shape[k]
            strides.append(dense)
        for k, (shape, own, dtype) in enumerate(self.outs):  # memory that is there
            missing, level = geometry.rank - len(shape), self.made[k][3]
            if (
                missing > self.apart
                or shape != geometry.shape[missing:]
                or level != "element"
                or dtype != self.made[k][1]
            ):
                raise UntraceableError("results of another shape or dtype than their memory")
            known = [0 if n == 1 else s for n, s in zip(shape, own, strict=True)]
            strides[len(geometry.strides) + k] = [0] * missing + known
        self.outer = _merged(self.outer_axes, geometry.shape, strides)
        if self.form == "lanes":  # the last axis is that of the lanes
            *reduced, lanes = self.inner_axes
            self.inner = [*_merged(reduced, geometry.shape, strides), ([lanes], geometry.shape[lanes])]
        else:
            self.inner = _merged(self.inner_axes, geometry.shape, strides)
        if not self.inner:
            self.inner = [_NO_AXES]
        if self.form == "rows" and not self.reduced and not self.columns:  # elementwise: all axes may merge
            axes = [*self.outer_axes, *self.inner_axes]
            first = [k for k in range(self.apart) if geometry.shape[k] != 1]
            if axes[: len(first)] != first:
                raise UntraceableError("parts that do not lie one after the other")
            merged = _merged(axes[len(first) :], geometry.shape, strides)
            self.outer = [*_merged(first, geometry.shape, strides), *merged[:-1]]
            self.inner = merged[-1:] or [_NO_AXES]
        count = len(geometry.strides)
        dims = [*self.outer, *self.inner]
        table = [[s[axes[-1]] if axes else 0 for axes, _ in dims] for s in strides]
        self.in_strides, self.out_strides = table[:count], table[count:]
        rows = math.prod(size for _, size in self.outer)
        length = math.prod(size for _, size in self.inner)
        long = length > 2 * BLOCK or (rows < CHUNKS and rows * length > 1 << 18)
        if self.may_split and long and self.inner[-1][1] >= SHORT:
            # blocks of rows have sums of their own: threads share them, and a sum of sums is more exact than one sum
            self.partial = self.blocked = True
            self.outer, self.inner = [*self.outer, *self.inner[:-1]], self.inner[-1:]
            length = self.inner[0][1]
        self.rows, self.items, self.length = rows, math.prod(size for _, size in self.outer), length

    def _pattern(self, strides: Sequence[int], itemsize: int) -> tuple[str, str]:
        count = len(self.outer)
        outer = "".join("0" if not s else "s" for s in strides[:count])
        inner = "".join("0" if not s else "s" for s in strides[count:])
        if strides[-1] == itemsize:
            inner = inner[:-1] + "1"
        return outer, inner

    def _add_room(self, outputs: list[Any], nodes: list[Expr], half: str | None) -> None:
        """Add a room for what a row of half precision computes at length and reads again: results are too narrow to hold it."""
        self.given = len(outputs)
        element = any(level == "element" and storage in HALVES for _, level, storage, _ in outputs)
        costly = any(n.op == "call" for n in nodes)
        if half and element and costly and self.reduced and self.form == "rows" and len(self.inner) == 1:
            outputs.append((ex.const(0, "f32"), "room", "f32", ""))
            self.made.append(((), DTYPE["f32"], None, "room"))
            self.out_strides.append([0] * (len(self.outer) + 1))

    # ---- calls ----
    def _prepare(self, outputs: list[Any], plain: list[Expr]) -> None:
        from .loops import LANES, STREAMED

        last = self.inner[-1][1]
        size = LANES if self.form == "lanes" else STREAMED if self.streams else BLOCK
        blocks = -(-last // size) if self.blocked else 1
        self.blocks = blocks
        self.items *= blocks
        total = (
            self.items * (self.length // max(last, 1)) * min(last, size) if self.blocked else self.items * self.length
        )
        cost = sum(_COST.get(n.op, 1) for n in ex.nodes_of(*plain))
        self.work = total * (cost + 4)
        self.threads = self.work >= _thresholds.NATIVE_WORK and self.items > 1
        many = bool(self.columns) and self.items > BLOCK  # a sum of sums is more exact than one sum
        self.chunk = -(-self.items // CHUNKS) if self.threads or many else self.items
        sizes = [n for _, n in self.outer] + [n for _, n in self.inner] + [size, blocks, self.chunk]
        for strides in self.in_strides:
            sizes += strides
        for (_, level, _, _), strides, value in zip(outputs, self.out_strides, plain, strict=True):
            if level in ("column", "room"):
                width = DTYPE[value.type].itemsize
                strides = [last * width, *strides[1:]] if self.outer else strides
            elif level == "row" and self.partial:
                strides = [DTYPE[value.type].itemsize, *strides[1:]]
            sizes += strides
        self.sizes = struct.pack(f"{len(sizes)}q", *sizes)
        self.cells = struct.Struct(f"{len(self.in_strides) + len(outputs)}Q").pack
        self.numbers = struct.Struct(f"{len(self.scalars)}d").pack
        self.chunked = any(
            level in ("column", "room") for _, level, _, _ in outputs
        )  # results have a row for each chunk
        self.levels = [(level, op, DTYPE[value.type]) for (_, level, _, op), value in zip(outputs, plain, strict=True)]
        # shapes and dtypes of results, where these are all that they need
        simple = all(
            order is None and (level == "element" or (level == "row" and not self.partial))
            for _, _, order, level in self.made
        )
        self.rooms = [(shape, dtype) for shape, dtype, *_ in self.made] if simple else None

    def run(self, arrays: Sequence[np.ndarray], params: dict[str, Any], out: Any = None) -> Any:
        if out is None and self.rooms is not None:  # most calls
            results: list[Any] = [np.empty(shape, dtype) for shape, dtype in self.rooms]
        else:
            results = [self._room(number, out) for number in range(len(self.made))]
        cells = self.cells(*[id(a) + DATA for a in arrays], *[id(a) + DATA for a in results])
        numbers = None
        if self.scalars:
            numbers = self.numbers(*[params[s] if type(s) is str else self.shape[s] for s in self.scalars])
        chunk = self.chunk
        if self.threads and (count := get_num_threads()) > 1:
            if not self.chunked:  # a thread that comes late still finds something to do
                chunk = -(-self.items // (PARTS * count))
            share(self.function, cells, self.sizes, numbers, 0, self.items, chunk)
        elif self.chunked:
            alone(self.function, cells, self.sizes, numbers, 0, self.items, chunk)
        else:
            self.function(cells, self.sizes, numbers, 0, self.items)
        if self.chunked or self.partial:
            self._join(results)
        return tuple(results[: self.given]) if self.several else results[0]

    def _room(self, number: int, out: Any) -> np.ndarray:
        """Return memory for a result, or for the parts of one: that of `out` where it fits."""
        shape, dtype, order, level = self.made[number]
        if out is not None and level == "element" and order is None and _fits(out[number], shape, dtype):
            return out[number]  # type: ignore[no-any-return]
        if level in ("column", "room"):
            _, op, wide = self.levels[number]
            room: np.ndarray = (np.zeros if op == "sum" else np.empty)(
                (-(-self.items // self.chunk), self.inner[-1][1]), wide
            )
            if op not in ("sum", ""):
                from .loops import start_of

                room[...] = start_of(op, STORAGE[wide])
            return room
        if level == "row" and self.partial:
            return np.empty(self.items, self.levels[number][2])
        if order is None:
            return np.empty(shape, dtype)
        return np.empty([shape[k] for k in order], dtype).transpose(np.argsort(order))

    def _join(self, results: list[Any]) -> None:
        """Put results in the place of their parts."""
        for number, (level, op, _) in enumerate(self.levels):
            if level == "column" or (level == "row" and self.partial):
                shape, dtype = self.made[number][:2]
                if level == "column":
                    total = _COMBINED[op].reduce(results[number], 0) if len(results[number]) > 1 else results[number]
                else:
                    total = _COMBINED[op].reduce(results[number].reshape(self.rows, -1), 1)
                axes = self.inner_axes if level == "column" else self.outer_axes  # in the order of the loop
                if axes != sorted(axes):
                    total = total.reshape([shape[k] for k in axes]).transpose(np.argsort(axes))
                results[number] = np.ascontiguousarray(total, dtype).reshape(shape)


class PreparedUpdate:
    """A kernel that updates arrays, of which one is another at each call: all else has been prepared."""

    __slots__ = ("after", "arrays", "before", "plan")

    def __init__(self, plan: _Plan, arrays: Sequence[np.ndarray], written: Sequence[int], free: int) -> None:
        self.plan = plan
        self.arrays = arrays  # of which kernels have the addresses only
        places = [id(a) + DATA for a in (*arrays, *[arrays[k] for k in written])]
        self.before, self.after = tuple(places[:free]), tuple(places[free + 1 :])

    def numbers(self, params: dict[str, Any]) -> bytes:
        """Return the numbers of a call as its kernel reads them."""
        return self.plan.numbers(*[params[s] if type(s) is str else self.plan.shape[s] for s in self.plan.scalars])


class Together:
    """Calls of prepared kernels, one after the other: threads share each of them if all together are work enough to wake one."""

    __slots__ = ("calls", "work")

    def __init__(self) -> None:
        self.calls: list[tuple[Any, bytes, bytes, bytes, int, Any]] = []
        self.work = 0

    def add(self, kernel: PreparedUpdate, array: np.ndarray, numbers: bytes) -> None:
        """Add a call, with the array that is its own; it comes at once if there is one thread."""
        plan = kernel.plan
        cells = plan.cells(*kernel.before, id(array) + DATA, *kernel.after)
        if get_num_threads() == 1:
            plan.function(cells, plan.sizes, numbers, 0, plan.items)
            return
        self.calls.append((plan.function, cells, plan.sizes, numbers, plan.items, (kernel, array)))
        self.work += plan.work

    def run(self) -> None:
        """Run the calls that have been added."""
        calls, work, self.calls, self.work = self.calls, self.work, [], 0
        parts = PARTS * get_num_threads() if work >= _thresholds.NATIVE_CALLS else 1
        run = alone if parts == 1 else share
        for function, cells, sizes, numbers, items, _ in calls:
            run(function, cells, sizes, numbers, 0, items, -(-items // parts))


class Repeated:
    """One kernel on parts of large arrays, one after the other: all that a call needs has been prepared."""

    __slots__ = ("arrays", "cells", "function", "items", "sizes", "threads")

    def __init__(self, plan: _Plan, arrays: tuple[np.ndarray, ...]) -> None:
        parts = math.prod(plan.shape[: plan.apart])
        self.function, self.sizes, self.items = plan.function, plan.sizes, plan.items // parts
        self.threads = self.items > 1 and plan.work >= _thresholds.NATIVE_WORK * parts
        self.arrays = arrays  # of which kernels have the addresses only
        self.cells = plan.cells(*[id(a) + DATA for a in arrays])

    def __call__(self, low: int, high: int) -> None:
        """Compute the parts of a range; threads share those of one call."""
        low, high = low * self.items, high * self.items
        chunk = -(-(high - low) // CHUNKS) if self.threads else high - low
        (share if self.threads else alone)(self.function, self.cells, self.sizes, b"", low, high, chunk)


_COST: Final = {"call": 16, "div": 4, "sqrt": 4, "const": 0, "scalar": 0}


def _fits(array: np.ndarray | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    return array is not None and array.shape == shape and array.dtype == dtype and array.flags.c_contiguous


def _merged(axes: Sequence[int], shape: Sequence[int], strides: list[list[int]]) -> list[tuple[list[int], int]]:
    """Join axes that follow one another in every array; returns the axes of each dimension and its size."""
    dims: list[tuple[list[int], int]] = []
    for axis in axes:
        if dims:
            before = dims[-1][0][-1]
            if all(s[before] == s[axis] * shape[axis] for s in strides):
                dims[-1] = ([*dims[-1][0], axis], dims[-1][1] * shape[axis])
                continue
        dims.append(([axis], shape[axis]))
    return dims


def _with_plain_reductions(values: Sequence[Expr], long: bool) -> list[Expr]:
    """Forget the axes of reductions: from here on they are those of the row. Long sums of float32 are taken in float64."""
    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(*values):
        args = tuple(done[a] for a in node.args)
        detail = node.detail[0] if node.op == "reduce" else node.detail
        if long and detail == "sum" and node.op == "reduce" and node.type == "f32":
            done[node] = ex.cast(ex.node("reduce", (ex.cast(args[0], "f64"),), "f64", detail), "f32")
        else:
            done[node] = ex.node(node.op, args, node.type, detail)
    return [done[v] for v in values]
