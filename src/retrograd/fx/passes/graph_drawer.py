"""Draw a graph with Graphviz, by the package pydot."""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import Any

import retrograd as torch

from ..graph_module import GraphModule
from ..node import Node, _format_arg, _get_qualified_name, _torchs
from ..operator_schemas import normalize_function
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
# Calls of one target have one colour, chosen as torch chooses it.
_COLORS_OF_TARGETS = """CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1
MistyRose2 PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1""".split()  # noqa: SIM905


class FxGraphDrawer:
    """Draws the graph of a module, and those of the modules that it calls: `FxGraphDrawer(traced, "net").get_dot_graph()`."""

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        try:
            import pydot  # type: ignore[import-not-found]
        except ModuleNotFoundError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite Python "
                "package manager."
            ) from None
        self._pydot: Any = pydot
        self._name = name
        self.dot_graph_shape = "record" if dot_graph_shape is None else dot_graph_shape
        self.normalize_args = normalize_args
        self._ignore_getattr, self._ignore_parameters = ignore_getattr, ignore_parameters_and_buffers
        self._skip_names, self._show_places = skip_node_names_in_args, parse_stack_trace
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            inner = graph_module.get_submodule(node.target)
            if isinstance(inner, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._to_dot(inner, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """Return the drawing of the module, or of one that it calls."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """Return the drawing of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """Return the drawing of a module that it calls."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Return all drawings by name."""
        return self._dot_graphs

    def _to_dot(self, module: GraphModule, name: str) -> Any:
        dot = self._pydot.Dot(name, rankdir="TB")
        shown = [node for node in module.graph.nodes if not (self._ignore_getattr and node.op == "get_attr")]
        for node in shown:
            dot.add_node(self._pydot.Node(node.name, label=self._label(module, node), **self._style(node)))
            if node.op == "call_module" and not self._ignore_parameters:
                self._add_parameters(dot, node, module.get_submodule(node.target))
        for node in shown:
            for user in node.users:
                dot.add_edge(self._pydot.Edge(node.name, user.name))
        return dot

    def _add_parameters(self, dot: Any, node: Node, layer: Any) -> None:
        if isinstance(layer, GraphModule):
            return
        style = self._box("Salmon")
        for name, tensor in chain(layer.named_parameters(), layer.named_buffers()):
            full = f"{node.name}.{name}"
            kind = f"{full}|op_code=get_parameter" if isinstance(tensor, torch.nn.Parameter) else r"buffer\l"
            label = f"{{{kind}{tensor.dtype}{list(tensor.shape)}\\n}}"
            dot.add_node(self._pydot.Node(full, label=label, **style))
            dot.add_edge(self._pydot.Edge(full, node.name))

    def _box(self, color: str) -> dict[str, str]:
        return {"shape": self.dot_graph_shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    def _style(self, node: Node) -> dict[str, str]:
        name = node._pretty_print_target(node.target).encode()
        number = int(hashlib.md5(name, usedforsecurity=False).hexdigest()[:8], 16)
        return self._box(_COLORS.get(node.op) or _COLORS_OF_TARGETS[number % len(_COLORS_OF_TARGETS)])

    def _label(self, module: GraphModule, node: Node) -> str:
        parts = [f"name=%{node.name}|op_code={node.op}\n"]
        if node.op == "call_module":
            layer = module.get_submodule(node.target)
            constants = [f"{name}: {getattr(layer, name)}" for name in getattr(layer, "__constants__", ())]
            kind = _escaped(f"{_torchs(type(layer).__module__)}.{type(layer).__qualname__}")
            parts.append(rf"\n{kind}\n|" + r"\n".join(constants) + r"\n")
        else:
            target = node.target if isinstance(node.target, str) else _get_qualified_name(node.target)
            parts.append(rf"|target={_escaped(target)}\n")
            args, kwargs = self._arguments(node)
            named = [f"{name}: {_format_arg(value, max_list_len=8)}" for name, value in kwargs.items()]
            parts.append(self._listed("args=(", [_format_arg(arg, max_list_len=8) for arg in args], ")"))
            parts.append(self._listed("kwargs={", named, "}"))
            parts.append(rf"|num_users={len(node.users)}\n")
        parts.append(_of_tensors(node.meta.get("tensor_meta")))
        if self._show_places and node.stack_trace:
            parts.append(_place(node.stack_trace))
        return "{" + "".join(parts) + "}"

    def _arguments(self, node: Node) -> Any:
        if not self.normalize_args or node.op != "call_function":
            return node.args, node.kwargs
        return normalize_function(node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True) or (
            node.args,
            node.kwargs,
        )

    def _listed(self, opening: str, shown: list[str], closing: str) -> str:
        if self._skip_names:
            shown = [each for each in shown if "%" not in each]
        if not shown:
            return ""
        if len(shown) == 1:
            return _escaped(f"|{opening}{shown[0]},{closing}")
        return _escaped(rf"|{opening}\l" + r",\n".join(shown) + rf",\n{closing}\l")


def _escaped(text: str) -> str:
    return text.replace("{", r"\{").replace("}", r"\}")


def _of_tensors(meta: Any) -> str:
    if meta is None:
        return ""
    if isinstance(meta, TensorMetadata):
        facts = {
            "dtype": meta.dtype,
            "shape": tuple(meta.shape),
            "requires_grad": meta.requires_grad,
            "stride": meta.stride,
        }
        return "".join(rf"|{name}={value}\n" for name, value in facts.items())
    if isinstance(meta, (list, tuple, dict)):
        return "".join(_of_tensors(each) for each in (meta.values() if isinstance(meta, dict) else meta))
    raise RuntimeError(f"Unsupported tensor meta type {type(meta)}")


def _place(stack_trace: str) -> str:
    """Return the last place of a traceback, its file shortened to a folder and a name."""
    lines = [line.strip() for line in stack_trace.strip().splitlines()]
    for i in range(len(lines) - 1, -1, -1):
        if lines[i].startswith('File "'):
            file, line = lines[i][6:].split('", line ')
            code = lines[i + 1] if i + 1 < len(lines) else ""
            return rf"|file={'/'.join(file.split('/')[-2:])}:{line.split(',')[0]} {code}\n"
    return ""
