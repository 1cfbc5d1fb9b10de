"""`Proxy`: a value of a program that is being traced; what is done to it becomes nodes."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import sys
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

from .. import overrides
from .._places import is_own, user_frame
from ..utils._pytree import tree_map_
from ._operators import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import Argument, Node, Target, _get_qualified_name, base_types


class TraceError(ValueError):
    """A program did with a Proxy what nobody can record."""


class Scope:
    """The module whose `forward` is running: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """A block in which another module's `forward` runs."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._previous = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path, self._scope.module_type = self._previous.module_path, self._previous.module_type


class TracerBase:
    """What makes nodes of what happens to proxies. Subclasses decide what an argument may be."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph; subclasses may check or note more."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _users_stack()
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the value that stands for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node for a call with these arguments; return the value that stands for its result."""
        own_args, own_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, own_args, own_kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def _find_user_frame(self) -> FrameType:
        """Return the frame of the user's program that is running."""
        return user_frame(sys._getframe(1))

    def create_arg(self, a: Any) -> Argument:
        """Turn an argument of a traced call into one of a node."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            made = [self.create_arg(each) for each in a]
            return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {_constant_key(self.create_arg(key)): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if is_dataclass(a) and not isinstance(a, type):
            values = {each.name: self.create_arg(getattr(a, each.name)) for each in fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if a is None or a is ... or isinstance(a, (*base_types, enum.Enum)) or _is_constant(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Answer a question about a value that is not known yet."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Run over a value whose length is not known yet."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Record a call of `keys()`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds what is done with proxies to a graph that exists."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """Stand in a graph for an assert statement."""
    assert x


class Proxy:
    """A value that is not known yet. Operators, methods and functions of torch on it become nodes.

    It cannot be run over, and no branch can depend on it: put such code into a function and declare that with `fx.wrap`.
    """

    tells_operators = True  # from functions, though both are one object here: `tensor + proxy` is a method's call

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self._holds = overrides.hold()  # so that arguments arrive as they were given, and proxies inside lists are seen
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        return Attribute(self, k)  # no node yet: a method call needs none for the method itself

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = Proxy(copy.deepcopy(self.node, memo), self.tracer)  # else `__getattr__` would be asked for the method
        memo[id(self)] = made
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instruction = _instructions_of(sys._getframe(1))[0]
        if instruction.opname == "UNPACK_SEQUENCE":
            return iter([self[i] for i in range(instruction.argval)])  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            test, following = _instructions_of(sys._getframe(1))
            if "JUMP" in test.opname and "TRUE" in test.opname and following.opname == "LOAD_ASSERTION_ERROR":
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Record a call of `keys()`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def note(value: Any) -> None:
            if isinstance(value, cls):
                tracers[value.tracer] = None

        tree_map_(note, args)
        tree_map_(note, kwargs)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        (tracer,) = tracers
        public = overrides.resolve_name(orig_method) or ""
        if public.startswith("torch.Tensor."):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(_get_qualified_name(orig_method).rpartition(".")[2])
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


class Attribute(Proxy):
    """An attribute of a proxy, which becomes a node when something is done with it other than a call."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The read of the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter, whose shape is known while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """Return the parameter's size."""
        return self.param.size(*args)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.param.ndim)

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.param.numel())

    nelement = numel


class MetaProxy(Proxy):
    """A proxy that carries a value of the device `meta` with it, which knows shape and dtype."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode


def _operator_method(name: str, reflected: bool) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return method


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name, reflected=False))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator_method(_name, reflected=True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


def _instructions_of(frame: FrameType) -> list[Any]:
    """Return the instruction that a frame is at, and the next one."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = bisect_left(instructions, frame.f_lasti, key=lambda instruction: instruction.offset)
    return instructions[at : at + 2]


def _users_stack() -> str:
    import traceback

    frames = [frame for frame in traceback.extract_stack() if not is_own(frame.filename)]
    return "".join(traceback.StackSummary.from_list(frames).format()).strip()


def _is_constant(value: Any) -> bool:
    """Whether a value has a place in a graph as it is: dtypes, devices, and what is like them."""
    import retrograd as torch

    return isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)) or (
        type(value).__name__ in ("OpOverload", "OpOverloadPacket")
    )


def _constant_key(key: Any) -> Any:
    if isinstance(key, Node):
        raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
    return key
