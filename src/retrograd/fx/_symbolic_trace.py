"""`symbolic_trace`: run a function once on proxies, and get the graph of what it does."""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .. import nn
from .._checks import _assert
from .._tracebacks import guard_methods, guarded
from .._warnings import warn
from ..tensor import Tensor
from ..utils import _pytree as pytree
from . import _patching
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .node import Argument, base_types
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_is_fx_tracing_flag = False
_proxyable_classes: set[type] = set()


def is_fx_tracing() -> bool:
    """Tell whether a program is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class PHBase:
    """The kind of what stands for a value to come in `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """A placeholder with attributes, which go to the node that it becomes."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH = PHBase()


class ProxyableClassMeta(type):
    """A class whose construction from proxies becomes a node."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.add(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _patching.find_proxy(args, kwargs)
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


class Tracer(TracerBase):
    """Traces functions and modules. Subclasses decide which modules are leaves, and what becomes of arguments and attributes."""

    root: nn.Module

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_function_ids = {id(function) for function in [*functions, *autowrap_functions]}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.tensor_attrs: dict[int, str] = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name with a number behind it that no attribute of the root has."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """Turn an argument into one of a node: parameters, buffers and other tensors become reads of attributes."""
        if isinstance(a, (Tensor, nn.Module)):
            named = self.root.named_modules if isinstance(a, nn.Module) else self.root.named_buffers
            named = self.root.named_parameters if isinstance(a, nn.Parameter) else named
            for name, own in named():
                if a is own:
                    return self.create_node("get_attr", name, (), {})
            if isinstance(a, nn.Parameter):
                raise NameError("parameter is not a member of this module")
            if isinstance(a, Tensor):
                return self._constant(a, "_tensor_constant")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(each) for each in a), {})
        if isinstance(a, pytree.TreeSpec):
            return self._constant(a, "_tree_spec_constant")
        if type(a) in _proxyable_classes:
            return self._constant(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> Any:
        """Read a value that the program has from an attribute of the root, which is made if there is none."""
        name = self.tensor_attrs.get(id(value))
        if name is None:
            name = self.tensor_attrs[id(value)] = self.get_fresh_qualname(prefix)
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether calls of a module become one node: torch's own modules do, but containers."""
        home = type(m).__module__
        is_own = home.startswith(("retrograd.nn", "torch.nn", "retrograd.ao.nn", "torch.ao.nn"))
        return is_own and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """Return the name of a module below the root."""
        paths = self.submodule_paths or {module: name for name, module in self.root.named_modules()}
        if mod not in paths:
            raise NameError("module is not installed as a submodule")
        return paths[mod]

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make a node of a call of a leaf; trace through all others."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return what a read of a module's attribute gives while tracing: proxies of parameters, else the value."""
        if isinstance(attr_val, nn.Parameter):
            named: Any = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        for name, value in named:
            if attr_val is value:
                if name not in parameter_proxy_cache:
                    options: dict[str, Any] = {}
                    if self.param_shapes_constant:
                        options["proxy_factory_fn"] = functools.partial(_parameter_proxy, self, name, attr_val)
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
                return parameter_proxy_cache[name]
        return attr_val

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Make a placeholder for each parameter of the function; return the function to call, and with what."""
        inner = inspect.unwrap(root_fn)
        code: CodeType = inner.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        skipped = len(args)
        own = names[skipped:total]
        if isinstance(concrete_args, tuple):
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(own, concrete_args, strict=True))
        signature = inspect.signature(inner)

        def placeholder(name: str) -> Any:
            return self._placeholder(name, concrete_args, signature, inner)

        args += [placeholder(name) for name in own]
        if code.co_kwonlyargcount or code.co_flags & VARIADIC:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(placeholder(f"*{next(rest)}"))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(placeholder(f"**{next(rest)}"))
            root_fn = _with_plain_parameters(inner, len(args))
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children_specs):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(names[:total], spec, None))
        self.graph._codegen = codegen

        def on_leaves(*leaves: Any) -> Any:
            results, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(leaves), spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        return on_leaves, flat

    def _placeholder(self, name: str, concrete: Any, signature: inspect.Signature, function: Any) -> Any:
        parameter = signature.parameters[name.lstrip("*")]
        given = () if name[0] == "*" or parameter.default is inspect.Parameter.empty else (parameter.default,)
        if concrete is None or name not in concrete:
            return self.create_proxy("placeholder", name, given, {}, type_expr=_annotation(function, name))
        count = 0

        def fix(value: Any) -> Any:
            nonlocal count
            count += 1
            proxy = self.create_proxy("placeholder", f"{name}_{count}", given, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    for key, each in vars(value).items():
                        if not key.startswith("_"):
                            setattr(proxy.node, key, each)
                return proxy
            if isinstance(value, base_types):
                message = f"{name} has been specialized to have value {value} but got another value"
                _assert(operator.eq(proxy, value), message)
            elif value is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
            else:
                warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                    "user to make sure that your inputs match the inputs you specialized the function with."
                )
            return value

        return pytree.tree_map(fix, concrete[name])

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Run a module's `forward`, or a function, on proxies; return the graph of what it did."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            return self._trace(root, concrete_args)
        finally:
            _is_fx_tracing_flag = before
            self.submodule_paths = None

    def _trace(self, root: nn.Module | Callable[..., Any], concrete_args: Any) -> Graph:
        is_module = isinstance(root, nn.Module)
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = nn.Module()
            function = root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            id(value): f"{path}.{name}" if path else name
            for path, module in self.root.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, Tensor)
        }
        if not isinstance(function, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        table = function.__globals__
        function, args = self.create_args_for_root(function, is_module, concrete_args)
        with _patching.patching() as patcher:
            self._patch_modules(patcher)
            _patching.patch_wrapped(patcher)
            _patching.patch_known(patcher, table, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _patching.patch_known(patcher, vars(module), self._autowrap_function_ids)
            result = self.create_arg(function(*args))
        is_flat = not isinstance(self.graph._codegen, _PyTreeCodeGen)
        annotation = _annotation(inspect.unwrap(function), "return") if is_flat else None
        self.create_node("output", "output", (result,), {}, type_expr=annotation)
        return self.graph

    def _patch_modules(self, patcher: _patching.Patcher) -> None:
        """Let calls of modules, and reads of their parameters, come here."""
        get, call = nn.Module.__getattr__, nn.Module.__call__
        cache: dict[str, Proxy] = {}

        @functools.wraps(get)
        def reading(module: nn.Module, name: str) -> Any:
            return self.getattr(name, get(module, name), cache)

        @functools.wraps(call)
        def calling(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            table = getattr(getattr(module, "forward", module), "__globals__", {})
            _patching.patch_known(patcher, table, self._autowrap_function_ids)
            return self.call_module(module, functools.partial(call, module), args, kwargs)

        patcher.patch_method(nn.Module, "__getattr__", reading)
        patcher.patch_method(nn.Module, "__call__", calling)


def _annotation(function: Any, name: str) -> Any:
    """Return the annotation of a parameter; in the package's own modules, which take anything, the one torch has."""
    found = inspect.get_annotations(function).get(name)
    home = getattr(function, "__module__", None) or ""
    if found not in ("Any", Any) or not home.startswith(("retrograd.nn.", "torch.nn.")):
        return found
    return None if home.endswith(".container") else Tensor


def _parameter_proxy(tracer: Tracer, name: str, value: Any, node: Any) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, value)


def _with_plain_parameters(function: Any, count: int) -> FunctionType:
    """Return a function whose `*args`, `**kwargs` and keyword-only parameters are ordinary ones, to be given a proxy each."""
    code = function.__code__.replace(
        co_flags=function.__code__.co_flags & ~VARIADIC, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__annotations__ = function.__annotations__
    return made


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


def wrap(fn_or_name: Any) -> Any:
    """Declare, at the top of a module, that calls of a function become one node, not what the function does."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    if isinstance(fn_or_name, str) and name not in frame.f_globals and not hasattr(builtins, name):
        # torch notices this when a program is traced; there the place of the mistake is gone.
        raise NameError(f"wrap: there is no function {name!r} here")
    _patching._wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


@guarded
def symbolic_trace(root: nn.Module | Callable[..., Any], concrete_args: Any = None) -> Any:
    """Return a `GraphModule` that does what a module or function does.

    `concrete_args` fixes arguments, so that branches on them can be followed.
    """
    from .graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


guard_methods(Tracer)
