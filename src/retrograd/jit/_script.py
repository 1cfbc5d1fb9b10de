"""`jit.script`: functions and modules with the face of compiled ones, which run as the Python programs that they are.

Note [Two faces of a scripted module]
A scripted module is no instance of the class that was scripted, but its methods must run with one: they call `super()`, and ask
`isinstance`. So it has a second object of that class over the same `__dict__`: what one of them sets, the other has. Its children are
scripted modules in turn.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import textwrap
from collections.abc import Callable, Iterator
from pickle import PickleError
from types import FunctionType, MethodType
from typing import Any, Final, NoReturn, get_origin

from .._generated import compiled
from .._tracebacks import guard_public
from ..nn.modules.module import Module
from . import _schema
from ._marks import is_ignored_fn, is_tracing, recordings, scripting


class NoGraphError(NotImplementedError, AttributeError):
    """A scripted program is Python here; only traced ones have a graph."""


def _no_graph(what: str) -> NoReturn:
    raise NoGraphError(
        f"{what} has no graph: retrograd runs scripted programs as Python, without compiling them\n"
        "Hint: torch.jit.trace and torch.fx.symbolic_trace record graphs."
    )


class _Saved:
    """What can be written to a file."""

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Write it to a file."""
        from ._serialization import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """Return what `save` writes."""
        file = io.BytesIO()
        self.save(file, _extra_files)
        return file.getvalue()


