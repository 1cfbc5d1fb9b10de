"""A trace of a program that runs on real values: `jit.trace` and `export` record by it.

Where `symbolic_trace` runs a program on values that are not known, a recording runs it on an example. Branches are decided by the
example and are not in the graph; operations are, and so are sizes and what is computed from them.

Note [Recorded values]
A recorded tensor is a subclass whose `__torch_function__` runs the operation on the tensor that it stands for and adds a node; the
result is recorded in turn. Sizes, and what is computed from them, know their node. Python's own questions (`if`, `int`, `len`) get the
example's answer, and whoever records is told. Functions that make tensors from sizes alone have no recorded tensor among their
arguments; for the time of the trace the package has versions of them that record.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from .. import nn
from .._places import is_own
from .._size import Size
from ..autograd.function import Function
from ..jit._marks import recordings
from ..overrides import _public_functions, hold, resolve_name
from ..tensor import Tensor, later_functions
from ..tensor._base import array_slot
from ..tensor._object.devices import device_of_array
from ..tensor._object.overriding import METHODS
from . import _patching
from ._modes_of_nodes import Modes, modes_now, wrap_parts
from ._operators import BINARY
from ._symbolic_trace import Tracer
from .graph import Graph
from .node import Node
from .proxy import Proxy

MAKERS = """zeros ones empty full rand randn randint randperm arange linspace logspace eye range normal scalar_tensor empty_strided
tril_indices triu_indices hann_window hamming_window blackman_window bartlett_window kaiser_window""".split()  # noqa: SIM905
FROM_DATA = ("tensor", "as_tensor", "asarray", "from_numpy")
# What Python asks of a tensor, and what it gets: a value that no node stands for.
QUESTIONS = {
    "__bool__": "boolean",
    "__float__": "float",
    "__int__": "integer",
    "__complex__": "complex",
    "__index__": "index",
    "__contains__": "boolean",
    "item": "number",
    "tolist": "list",
    "numpy": "NumPy array",
    "__array__": "NumPy array",
    "equal": "boolean",
    "allclose": "boolean",
    "is_nonzero": "boolean",
}
# Functions that give as many tensors as a size says, and those whose numbers are no matter of sizes.
DIVIDING = frozenset(
    "unbind split chunk tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split unsafe_chunk".split()  # noqa: SIM905
)
DESCRIPTIONS = frozenset("dim ndimension element_size get_device data_ptr sparse_dim dense_dim __hash__".split())  # noqa: SIM905
STORAGES = frozenset(("untyped_storage", "storage", "_typed_storage"))
OPERATORS = {
    **{f"__{name.rstrip('_')}__": getattr(operator, name) for name in (*BINARY, "eq", "ne", "lt", "gt", "le", "ge")},
    **{f"__{name}__": getattr(operator, name) for name in ("getitem", "setitem", "neg", "pos", "abs", "invert")},
    **{f"__i{name.rstrip('_')}__": getattr(operator, f"i{name.rstrip('_')}") for name in BINARY},
}
DESCRIBING = frozenset(("shape", "dtype", "ndim", "size", "strides", "itemsize", "nbytes", "flags", "is_meta"))
UNSEEN = (
    "a part of the program reads a tensor without an operation that the trace sees, so its result would be a constant of the graph\n"
    "Hint: transforms (torch.func.vmap, grad, vjp, jvp, jacrev; forward-mode duals; torch.autograd.functional) cannot be recorded by "
    "torch.jit.trace and torch.export.export. Apply the transform to the traced function instead, write it with "
    "torch.autograd.grad, or record it by torch.fx.experimental.proxy_tensor.make_fx."
)
REFLECTED = {f"__r{name.rstrip('_')}__": getattr(operator, name) for name in BINARY}


class Unrecorded:
    """The array of a recorded tensor for what runs beside the trace: it tells its shape and dtype, and refuses to be read."""

    def __init__(self, array: Any) -> None:
        self._of = array

    @property
    def place(self) -> Any:
        return device_of_array(self._of)

    def __getattr__(self, name: str) -> Any:
        if name in DESCRIBING:
            return getattr(self._of, name)
        raise NotImplementedError(UNSEEN)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(UNSEEN)

    __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __neg__ = __add__ = __mul__ = __array__


class RecordedTensor(Tensor):
    """A tensor of a program that is being recorded. See Note [Recorded values]."""

    _recorder: Recorder
    _node: Node
    _real: Any

    @property
    def _array(self) -> Any:
        array = self._real._array
        return array if self._recorder._busy or self._recorder.is_over else Unrecorded(array)

    @property
    def _edge(self) -> Any:
        return self._real._edge

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        raise NotImplementedError(UNSEEN)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function on what recorded values stand for, and record it."""
        return _recorder_of(args, kwargs).called(func, args, kwargs or {})

    @property
    def shape(self) -> Any:
        """The size, each number with its node."""
        return self._recorder.size(self)

    def __iter__(self) -> Iterator[Any]:
        self._recorder.converted(self._recorder.size(self, 0), "iterating")
        return iter(self.unbind(0))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._recorder.method("__array__", (self, *args), kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.clone()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._real.__reduce_ex__(protocol)

    def __format__(self, spec: str) -> str:
        if spec:
            self._recorder.asked("number")
        return format(self._real, spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self._real)


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._recorder.method(name, (self, *args), kwargs)

    method.__name__ = name
    return method


def _property(name: str) -> property:
    return property(
        lambda self: self._recorder.attribute(self, name),
        lambda self, value: self._recorder.set_attribute(self, name, value),
    )


_WRITING = [name for name in dir(Tensor) if name.endswith("_") and not name.startswith("_")]
_BESIDE = "ndimension nelement storage_offset is_same_size is_nonzero cdouble cfloat chalf".split()  # noqa: SIM905
for _name in {*METHODS, *_WRITING, *_BESIDE, *STORAGES}:
    if hasattr(Tensor, _name):
        setattr(RecordedTensor, _name, _method(_name))
_WRITERS = {
    *_WRITING,
    operator.setitem,
    *(OPERATORS[name] for name in OPERATORS if name.startswith("__i") and name != "__invert__"),
}
for _name in ("T", "mT", "H", "mH", "real", "imag", "data", "grad"):
    setattr(RecordedTensor, _name, _property(_name))


class RecordedNumber:
    """A number, or an answer, that was computed from sizes: it knows its node.

    For `isinstance` it is what it stands for, but it is no instance of `int` or `float`: C code (`range`, `math`, the arithmetic of
    plain numbers) would take the number of the example out of one without a word. So it must ask, and whoever records is told.
    """

    _value: Any
    _recorder: Recorder
    _node: Node
    __array_priority__ = 1000  # numbers of NumPy leave arithmetic to this one

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._value)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record a function that makes a tensor of numbers, or takes numbers and tensors that are not recorded."""
        return _recorder_of(args, kwargs).called(func, args, kwargs or {})

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._recorder.converted(self, "NumPy array")
        return np.asarray(self._value, dtype)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._value, name):
            raise AttributeError(f"'{type(self._value).__name__}' object has no attribute '{name}'")
        self._recorder.converted(self, "integer" if isinstance(self._value, int) else "float")
        return getattr(self._value, name)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._recorder.converted(self, "integer")
        return type(self._value), (self._value,)

    def __repr__(self) -> str:
        return str(self._recorder.shown(self))

    def __format__(self, spec: str) -> str:
        return format(self._recorder.shown(self), spec)


def _arithmetic(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        if all(isinstance(other, (int, float)) for other in others):
            return self._recorder.number(function(*_real(args)), function, args)
        if any(isinstance(other, complex) for other in others):
            self._recorder.converted(self, "complex")
            return function(*_real(args))
        return NotImplemented

    return method


def _conversion(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        self._recorder.converted(self, what)
        return function(self._value)

    return method


for _name, _function in (OPERATORS | REFLECTED).items():
    if hasattr(int, _name):
        setattr(RecordedNumber, _name, _arithmetic(_function, _name in REFLECTED))
for _name, _function in (("round", round), ("ceil", math.ceil), ("floor", math.floor), ("trunc", math.trunc)):
    setattr(RecordedNumber, f"__{_name}__", _arithmetic(_function, False))
for _name, _function, _what in (
    ("bool", bool, "boolean"),
    ("int", int, "integer"),
    ("float", float, "float"),
    ("complex", complex, "complex"),
    ("index", operator.index, "index"),
    ("hash", hash, "integer"),
):
    setattr(RecordedNumber, f"__{_name}__", _conversion(_function, _what))


def as_many(values: Any, count: int) -> Any:
    """Return tensors into which one was divided; raise an error if there are not as many as when it was recorded."""
    if len(values) != count:
        raise RuntimeError(f"Expected {count} elements in a list but found {len(values)}")
    return values


RECORDED = (RecordedTensor, RecordedNumber)


class Recorder(Tracer):
    """Records what a function, or a method of a module, does with example values."""

    _patcher: _patching.Patcher
    is_jit_trace = False
    keeps_values = False  # of the example, in the nodes

    def __init__(self, root: nn.Module | None, asked: Callable[[str], None] = lambda what: None) -> None:
        super().__init__(autowrap_modules=())
        self.root = nn.Module() if root is None else root
        self.graph = Graph(tracer_cls=Tracer)
        self.constants: dict[str, Any] = {}
        self.is_over = False
        self._told = asked
        self._holds = hold()  # recorded values take calls over
        self._busy = 0
        self._droppable: list[Node] = []
        self._plain_modes = modes_now()
        self._modes: dict[Node, Modes] = {}  # of nodes for which they are not the plain ones
        self.parts: dict[str, Any] = {}  # modules that the graph calls under such modes
        self._makers: dict[int, Callable[..., Any]] = {}
        self._tables: set[int] = set()  # names of files that were looked at for makers
        self._known: dict[int, RecordedTensor] = {}  # by the id of the tensor that it stands for, which it keeps alive
        self._names = _names_of_tensors(self.root)
        self._used = set(dir(self.root)) | {name.partition(".")[0] for name in self._names.values()}

    # ---- values ----
    def recorded(self, value: Any, node: Node) -> Any:
        """Return a value as the result of a node: tensors and what holds tensors are recorded, all else is as it is."""
        if isinstance(value, RecordedTensor):
            return value
        if isinstance(value, Tensor):
            made = self._known.get(id(value))
            if made is None:
                made = object.__new__(RecordedTensor)
                made._real, made._recorder, made._extra = value, self, None
                self._known[id(value)] = made
            array_slot.__set__(made, Unrecorded(value._array))
            made._storage = value._storage
            made._node = node
            if self.keeps_values:
                node.meta["val"] = value
            return made
        if isinstance(value, (tuple, list)):
            parts = [
                self.recorded(each, self._part(node, i)) if _has_tensors(each) else each for i, each in enumerate(value)
            ]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {
                key: self.recorded(each, self._part(node, key)) if _has_tensors(each) else each
                for key, each in value.items()
            }
        return value

    def _part(self, node: Node, key: Any) -> Node:
        return self._pure("call_function", operator.getitem, (node, key))

    def _pure(self, op: str, target: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Node:
        """Add a node that goes if nobody uses it."""
        node = self.create_node(op, target, args, kwargs or {})
        self._droppable.append(node)
        return node

    def number(self, value: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return a number with the node that computes it."""
        if self.is_over:
            return value
        return self.of_node(value, self._pure("call_function", function, self.create_arg(args)))

    def of_node(self, value: Any, node: Node) -> Any:
        """Return a number that a node stands for."""
        made = RecordedNumber()
        made._value, made._recorder, made._node = value, self, node
        return made

    def size(self, tensor: RecordedTensor, dim: Any = None) -> Any:
        """Return the size of a tensor, in which each number has its node."""
        real = tensor._real.size() if dim is None else tensor._real.size(dim)
        if self.is_over:
            return real
        if dim is not None:
            return self.of_node(real, self._pure("call_method", "size", (tensor._node, self.create_arg(dim))))
        numbers = [
            self.of_node(value, self._pure("call_method", "size", (tensor._node, i))) for i, value in enumerate(real)
        ]
        return tuple.__new__(Size, numbers)

    def asked(self, what: str) -> None:
        """Note that the program asked for a Python value; the package itself may ask."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if not is_own(frame.f_code.co_filename):
            self._told(what)

    def converted(self, number: Any, what: str) -> None:
        """Note that the program made a number that was computed from sizes a plain one; a size may be one already."""
        if not self.is_over:
            self.asked(what)

    def shown(self, number: RecordedNumber) -> Any:
        """Return what texts show for a number."""
        return _real(number)

    def create_node(self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any) -> Node:
        """Add a node, and note under which modes it runs."""
        node = super().create_node(kind, target, args, kwargs, *rest)
        modes = self._modes_now()
        if modes != self._plain_modes:
            self._modes[node] = modes
        return node

    def _modes_now(self) -> Modes:
        return modes_now(self._plain_modes.grad)

    # ---- calls ----
    def called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function that takes or makes tensors, and record it."""
        name = getattr(function, "__name__", "")
        public = _public_name(function)
        if public is None or not public.startswith("torch.Tensor."):
            if name in QUESTIONS:
                return self._answer(function, QUESTIONS[name], args, kwargs)
            return self.run(function, "call_function", function, args, kwargs)
        if public.endswith(".__get__"):
            return self.attribute(args[0], public.split(".")[-2])
        return self.method(name, args, kwargs)

    def method(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a method of a tensor, and record it."""
        function = getattr(Tensor, name)
        if name in QUESTIONS:
            return self._answer(function, QUESTIONS[name], args, kwargs)
        if name == "__len__":
            self.converted(self.size(args[0], 0), "len")
            return len(args[0]._real)
        if name == "size":
            return self.size(args[0], *args[1:], **kwargs)
        if name in OPERATORS:
            return self.run(function, "call_function", OPERATORS[name], args, kwargs)
        if name in REFLECTED:
            return self.run(function, "call_function", REFLECTED[name], args, kwargs, args[::-1])
        return self.run(function, "call_method", name, args, kwargs)

    def _answer(self, function: Any, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not (self.is_over or self._busy):
            self.asked(what)
        return function(*_real(args), **_real(kwargs))

    def attribute(self, tensor: RecordedTensor, name: str) -> Any:
        """Read an attribute of a tensor, and record it."""
        return self.run(lambda real: getattr(real, name), "call_function", getattr, (tensor,), {}, (tensor, name))

    def set_attribute(self, tensor: RecordedTensor, name: str, value: Any) -> None:
        """Set an attribute of a tensor, which no graph does."""
        setattr(tensor._real, name, _real(value))

    def run(
        self,
        function: Callable[..., Any],
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        written: tuple[Any, ...] | None = None,
    ) -> Any:
        """Run a function on real values, and record a call of `target`, with `written` for arguments."""
        before = self._busy
        self._busy = before + 1
        try:
            if not (before or self.is_over) and target in _WRITERS and args:
                self._keep_before_write(args[0])
            result = function(*_real(args), **_real(kwargs))
        finally:
            self._busy = before
        if self.is_over or before:
            return result
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if name in STORAGES:
            raise NotImplementedError(UNSEEN)
        if (_is_of_numbers(result) and name not in DESCRIPTIONS) or name == "is_same_size":
            return self._numbers(result, self._pure(op, target, self.create_arg(args), self.create_arg(kwargs)))
        if not (result is None or _has_tensors(result)) or (result is None and target is getattr):
            return result
        node = self.create_node(
            op, target, self.create_arg(args if written is None else written), self.create_arg(kwargs)
        )
        if name in DIVIDING:  # the program may count on each: with another size there are more, or fewer
            node = self._pure("call_function", as_many, (node, len(result)))
        return self.recorded(result, node)

    def _keep_before_write(self, tensor: Any) -> None:
        """Let the graph write into a copy of a tensor that the program made of constants: each run begins with the same values."""
        if type(tensor) is not Tensor or id(tensor) in self._known or id(tensor) in self._names:
            return
        if any(tensor is value for module in self.root.modules() for value in vars(module).values()):
            return
        if tensor.requires_grad or tensor._is_view():
            return
        kept = self._constant(tensor.detach().clone(), "_tensor_constant")
        self.recorded(tensor, self.create_node("call_method", "clone", (kept,), {}))

    def _numbers(self, value: Any, node: Node) -> Any:
        """Return what a function says of a tensor in numbers, such as its strides, as the result of a node."""
        if isinstance(value, tuple):
            return tuple(self._numbers(each, self._part(node, i)) for i, each in enumerate(value))
        return self.of_node(value, node)

    # ---- arguments of nodes ----
    def create_arg(self, a: Any) -> Any:
        """Turn an argument into one of a node."""
        if isinstance(a, (RecordedTensor, RecordedNumber)) and a._recorder is self:
            return a._node
        if isinstance(a, RecordedTensor):
            a = a._real
        if isinstance(a, Tensor):
            return self._known[id(a)]._node if id(a) in self._known else self._read(a)
        if isinstance(a, Size):
            return tuple(self.create_arg(each) for each in a)
        if isinstance(a, RecordedNumber):
            return _real(a)
        if isinstance(a, np.generic):
            return a.item()  # a number, for which code has a word
        try:
            return super().create_arg(a)
        except NotImplementedError:  # a generator, or an object of the program's
            return self._constant(a, "_constant")

    def _read(self, tensor: Any) -> Node:
        """Return the read of a tensor of the module, or of one that the program has from elsewhere."""
        name = self._names.get(id(tensor))
        if name is None:
            if tensor.requires_grad:
                raise RuntimeError(
                    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or "
                    f"detaching the gradient\nTensor:\n{tensor}"
                )
            return self._constant(tensor, "_tensor_constant")  # type: ignore[no-any-return]
        node = self._pure("get_attr", name)
        self.recorded(tensor, node)
        return node

    def _constant(self, value: Any, prefix: str) -> Any:
        for name, other in self.constants.items():
            if other is value:
                return self._pure("get_attr", name)
        number = 0
        while f"{prefix}{number}" in self._used:
            number += 1
        name = f"{prefix}{number}"
        self._used.add(name)
        self.constants[name] = value
        return self._pure("get_attr", name)

    # ---- modules ----
    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return parameters and buffers of the module recorded, all else as it is."""
        if self._busy or self.is_over or id(attr_val) not in self._names or isinstance(attr_val, RecordedTensor):
            return attr_val
        if id(attr_val) not in self._known:
            self._read(attr_val)
        return self._known[id(attr_val)]

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Trace through a module, whose files may have makers of tensors by names of their own."""
        if self._patcher.visit_once(type(m)):
            methods = [
                each for kind in type(m).__mro__ for each in vars(kind).values() if isinstance(each, FunctionType)
            ]
            for method in methods:
                self._patch_names(method.__globals__)
        if self._busy or not getattr(m, "is_leaf_of_traces", False):
            return super().call_module(m, forward, args, kwargs)
        return self.run(
            forward, "call_module", self.path_of_module(m), args, kwargs
        )  # a scripted one: its branches stay

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Trace through every module."""
        return False

    def path_of_module(self, mod: nn.Module) -> str:
        """Return the name of a module below the root; one from elsewhere is called by its class."""
        try:
            return super().path_of_module(mod)
        except NameError:
            return type(mod).__name__

    # ---- the whole ----
    def record(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]
    ) -> Any:
        """Call a function with recorded arguments, the positional ones by these names; return what it gives, recorded."""
        given = [self._argument(name, value) for name, value in zip(names, args, strict=True)]
        named = {name: self._argument(name, value) for name, value in kwargs.items()}
        with self._recording():
            self._patch_names(getattr(function, "__globals__", {}))
            return function(*given, **named)

    def _argument(self, name: str, value: Any) -> Any:
        node = self.create_node("placeholder", name, (), {})
        if self.keeps_values:
            node.meta["val"] = value
        value = self._alone(value)
        return self.recorded(value, node) if _has_tensors(value) else value

    def _alone(self, value: Any) -> Any:
        """Return an argument in which no tensor is one of another argument: two arguments may be the same tensor."""
        if isinstance(value, Tensor):
            return value.view_as(value) if id(value) in self._known else value
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self._alone(each) for each in value)
        return value

    def finish(self, result: Any) -> Graph:
        """End the graph with what it gives."""
        self.create_node("output", "output", (self.create_arg(result),), {})
        for node in reversed(self._droppable):
            if not node.users:
                self.graph.erase_node(node)
        self.parts = wrap_parts(self.graph, self._modes, self._plain_modes) if self._modes else {}
        self.is_over = True
        return self.graph

    @contextmanager
    def _recording(self) -> Iterator[None]:
        _public_functions()  # as they are for everybody: those of a recording are about to stand in their places
        recordings.append(self)
        try:
            with _patching.patching() as patcher:
                self._patch_modules(patcher)
                self._patch_makers(patcher)
                self._patcher = patcher
                yield
        finally:
            recordings.pop()
            for module in self.root.modules():
                for name, buffer in module._buffers.items():
                    if isinstance(buffer, RecordedTensor):
                        module._buffers[name] = buffer._real

    def _patch_makers(self, patcher: _patching.Patcher) -> None:
        package = import_module(__package__.partition(".")[0])
        self._makers = {id(made := getattr(package, name)): self._making(made, name) for name in (*MAKERS, *FROM_DATA)}
        for made in self._makers.values():
            patcher.patch_global(vars(package), made.__name__, made)
        gradients = package.autograd.grad
        self._makers[id(gradients)] = self._making(gradients, "grad")
        patcher.patch_global(vars(package.autograd), "grad", self._makers[id(gradients)])
        apply = vars(Function)["apply"]

        def recording_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            bound = apply.__get__(None, cls)
            if self._busy or not has_recorded((args, kwargs)):
                return bound(*args, **kwargs)
            home = self._constant(cls, "_function")  # the read of the class, of which the graph calls the method
            return self.run(bound, "call_method", "apply", args, kwargs, (Proxy(home, self), *args))

        patcher.patch_method(Function, "apply", classmethod(recording_apply))
        for name in {*METHODS, *_WRITING} - {*QUESTIONS, "size", "dim", "numel"}:
            if name in vars(Tensor):
                if name in later_functions:
                    getattr(package, name)  # is made of the method when asked for: not of one that records
                patcher.patch_method(Tensor, name, self._taking_numbers(getattr(Tensor, name), name))

    def _taking_numbers(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a method of tensors that are not recorded, which does not look for recorded values among its arguments."""

        @functools.wraps(plain)
        def method(*args: Any, **kwargs: Any) -> Any:
            if self._busy or self.is_over or not _any((args[1:], kwargs), RECORDED):
                return plain(*args, **kwargs)
            return self.method(name, args, kwargs)

        return method

    def _patch_names(self, table: dict[str, Any]) -> None:
        """Let names in a module's globals record that are those of makers: `from torch import zeros`."""
        if id(table) not in self._tables:
            self._tables.add(id(table))
            for name, value in list(table.items()):
                if id(value) in self._makers and value.__name__ in (*MAKERS, *FROM_DATA, "grad"):
                    self._patcher.patch_global(table, name, self._makers[id(value)])

    def _making(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def make(*args: Any, **kwargs: Any) -> Any:
            if self._busy or self.is_over or recordings[-1] is not self:
                return function(*args, **kwargs)
            if name in FROM_DATA:
                return self._from_data(function, name, args, kwargs)
            return self.run(function, "call_function", function, args, kwargs)

        return make

    def _from_data(self, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a tensor of data: a recorded tensor is copied by the graph, numbers from sizes are put together by it."""
        data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
        if isinstance(data, RecordedTensor):
            return self._of_tensor(data, function, name, args, kwargs)
        if name in ("tensor", "as_tensor"):
            self.asked(name)
        if has_recorded(data):
            self.asked("number")
        elif _any(data, RecordedNumber):
            return self.run(function, "call_function", function, args, kwargs)
        return function(*_real(args), **_real(kwargs))

    def _of_tensor(
        self, data: Any, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        made = function(*_real(args), **_real(kwargs))  # warns, and refuses, as it does
        if name != "tensor":
            return data if made is data._real else self.run(function, "call_function", function, args, kwargs)
        copied = data.detach().to(dtype=made.dtype, device=made.device, copy=True)
        return copied.requires_grad_() if made.requires_grad else copied


def _names_of_tensors(root: nn.Module) -> dict[int, str]:
    """Return the first name of each parameter and buffer."""
    names: dict[int, str] = {}
    for path, module in root.named_modules(remove_duplicate=False):
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None:
                names.setdefault(id(tensor), f"{path}.{name}" if path else name)
    return names


def _recorder_of(*values: Any) -> Recorder:
    for value in values:
        if isinstance(value, RECORDED):
            return value._recorder
        if isinstance(value, (tuple, list)) and _any(value, RECORDED):
            return _recorder_of(*value)
        if isinstance(value, dict) and _any(value, RECORDED):
            return _recorder_of(*value.values())
    raise TypeError("no recorded value among the arguments")


def _any(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_any(each, kind) for each in value)
    if isinstance(value, dict):
        return any(_any(each, kind) for each in value.values())
    if isinstance(value, slice):
        return any(_any(each, kind) for each in (value.start, value.stop, value.step))
    return isinstance(value, kind)


def _is_of_numbers(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_of_numbers, value))
    return type(value) in (int, float)


def _has_tensors(value: Any) -> bool:
    return _any(value, Tensor)


def has_recorded(value: Any) -> bool:
    return _any(value, RecordedTensor)


def _real(value: Any) -> Any:
    """Return values as they are without a recording."""
    if isinstance(value, RecordedTensor):
        return value._real
    if isinstance(value, RecordedNumber):
        return value._value
    if isinstance(value, (tuple, list)):
        parts = [_real(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _real(each) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(_real(value.start), _real(value.stop), _real(value.step))
    return value


real = _real


@functools.lru_cache(maxsize=4096)
def _public_name(function: Any) -> str | None:
    return resolve_name(function)
