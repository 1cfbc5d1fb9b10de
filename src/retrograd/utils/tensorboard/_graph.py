"""The graph of a model for TensorBoard: a recording of one run, with the modules as boxes around their operations."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...fx._recording import Recorder
from ...fx.node import Node, _get_qualified_name
from ...nn.modules.module import Module
from ...tensor import Tensor

_proto = {name: import_module(f"tensorboard.compat.proto.{name}_pb2") for name in ("graph", "versions", "node_def")}
_values = import_module("tensorboard.compat.proto.attr_value_pb2")
_shapes = import_module("tensorboard.compat.proto.tensor_shape_pb2")


class _Keeping(Recorder):
    keeps_values = True


def graph(model: Any, args: Any, verbose: bool) -> Any:
    """Run a model once in eval mode; return what it computed."""
    recorder = _Keeping(model if isinstance(model, Module) else None)
    given = (args,) if isinstance(args, (Tensor, dict)) else tuple(args)
    training = getattr(model, "training", None)
    if training is not None:
        model.eval()
    try:
        result = recorder.record(model, given, {}, [f"input.{i + 1}" if i else "input" for i in range(len(given))])
    finally:
        if training:
            model.train()
    recorded = recorder.finish(result)
    if verbose:
        print(recorded)
    base = type(model).__name__
    names: dict[Node, str] = {}
    nodes = []
    for node in recorded.nodes:
        if node.op == "output":
            continue
        names[node] = _name(node, base)
        inputs = [names[each] for each in node.all_input_nodes]
        nodes.append(_node(names[node], _operation(node), inputs, node.meta.get("val")))
    for i, each in enumerate(recorded.output_node().all_input_nodes):
        nodes.append(_node(f"output/output.{i + 1}", "IO Node", [names[each]], each.meta.get("val")))
    return _proto["graph"].GraphDef(node=nodes, versions=_proto["versions"].VersionDef(producer=22))


def _name(node: Node, base: str) -> str:
    if node.op == "placeholder":
        return f"input/{node.name}"
    if node.op == "get_attr":
        *path, last = node.target.split(".")
        return "/".join([base, *path, last, node.name]) if path else f"{base}/{node.name}"
    stack = node.meta.get("nn_module_stack") or {}
    boxes = [f"{getattr(kind, '__name__', kind)}[{path.rpartition('.')[2]}]" for path, kind in stack.values() if path]
    return "/".join([base, *boxes, node.name])


def _operation(node: Node) -> str:
    if node.op == "placeholder":
        return "IO Node"
    if node.op == "get_attr":
        return "Parameter"
    return f"Tensor.{node.target}" if isinstance(node.target, str) else _get_qualified_name(node.target)


def _node(name: str, operation: str, inputs: list[str], value: Any) -> Any:
    attributes = {"attr": _values.AttrValue(s=b"")}
    if isinstance(value, Tensor):
        shape = _shapes.TensorShapeProto(dim=[_shapes.TensorShapeProto.Dim(size=int(n)) for n in value.shape])
        attributes["_output_shapes"] = _values.AttrValue(list=_values.AttrValue.ListValue(shape=[shape]))
    return _proto["node_def"].NodeDef(name=name, op=operation, input=inputs, attr=attributes)
