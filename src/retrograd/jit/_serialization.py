"""Files of scripted and traced programs: their state, their graphs or their source, in a record of our own."""

from __future__ import annotations

import io
import pickle
from typing import Any

from .._tracebacks import guard_public as _guard_public
from ..fx.graph import Graph
from ..nn.modules.module import Module
from ._archives import Archive, content_of, graph_nodes, graph_of_nodes, is_torchscript
from ._script import FacedModule, RecursiveScriptModule, ScriptFunction, ScriptModule
from ._sources import Texts, restored
from ._trace import compiled, function_of

ARCHIVE = Archive("retrograd.jit")


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a scripted or traced function or module to a file. `jit.load` needs none of the program's own files."""
    if not isinstance(m, (ScriptFunction, ScriptModule)):
        raise AttributeError(
            f"'{type(m).__name__}' object has no attribute 'save_to_buffer'\n"
            "Hint: torch.jit.save takes what torch.jit.script and torch.jit.trace return."
        )
    texts = Texts()
    program = (
        function_record(m, texts) if isinstance(m, ScriptFunction) else _module_record(m, texts, {}, needs_class=True)
    )
    ARCHIVE.write(f, program, texts.table, _extra_files)


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> Any:
    """Read what `save` wrote; `_extra_files` gets the contents of the files that it names."""
    content = content_of(f)
    if is_torchscript(content, _extra_files):
        from ..tensor._files.archives import ArchiveReader
        from ..tensor._files.locations import restorer
        from ._torchscript import program_of

        return program_of(ArchiveReader(io.BytesIO(content), None), restorer(map_location))
    program, texts = ARCHIVE.read(io.BytesIO(content), map_location, _extra_files)
    if program["kind"] == "function":
        return function_from_record(program, texts)
    return _module_from_record(program, texts, {})


# ---- functions ----
def function_record(function: ScriptFunction, texts: Texts) -> dict[str, Any]:
    """Return a function as a file holds it."""
    if function._graph is None:
        return {"kind": "function", "source": texts.record(function._function)}
    holder: Any = function._function
    constants = vars(holder.__self__)
    return {"kind": "function", "graph": _graph_record(function._graph, function.schema, constants, texts)}


def function_from_record(record: dict[str, Any], texts: list[dict[str, Any]]) -> ScriptFunction:
    """Return a function from a file."""
    if "graph" in record:
        return function_of(_graph_from_record(record["graph"], texts))
    made = restored(record["source"], texts)
    return made if isinstance(made, ScriptFunction) else ScriptFunction(made)


# ---- graphs ----
def _graph_record(graph: Graph, schema: Any, constants: dict[str, Any], texts: Texts) -> dict[str, Any]:
    return {"nodes": graph_nodes(graph, texts), "schema": schema, "constants": texts.records(constants)}


def _graph_from_record(record: dict[str, Any], texts: list[dict[str, Any]]) -> Any:
    constants = {name: restored(value, texts) for name, value in record["constants"].items()}
    return compiled(graph_of_nodes(record["nodes"], texts), record["schema"], constants)


# ---- modules ----
TABLES = ("_parameters", "_buffers", "_non_persistent_buffers_set")
NOT_STATE = {*TABLES, "_modules", "_python_class", "_graphs", "_original_name", "_inner"}


def _module_record(
    module: ScriptModule, texts: Texts, memo: dict[int, dict[str, Any]], *, needs_class: bool
) -> dict[str, Any]:
    """Write a module; the parts of a traced one are their state alone, but for what its graph calls."""
    if id(module) in memo:
        return memo[id(module)]
    record = memo[id(module)] = {"kind": "module", "name": module.original_name}
    state = vars(module)
    if "_inner" in state:
        record["frozen"] = _module_record(state["_inner"][0], texts, memo, needs_class=True)
        record["kept"] = sorted(state["_kept"])
        return record
    graphs: dict[str, Any] = state.get("_graphs", {})
    kind = state.get("_python_class") if isinstance(module, FacedModule) else type(module)
    needs_class = needs_class and "forward" not in graphs
    called = {node.target for held in graphs.values() for node in held.graph.nodes if node.op == "call_module"}
    record["class"] = texts.record(kind) if kind is not None and needs_class else None
    record["graphs"] = {
        name: _graph_record(held.graph, held.schema, held.constants, texts) for name, held in graphs.items()
    }
    record["tables"] = {name: state[name] for name in TABLES}
    constants = {name for held in graphs.values() for name in held.constants}
    record["state"] = {
        name: value
        for name, value in state.items()
        if name not in NOT_STATE | constants
        and not name.endswith("_hooks")
        and "_hooks_" not in name
        and _goes_to_files(value)
    }
    record["children"] = {
        name: None
        if child is None
        else _module_record(_scripted(child), texts, memo, needs_class=needs_class or _is_called(called, name))
        for name, child in module._modules.items()
    }
    return record


def _is_called(paths: set[Any], name: str) -> bool:
    return any(path.partition(".")[0] == name for path in paths)


def _scripted(child: Module) -> ScriptModule:
    return child if isinstance(child, ScriptModule) else RecursiveScriptModule.over(child)


def _goes_to_files(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # what torch's compiler would not take either
        return False
    return True


def _module_from_record(record: dict[str, Any], texts: list[dict[str, Any]], memo: dict[int, Any]) -> Any:
    if id(record) in memo:
        return memo[id(record)]
    if "frozen" in record:
        from ._script import FrozenModule

        return FrozenModule.of(_module_from_record(record["frozen"], texts, memo), record["kept"])
    made = memo[id(record)] = object.__new__(RecursiveScriptModule)
    Module.__init__(made)
    made.__dict__.update(record["tables"])
    made.__dict__.update(record["state"])
    made.__dict__["_python_class"] = None if record["class"] is None else restored(record["class"], texts)
    made.__dict__["_graphs"] = {name: _graph_from_record(held, texts) for name, held in record["graphs"].items()}
    made.__dict__["_original_name"] = record["name"]
    for held in made._graphs.values():
        made.__dict__.update(held.constants)
    made.__dict__["_modules"] = {
        name: None if child is None else _module_from_record(child, texts, memo)
        for name, child in record["children"].items()
    }
    return made


_guard_public(globals())
