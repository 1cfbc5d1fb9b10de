"""The hot path of recording, written as text: one writer for every operation.

`record` of `_recording/record.py` looks at every argument, and loops over names of what a node keeps. In the two common modes, on
NumPy arrays, all of that is known beforehand but the arrays: which parameters the implementation takes, which values the
node keeps and for whose gradient, whether the result is a view. So it is written out flat, once for each pair of a
primitive and a node name, when that is first recorded. What does not fit goes the general way.

- `flat_recorder` writes it for any primitive, and for views;
- `promoting_recorder` for an elementwise operation with parameters, among them Python numbers;
- `function_text` for the public function of an elementwise operation, which is one Python call: each costs a tenth of a small op;
- `fused_recorder` for a fused operation, whose arguments may be None.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ... import _errors, _thresholds
from ..._core.arrays import NO_LEVELS
from ..._core.fused import Fused
from ..._core.levels import creation_numbers
from ..._core.numpy_namespace import _NUMPY_TYPES, numpy_namespace
from ..._core.parallel import WIDE
from ..._core.passes import concatenate, times_transposed
from ..._core.primitive import ELEMENTWISE, Primitive
from ..._generated import emit
from ..._graph.cuts import note_operation
from ..._graph.node import Guard, InputFacts, Meta, Slot, node_class
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._places import own_files, user_frame, users_files
from ..._tracebacks import hide
from ...overrides import MISSING, NOTHING
from .. import _base
from .._base import LEAF, storage_of

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
INDEX_KINDS = "iub"
REAL = "efdE?bBhilq"  # characters of the real dtypes that are computed with
CAST_AT_ONCE = REAL.replace("e", "")  # those to which NumPy casts as torch does: float64 becomes float32 before float16
new_object: Any = object.__new__
UNVERSIONED = (None, 0)  # of a value that no write can reach

INFERENCE_REFUSED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
    "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
    "`torch.no_grad()` instead of `torch.inference_mode()`."
)


def refuse_saving(storage: Any) -> None:
    """Raise torch's error for saving an inference tensor, unless it was made before the `grad` or `vjp` that saves it."""
    if not any(t.kind in ("grad", "vjp") and t.born > storage.inference for t in current_mode().transforms):
        raise RuntimeError(INFERENCE_REFUSED)


def guarded(guard: Guard | None, name: str, storage: Any) -> Guard:
    """Note the version of a saved value."""
    if storage.inference:
        refuse_saving(storage)
    if guard is None:
        guard = new_object(Guard)  # the constructor, which is a Python call, is written out
        guard.versions = {name: (storage, storage.version)}
        guard.packed = {}
        return guard
    guard.versions[name] = (storage, storage.version)
    return guard


def guarded_tensor(guard: Guard | None, name: str, tensor: Any) -> Guard | None:
    """Note the version of a saved tensor, unless its edge will lead to it. See Note [Saved values]."""
    storage, edge = tensor._storage, tensor._edge
    if storage is None:
        if edge is not None:
            return guard
        storage = storage_of(tensor)
    elif storage.version or storage.inference:
        return guarded(guard, name, storage)
    elif edge is LEAF or (edge is not None and edge._storage is storage):
        return guard
    return guarded(guard, name, storage)


def guarded_sequence(guard: Guard | None, name: str, sources: Any) -> Guard:
    """Note the versions of a saved sequence of tensors; raw arrays have none."""
    entries: list[Any] = []
    for source in sources:
        if isinstance(source, _base.Tensor):
            storage = storage_of(source)
            if storage.inference:
                refuse_saving(storage)
            entries.append((storage, storage.version))
        else:
            entries.append((None, 0))
    if guard is None:
        guard = Guard()
    guard.versions[name] = entries
    return guard


def broadcast_meta(x: Any, y: Any, ex: Any, ey: Any) -> Meta:
    """Describe the operands of a broadcasting operation of one dtype."""
    facts = [None if e is None else InputFacts(a.shape, a.dtype, NO_LEVELS) for a, e in ((x, ex), (y, ey))]
    return Meta(tuple(facts), NO_LEVELS, False)


def wrap_parts(out: tuple[Any, ...], node: Any) -> tuple[Any, ...]:
    """Make Tensors of several outputs; integers are never differentiable, and a write into saved ones is noticed."""
    new_tensor = _base.new_tensor
    results: list[Any] = []
    versions: list[Any] = []
    for part in out:
        result = new_tensor()
        result._array = part
        result._extra = result._storage = None
        if node is None:
            result._edge = None
        elif part.dtype.kind in INDEX_KINDS:
            result._edge = None
            result._storage = _base.Storage()
            versions.append((result._storage, 0))
        else:
            result._edge = Slot(node, len(results))
            versions.append(UNVERSIONED)
        results.append(result)
    if node is not None and "out" in node.array_names:
        if node.guard is None:
            node.guard = Guard()
        node.guard.versions["out"] = versions
    return tuple(results)


