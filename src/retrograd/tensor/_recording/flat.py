"""Recording without detours: a function written as text for every primitive and node name.

`record` of `_recording/record.py` looks at every argument, and loops over names of what a node keeps. In the two common modes, on
NumPy arrays, all of that is known beforehand but the arrays: which parameters the implementation takes, which values the
node keeps and for whose gradient, whether the result is a view. So it is written out flat, once for each pair of a
primitive and a node name, when that is first recorded. What does not fit goes the general way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from ..._core.levels import creation_numbers
from ..._core.numpy_namespace import _NUMPY_TYPES, numpy_namespace
from ..._core.passes import concatenate
from ..._core.primitive import ELEMENTWISE, Primitive
from ..._generated import emit
from ..._graph.cuts import note_operation
from ..._graph.node import Guard, Slot, node_class
from ..._modes import current_mode
from ..._places import own_files, user_frame, users_files
from .. import _base
from .._base import LEAF, storage_of

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
INDEX_KINDS = "iub"
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


def guard_operands(node: Any, first: Any, second: Any) -> Guard | None:
    """Guard the saved operands of a binary node whose tensors have a Storage, or need one for lack of an edge."""
    guard = None if node.x is None else guarded_tensor(None, "x", first)
    return guard if node.y is None else guarded_tensor(guard, "y", second)


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


_TEXT = """
def record_flat({given}, params, shown, tracking):
    {unpack}
    {statics}
    out = {call}
    {dense}
    {finish}
"""

_TRACKED = """
    if not tracking or ({no_edges}):
        {plain}
    node = cls()
    node._edges = {all_edges}
    node.extra{storage} = None
    if {fits}:
        node.meta = None
    else:
        node.meta = make_meta(primitive, {array_list}, out, node._edges)
    guard = None
    {keep}
    node.guard = guard
    if shown is not None:
        node.shown = shown
    try:
        frame = get_frame(3)  # this, `record`, and a public function are ours
    except ValueError:  # called from outside Python
        frame = get_frame(2)
    while (code := frame.f_code).co_filename in own_files and (back := frame.f_back) is not None:
        frame = back
    if code.co_filename not in users_files:
        frame = user_frame(frame)
        code = frame.f_code
    node.code = code
    node.lasti = frame.f_lasti
    node.seq = creation_numbers()
    {wrapped}
"""

# What small arrays need of the implementations of some primitives, without the calls between (60 ns each).
DIRECT = {
    "getitem": "x0[(*p_index, ...)]",
    "reshape": "x0.reshape(p_shape)",
    "permute_dims": "x0.transpose(p_axes)",
    "copy": "x0.copy()",
    "alias": "x0[...]",
    "expand_dims": "x0.reshape((*x0.shape[:p_axis], 1, *x0.shape[p_axis:])) if x0.size > 1 and p_axis < x0.ndim else "
    "function(xp, x0, axis=p_axis)",
    "squeeze": "x0.squeeze(p_axis) if p_axis else x0[...]",
    "concat": "concatenate(arrays, p_axis)",
    "sum": "add_reduce(x0, p_axis, x0.dtype, None, p_keepdims) if x0.size < SMALL and x0.itemsize > 2 else "
    "function(xp, x0, axis=p_axis, keepdims=p_keepdims)",
    "index": "x0[indices[0]] if len(p_layout) == 1 and x0.size < SMALL else function(xp, x0, *indices, layout=p_layout)",
}

_ONE = """
    result = new_tensor()
    result._array = out
    result._edge = {edge}
    result._storage = result._extra = None
    return result
