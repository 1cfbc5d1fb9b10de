"""An exported program in operations of aten: its graph is run once more, and what lies below torch's functions is recorded."""

from __future__ import annotations

from typing import Any

from ..fx.experimental.proxy_tensor import make_fx
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..tensor import Tensor
from ..utils import _pytree as pytree
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputSpec,
    TensorArgument,
)


def in_operations(program: ExportedProgram, table: Any) -> ExportedProgram:
    """Return a program whose graph has operations of aten; `table` says how some of them are taken apart."""
    if program.example_inputs is None:
        raise RuntimeError("the program has no example inputs, with which its graph would be run")
    specs = program.graph_signature.input_specs
    given = iter(pytree.tree_leaves(program.example_inputs))
    values = [next(given) if spec.kind is InputKind.USER_INPUT else _state(program, spec) for spec in specs]
    kept = [i for i, value in enumerate(values) if isinstance(value, Tensor)]

    def on_tensors(*tensors: Any) -> Any:
        every = list(values)
        for i, tensor in zip(kept, tensors, strict=True):
            every[i] = tensor
        return program.graph_module(*every)

    copies = [values[i].detach().clone().requires_grad_(values[i].requires_grad) for i in kept]
    recorded = make_fx(on_tensors, decomposition_table=dict(table or {}))(*copies)
    graph = recorded.graph
    made_of = dict(zip(kept, graph.find_nodes(op="placeholder"), strict=True))
    begin = next(node for node in graph.nodes if node.op != "placeholder")
    inputs, constants = list(specs), dict(program.constants)
    for i, spec in enumerate(specs):
        node = made_of.get(i)
        if node is None:  # a fixed value, which the caller still gives
            with graph.inserting_before(begin):
                node = graph.placeholder(spec.arg.name)
        node.name = node.target = spec.arg.name
        begin.prepend(node)  # in the order of the signature
    first = next(iter(graph.nodes))
    for node in graph.find_nodes(op="get_attr"):
        constants[node.target] = getattr(recorded, node.target)
        with graph.inserting_before(first):
            lifted = graph.placeholder(f"c_{node.target}")
        inputs.insert(0, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(lifted.name), node.target))
        node.replace_all_uses_with(lifted)
        graph.erase_node(node)
    results = graph.output_node().args[0]
    outputs = [
        OutputSpec(
            old.kind, TensorArgument(each.name) if isinstance(each, Node) else ConstantArgument("", each), old.target
        )
        for old, each in zip(program.graph_signature.output_specs, results, strict=True)
    ]
    made = program._update(GraphModule({}, graph), ExportGraphSignature(inputs, outputs))
    made._constants = constants
    return made


def _state(program: ExportedProgram, spec: InputSpec) -> Any:
    name = spec.target or ""
    return program.state_dict.get(name, program.constants.get(name))