# ---- what all texts are made of: lines, indented relative to each other ----
Lines = list[str]


def _inside(*lines: str) -> Lines:
    """Move lines to the right, into the block of a statement."""
    return ["    " + line for line in lines]


def _node(edges: str, keep: Lines, frame: Lines, more: str = "") -> Lines:
    """Write the making of a node; `keep` sets what its rules read, its guard and its meta. `more` are slots left empty."""
    return [
        "node = cls()",
        f"node._edges = {edges}",
        f"{more}node.extra = None",
        *keep,
        *frame,
        "if (code := frame.f_code).co_filename not in users_files:",
        "    frame = user_frame(frame)",
        "    code = frame.f_code",
        "node.code = code",
        "node.lasti = frame.f_lasti",
        "node.seq = creation_numbers()",
    ]


_EMPTY_STORAGE = "node._storage = "
_CALLER = ["frame = get_frame(1)"]
_CALLER_OF_PUBLIC_FUNCTION = [
    "try:",
    "    frame = get_frame(3)  # this, `record`, and a public function are ours",
    "except ValueError:  # called from outside Python",
    "    frame = get_frame(2)",
    "while frame.f_code.co_filename in own_files and (back := frame.f_back) is not None:",
    "    frame = back",
]


def _result(edge: str) -> Lines:
    """Write the making of a Tensor of `out`."""
    return [
        "result = new_tensor()",
        "result._array = out",
        f"result._edge = {edge}",
        "result._storage = result._extra = None",
        "return result",
    ]


def _view_result(edge: str, storage: str) -> Lines:
    """Write the making of a view. See Note [Views and in-place]; `register_view` is the same for all modes."""
    return [
        "result = new_tensor()",
        "result._array = out",
        "result._extra = view = new_object(View)  # its __init__, a Python call, is the lines that follow",
        "extra = t0._extra",
        "if extra is None or (of := extra.view) is None:",
        "    view.base = base = t0",
        "    view.chain = (None, (primitive, params))",
        "    view.made_in = MADE_IN_GRAD if tracking else MADE_IN_NO_GRAD",
        "else:",
        "    view.base = base = of.base",
        "    view.chain = (of.chain, (primitive, params))",
        "    view.made_in = of.made_in if tracking else MADE_IN_NO_GRAD",
        "    storage = base._storage",
        "if storage is None:",
        "    storage = storage_of(base)",
        "view.version = storage.version",
        f"result._storage = {storage}storage",
        "if (views := storage.views) is None:",
        "    storage.views = [ref(result)]",
        "else:",
        "    views.append(ref(result))",
        "    if len(views) > storage.most_views:",
        "        storage.forget_dead_views()",
        f"result._edge = {edge}",
        "return result",
    ]


def _any_edge(edges: Sequence[str], is_none: bool = False) -> str:
    return (" and " if is_none else " or ").join(f"{e} is {'' if is_none else 'not '}None" for e in edges)


def _own(tensor: str, edge: str) -> str:
    """Write the edge of a tensor as nodes have it: a leaf stands for itself."""
    return f"{tensor} if {edge} is LEAF else {edge}"


# What small arrays need of the implementations of some primitives, without the calls between (60 ns each).
DIRECT = {
    "getitem": "x0[(*p_index, ...)]",
    "reshape": "x0.reshape(p_shape)",
    "permute_dims": "x0.transpose(p_axes)",
    "copy": "x0.copy() if x0.size < SMALL else function(xp, x0)",
    "astype": "x0.astype(p_dtype) if x0.size < SMALL and x0.dtype.char in REAL and getattr(p_dtype, 'char', '-') in CAST_AT_ONCE else "
    "function(xp, x0, dtype=p_dtype)",
    "alias": "x0[...]",
    "expand_dims": "x0.reshape((*x0.shape[:p_axis], 1, *x0.shape[p_axis:])) if x0.size > 1 and p_axis < x0.ndim else "
    "function(xp, x0, axis=p_axis)",
    "squeeze": "x0.squeeze(p_axis) if p_axis else x0[...]",
    "concat": "concatenate(arrays, p_axis)",
    "sum": "add_reduce(x0, p_axis, x0.dtype, None, p_keepdims) if x0.size < SMALL and x0.itemsize > 2 else "
    "function(xp, x0, axis=p_axis, keepdims=p_keepdims)",
    "linear_map": "times_transposed(x0, x1, *x0.shape, x1.shape[0]) if x0.ndim == 2 and x0.itemsize > 2 else "
    "function(xp, x0, x1)",
    # below 96 elements `times_transposed` has no other way: its rows would have 32 numbers, and there would be 3 of them
    "affine": "add(out := x1.dot(x2.T) if x1.size < 96 else times_transposed(x1, x2, *x1.shape, x2.shape[0]), x0, out) if "
    "x1.ndim == 2 and x1.itemsize > 2 else "
    "function(xp, x0, x1, x2)",
    "index": "x0[indices[0]] if len(p_layout) == 1 and x0.size < SMALL else function(xp, x0, *indices, layout=p_layout)",
}


