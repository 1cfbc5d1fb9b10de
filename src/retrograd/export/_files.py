"""Files of exported programs: the graph, the signature and the state, in a record of our own."""

from __future__ import annotations

from typing import Any

from .._tracebacks import guard_public as _guard_public
from ..fx.graph_module import GraphModule
from ..jit._archives import Archive, graph_nodes, graph_of_nodes
from ..jit._sources import Texts
from ..utils._pytree_paths import treespec_dumps, treespec_loads
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature

ARCHIVE = Archive("retrograd.export")


def write(program: ExportedProgram, f: Any, extra_files: dict[str, Any] | None) -> None:
    """Write a program to a file."""
    texts = Texts()
    spec = program.call_spec
    signature = program.module_call_graph[0].signature
    record = {
        "nodes": graph_nodes(program.graph, texts),
        "modules": [
            node.meta.get("nn_module_stack") and list(node.meta["nn_module_stack"]) for node in program.graph.nodes
        ],
        "parts": {name: graph_nodes(part.graph, texts) for name, part in program.graph_module.named_children()},
        "signature": program.graph_signature,
        "state": program.state_dict,
        "constants": texts.records(program.constants),
        "ranges": program.range_constraints,
        "paths": [entry.fqn for entry in program.module_call_graph],
        "specs": (treespec_dumps(spec.in_spec), treespec_dumps(spec.out_spec)),
        "names": signature.forward_arg_names if signature is not None else None,
        "examples": program.example_inputs,
        "guards": program._guards,
    }
    ARCHIVE.write(f, record, texts.table, extra_files)


def read(f: Any, extra_files: dict[str, Any] | None) -> ExportedProgram:
    """Read a program from a file."""
    from ..jit._sources import restored

    record, texts = ARCHIVE.read(f, None, extra_files)
    graph = graph_of_nodes(record["nodes"], texts)
    for node, keys in zip(graph.nodes, record["modules"], strict=True):
        if keys:
            node.meta["nn_module_stack"] = {key: (key.partition("@")[0], None) for key in keys}
    in_spec, out_spec = map(treespec_loads, record["specs"])
    whole = ModuleCallSignature([], [], in_spec, out_spec, record["names"])
    first, *paths = record["paths"]
    parts = {
        name: GraphModule({}, graph_of_nodes(nodes, texts)) for name, nodes in record.get("parts", {}).items()
    }  # files of before have none
    return ExportedProgram(
        parts,
        graph,
        record["signature"],
        record["state"],
        record["ranges"],
        [ModuleCallEntry(first, whole), *map(ModuleCallEntry, paths)],
        record["examples"],
        {name: restored(value, texts) for name, value in record["constants"].items()},
        guards=record["guards"],
    )


_guard_public(globals())
