"""Group the nodes that a backend can run, as few groups as possible, and put each group into a module."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Sequence

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

logger = logging.getLogger(__name__)
_MOVES_ONLY = {"torch.ops.aten.view", "_operator.getitem"}


class Partition:
    """A group of nodes, with their places in the graph from its end."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        given = list(nodes or [])
        places: list[int | None] = [None] * len(given) if node_orders is None else list(node_orders)
        if len(places) != len(given):
            raise AssertionError("nodes and node_orders must have the same length")
        self.nodes: dict[Node, int | None] = dict(zip(given, places, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Take a node in."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Give a node away."""
        del self.nodes[node]

    def size(self) -> int:
        """Return how many nodes there are."""
        return len(self.nodes)


class _Groups:
    """Groups that grow together as long as none waits for another that waits for it."""

    def __init__(self) -> None:
        self.partitions: dict[int, Partition] = {}
        self.group_of: dict[Node, int] = {}
        self.first: dict[int, int] = {}  # the lowest number among those that became a group
        self.numbers = itertools.count()

    def start(self, node: Node, place: int) -> int:
        """Make a group of one node."""
        number = next(self.numbers)
        self.partitions[number] = Partition(number, [node], [place])
        self.group_of[node] = self.first[number] = number
        return number

    def move(self, node: Node, group: int | None) -> None:
        """Let a node change to another group, or to none."""
        old = self.group_of.pop(node, None)
        if old is not None:
            self.partitions[old].remove_node(node)
        if group is not None:
            self.group_of[node] = group
            self.partitions[group].add_node(node)

    def merge(self, a: int, b: int) -> int:
        """Make one group of two if that is possible; return the one that `a` is in."""
        if a == b or self._leads_back({a, b}):
            return a
        kept, gone = (a, b) if self.partitions[a].size() >= self.partitions[b].size() else (b, a)
        absorbed = self.partitions.pop(gone)
        self.partitions[kept].nodes.update(absorbed.nodes)
        self.group_of.update(dict.fromkeys(absorbed.nodes, kept))
        self.first[kept] = min(self.first[kept], self.first.pop(gone))
        return kept

    def _leads_back(self, groups: set[int]) -> bool:
        """Whether a way out of groups comes back to them. Who enters a group may leave it from any of its nodes."""
        inside = [node for group in groups for node in self.partitions[group].nodes]
        ways = [user for node in inside for user in node.users if self.group_of.get(user) not in groups]
        seen: set[Node] = set()
        while ways:
            node = ways.pop()
            group = self.group_of.get(node)
            if group in groups:
                return True
            if node not in seen:
                reached = [node] if group is None else list(self.partitions[group].nodes)
                seen.update(reached)
                ways.extend(user for each in reached for user in each.users)
        return False


class CapabilityBasedPartitioner:
    """Groups the nodes of a module that `operator_support` allows, and fuses each group into a module."""

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = [] if non_compute_ops is None else non_compute_ops
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Return groups of nodes that can run, none of which waits for itself by way of others."""
        submodules = dict(self.graph_module.named_modules())
        groups = _Groups()
        for place, node in enumerate(reversed(self.graph_module.graph.nodes)):
            own: list[int] = []
            if self.operator_support.is_node_supported(submodules, node):
                own = [groups.start(node, place)]
            if not self.skip_horizontal_fusion:
                others: Iterable[int] = sorted(groups.first, key=groups.first.__getitem__)
            else:
                others = [groups.group_of[user] for user in node.users if user in groups.group_of] if own else []
            candidates = list(dict.fromkeys([*own, *others]))
            if len(candidates) > 1:
                grown = candidates[0]
                for other in candidates[1:]:
                    grown = groups.merge(grown, other)
        for partition in groups.partitions.values():
            places = sorted(partition.nodes.items(), key=lambda item: item[1] or 0, reverse=True)
            partition.nodes = dict(places)
        self._bring_items_to_their_source(groups)
        found = [each for each in groups.partitions.values() if self._is_worth_it(each)]
        logger.debug("Partitions proposed: %s", found)
        return [partition for partition in found if partition.size()]

    def _bring_items_to_their_source(self, groups: _Groups) -> None:
        """A node that gives several values, and those who take one of them out, stay together."""
        while True:
            moves: dict[Node, int | None] = {}
            for node in self.graph_module.graph.nodes:
                if all(_name(user) == "_operator.getitem" for user in node.users):
                    home = groups.group_of.get(node)
                    moves.update((user, home) for user in node.users if groups.group_of.get(user) != home)
            if not moves:
                return
            for node, home in moves.items():
                groups.move(node, home)

    def _is_worth_it(self, partition: Partition) -> bool:
        if self.allows_single_node_partition:
            return True
        names = [_name(node) for node in partition.nodes if node.op == "call_function"]
        cheap = _MOVES_ONLY.union(self.non_compute_ops)
        counted = sum(name not in cheap for name in names)
        return counted + sum(name in self.allowed_single_node_partition_ops for name in names) > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Put each group into a module."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take the nodes that compute nothing out of a group where nothing stands before or behind them in it."""
        cheap = set(self.non_compute_ops)
        for partition in partitions:
            inside = dict.fromkeys(node for node in partition.nodes if node.op != "placeholder")

            def only_cheap_beyond(node: Node, neighbours: str, inside: dict[Node, None] = inside) -> bool:
                if node not in inside:
                    return True
                beyond = node.all_input_nodes if neighbours == "inputs" else node.users
                return _name(node) in cheap and all(only_cheap_beyond(each, neighbours) for each in beyond)

            removed = [node for node in inside if any(only_cheap_beyond(node, side) for side in ("inputs", "users"))]
            for node in removed:
                partition.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Group the nodes, and put each group into a module."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


def _name(node: Node) -> str:
    return _get_qualified_name(node.target) if node.op == "call_function" else ""