class _Writer:
    """Writes `record_flat(args, params, shown, tracking)` for one primitive under one node name.

    It returns None if it cannot record the call. That of a view takes the tensor itself in place of `args`.
    """

    def __init__(self, primitive: Primitive, cls: Any, view: bool = False) -> None:
        self.primitive = primitive
        self.cls = cls
        self.view = view
        self.fixed = () if primitive.variadic else tuple(n for n in primitive.inputs if n != primitive.rest)
        self.sequence = primitive.inputs[0] if primitive.variadic else primitive.rest
        has_defaults = primitive.implementation is None or getattr(primitive.implementation, "__kwdefaults__", True)
        self.params = None if has_defaults else primitive.statics  # None: those that are given, whichever they are

    def text(self) -> str:
        body = [
            *self.unpack(),
            *([f"if not ({self.primitive.hot_if}):", "    return None"] if self.primitive.hot_if else []),
            *[f"p_{n} = params[{n!r}]" for n in self.params or ()],
            *self.call(),
            *self.dense(),
            *(self.tracked() if self.cls is not None else [*self.lost(), *self.unrecorded()]),
        ]
        return "\n".join(
            [f"def record_flat({'t0' if self.view else 'args'}, params, shown, tracking):", *_inside(*body)]
        )

    # ---- the arrays, and what is computed ----
    def unpack(self) -> Lines:
        """Take arrays and edges out of tensors; anything but an exact Tensor of a NumPy array goes the general way."""
        count = len(self.fixed)
        lines = []
        if not self.view:
            if not self.sequence:
                lines += [f"if len(args) != {count}:", "    return None"]
            if count:
                lines.append("".join(f"t{i}, " for i in range(count)) + ("*s" if self.sequence else "") + " = args")
        for i in range(count):
            lines += self.unpack_one(i)
        if self.view:
            lines += ["if (storage := t0._storage) is not None and storage.inference:", "    return None"]
        if self.sequence:
            lines += [
                f"{self.sequence}, rest, needed = [], [], False",
                f"for one in {'s' if count else 'args'}:",
                "    edge = None",
                "    if type(one) in exact:",
                "        array = one._array",
                "        if tracking and (edge := one._edge) is not None:",
                "            needed = True",
                "            if edge is LEAF:",
                "                edge = one",
                "    else:",
                "        array = one",
                "    if type(array) not in raw:",
                "        return None",
                f"    {self.sequence}.append(array)",
                "    rest.append(edge)",
            ]
        return lines

    def unpack_one(self, i: int) -> Lines:
        if not i:
            lines = [
                "if (kind := type(t0)) is not Tensor and kind is not Parameter:",
                "    return None",
                *self.taken(0),
            ]
        else:  # which may be a raw array, as indices are
            lines = [f"if type(t{i}) in exact:", *_inside(*self.taken(i)), "else:", f"    x{i} = t{i}"]
            lines += [] if self.cls is None else [f"    e{i} = None"]
        lines += [
            f"if type(x{i}) is not ndarray{'' if self.view else f' and type(x{i}) not in raw'}:",
            "    return None",
        ]
        if self.primitive.widens:
            lines += [f"if x{i}.dtype.itemsize == 2:", "    return None"]
        return lines

    def taken(self, i: int) -> Lines:
        return [f"x{i} = t{i}._array", *([] if self.cls is None else [f"e{i} = t{i}._edge if tracking else None"])]

    def call(self) -> Lines:
        return [f"out = {self.called()}"]

    def called(self) -> str:
        """Write the call of the implementation."""
        direct = DIRECT.get(self.primitive.name)
        if direct is not None and self.params is not None and all(f"p_{n}" in direct for n in self.params):
            return direct
        given = [] if self.primitive.implementation is None else ["xp"]
        given += self.arrays() + (["**params"] if self.params is None else [f"{n}=p_{n}" for n in self.params])
        return f"function({', '.join(given)})"

    def arrays(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.fixed))] + ([f"*{self.sequence}"] if self.sequence else [])

    def edges(self) -> list[str]:
        return [f"e{i}" for i in range(len(self.fixed))]

    def dense(self) -> Lines:
        if not self.primitive.dense:
            return []
        if self.primitive.outputs != 1:
            return ["out = laid_out(out)"]
        return ["if type(out) is ndarray and not out.flags.c_contiguous:", "    out = laid_out(out)"]

    # ---- the result ----
    def unrecorded(self) -> Lines:
        """Write the end of a call that is not recorded."""
        if self.primitive.outputs != 1:
            return ["return wrap_parts(out, None)"]
        return _view_result("None if base._edge is None else NOWHERE", "") if self.view else _result("None")

    def lost(self) -> Lines:
        """Write the note that an operation without a gradient has used a tensor in the graph."""
        lines = []
        for i in range(len(self.fixed)):
            lines += [
                f"if tracking and type(t{i}) in exact and (edge := t{i}._edge) is not None:",
                f"    note_operation({self.primitive.torch!r}, {_own(f't{i}', 'edge')})",
            ]
        return lines

    def tracked(self) -> Lines:
        """Write the end of a call that is recorded if an input needs a gradient."""
        edges = [_own(f"t{i}", f"e{i}") for i in range(len(self.fixed))] + (["*rest"] if self.sequence else [])
        nothing = _any_edge(self.edges(), is_none=True)
        if self.sequence:
            nothing += f"{' and ' if nothing else ''}not needed"
        if self.primitive.outputs != 1:
            recorded = ["return wrap_parts(out, node)"]
        elif self.view:  # its edge leads to the Storage, so what saves the view at version 0 needs no guard
            recorded = _view_result("node", "node._storage = ")
        else:
            recorded = _result("node")
        keep = ["guard = None", *self.meta(), *self.keep(), "node.guard = guard"]
        return [
            f"if not tracking or ({nothing}):",
            *_inside(*self.unrecorded()),
            *_node(f"({', '.join(edges)},)", keep, _CALLER_OF_PUBLIC_FUNCTION, "" if self.view else _EMPTY_STORAGE),
            *recorded,
        ]

    # ---- the node ----
    def meta(self) -> Lines:
        out = "out" if self.primitive.outputs == 1 else "out[0]"
        if self.fixed and len(self.fixed) == 1 and not self.sequence:  # what `make_meta` finds, in place
            facts = "Meta((InputFacts(x0.shape, x0.dtype, NO_LEVELS),), NO_LEVELS, 'c' in (x0.dtype.kind, dtype.kind))"
            return [f"node.meta = None if {self.fits(out)} else {facts}"]
        return [
            f"if {self.fits(out)}:",
            "    node.meta = None",
            "else:",
            f"    node.meta = make_meta(primitive, ({', '.join(self.arrays())},), out, node._edges)",
        ]

    def fits(self, out: str) -> str:
        """Write the question whether the rules' gradients have the inputs' shapes and dtypes as they are."""
        tests = [f"((dtype := {out}.dtype) is F32 or dtype is F64)"]
        if self.primitive.hot_if:  # which compares the dtypes
            return tests[0]
        for i, name in enumerate(self.fixed):
            same = f"x{i}.dtype is dtype" + (
                f" and x{i}.shape == out.shape" if self.primitive.kind == ELEMENTWISE else ""
            )
            if name in self.primitive.rules or self.primitive.group_rule:
                tests.append(f"({same} or e{i} is None and x{i}.dtype.kind != 'c')")
            else:
                tests.append(f"(e{i} is None or {same})")
        if self.primitive.variadic:
            tests.append(f"all_of(dtype, {self.sequence})")
        return " and ".join(tests)

    def keep(self) -> Lines:
        """Write what the node keeps. See Note [Saved values]."""
        lines = []
        known = {name: i for i, name in enumerate(self.fixed)}
        for name in self.cls.static_names:
            base, _, fact = name.rpartition("_")
            if name in self.primitive.statics:
                lines.append(f"node.{name} = params[{name!r}]" if self.params is None else f"node.{name} = p_{name}")
            elif base == self.sequence:
                lines.append(f"node.{name} = tuple([one.{fact} for one in {base}])")
            else:
                lines.append(f"node.{name} = {self.fact(known[base], fact)}")
        if self.primitive.outputs != 1:
            lines.append(f"node.num_outputs = {self.primitive.outputs}")
        for name in self.cls.array_names:
            lines += self.keep_array(name, known)
        lines += ["if shown is not None:", "    node.shown = shown"]
        return lines

    def fact(self, i: int, fact: str) -> str:
        return f"x{i}.{fact}"

    def keep_array(self, name: str, known: dict[str, int]) -> Lines:
        readers = self.cls.readers[name]
        if name == "out":
            if self.primitive.outputs == 1:
                only = f" if {_any_edge([f'e{k}' for k in readers])} else None"
                return [f"node.out = out{'' if not readers or len(self.fixed) == 1 else only}"]
            kinds = "tuple([part if part.dtype.kind in INDEX_KINDS else None for part in out])"
            return [f"node.out = {kinds}"]  # rules read the indices only
        if name == self.sequence:
            given = "s if shown is None or 'indices' not in shown else [i for i in shown['indices'] if i is not None]"
            keep = [
                f"node.{name} = tuple({name})",
                f"guard = guarded_sequence(guard, {name!r}, {given if self.fixed else 'args'})",
            ]
            always = not readers or len(self.fixed) <= 1 or max(readers) >= len(self.fixed)
        else:
            i = known[name]
            keep = [f"node.{name} = x{i}", *_guarded(f"t{i}", f"e{i}", name, f"t{i} is not x{i} and ")]
            always = not readers or len(self.fixed) == 1
        if always:
            return keep
        needed = _any_edge([f"e{k}" for k in readers])
        return [f"if {needed}:", *_inside(*keep), *_else(name)]


