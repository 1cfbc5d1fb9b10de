"""Watch what a pass does to a graph."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..traceback import NodeSource, NodeSourceAction
from .graph_drawer import FxGraphDrawer

__all__ = ["GraphTransformObserver"]

_passes = 0


class GraphTransformObserver:
    """Runs a pass as a block. With `log_url`, a folder, it draws the graph before and after, with what changed in yellow.

    Nodes that the pass makes then remember it in `meta["from_node"]`.
    """

    def __init__(
        self, gm: GraphModule, passname: str, subsystem: str | None = None, log_url: str | None = None
    ) -> None:
        global _passes
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.active = log_url is not None
        self.erased_nodes: set[str] = set()
        self.created_nodes: set[str] = set()
        self.name_to_node: dict[str, Node] = {}
        self.copied_gms: list[GraphModule] = []
        if self.active:
            _passes += 1
            self.input_dot_graph = self._drawn()

    @classmethod
    def get_current_pass_count(cls) -> int:
        """Return how many passes have been drawn."""
        return _passes

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], Any]) -> Any:
        """Run a pass over the module."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], Any]) -> Any:
        """Run a pass over the graph."""
        with self:
            return pass_fn(self.gm.graph)

    def _hooks(self) -> dict[str, Callable[..., None]]:
        return {
            "create_node": self._created,
            "erase_node": self._erased,
            "replace_node": self._replaced,
            "deepcopy": self.copied_gms.append,
        }

    def __enter__(self) -> GraphTransformObserver:
        if self.active:
            for each in (self.erased_nodes, self.created_nodes, self.name_to_node, self.copied_gms):
                each.clear()
            self.name_to_node.update((node.name, node) for node in self.gm.graph.nodes)
            self._registered = self._hooks()
            for kind, hook in self._registered.items():
                getattr(self.gm, f"_register_{kind}_hook")(hook)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.active:
            return
        for module in [*self.copied_gms, self.gm]:
            for kind, hook in self._registered.items():
                getattr(module, f"_unregister_{kind}_hook")(hook)
        if self.created_nodes or self.erased_nodes:
            self._write(self.input_dot_graph, self.erased_nodes, "input")
            self._write(self._drawn(), self.created_nodes, "output")

    def _drawn(self) -> Any:
        drawer = FxGraphDrawer(self.gm, self.passname, ignore_getattr=True, ignore_parameters_and_buffers=True)
        return drawer.get_dot_graph()

    def _write(self, drawing: Any, changed: set[str], kind: str) -> None:
        for node in drawing.get_node_list():
            node.obj_dict["attributes"]["fillcolor"] = "yellow" if node.get_name() in changed else "grey"
        drawing.write(os.path.join(str(self.log_url), f"pass_{_passes}_{self.passname}_{kind}_graph.dot"))

    def _created(self, node: Node) -> None:
        self.created_nodes.add(node.name)
        self.name_to_node[node.name] = node
        node.meta.setdefault("from_node", []).append(NodeSource(None, self.passname, NodeSourceAction.CREATE))

    def _erased(self, node: Node) -> None:
        self.erased_nodes.add(node.name)
        self.name_to_node.pop(node.name, None)

    def _replaced(self, old: Node, new: str, user: Node) -> None:
        node = self.name_to_node.get(new)
        if node is None:
            return
        sources = node.meta.get("from_node", [])
        if any(source.name == old.name for source in sources):
            return
        own = [NodeSourceAction.CREATE]
        kept = [each for each in sources if (each.pass_name, each.action) != (self.passname, own)]
        action = [NodeSourceAction.REPLACE, *(own if node.name in self.created_nodes else [])]
        node.meta["from_node"] = [*kept, NodeSource(old, self.passname, action)]
