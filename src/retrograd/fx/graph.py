"""`Graph`: a function as a list of nodes, which programs build, read and change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from .._tracebacks import guard_methods
from .._warnings import warn
from ._codegen import CodeGen, PythonCode, TransformCodeFunc, _PyTreeCodeGen, _PyTreeInfo
from ._namespace import _is_magic, _Namespace, _snake_case
from ._operators import inplace_methods, magic_methods, reflectable_magic_methods
from .node import Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from .graph_module import GraphModule

_legal_ops = dict.fromkeys(["call_function", "call_method", "get_attr", "call_module", "placeholder", "output"])


class _InsertPoint:
    """A block inside which new nodes go to a certain place."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.orig_insert


class _node_list:  # noqa: N801 - torch's name
    """The nodes of a graph, in order. Nodes may be added and erased while it is read."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = node = self.graph._root
        while (node := getattr(node, self.direction)) is not root:
            if not node._erased:
                yield node

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """A function as a list of nodes: placeholders, calls, and one output."""

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen: CodeGen = CodeGen()

    @property
    def owning_module(self) -> GraphModule | None:
        """The module whose `forward` this graph is."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    # Reading

    @property
    def nodes(self) -> _node_list:
        """The nodes, in the order in which they run."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the last node, which gives the result."""
        node = self._root.prev
        if node.op != "output":
            raise AssertionError(f"Expected output node, got {node.op}")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes of a kind, for `call_function` those of one target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # Building

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the place where nodes are being inserted, by default at the end."""
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not a valid op")
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(unique, node)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument of the function."""
        return self.create_node(
            "placeholder", name, () if default_value is ... else (default_value,), {}, None, type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a read of an attribute of the owning module, such as a parameter."""
        if self.owning_module is not None and attribute_at(self.owning_module, qualified_name) is None:
            warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer"
            )
        return self.create_node("get_attr", qualified_name, (), {}, None, type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a submodule of the owning module."""
        if self.owning_module is not None and attribute_at(self.owning_module, module_name) is None:
            warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule"
            )
        return self.create_node("call_module", module_name, args, kwargs, None, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, None, type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the end: what the function returns."""
        return self.create_node("output", "output", (result,), {}, None, type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Add a copy of a node of another graph; `arg_transform` gives the nodes here for those there."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("node_copy: arg_transform must keep args a tuple and kwargs a dict")
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of a graph but its output; return what that output was, in terms of the copies."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        values: dict[Node, Node] = {}
        output = made.graph_copy(self, values, return_output_node=True)
        made._codegen = self._codegen
        if output is not None:
            result, old = output
            node = made.output(result, type_expr=getattr(old, "type", None))
            node.meta = copy(old.meta)
            values[old] = node
        memo[id(self)] = made
        for old, new in values.items():
            memo[id(old)] = new
        return made

    # Changing

    def erase_node(self, to_erase: Node) -> None:
        """Take a node that nobody uses out of the graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warn(f"erase_node({to_erase}) on an already erased node")
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True  # who is reading the list may still hold it
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase._args, lambda n: None), map_arg(to_erase._kwargs, lambda n: None))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Return a block inside which new nodes go before `n`, by default to the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Return a block inside which new nodes go after `n`, each behind the last; by default to the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        place = n

        def insert(node: Node) -> None:
            nonlocal place
            place.append(node)
            place = node

        return _InsertPoint(self, insert)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes that nobody uses and that do nothing else; tell whether there were any."""
        self.lint()
        impure = is_impure_node if is_impure_node is not None else Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        for graph in _graphs_called_by(self):
            changed = graph.eliminate_dead_code(is_impure_node) or changed
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    def lint(self) -> None:
        """Raise an error if a node uses one of another graph or of later, names clash, or targets do not exist."""
        names: set[str] = set()
        before: set[Node] = set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                        "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
                        f"values\n{self}"
                    )
                if arg not in before:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in the "
                        f"graph are topologically ordered\n{self}"
                    )
            before.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        if node.op not in ("get_attr", "call_module"):
            return
        from ..nn import Module

        value: Any = self.owning_module
        parts = node.target.split(".")
        for i, part in enumerate(parts):
            value = getattr(value, part, None)
            seen = ".".join(parts[:i])
            if value is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {seen}"
                )
            if node.op == "call_module" and not isinstance(value, Module):
                raise RuntimeError(f"Node {node} target {node.target} {part} of {seen} does not reference an nn.Module")

    # As text

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """Write the graph as Python source; `root_module` is what the module is called in it, usually `self`."""
        namespace = _Namespace()
        for node in self.nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose=verbose)
        finally:
            for node in self.nodes:
                node._repr_fn = None

    def __str__(self) -> str:
        lines = filter(None, (node.format_node([]) for node in self.nodes))
        return "graph():" + "".join(f"\n    {line}" for line in lines)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [[node.op, node.name, str(node.target), str(node.args), str(node.kwargs)] for node in self.nodes]
        headers = ["opcode", "name", "target", "args", "kwargs"]
        widths = [max(len(row[i]) for row in [headers, *rows]) for i in range(5)]
        for row in [headers, ["-" * width for width in widths], *rows]:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def set_codegen(self, codegen: CodeGen) -> None:
        """Choose how the graph is written as source."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]) -> Any:
        """Let a function change the lines of the source; as a block, only inside it."""
        previous = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(previous)

        @contextmanager
        def restoring() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = previous

        return restoring()

    def process_inputs(self, *args: Any) -> Any:
        """Turn the arguments of the function into those of the placeholders."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Turn what the output node has into what the function returns."""
        return self._codegen.process_outputs(out)

    def _target_to_str(self, target: Target | None) -> str:
        if callable(target):
            name = getattr(target, "__name__", type(target).__name__)
        else:
            name = str(target)
            if _is_magic(name):
                name = name[2:-2]
        return _snake_case(name)


def _graphs_called_by(graph: Graph) -> Iterator[Graph]:
    """Return the graphs of submodules that the nodes of a graph call."""
    module = graph.owning_module
    if module is None:
        return
    for node in graph.find_nodes(op="call_module"):
        inner = getattr(module.get_submodule(node.target), "graph", None)
        if isinstance(inner, Graph):
            yield inner


def attribute_at(module: Any, path: str) -> Any:
    """Return what stands at a path below a module, None if nothing does."""
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


guard_methods(Graph)

__all__ = [
    "CodeGen",
    "Graph",
    "PythonCode",
    "_PyTreeCodeGen",
    "_PyTreeInfo",
    "inplace_methods",
    "magic_methods",
    "reflectable_magic_methods",
]