def _else(name: str) -> Lines:
    """Write that a value is not kept otherwise."""
    return ["else:", f"    node.{name} = None"]


def _guarded(tensor: str, edge: str, name: str, given: str = "") -> Lines:
    """Write what `guarded_tensor` does, with its common answer in place: the edge leads to what was saved."""
    return [
        f"if {given}((storage := {tensor}._storage) is not None or {edge} is None):",
        "    if storage is None or storage.version or storage.inference or "
        f"{edge} is None or ({edge} is not LEAF and {edge}._storage is not storage):",
        f"        guard = guarded_tensor(guard, {name!r}, {tensor})",
    ]


class _PromotingWriter(_Writer):
    """Writes the text for an elementwise operation: tensors of one dtype, and Python numbers that do not change it.

    `allowed` has, by the number of a dtype that needs no further checks, the types of Python numbers that keep it.
    """

    def __init__(self, primitive: Primitive, cls: Any, divides: bool) -> None:
        super().__init__(primitive, cls)
        self.divides = divides

    def unpack(self) -> Lines:
        count = len(self.fixed)
        lines = [f"if len(args) != {count}:", "    return None", "".join(f"t{i}, " for i in range(count)) + "= args"]
        for i in range(count):
            lines += [f"{'el' if i else ''}if type(t{i}) in exact:", f"    dtype = t{i}._array.dtype"]
        lines += ["else:", "    return None", "if (numbers := allowed.get(dtype.num)) is None:", "    return None"]
        for i in range(count):
            lines += [
                f"if type(t{i}) in exact:",
                *_inside(*self.taken(i)),
                f"    if type(x{i}) not in raw or x{i}.dtype is not dtype:",
                "        return None",
                f"elif type(t{i}) in numbers:",
                f"    x{i} = t{i}",
                *([] if self.cls is None else [f"    e{i} = None"]),
                "else:",
                "    return None",
            ]
        if self.divides:  # an integer by what may be zero
            lines += ["if dtype.kind != 'f' and (type(t1) is not int or not t1):", "    return None"]
        return lines

    def call(self) -> Lines:
        # a failure is explained by the general way
        return ["try:", f"    out = {self.called()}", "except (ValueError, OverflowError):", "    return None"]

    def fits(self, out: str) -> str:
        tests = ["(dtype is F32 or dtype is F64)", "out.dtype is dtype"]
        return " and ".join(tests + [f"(t{i} is x{i} or x{i}.shape == out.shape)" for i in range(len(self.fixed))])

    def fact(self, i: int, fact: str) -> str:
        return f"x{i}.{fact}" if fact != "shape" else f"() if t{i} is x{i} else x{i}.shape"