"""

# See Note [Views and in-place]; `register_view` is the same for all modes.
_VIEW = """
    result = new_tensor()
    result._array = out
    result._extra = view = new_object(View)  # its __init__, a Python call, is the lines that follow
    extra = t0._extra
    if extra is None or (of := extra.view) is None:
        view.base = base = t0
        view.chain = (None, (primitive, params))
        view.made_in = GRAD if tracking else NO_GRAD
    else:
        view.base = base = of.base
        view.chain = (of.chain, (primitive, params))
        view.made_in = of.made_in if tracking else NO_GRAD
        storage = base._storage
    if storage is None:
        storage = storage_of(base)
    view.version = storage.version
    result._storage = storage
    if (views := storage.views) is None:
        storage.views = [ref(result)]
    else:
        views.append(ref(result))
        if len(views) > storage.most_views:
            storage.forget_dead_views()
    result._edge = {edge}
    return result
"""


def _indented(text: str, depth: int) -> str:
    """Move a block of statements to the right, leaving its first line to the template."""
    lines = [line.removeprefix("    ") for line in text.strip("\n").splitlines()]
    return ("\n" + "    " * depth).join(lines)


class _Writer:
    """Writes the text for one primitive under one node name."""

    def __init__(self, primitive: Primitive, cls: Any, view: bool) -> None:
        self.primitive = primitive
        self.cls = cls
        self.view = view
        self.fixed = () if primitive.variadic else tuple(n for n in primitive.inputs if n != primitive.rest)
        self.sequence = primitive.inputs[0] if primitive.variadic else primitive.rest
        has_defaults = primitive.implementation is None or getattr(primitive.implementation, "__kwdefaults__", True)
        self.params = None if has_defaults else primitive.statics  # None: those that are given, whichever they are

    def text(self) -> str:
        return _TEXT.format(
            given="t0" if self.view else "args",
            unpack="\n    ".join(self.unpack()),
            statics="\n    ".join(f"p_{n} = params[{n!r}]" for n in self.params or ()),
            call=self.call(),
            dense=self.dense(),
            finish=self.tracked() if self.cls is not None else self.lost() + self.plain(1),
        )

    def call(self) -> str:
        """Write the call of the implementation."""
        direct = DIRECT.get(self.primitive.name)
        if direct is not None and self.params is not None and all(f"p_{n}" in direct for n in self.params):
            return direct
        given = [] if self.primitive.implementation is None else ["xp"]
        given += self.arrays() + (["**params"] if self.params is None else [f"{n}=p_{n}" for n in self.params])
        return f"function({', '.join(given)})"

    def arrays(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.fixed))] + ([f"*{self.sequence}"] if self.sequence else [])

    def unpack(self) -> list[str]:
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

    def unpack_one(self, i: int) -> list[str]:
        if not i:
            lines = [
                "if (kind := type(t0)) is not Tensor and kind is not Parameter:",
                "    return None",
                *self.taken(0),
            ]
        else:  # which may be a raw array, as indices are
            lines = [
                f"if type(t{i}) in exact:",
                *("    " + line for line in self.taken(i)),
                "else:",
                f"    x{i} = t{i}",
            ]
            lines += [] if self.cls is None else [f"    e{i} = None"]
        lines += [f"if type(x{i}) {'is not ndarray' if self.view else 'not in raw'}:", "    return None"]
        if self.primitive.widens:
            lines += [f"if x{i}.dtype.itemsize == 2:", "    return None"]
        return lines

    def taken(self, i: int) -> list[str]:
        return [f"x{i} = t{i}._array", *([] if self.cls is None else [f"e{i} = t{i}._edge if tracking else None"])]

    def dense(self) -> str:
        if not self.primitive.dense:
            return ""
        if self.primitive.outputs != 1:
            return "out = laid_out(out)"
        return "if type(out) is ndarray and not out.flags.c_contiguous:\n        out = laid_out(out)"

    def plain(self, depth: int) -> str:
        """Write the end of a call that is not recorded."""
        if self.primitive.outputs != 1:
            return "return wrap_parts(out, None)"
        template = _VIEW if self.view else _ONE
        return _indented(
            template.format(edge="None if base._edge is None else NOWHERE" if self.view else "None"), depth
        )

    def lost(self) -> str:
        """Write the note that an operation without a gradient has used a tensor in the graph."""
        text = ""
        for i in range(len(self.fixed)):
            text += f"if tracking and type(t{i}) in exact and (edge := t{i}._edge) is not None:\n"
            text += f"        note_operation({self.primitive.torch!r}, t{i} if edge is LEAF else edge)\n    "
        return text

    def tracked(self) -> str:
        count = len(self.fixed)
        own = [f"t{i} if e{i} is LEAF else e{i}" for i in range(count)]
        none = [f"e{i} is None" for i in range(count)]
        if self.sequence:
            none.append("not needed")
            own.append("*rest")
        several = self.primitive.outputs != 1
        return (
            _TRACKED.strip("\n")
            .removeprefix("    ")
            .format(
                no_edges=" and ".join(none),
                plain=self.plain(2),
                all_edges=f"({', '.join(own)},)",
                storage="" if self.view else " = node._storage",
                fits=self.fits("out[0]" if several else "out"),
                array_list=f"({', '.join(self.arrays())},)",
                keep=self.keep(),
                wrapped="return wrap_parts(out, node)" if several else _indented(self.wrapped(), 1),
            )
        )

    def wrapped(self) -> str:
        if not self.view:
            return _ONE.format(edge="node")
        # the view's edge leads to the Storage, so what saves the view at version 0 needs no guard
        return _VIEW.format(edge="node").replace(
            "result._storage = storage", "result._storage = node._storage = storage"
        )

    def fits(self, out: str) -> str:
        """Write the question whether the rules' gradients have the inputs' shapes and dtypes as they are."""
        tests = [f"((dtype := {out}.dtype) is F32 or dtype is F64)"]
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

    def keep(self) -> str:
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
        return "\n    ".join(lines)

    def fact(self, i: int, fact: str) -> str:
        return f"x{i}.{fact}"

    def keep_array(self, name: str, known: dict[str, int]) -> list[str]:
        if name == "out":
            if self.primitive.outputs == 1:
                readers = self.cls.readers[name]
                if not readers or len(self.fixed) == 1:
                    return ["node.out = out"]
                return [f"node.out = out if {' or '.join(f'e{k} is not None' for k in readers)} else None"]
            kinds = "tuple([part if part.dtype.kind in INDEX_KINDS else None for part in out])"
            return [f"node.out = {kinds}"]  # rules read the indices only
        if name == self.sequence:
            given = "s if shown is None or 'indices' not in shown else [i for i in shown['indices'] if i is not None]"
            keep = [
                f"node.{name} = tuple({name})",
                f"guard = guarded_sequence(guard, {name!r}, {given if self.fixed else 'args'})",
            ]
            readers = self.cls.readers[name]
            if not readers or len(self.fixed) <= 1 or max(readers) >= len(self.fixed):
                return keep
            needed = " or ".join(f"e{k} is not None" for k in readers)
            return [f"if {needed}:", *("    " + line for line in keep), "else:", f"    node.{name} = None"]
        i = known[name]
        keep = [
            f"node.{name} = x{i}",
            f"if t{i} is not x{i} and ((storage := t{i}._storage) is not None or e{i} is None):",
            "    if storage is None or storage.version or storage.inference or "
            f"e{i} is None or (e{i} is not LEAF and e{i}._storage is not storage):",
            f"        guard = guarded_tensor(guard, {name!r}, t{i})",
        ]
        readers = self.cls.readers[name]
        if not readers or len(self.fixed) == 1:
            return keep
        needed = " or ".join(f"e{k} is not None" for k in readers)
        return [f"if {needed}:", *("    " + line for line in keep), "else:", f"    node.{name} = None"]


class _PromotingWriter(_Writer):
    """Writes the text for an elementwise operation: tensors of one dtype, and Python numbers that do not change it."""

    def __init__(self, primitive: Primitive, cls: Any, divides: bool) -> None:
        super().__init__(primitive, cls, False)
        self.divides = divides

    def unpack(self) -> list[str]:
        count = len(self.fixed)
        lines = [f"if len(args) != {count}:", "    return None", "".join(f"t{i}, " for i in range(count)) + "= args"]
        for i in range(count):
            lines += [f"{'el' if i else ''}if type(t{i}) in exact:", f"    dtype = t{i}._array.dtype"]
        lines += ["else:", "    return None", "if (numbers := allowed.get(dtype.num)) is None:", "    return None"]
        for i in range(count):
            lines += [
                f"if type(t{i}) in exact:",
                *("    " + line for line in self.taken(i)),
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

    def call(self) -> str:
        # a failure is explained by the general way
        return f"None\n    try:\n        out = {super().call()}\n    except (ValueError, OverflowError):\n        return None"

    def fits(self, out: str) -> str:
        tests = ["(dtype is F32 or dtype is F64)", "out.dtype is dtype"]
        return " and ".join(tests + [f"(t{i} is x{i} or x{i}.shape == out.shape)" for i in range(len(self.fixed))])

    def fact(self, i: int, fact: str) -> str:
        return f"x{i}.{fact}" if fact != "shape" else f"() if t{i} is x{i} else x{i}.shape"


def flat_recorder(primitive: Primitive, name: str | None, view: bool = False) -> Callable[..., Any]:
    """Write the flat recorder of a primitive under a node name: `(args, params, shown, tracking)`; it returns None if
    it cannot. That of a view takes the tensor itself in place of `args`.
    """
    if "level" in primitive.statics:
        return lambda args, params, shown, tracking: None
    cls: Any = node_class(primitive, name) if primitive.differentiable else None
    return _compiled(primitive, _Writer(primitive, cls, view), {})


def promoting_recorder(
    primitive: Primitive, name: str | None, allowed: dict[int, Any], divides: bool
) -> Callable[..., Any]:
    """Write the flat recorder of an elementwise operation.

    `allowed` has, by the number of a dtype that needs no further checks, the types of Python numbers that keep it.
    """
    cls: Any = node_class(primitive, name) if primitive.differentiable else None
    return _compiled(primitive, _PromotingWriter(primitive, cls, divides), {"allowed": allowed})


def _compiled(primitive: Primitive, writer: _Writer, names: dict[str, Any]) -> Callable[..., Any]:
    from .._aliasing.views import GRAD, NO_GRAD, NOWHERE, View
    from .record import laid_out, make_meta

    scope = _scope | {
        "primitive": primitive,
        "function": primitive.implementation or getattr(numpy_namespace, primitive.name),
        "cls": writer.cls,
        "raw": _NUMPY_TYPES,
        "new_tensor": _base.new_tensor,
        "make_meta": make_meta,
        "laid_out": laid_out,
    }
    scope |= {"GRAD": GRAD, "NO_GRAD": NO_GRAD, "NOWHERE": NOWHERE, "View": View} | names
    scope |= {"Tensor": _base.Tensor, "Parameter": _base.Parameter}
    return emit(f"recording {primitive.name}", writer.text(), scope)["record_flat"]  # type: ignore[no-any-return]


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


_scope: dict[str, Any] = {
    "F32": F32,
    "F64": F64,
    "INDEX_KINDS": INDEX_KINDS,
    "LEAF": LEAF,
    "SMALL": 4096,  # elements; an implementation may know a quicker way for more
    "add_reduce": np.add.reduce,
    "all_of": all_of,
    "concatenate": concatenate,
    "creation_numbers": creation_numbers,
    "exact": EXACT,
    "get_frame": sys._getframe,
    "guarded_tensor": guarded_tensor,
    "guarded_sequence": guarded_sequence,
    "own_files": own_files,
    "user_frame": user_frame,
    "users_files": users_files,
    "note_operation": note_operation,
    "ndarray": np.ndarray,
    "new_object": new_object,
    "ref": ref,
    "storage_of": storage_of,
    "wrap_parts": wrap_parts,
    "xp": numpy_namespace,
}