class _Callable:
    """A function with a signature: it takes what that says, and runs."""

    schema: Any
    _function: Callable[..., Any]

    @property
    def code(self) -> str:
        """The source."""
        return source_of(self._function)

    def _run(self, is_scripted: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.schema is not None:
            args, kwargs = self.schema.bind(args, kwargs), {}
        with scripting(is_scripted):
            return self._function(*args, **kwargs)


class ScriptFunction(_Saved, _Callable):
    """A scripted or traced function."""

    def __init__(self, function: Callable[..., Any], schema: Any = None, graph: Any = None) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.name: str = function.__name__
        self.schema = schema if schema is not None else _schema.of_function(function, self.name)
        self._graph = graph

    @property
    def qualified_name(self) -> str:
        """The name under which torch keeps the function."""
        home = self._function.__module__
        return f"__torch__.{self.name}" if home == "__main__" else f"__torch__.{home}.{self.name}"

    @property
    def graph(self) -> Any:
        """The graph of a traced function, as one of torch.fx."""
        return self._graph if self._graph is not None else _no_graph(f"the scripted function '{self.name}'")

    inlined_graph = graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """Return the graph for these arguments."""
        return self.graph

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if recordings:
            from ..fx._recording import has_recorded

            if has_recorded((args, kwargs)):  # one node: its branches stay
                return recordings[-1].run(self, "call_function", self, args, kwargs)
        return self._run(self._graph is None, args, kwargs)

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction object at {id(self):#x}>"

    def __reduce__(self) -> NoReturn:
        raise PickleError("ScriptFunction cannot be pickled")

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptFunction:
        return self


class ScriptMethod(_Callable):
    """A method of a scripted or traced module."""

    def __init__(
        self, owner: ScriptModule, name: str, function: Callable[..., Any], schema: Any, is_scripted: bool
    ) -> None:
        self.owner, self.name, self.schema = owner, name, schema
        self.__name__ = name
        self._function, self._is_scripted = function, is_scripted

    @property
    def graph(self) -> Any:
        """The graph of a traced method."""
        return self.owner.graphs().get(self.name) or _no_graph(f"the scripted method '{self.name}'")

    inlined_graph = graph

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(self._is_scripted, args, kwargs)

    def __repr__(self) -> str:
        return f"<torch.ScriptMethod object at {id(self):#x}>"


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a subclass of ScriptModule: it runs as a scripted program."""

    @functools.wraps(fn)
    def method(*args: Any, **kwargs: Any) -> Any:
        with scripting(True):
            return fn(*args, **kwargs)

    return method


class ScriptModule(_Saved, Module):
    """The base of scripted and traced modules; a subclass marks its methods by `script_method`."""

    is_leaf_of_traces = True  # to a trace around it

    def graphs(self) -> dict[str, Any]:
        """Return the graphs of traced methods."""
        return {}

    @property
    def original_name(self) -> str:
        """The name of the class in Python."""
        return type(self).__name__

    @property
    def graph(self) -> Any:
        """The graph of `forward`, as one of torch.fx, if it was traced."""
        return self.graphs().get("forward") or _no_graph(f"the scripted module {self.original_name}")

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return source_of(getattr(self.forward, "_function", self.forward))

    @property
    def code_with_constants(self) -> tuple[str, dict[str, Any]]:
        """The source of `forward`, and the tensors that it has from elsewhere."""
        return self.code, {}

    def define(self, src: str) -> None:
        """Give the module methods by their source."""
        scope: dict[str, Any] = {}
        import retrograd as torch

        exec(compiled(textwrap.dedent(src), "<torch.jit.ScriptModule.define>"), {"torch": torch}, scope)
        for name, function in scope.items():
            object.__setattr__(self, name, MethodType(script_method(function), self))


class _Forward:
    """The attribute `forward`: an object that knows its signature; of the class, a function."""

    def __get__(self, module: Any, owner: type) -> Any:
        return module._forward() if module is not None else Module.forward


class FacedModule(ScriptModule):
    """A module over the state of one of another class. See Note [Two faces of a scripted module]."""

    _python_class: type | None
    _graphs: dict[str, Any]

    @classmethod
    def over(cls, module: Module, child_class: type[FacedModule] | None = None) -> Any:
        """Return the face of a module; parameters, buffers and attributes are shared."""
        return cls._over(module, child_class or cls, {})

    @classmethod
    def _over(cls, module: Module, child_class: type[FacedModule], memo: dict[int, Any]) -> Any:
        if isinstance(module, ScriptModule):
            return module
        if id(module) in memo:
            return memo[id(module)]
        made: Any = object.__new__(cls)
        memo[id(module)] = made
        state = {name: copy.copy(value) if name in _OWN_TABLES else value for name, value in vars(module).items()}
        state["_modules"] = {
            name: None if child is None else child_class._over(child, child_class, memo)
            for name, child in module._modules.items()
        }
        made.__dict__.update(state)
        made.__dict__["_python_class"], made.__dict__["_graphs"] = type(module), {}
        return made

    def _face(self) -> Any:
        if self._python_class is None:
            raise NotImplementedError(
                f"this part of a loaded program ('{self.original_name}') cannot be called by itself\n"
                "Hint: a file of a traced module has the graph of the whole, and the state of its parts."
            )
        made: Any = object.__new__(self._python_class)
        made.__dict__ = self.__dict__
        return made

    def graphs(self) -> dict[str, Any]:
        """Return the graphs of traced methods."""
        return {name: held.graph for name, held in self._graphs.items()}

    @property
    def original_name(self) -> str:
        """The name of the class in Python."""
        return self.__dict__.get("_original_name") or self._python_class.__name__  # type: ignore[union-attr]

    def _method(self, name: str) -> Any:
        """Return a method as one of a compiled module."""
        held = self._graphs.get(name)
        if held is not None:
            return ScriptMethod(self, name, MethodType(held.function, self), held.schema, is_scripted=False)
        bound = getattr(self._face(), name)
        schema = _schema.of_function(inspect.unwrap(getattr(bound, "__func__", bound)), name, self.original_name)
        return ScriptMethod(self, name, bound, schema, is_scripted=not is_ignored_fn(bound))

    def _forward(self) -> Any:
        kind: Any = self._python_class
        if "forward" not in self._graphs and kind is not None and kind.forward is Module.forward:
            raise NotImplementedError(f"{self.original_name} has no forward")
        return self._method("forward")

    forward: Any = _Forward()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in self.__dict__.get("_graphs", ()):
                return self._method(name)
            kind = self.__dict__.get("_python_class")
            if kind is None or name.startswith("__") or not hasattr(kind, name):
                raise AttributeError(f"'{_public_name(self)}' object has no attribute '{name}'") from None
        found = inspect.getattr_static(kind, name)
        if isinstance(found, FunctionType) and not hasattr(Module, name):
            return self._method(name)
        return getattr(self._face(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self.__dict__.get("_python_class")
        if kind is not None and _is_constant(kind, name) and name in self.__dict__:
            raise RuntimeError(f"Can't set constant '{name}' which has value:{self.__dict__[name]}")
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        """Name the class in Python."""
        return f"original_name={self.original_name}"

    def __len__(self) -> int:
        return len(self._face())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self._face())

    def __getitem__(self, key: Any) -> Any:
        return self._face()[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._face()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._python_class)})

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError(
            f"Tried to serialize object __torch__.{self.original_name} which does not have a __getstate__ method defined!\n"
            "Hint: write scripted and traced modules by torch.jit.save."
        )

    def __copy__(self) -> Any:
        made = object.__new__(RecursiveScriptModule)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = object.__new__(RecursiveScriptModule)
        memo[id(self)] = made
        held = {name: self.__dict__[name] for name in ("_python_class", "_graphs")}
        memo.update({id(value): value for value in held.values()})
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made


_OWN_TABLES = frozenset(
    """_parameters _buffers _non_persistent_buffers_set _backward_pre_hooks _backward_hooks _forward_hooks
    _forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks _forward_pre_hooks_with_kwargs _state_dict_hooks
    _state_dict_pre_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks""".split()  # noqa: SIM905
)


class RecursiveScriptModule(FacedModule):
    """A scripted module."""


class FrozenModule(RecursiveScriptModule):
    """A module that has nothing but what it computes: its parameters are constants, in a copy that nobody sees."""

    @classmethod
    def of(cls, module: ScriptModule, kept: list[str]) -> Any:
        """Return a frozen copy of a module."""
        inner = copy.deepcopy(module)
        for parameter in inner.parameters():
            parameter.requires_grad_(False)
        made = object.__new__(cls)
        Module.__init__(made)
        del made.__dict__["training"]
        made.__dict__.update(_python_class=None, _graphs={}, _original_name=module.original_name, _inner=[inner])
        made.__dict__["_kept"] = frozenset(kept)
        return made

    def _forward(self) -> Any:
        return self._inner[0].forward

    def __copy__(self) -> Any:
        return self.of(self._inner[0], sorted(self._kept))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.__copy__()

    def graphs(self) -> dict[str, Any]:
        """Return the graphs of traced methods."""
        return self.__dict__["_inner"][0].graphs()  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_kept", ()):
            return getattr(self.__dict__["_inner"][0], name)
        raise AttributeError(f"'RecursiveScriptModule' object has no attribute '{name}'")

    def _get_name(self) -> str:
        return "RecursiveScriptModule"


def _is_constant(kind: type, name: str) -> bool:
    for base in kind.__mro__:
        annotation = vars(base).get("__annotations__", {}).get(name)
        if (
            annotation is Final
            or get_origin(annotation) is Final
            or (isinstance(annotation, str) and annotation.rpartition("[")[0].endswith("Final"))
        ):
            return True
        if name in vars(base).get("__constants__", ()) and base.__module__.partition(".")[0] != "retrograd":
            return True
    return False


def _public_name(module: Any) -> str:
    return "RecursiveScriptModule" if isinstance(module, FacedModule) else type(module).__name__


def source_of(function: Any) -> str:
    """Return the source of a function, in which it begins at the first column."""
    written = getattr(function, "_source", None)
    if written is not None:
        return str(written)
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(function, "__func__", function))))
    except (OSError, TypeError) as error:
        name = getattr(function, "__name__", str(function))
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in order to carry out compilation, make "
            f"sure original .py files are available.\nHint: '{name}' was not read from a file."
        ) from error


def script(
    obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:  # torch's names, private ones included
    """Return a function or module with the face of a compiled one; classes and containers are returned as they are.

    Args:
        obj: a function, a module, or a class
        optimize: accepted
        example_inputs: accepted

    Example:
        >>> scripted = torch.jit.script(nn.Linear(2, 1))
        >>> scripted.original_name, scripted(torch.ones(3, 2)).shape
        ('Linear', torch.Size([3, 1]))
    """
    if isinstance(obj, (ScriptModule, ScriptFunction)):
        return obj
    if isinstance(obj, Module):
        convert = getattr(obj, "__prepare_scriptable__", None)
        return RecursiveScriptModule.over(convert() if convert is not None else obj)
    if isinstance(obj, (dict, list, type)):
        return obj
    if isinstance(obj, (int, float, str, bool, complex, bytes)) or obj is None:
        raise TypeError(f"{type(obj)} is a built-in class")
    function = inspect.unwrap(obj) if isinstance(obj, FunctionType) else obj
    if getattr(function, "__name__", "") == "<lambda>":
        code = function.__code__
        raise RuntimeError(f"Expected a single top-level function: {code.co_filename}:{code.co_firstlineno}")
    if not callable(obj):
        raise TypeError(f"torch.jit.script takes functions, modules and classes, not an object of {type(obj)}")
    if not hasattr(obj, "__name__"):
        return script(MethodType(type(obj).__call__, obj))
    return ScriptFunction(obj)


class CompilationUnit:
    """Functions from source."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, ScriptFunction] = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add the functions of a text."""
        import typing

        import retrograd as torch

        names = {name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple", "Union")}
        scope: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor, **names, "__name__": "__torch__"}
        known = set(scope)
        exec(compiled(textwrap.dedent(lang), "<torch.jit.CompilationUnit>"), scope)
        for name, value in scope.items():
            if name not in known and isinstance(value, FunctionType):
                value._source = lang  # type: ignore[attr-defined]
                self._functions[name] = ScriptFunction(value)

    def __getattr__(self, name: str) -> ScriptFunction:
        if name not in self.__dict__.get("_functions", {}):
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return self._functions[name]


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function be scripted when it is called inside a trace: its branches stay in the graph."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return script(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)

    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Return a copy of a module in eval mode that has no parameters and no attributes, only what it computes."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    for name in preserved_attrs or ():
        if not hasattr(mod, name):
            raise RuntimeError(f"Unknown name: {name}")
    return FrozenModule.of(mod, preserved_attrs or [])


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """Return a module that is frozen; nothing else makes it quicker."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    return freeze(mod.eval(), other_methods) if hasattr(mod, "training") else mod


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Leave a frozen module as it is."""


guard_public(globals())