class _FusedWriter(_Writer):
    """Writes the text for a fused operation: real arrays of one float dtype, integers, and None."""

    def __init__(self, operation: Any, cls: Any) -> None:
        self.primitive, self.cls, self.view, self.sequence = operation, cls, False, None
        self.fixed, self.params = operation.inputs, None

    def unpack(self) -> Lines:
        count = len(self.fixed)
        lines = [
            "if decomposing():",
            "    return None",
            "".join(f"t{i}, " for i in range(count)) + "= args",
            "dtype = None",
        ]
        for i in range(count):
            lines += [
                f"if t{i} is None:",
                f"    x{i} = e{i} = None",
                f"elif type(t{i}) not in exact or type(x{i} := t{i}._array) is not ndarray:",
                "    return None",
                "else:",
                f"    e{i} = t{i}._edge if tracking else None",
                f"    if (own := x{i}.dtype) is not dtype:",
                "        if own is F32 or own is F64:",
                "            if dtype is not None:",
                "                return None",
                "            dtype = own",
                "        elif own.kind not in INDEX_KINDS:",
                "            return None",
            ]
        return [*lines, "if dtype is None:", "    return None"]

    def call(self) -> Lines:
        return [f"out, residuals = function(xp, {', '.join(self.arrays())}, **params)"]

    def dense(self) -> Lines:
        return []

    def fits(self, out: str) -> str:
        return f"{out}.dtype is dtype"

    def keep(self) -> Lines:
        lines = [
            f"node.needs = ({''.join(f'e{i} is not None, ' for i in range(len(self.fixed)))})",
            "node.params, node.residuals, node.level = params, residuals, None",
            f"node.is_plain, node.num_outputs = True, {self.primitive.outputs}",
        ]
        for i, name in enumerate(self.fixed):
            lines += [
                f"node.{name} = x{i}",
                f"if x{i} is not None and (t{i}._storage is not None or e{i} is None):",
                f"    guard = guarded_tensor(guard, {name!r}, t{i})",
            ]
        return lines


