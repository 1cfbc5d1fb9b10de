"""`ExportedProgram`: a graph without state, its state, and how it is called."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from .. import nn
from .._tracebacks import guard_methods
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..utils import _pytree as pytree
from .dynamic_shapes import ValueRange
from .graph_signature import ExportGraphSignature, InputKind

Guard = tuple[str, str, Any]


class ModuleCallSignature(NamedTuple):
    """How a module of the program is called."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


class ModuleCallEntry(NamedTuple):
    """A module of the program, by its path."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(NamedTuple):
    """How arguments and results are put together."""

    in_spec: Any
    out_spec: Any


class _GuardsFn(nn.Module):
    """Checks that inputs are such that the program was traced for them."""

    def __init__(self, guards: list[Guard], names: list[str]) -> None:
        super().__init__()
        self.guards, self.names = guards, names

    def forward(self, *inputs: Any) -> None:
        given = dict(zip(self.names, inputs, strict=True))
        for name, question, answer in self.guards:
            value = given[name]
            if question == "value":
                holds, shown = value == answer, f"{name} == {answer!r}"
            elif question.startswith("range"):
                _, low, high = answer
                dim = int(question.split()[1])
                size = value.size()[dim]
                holds = low <= size <= high
                shown = f"{name}.size()[{dim}] {f'>= {low}' if size < low else f'<= {high}'}"
            elif question.startswith("same"):
                holds, shown = _have_the_same_root(given, *answer)
            else:
                dim = int(question[question.index("[") + 1 : -1])
                holds, shown = value.size()[dim] == answer, f"{name}.{question} == {answer}"
            if not holds:
                raise AssertionError(f"Guard failed: {shown}")


def _have_the_same_root(given: dict[str, Any], one: Any, other: Any) -> tuple[bool, str]:
    """Tell whether two sizes, each `factor * root + start`, are of the same root, and how that is written."""
    if other[2:] != (1, 0):
        one, other = other, one  # the size that is the root itself, if one is, stands on the right
    (name, dim, factor, start), (base, base_dim, base_factor, base_start) = one, other
    size, base_size = given[name].size()[dim], given[base].size()[base_dim]
    shown, right = f"{name}.size()[{dim}]", f"{base}.size()[{base_dim}]"
    if (base_factor, base_start) == (1, 0):
        right = f"{factor} * {right}" if factor != 1 else right
        shown = f"{shown} == {start} + {right}" if start else f"{shown} == {right}"
    else:
        shown = f"({shown} - {start}) / {factor} == ({right} - {base_start}) / {base_factor}"
    return (size - start) * base_factor == (base_size - base_start) * factor, shown


class ExportedModule(GraphModule):
    """An exported program as a module: it takes what the module that was exported takes, in the same structure."""

    _call: CallSpec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        spec = self._call.in_spec
        names = spec.children_specs[1].context
        if set(kwargs) != set(names):
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {list(names)}"
            )
        kwargs = {name: kwargs[name] for name in names}
        leaves, given = pytree.tree_flatten((args, kwargs))
        if given != spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{spec}\nbut actually got inputs with tree spec of: "
                f"\n{given}.\nPlease check that the inputs have the same number and type of args and kwargs as the ones you used when "
                "tracing."
            )
        return pytree.tree_unflatten(list(super().__call__(*leaves)), self._call.out_spec)

    def train(self, mode: bool = True) -> NoReturn:
        """Refuse: the mode is fixed."""
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> NoReturn:
        """Refuse: the mode is fixed."""
        raise NotImplementedError("Calling eval() is not supported yet.")


class ExportedProgram:
    """What `export` returns. `module()` gives a module that runs."""

    def __init__(
        self,
        root: Any,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[str, ValueRange],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        guards: list[Guard] | None = None,
    ) -> None:
        self._graph_module = GraphModule(root if root is not None else {}, graph)
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, constants or {}
        self._guards = guards or []

    graph_module = property(
        lambda self: self._graph_module, doc="The graph as a module, whose state is among its inputs."
    )
    graph = property(lambda self: self._graph_module.graph, doc="The graph, whose first placeholders are the state.")
    graph_signature = property(lambda self: self._graph_signature, doc="What the inputs and outputs of the graph are.")
    state_dict = property(lambda self: self._state_dict, doc="Parameters and buffers by name.")
    range_constraints = property(lambda self: self._range_constraints, doc="The sizes that the dims may have.")
    module_call_graph = property(lambda self: self._module_call_graph, doc="The modules of the program.")
    example_inputs = property(lambda self: self._example_inputs, doc="The inputs for which it was traced.")
    constants = property(lambda self: self._constants, doc="Tensors that are neither parameters nor in the state.")
    tensor_constants = constants
    dialect = "TRAINING"

    @property
    def call_spec(self) -> CallSpec:
        """How arguments and results are put together."""
        signature = self._module_call_graph[0].signature
        if signature is None:
            raise AssertionError("the first module is the program")
        return CallSpec(signature.in_spec, signature.out_spec)

    def parameters(self) -> Iterator[Any]:
        """Run over the parameters."""
        for _, value in self.named_parameters():
            yield value

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Run over the parameters with their names."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Any]:
        """Run over the buffers."""
        for _, value in self.named_buffers():
            yield value

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Run over the buffers with their names."""
        for name in self._graph_signature.buffers:
            yield name, self._state_dict[name] if name in self._state_dict else self._constants[name]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """Return a module that has the state as its own and takes arguments as the exported one did."""
        graph, attributes = self._with_state()
        if check_guards and self._guards:
            inputs = [node for node in graph.nodes if node.op == "placeholder"]
            attributes["_guards_fn"] = _GuardsFn(self._guards, [node.target for node in inputs])
            after = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")][-1]
            with graph.inserting_after(after):
                graph.call_module("_guards_fn", tuple(inputs))
        made = ExportedModule(attributes, graph)
        made.__dict__["_call"] = self.call_spec
        forget_in_state(made, [name for name in attributes if name not in self._state_dict])
        return made

    def _with_state(self) -> tuple[Graph, dict[str, Any]]:
        """Return a copy of the graph in which state is read from attributes, and those attributes."""
        graph = copy.deepcopy(self.graph)
        by_name = {node.name: node for node in graph.nodes}
        attributes: dict[str, Any] = dict(self._graph_module.named_children())
        for spec in self._graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT or spec.target is None:
                continue
            node: Node = by_name[spec.arg.name]
            attributes[spec.target] = self._state_dict.get(spec.target, self._constants.get(spec.target))
            with graph.inserting_before(node):
                read = graph.get_attr(spec.target)
            node.replace_all_uses_with(read)
            graph.erase_node(node)
        _reads_after_inputs(graph)
        return graph, attributes

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """Return the program with operations of aten in the place of torch's functions; `decomp_table` takes some of them apart."""
        from ._operations import in_operations

        if any(question.startswith("range") for _, question, _ in self._guards) or self._range_constraints:
            raise NotImplementedError(
                "ExportedProgram.run_decompositions: the program has sizes that may change, and a graph of operations of aten would "
                "fix them\nHint: export without dynamic_shapes, or use program.module(), whose graph calls torch's functions."
            )
        return in_operations(self, decomp_table)

    def validate(self) -> None:
        """Check that the graph is sound."""
        self.graph.lint()

    def _update(self, graph_module: GraphModule, graph_signature: Any, *, state_dict: Any = None) -> ExportedProgram:
        made = copy.copy(self)
        made._graph_module, made._graph_signature = graph_module, graph_signature
        made._state_dict = self._state_dict if state_dict is None else state_dict
        return made

    def __str__(self) -> str:
        body = self._graph_module.print_readable(print_output=False)
        inner = "\n".join(f"    {line}" if line.strip() else "" for line in body.split("\n"))
        words = "\n".join(f"    {line}" if line else "" for line in str(self._graph_signature).strip("\n").split("\n"))
        return f"ExportedProgram:\n{inner}\nGraph signature: \n{words}\n    \nRange constraints: {self._range_constraints}\n"


def forget_in_state(root: nn.Module, names: list[str]) -> None:
    """Let buffers not be in the state of a module: constants of the program, and what was not in it before."""
    for name in names:
        path, _, last = name.rpartition(".")
        home = root.get_submodule(path)
        if last in home._buffers:
            home._non_persistent_buffers_set.add(last)


def _reads_after_inputs(graph: Graph) -> None:
    """Put the placeholders before the reads of state: a function has its parameters first."""
    reads = graph.find_nodes(op="get_attr")
    for node in graph.find_nodes(op="placeholder") if reads else ():
        reads[0].prepend(node)


def default_decompositions() -> dict[Any, Any]:
    """Return how operations are taken apart: they are not."""
    return {}


guard_methods(ExportedModule, "__call__", "train", "eval")
guard_methods(ExportedProgram)
