"""Find the places where a graph contains a pattern."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph, attribute_at
from ...node import Node


@dataclass
class InternalMatch:
    """One place: which node of the graph stands for which of the pattern."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
            dict(self.name_node_map),
        )


class SubgraphMatcher:
    """Looks for a pattern, itself a graph whose placeholders stand for anything."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        nodes = list(pattern.nodes)
        if not nodes:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in nodes:
            if node.op != "output" and not node.users:
                raise AssertionError(f"SubgraphMatcher cannot be initialized with an pattern with dead code ({node})")
        self.pattern_placeholder_nodes = [node for node in nodes if node.op == "placeholder"]
        output = nodes[-1]
        self.pattern_returning_nodes = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            self.pattern_anchors = [node for node in output.all_input_nodes if len(node.users) == 1]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places of the pattern in a graph, in the order of the graph."""
        candidates = [
            [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        found: list[InternalMatch] = []

        def search(at: int, match: InternalMatch) -> None:
            if at == len(self.pattern_anchors):
                match.placeholder_nodes = [match.nodes_map[each] for each in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[each] for each in self.pattern_returning_nodes]
                found.append(match)
                return
            for node in candidates[at]:
                longer = copy.copy(match)
                if self._match_nodes(self.pattern_anchors[at], node, longer):
                    search(at + 1, longer)

        search(0, InternalMatch(anchors=self.pattern_anchors))
        found = [match for match in found if self._is_contained(match.nodes_map)]
        return self._without_overlaps(found) if self.remove_overlapping_matches else found

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        if pn.op == "call_module":
            return bool(_called_types(pn) == _called_types(gn) if _called_types(pn) else pn.target == gn.target)
        return bool(pn.target == gn.target)

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        one, other = (attribute_at(node.graph.owning_module, node.target) for node in (pn, gn))
        return type(one) is type(other)

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node) and not isinstance(gn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return bool(match.nodes_map[pn] == gn)
            match.nodes_map[pn] = gn
            return True
        if isinstance(gn, Node):
            return False
        return self.ignore_literals or (type(gn) is type(pn) and bool(gn == pn))

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values() and pn.op != "placeholder":
            return False
        if not self._nodes_are_equal(pn, gn):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder" or self._match_all(_arguments(pn), _arguments(gn), match):
            return True
        match.nodes_map = saved.nodes_map
        return False

    def _match_all(self, pattern: Any, given: Any, match: InternalMatch) -> bool:
        """Match nested arguments, element by element."""
        if isinstance(pattern, Node) and isinstance(given, Node):
            return self._match_nodes(pattern, given, match)
        if isinstance(pattern, (list, tuple)) and isinstance(given, (list, tuple)):
            return len(pattern) == len(given) and all(
                self._match_all(a, b, match) for a, b in zip(pattern, given, strict=True)
            )
        if isinstance(pattern, dict) and isinstance(given, dict):
            return pattern.keys() == given.keys() and all(self._match_all(pattern[k], given[k], match) for k in pattern)
        if isinstance(pattern, slice) and isinstance(given, slice):
            parts = [(pattern.start, given.start), (pattern.stop, given.stop), (pattern.step, given.step)]
            return all(self._match_all(a, b, match) for a, b in parts)
        return self._match_literals(pattern, given, match)

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nobody outside uses what the pattern computes on the way."""
        matched = {gn: pn for pn, gn in nodes_map.items() if isinstance(gn, Node)}
        for gn, pn in matched.items():
            if pn.op == "placeholder" or pn in self.pattern_returning_nodes:
                continue
            if any(user not in matched for user in gn.users):
                return False
        return True

    def _without_overlaps(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            own = {
                gn
                for pn, gn in match.nodes_map.items()
                if isinstance(gn, Node) and pn.op not in ("placeholder", "output")
            }
            if not own & taken:
                kept.append(match)
                taken |= own
        return kept


def _called_types(node: Node) -> Any:
    module = node.graph.owning_module
    try:
        return type(module.get_submodule(node.target)) if module is not None else None
    except AttributeError:
        return None


def _arguments(node: Node) -> Iterable[Any]:
    """Return a node's arguments so that positional ones and those by keyword can be compared."""
    return [*node.args, dict(node.kwargs)]