# ---- public functions of elementwise operations ----
_OF_RAW = "(kind is ndarray or kind is f32 or kind in raw)"


class _FunctionWriter:
    """Writes the public function of an elementwise operation of one or two tensors.

    It is for plain modes, exact Tensors, floats of one dtype, and integers that have passed all checks before: `allowed`
    has them, with the Python numbers that keep their dtype. Everything else goes to `off_path`. The arrays of `input`
    and `other` are called `ax` and `ay`, and their edges `ex` and `ey`: `x` is a parameter.
    """

    def __init__(
        self, primitive: Primitive, cls: Any, *, floats: bool, integers: bool, divides: bool, numbers: bool
    ) -> None:
        self.primitive = primitive
        self.cls = cls
        self.floats = floats  # torch computes it of floats
        self.integers = integers  # NumPy's function serves for integers as well
        self.divides = divides  # of integers, by zero, it has to be refused
        self.numbers = numbers  # the second may be a number
        self.readers: dict[str, tuple[int, ...]] = {} if cls is None else cls.readers

    def text(self) -> str:
        names = ("input", "other")[: len(self.primitive.inputs)]
        words = ("x", "a", "x1", "x2")[: 2 + len(names)]  # NumPy's, which torch takes as well
        usual = " and ".join(["out is None", "more is NOTHING", *(f"{word} is None" for word in words)])
        words_given = ", ".join(f"{word!r}: {word}" for word in words)
        lines = [
            f"if {usual}:",
            "    if (mode := read_mode()) is PLAIN or mode is NO_GRAD:",
            "        kind = type(input)",
            "        if kind is Tensor or kind is Parameter:",
            "            ax = input._array",
            "            kind = type(ax)",
            "            d = ax.dtype if kind is ndarray else F32 if kind is f32 else ax.dtype  # which scalars make anew",
            *_inside(*_inside(*_inside(*(self.unary() if len(names) == 1 else self.binary())))),
            f"    return off_path(call, recipe, {', '.join(names)})",
            f"return unusual_call(call, ({', '.join(names)},), more, out, {{{words_given}}})",
        ]
        parameters = [*(f"{n}=MISSING" for n in names), "more=NOTHING", "out=None", *(f"{w}=None" for w in words)]
        hiding = ["except Exception as error:", "    hide(error)", "    raise"]  # see Note [Tracebacks]
        return "\n".join([f"def call({', '.join(parameters)}):", *_inside("try:", *_inside(*lines), *hiding)])

    def unary(self) -> Lines:
        return [
            f"if {_OF_RAW} and ({self.dtypes(self.integers)}):",
            "    out = function(ax) if kind is not ndarray or ax.size < WIDE else wide(ax)",
            *_inside(*self.finish({"x": "input"})),
        ]

    def binary(self) -> Lines:
        of_two = [
            "ay = other._array",
            "y_kind = type(ay)",
            f"if (y_kind is kind is not ndarray or d is ay.dtype) and {_OF_RAW} and (y_kind is kind or y_kind in raw) and "
            f"({self.dtypes(self.integers and not self.divides)}):",
            "    try:",
            "        out = (function if kind is not ndarray else ufunc if ax.size < WIDE else wide)(ax, ay)",
            "    except ValueError:",
            "        raise broadcast_error(ax.shape, ay.shape) from None",
            *_inside(*self.finish({"x": "input", "y": "other"})),
        ]
        lines = ["if (second := type(other)) is Tensor or second is Parameter:", *_inside(*of_two)]
        if not self.numbers:
            return lines
        numbers = ["((d is F32 or d is F64) and (second is float or second is int))"] if self.floats else []
        if self.integers:
            numbers.append(f"(second in allowed.get(d.num, ()){' and other' if self.divides else ''})")
        of_number = [
            "try:",
            "    out = (function if kind is not ndarray or ax.size < WIDE else wide_with_number)(ax, other)",
            "except (ValueError, OverflowError):  # which the general way explains",
            "    return recipe.checked((input, other), {}, mode)",
            *self.finish({"x": "input"}),
        ]
        return [*lines, f"elif {_OF_RAW} and ({' or '.join(numbers) or 'False'}):", *_inside(*of_number)]

    def dtypes(self, integers: bool) -> str:
        """Write the question whether the arrays' dtype needs no promotion and no checks."""
        tests = (["d is F32", "d is F64"] if self.floats else []) + (["d.num in allowed"] if integers else [])
        return " or ".join(tests) or "False"

    def finish(self, tensors: dict[str, str]) -> Lines:
        """Write what follows the computation; `tensors` are those of the arrays, a second input without one is a number."""
        own = [_own(tensor, f"e{name}") for name, tensor in tensors.items()]
        lines = [
            "result = new_tensor()",
            "result._array = out",
            "result._storage = result._extra = None",
            *[f"e{name} = {tensor}._edge" for name, tensor in tensors.items()],
        ]
        if self.cls is None:
            for name, edge in zip(tensors, own, strict=True):
                lines += [f"if mode is PLAIN and e{name} is not None:", f"    note_operation(name, {edge})"]
            return [*lines, "result._edge = None", "return result"]
        own += ["None"] * (len(self.primitive.inputs) - len(own))
        nothing = _any_edge([f"e{name}" for name in tensors], is_none=True)
        return [
            *lines,
            f"if mode is NO_GRAD or ({nothing}):",
            "    result._edge = None",
            "    return result",
            *_node(f"({', '.join(own)},)", self.keep(tensors), _CALLER, _EMPTY_STORAGE),
            "result._edge = node",
            "return result",
        ]

    def keep(self, tensors: dict[str, str]) -> Lines:
        """Write what the node keeps, and what its edges need to know of arrays that may have been broadcast."""
        lines = []
        if len(tensors) == 2:
            lines += [
                "if (kind is ndarray or y_kind is ndarray) and ax.shape != ay.shape:",
                "    node.meta = broadcast_meta(ax, ay, ex, ey)",
            ]
        for name in self.primitive.inputs:
            if name not in self.readers:
                continue
            readers = self.needing(name, tensors)
            if name not in tensors:
                lines.append(f"node.{name} = other")
            elif not readers:
                lines.append(f"node.{name} = None")
            else:
                one = [f"node.{name} = a{name}", *_guarded(tensors[name], f"e{name}", name)]
                one = one if len(tensors) == 1 else [f"if {_any_edge(readers)}:", *_inside(*one), *_else(name)]
                lines += one
        if self.cls.keeps_shapes and len(tensors) == 2:  # shapes are compared in backward, on both
            stale = " or ".join(
                f"((s := {tensor}._storage) is not None and (s.version or s.inference or (e{name} is not LEAF and "
                f"e{name}._storage is not s)))"
                for name, tensor in tensors.items()
            )
            lines = [
                "if ex is not None and ey is not None:",
                "    node.x = ax",
                "    node.y = ay",
                f"    if {stale}:  # else the edges lead to them: see `guarded_tensor`",
                "        guard = guarded_tensor(guarded_tensor(None, 'x', input), 'y', other)",
                "else:",
                *_inside(*lines),
            ]
        if "out" in self.readers:
            readers = self.needing("out", tensors)
            unless = "" if len(tensors) == 1 and readers else f" if {_any_edge(readers) or 'False'} else None"
            lines.append(f"node.out = out{unless}")
        return ["guard = node.meta = None", *lines, "node.guard = guard"]

    def needing(self, name: str, tensors: dict[str, str]) -> list[str]:
        """Return the edges whose gradients are computed from a value."""
        return [f"e{one}" for k in self.readers[name] if (one := self.primitive.inputs[k]) in tensors]


