"""Trees of containers, against torch: one line of program each, the same text from both."""

from __future__ import annotations

import collections
import time
from dataclasses import dataclass
from typing import Any

import pytest

from retrograd.utils import _pytree as ours
from tests.oracle import said, whole

Point = collections.namedtuple("Point", "p q")
TREE: dict[str, Any] = {
    "a": [1, (2, 3)],
    "n": Point(4, 5),
    "d": collections.deque([6]),
    "dd": collections.defaultdict(list, {"k": 7}),
    "o": collections.OrderedDict(x=8),
    "empty": [],
}


@dataclass
class Pair:
    left: Any
    right: Any = None


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


PROGRAMS = {
    "spec": lambda tree: tree.tree_structure(TREE),
    "leaves": lambda tree: tree.tree_leaves(TREE),
    "paths": lambda tree: [(tree.keystr(path), leaf) for path, leaf in tree.tree_leaves_with_path(TREE)],
    "path entries": lambda tree: tree.tree_flatten_with_path(TREE)[0],
    "key_get": lambda tree: [tree.key_get(TREE, path) for path, _ in tree.tree_leaves_with_path(TREE)],
    "map with path": lambda tree: tree.tree_map_with_path(
        lambda path, x, y: tree.keystr(path) + str(x + y), TREE, TREE
    ),
    "map": lambda tree: tree.tree_map(lambda a, b: a * b, TREE, TREE),
    "map only": lambda tree: tree.tree_map_only(int, str, {"a": 1, "b": "x"}),
    "map only predicate": lambda tree: tree.tree_map_only(lambda x: x == 1, str, {"a": 1, "b": 2}),
    "in place": lambda tree: tree.tree_map_([].append, TREE) is TREE,
    "all": lambda tree: (
        tree.tree_all(bool, TREE),
        tree.tree_any(lambda x: x > 7, TREE),
        tree.tree_all_only(str, bool, TREE),
    ),
    "any only": lambda tree: tree.tree_any_only(int, lambda x: x > 100, TREE),
    "iter": lambda tree: sum(tree.tree_iter(TREE)),
    "is leaf": lambda tree: [tree.tree_is_leaf(x) for x in (1, [], None, Point(1, 2), "a")],
    "is_leaf=": lambda tree: tree.tree_leaves(TREE, is_leaf=lambda x: isinstance(x, tuple)),
    "dumps": lambda tree: tree.treespec_dumps(
        tree.tree_structure({k: v for k, v in TREE.items() if k not in ("n", "dd")})
    ),
    "dumps defaultdict": lambda tree: tree.treespec_dumps(tree.tree_structure(TREE["dd"])),
    "loads": lambda tree: tree.treespec_loads(tree.treespec_dumps(tree.tree_structure(TREE["o"]))),
    "pprint": lambda tree: tree.treespec_pprint(tree.tree_structure(TREE)),
    "namedtuple": lambda tree: [tree.is_namedtuple(x) for x in (Point(1, 2), Point, (1,), time.gmtime())],
    "structseq": lambda tree: [tree.is_structseq(x) for x in (time.gmtime(), time.struct_time, Point(1, 2))],
    "too few leaves": lambda tree: tree.tree_unflatten([1], tree.tree_structure(TREE)),
    "no spec": lambda tree: tree.tree_unflatten([1], 3),
    "arity": lambda tree: tree.tree_map(lambda a, b: 1, [1, 2], [1]),
    "kind": lambda tree: tree.tree_map(lambda a, b: 1, [1, 2], (1, 2)),
    "keys": lambda tree: tree.tree_map(lambda a, b: 1, {"a": 1}, {"b": 1}),
    "registered twice": lambda tree: tree.register_pytree_node(list, None, None),
    "protocol": lambda tree: tree.treespec_dumps(tree.tree_structure([1]), 7),
    "counts": lambda tree: [getattr(tree.tree_structure(TREE), n) for n in ("num_leaves", "num_nodes", "num_children")],
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_answer(name: str) -> None:
    theirs = pytest.importorskip("torch.utils._pytree")
    found, wanted = (said(PROGRAMS[name], module, words=whole, ignore_warnings=False) for module in (ours, theirs))
    assert found == wanted


def test_dataclasses() -> None:
    ours.register_dataclass(Pair)
    leaves, spec = ours.tree_flatten(Pair(1, [2, 3]))
    assert leaves == [1, 2, 3]
    assert ours.tree_unflatten([4, 5, 6], spec) == Pair(4, [5, 6])
    assert [ours.keystr(path) for path, _ in ours.tree_leaves_with_path(Pair(1, [2]))] == [".left", ".right[0]"]


def test_own_containers() -> None:
    ours.register_pytree_node(
        Box, lambda b: ([b.value], None), lambda values, _: Box(*values), serialized_type_name="Box"
    )
    assert ours.tree_map(lambda x: x + 1, Box(1)).value == 2
    spec = ours.tree_structure(Box([1, 2]))
    assert ours.treespec_loads(ours.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
        ours.tree_leaves_with_path(Box(1))


def test_named_tuples_are_found_again_by_name() -> None:
    spec = ours.tree_structure(Point(1, 2))
    assert '"collections.namedtuple"' in ours.treespec_dumps(spec)
