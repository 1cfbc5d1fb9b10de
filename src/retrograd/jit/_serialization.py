"""Files of scripted and traced programs: their state, their graphs or their source, in a record of our own."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from typing import Any

from ..fx.graph import Graph
from ..fx.graph_module import _records, graph_from_records
from ..nn.modules.module import Module
from ._script import FacedModule, RecursiveScriptModule, ScriptFunction, ScriptModule
from ._sources import Texts, restored
from ._trace import compiled, function_of

FOLDER = "archive"
MARK = f"{FOLDER}/retrograd.jit"  # the entry that tells what the file is
EXTRA = f"{FOLDER}/extra/"
VERSION = 1
BROKEN = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. "
    "This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving."
)


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a scripted or traced function or module to a file. `jit.load` needs none of the program's own files."""
    if not isinstance(m, (ScriptFunction, ScriptModule)):
        raise AttributeError(
            f"'{type(m).__name__}' object has no attribute 'save_to_buffer'\n"
            "Hint: torch.jit.save takes what torch.jit.script and torch.jit.trace return."
        )
    from ..serialization import save as write

    texts = Texts()
    program = (
        _function_record(m, texts) if isinstance(m, ScriptFunction) else _module_record(m, texts, {}, needs_class=True)
    )
    record = {"version": VERSION, "program": program, "texts": texts.table}
    buffer = io.BytesIO()
    write(record, buffer)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(MARK, str(VERSION))
        for name, content in (_extra_files or {}).items():
            archive.writestr(EXTRA + name, content)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            file.write(buffer.getvalue())
    else:
        f.write(buffer.getvalue())


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> Any:
    """Read what `save` wrote; `_extra_files` gets the contents of the files that it names."""
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
        with open(f, "rb") as file:
            content = file.read()
    else:
        content = f.read()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: not a ZIP archive. {BROKEN}")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        for name in _extra_files or {}:
            found = [one for one in names if one.endswith(f"/extra/{name}")]
            if found:
                _extra_files[name] = archive.read(found[0])  # type: ignore[index]
    if MARK not in names:
        return _of_others(content, names, map_location)
    from ..serialization import load as read

    record = read(io.BytesIO(content), map_location=map_location, weights_only=False)
    if record["version"] > VERSION:
        raise RuntimeError(
            f"the file is of version {record['version']} of retrograd's record; this retrograd reads {VERSION}"
        )
    program, texts = record["program"], record["texts"]
    if program["kind"] == "function":
        return _function_from_record(program, texts)
    return _module_from_record(program, texts, {})


def _of_others(content: bytes, names: list[str], map_location: Any) -> Any:
    if any(name.endswith("/constants.pkl") for name in names):
        raise NotImplementedError(
            "the file holds a program in torch's intermediate code (TorchScript), which retrograd does not read yet\n"
            "Hint: load it with torch, save module.state_dict() by torch.save, and load that into a module of the same class."
        )
    raise RuntimeError(
        f"PytorchStreamReader failed locating file constants.pkl: file not found. {BROKEN}\n"
        "Hint: torch.load reads files of torch.save."
    )


# ---- functions ----
def _function_record(function: ScriptFunction, texts: Texts) -> dict[str, Any]:
    if function._graph is None:
        return {"kind": "function", "source": texts.record(function._function)}
    holder: Any = function._function
    constants = vars(holder.__self__)
    return {"kind": "function", "graph": _graph_record(function._graph, function.schema, constants, texts)}


def _function_from_record(record: dict[str, Any], texts: list[dict[str, Any]]) -> ScriptFunction:
    if "graph" in record:
        return function_of(_graph_from_record(record["graph"], texts))
    made = restored(record["source"], texts)
    return made if isinstance(made, ScriptFunction) else ScriptFunction(made)


# ---- graphs ----
def _graph_record(graph: Graph, schema: Any, constants: dict[str, Any], texts: Texts) -> dict[str, Any]:
    nodes = [
        (op, name, target if isinstance(target, str) else _target_record(target, texts), args, kwargs, kind)
        for op, name, target, args, kwargs, kind in _records(graph)
    ]
    held = {name: texts.record(value) if callable(value) else ("value", value) for name, value in constants.items()}
    return {"nodes": nodes, "schema": schema, "constants": held}


def _target_record(target: Any, texts: Texts) -> Any:
    if isinstance(target, ScriptFunction):
        return ("script", _function_record(target, texts))
    return texts.record(target)


def _graph_from_record(record: dict[str, Any], texts: list[dict[str, Any]]) -> Any:
    def target(held: Any) -> Any:
        if isinstance(held, str):
            return held
        return _function_from_record(held[1], texts) if held[0] == "script" else restored(held, texts)

    nodes = [(op, name, target(held), args, kwargs, kind) for op, name, held, args, kwargs, kind in record["nodes"]]
    constants = {name: restored(value, texts) for name, value in record["constants"].items()}
    return compiled(graph_from_records(nodes), record["schema"], constants)


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