def function_text(primitive: Primitive, name: str | None, **facts: bool) -> tuple[str, dict[str, Any]]:
    """Return the text of an elementwise operation's public function, and what it uses of this package."""
    cls: Any = node_class(primitive, name) if primitive.differentiable else None
    return _FunctionWriter(primitive, cls, **facts).text(), _names() | {"cls": cls}


def recorder(primitive: Primitive | Fused, name: str | None) -> Callable[..., Any]:
    """Return the flat recorder of a primitive under a node name, written on first use."""
    found = primitive.recorders.get(name)
    if found is None:
        found = primitive.recorders[name] = flat_recorder(primitive, name)
    return found


def flat_recorder(primitive: Primitive | Fused, name: str | None, view: bool = False) -> Callable[..., Any]:
    """Write the flat recorder of a primitive under a node name."""
    if isinstance(primitive, Fused):
        return fused_recorder(primitive)
    if "level" in primitive.statics:
        return lambda args, params, shown, tracking: None
    cls: Any = node_class(primitive, name) if primitive.differentiable else None
    return _compiled(primitive, _Writer(primitive, cls, view), {})


def promoting_recorder(
    primitive: Primitive, name: str | None, allowed: dict[int, Any], divides: bool
) -> Callable[..., Any]:
    """Write the flat recorder of an elementwise operation with parameters. See `_PromotingWriter`."""
    cls: Any = node_class(primitive, name) if primitive.differentiable else None
    return _compiled(primitive, _PromotingWriter(primitive, cls, divides), {"allowed": allowed})


