"""`GraphModule`: a module whose `forward` is the Python code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .. import nn
from .._generated import compiled
from .._tracebacks import guard_methods, hide
from ..tensor import Tensor
from ._codegen import PythonCode, _PyTreeCodeGen, builtin_globals
from .graph import Graph
from .node import Node, map_aggregate, map_arg

_numbers = itertools.count()
KEPT_HOOKS = [
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_replace_hooks",
    "_create_node_hooks",
    "_erase_node_hooks",
    "_deepcopy_hooks",
]


class GraphModule(nn.Module):
    """A module made from a graph. `code` is its source; after a change of the graph, `recompile` writes it again.

    Args:
        root: a module, or a dict, with what the graph reads
        graph: the program
        class_name: what the module is called

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> _ = graph.output(graph.call_function(torch.relu, (x,)))
        >>> torch.fx.GraphModule(nn.Module(), graph)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Make a class for each module: its `forward` is its own."""
        base = next(each for each in cls.__mro__ if not each.__dict__.get("_is_for_one_instance", False))
        own = type("GraphModuleImpl", (base,), {"_is_for_one_instance": True, "__module__": base.__module__})
        return super().__new__(own)

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            self.training = getattr(root, "training", self.training)
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda target: target.count(".")):  # the outer ones first
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., Any]] = []
        self._create_node_hooks: list[Callable[..., Any]] = []
        self._erase_node_hooks: list[Callable[..., Any]] = []
        self._deepcopy_hooks: list[Callable[..., Any]] = []

    @property
    def graph(self) -> Graph:
        """The graph. A new one is compiled at once."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python source of `forward`."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated!\nHint: call recompile().")
        return self._code

    def recompile(self) -> PythonCode:
        """Write `forward` from the graph again."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        written = self._graph.python_code(root_module="self")
        self._code = written.src
        self._lineno_map, self._prologue_start = written._lineno_map, written._prologue_start
        own = type(self)
        own.forward = _function_from(written.src, written.globals, codegen._func_name)
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return written

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            if frames and frames[-1].filename == type(self).forward.__code__.co_filename:
                print(_generated_place(frames[-1]), file=sys.stderr)
            hide(error)
            raise

    # Submodules

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a path, making modules on the way; False if something else stands there."""
        *path, last = target.split(".")
        home: nn.Module = self
        for part in path:
            inner = getattr(home, part, None)
            if inner is None:
                inner = nn.Module()
                setattr(home, part, inner)
            if not isinstance(inner, nn.Module):
                return False
            home = inner
        home.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take away the module at a path; False if there is none."""
        *path, last = target.split(".")
        home: Any = self
        for part in path:
            home = getattr(home, part, None)
            if not isinstance(home, nn.Module):
                return False
        if not isinstance(getattr(home, last, None), nn.Module):
            return False
        delattr(home, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the modules that no node calls or reads."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # Copies and files

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        root = nn.Module()
        state = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        root.__dict__.update(copy.deepcopy(state, memo))
        GraphModule.__init__(made, root, copy.deepcopy(self._graph, memo))
        for name, value in root.__dict__.items():  # what no node mentions is kept, too
            if name in ("_modules", "_parameters", "_buffers"):
                for key, each in value.items():
                    made.__dict__[name].setdefault(key, each)
            elif name in KEPT_HOOKS or name == "meta" or name not in made.__dict__:
                made.__dict__[name] = value
        for hook in self._deepcopy_hooks:
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = getattr(self, "meta", {})
        return made

    def __reduce__(self) -> Any:
        # The nodes are written one by one: as objects that hold each other they would nest as deep as the graph is long.
        state = {name: value for name, value in self.__dict__.items() if name not in ("_graph", "_code", "_lineno_map")}
        return _restored, (type(self).__name__, _records(self._graph), self._graph._codegen, state)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a Python package: its source, and its state in a file."""
        import retrograd as torch

        os.makedirs(folder, exist_ok=True)
        torch.save(self.state_dict(), os.path.join(folder, "state_dict.pt"))
        lines = [*(text for text, _ in builtin_globals().values()), "", "from torch.nn import *", "", ""]
        lines += [f"class {module_name}(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
        for name, module in self.named_children():
            file = f"{name}.pt"
            torch.save(module, os.path.join(folder, file))
            lines.append(f"        self.{name} = torch.load(r'{os.path.join(folder, file)}', weights_only=False)")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(
                    f"        self.register_buffer('{name}', torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))"
                )
        for name, parameter in self._parameters.items():
            if parameter is not None:
                empty = f"torch.empty({list(parameter.shape)}, dtype={parameter.dtype})"
                lines.append(f"        self.{name} = torch.nn.Parameter({empty})")
        lines.append(f"        self.load_state_dict(torch.load(r'{os.path.join(folder, 'state_dict.pt')}'))")
        body = "\n".join(f"    {line}" for line in self.code.strip("\n").splitlines())
        with open(os.path.join(folder, "module.py"), "w") as file_out:
            file_out.write("\n".join(lines) + f"\n\n{body}\n")
        with open(os.path.join(folder, "__init__.py"), "w") as file_out:
            file_out.write("from .module import *\n")

    # Words

    def __str__(self) -> str:
        return (
            f"{super().__str__()}\n\n{self._code}\n# To see more debug info, please use `graph_module.print_readable()`"
        )

    def print_readable(self, print_output: bool = True, include_stride: bool = False, **options: Any) -> str:
        """Print, and return, the source with the place of each node in the program."""
        written = self._graph.python_code("self", verbose=True).src.lstrip("\n")
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "\n".join(
            f"    {line}" if line.strip() else "" for line in written.split("\n")
        )
        inner = [
            child.print_readable(print_output=False) for child in self.children() if isinstance(child, GraphModule)
        ]
        text = "\n".join([text, *("\n".join(f"    {line}" for line in each.split("\n")) for each in inner)])
        if print_output:
            print(text)
        return text


def _function_from(source: str, globals: dict[str, Any], name: str) -> Callable[..., Any]:
    """Run source that defines a function; debuggers and tracebacks find its lines."""
    file = f"<eval_with_key>.{next(_numbers)}"
    table = dict(globals)
    exec(compiled(source, file), table)
    return table[name]  # type: ignore[no-any-return]


def _generated_place(frame: traceback.FrameSummary) -> str:
    lines = linecache.getlines(frame.filename)
    at = frame.lineno or 0
    before, after = "".join(lines[max(0, at - 3) : at]), "".join(lines[at : at + 2])
    place = f"Call using an FX-traced Module, line {at} of the traced Module's generated forward function:"
    return f"{place}\n{before}\n~~~~~~~~ <--- HERE\n{after}"


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # of `GraphModule.meta`


class _CodeOnlyModule(nn.Module):
    """A module that has what a dictionary has: libraries that copy a GraphModule make one of its copy's attributes."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


for _kind, _hooks in (
    ("replace_node", "_replace_hooks"),
    ("create_node", "_create_node_hooks"),
    ("erase_node", "_erase_node_hooks"),
    ("deepcopy", "_deepcopy_hooks"),
):
    setattr(GraphModule, f"_register_{_kind}_hook", lambda self, f, _hooks=_hooks: getattr(self, _hooks).append(f))
    setattr(GraphModule, f"_unregister_{_kind}_hook", lambda self, f, _hooks=_hooks: getattr(self, _hooks).remove(f))


def _copy_attr(source: nn.Module, destination: nn.Module, target: str) -> None:
    """Hand on the module or tensor at a path, making modules on the way."""
    *path, last = target.split(".")
    found: Any = source
    home: Any = destination
    for part in path:
        found, home = getattr(found, part), getattr(home, part, None)
        if found is home:
            return  # a module of which all is there already
    _assign_attr(getattr(found, last), destination, target)


def _assign_attr(value: Any, destination: nn.Module, target: str) -> None:
    *path, last = target.split(".")
    home: Any = destination
    for part in path:
        if getattr(home, part, None) is None:
            setattr(home, part, nn.Module())
        home = getattr(home, part)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        home.register_buffer(last, value)
    else:
        setattr(home, last, value)


class _Reference(str):
    """The name of a node, where a file has it instead of the node."""

    __slots__ = ()


def _records(graph: Graph) -> list[tuple[Any, ...]]:
    def refer(node: Node) -> Any:
        return _Reference(node.name)

    return [
        (node.op, node.name, node.target, map_arg(node.args, refer), map_arg(node.kwargs, refer), node.type)
        for node in graph.nodes
    ]


def graph_from_records(records: list[tuple[Any, ...]]) -> Graph:
    """Build the graph that `_records` wrote."""
    graph = Graph()
    nodes: dict[str, Node] = {}

    def found(value: Any) -> Any:
        return nodes[value] if isinstance(value, _Reference) else value

    for op, name, target, args, kwargs, kind in records:
        given = map_aggregate(args, found), dict(map_aggregate(kwargs, found))
        nodes[name] = graph.create_node(op, target, *given, name, kind)
    return graph


def _restored(name: str, records: list[tuple[Any, ...]], codegen: Any, state: dict[str, Any]) -> GraphModule:
    graph = graph_from_records(records)
    graph._codegen = codegen
    module = GraphModule.__new__(GraphModule)
    nn.Module.__init__(module)
    type(module).__name__ = name
    module.__dict__.update(state)
    module.graph = graph
    return module


def reduce_graph_module(body: dict[str, Any], import_block: str) -> nn.Module:
    """Make a module of its attributes and its source, which stands as `_code` (or `code`) among them, by tracing it again."""
    from ._symbolic_trace import Tracer

    source = import_block + (body.get("_code") or body["code"])
    base = body.get("_tracer_cls") or Tracer

    class KeepModules(base):  # type: ignore[misc,valid-type]
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    class CodeOnly(nn.Module):
        forward = _function_from(source, {}, "forward")

    root = CodeOnly()
    root.__dict__.update(body)
    graph = KeepModules().trace(root, **body.get("_tracer_extras", {}))
    graph._tracer_cls = base
    made = GraphModule(root, graph, body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made


guard_methods(GraphModule)