def fused_recorder(operation: Any) -> Callable[..., Any]:
    """Write the flat recorder of a fused operation."""
    from .fused import decomposing, node_class_of

    return _compiled(operation, _FusedWriter(operation, node_class_of(operation)), {"decomposing": decomposing})


def _compiled(primitive: Any, writer: _Writer, names: dict[str, Any]) -> Callable[..., Any]:
    scope = _names() | names
    scope |= {
        "primitive": primitive,
        "function": _function(primitive),
        "cls": writer.cls,
    }
    return emit(f"recording {primitive.name}", writer.text(), scope)["record_flat"]  # type: ignore[no-any-return]


def _function(primitive: Any) -> Any:
    """Return what computes a primitive: that of a formula with its own parameters, where it has one."""
    implementation = primitive.implementation or getattr(numpy_namespace, primitive.name)
    return getattr(implementation, "direct", implementation)


def all_of(dtype: Any, arrays: Any) -> bool:
    """Tell whether arrays have one dtype."""
    for array in arrays:  # noqa: SIM110 - a generator takes three times as long
        if array.dtype is not dtype:
            return False
    return True


EXACT: set[type] = set()  # Tensor and Parameter, whose `_edge` can be read


def install(*classes: type) -> None:
    """Receive the classes of tensors that are recorded flat."""
    EXACT.update(classes)


def _names() -> dict[str, Any]:
    """Return what texts use of this package."""
    from .._aliasing.views import GRAD as MADE_IN_GRAD
    from .._aliasing.views import NO_GRAD as MADE_IN_NO_GRAD
    from .._aliasing.views import NOWHERE, View
    from .record import laid_out, make_meta

    return _scope | {
        "MADE_IN_GRAD": MADE_IN_GRAD,
        "MADE_IN_NO_GRAD": MADE_IN_NO_GRAD,
        "NOWHERE": NOWHERE,
        "Parameter": _base.Parameter,
        "Tensor": _base.Tensor,
        "View": View,
        "laid_out": laid_out,
        "make_meta": make_meta,
        "new_tensor": _base.new_tensor,
    }


_scope: dict[str, Any] = {
    "hide": hide,
    "F32": F32,
    "F64": F64,
    "INDEX_KINDS": INDEX_KINDS,
    "InputFacts": InputFacts,
    "LEAF": LEAF,
    "MISSING": MISSING,
    "Meta": Meta,
    "NOTHING": NOTHING,
    "NO_GRAD": NO_GRAD,
    "NO_LEVELS": NO_LEVELS,
    "PLAIN": PLAIN,
    "CAST_AT_ONCE": CAST_AT_ONCE,
    "REAL": REAL,
    "SMALL": _thresholds.LARGE,  # an implementation may know a quicker way for more
    "WIDE": WIDE,
    "add": np.add,
    "add_reduce": np.add.reduce,
    "all_of": all_of,
    "broadcast_error": _errors.broadcast_error,
    "broadcast_meta": broadcast_meta,
    "concatenate": concatenate,
    "creation_numbers": creation_numbers,
    "exact": EXACT,
    "f32": np.float32,
    "f64": np.float64,
    "get_frame": sys._getframe,
    "guarded_sequence": guarded_sequence,
    "guarded_tensor": guarded_tensor,
    "ndarray": np.ndarray,
    "new_object": new_object,
    "note_operation": note_operation,
    "own_files": own_files,
    "raw": _NUMPY_TYPES,
    "read_mode": read_mode,
    "ref": ref,
    "storage_of": storage_of,
    "times_transposed": times_transposed,
    "user_frame": user_frame,
    "users_files": users_files,
    "wrap_parts": wrap_parts,
    "xp": numpy_namespace,
}
