"""Everything a user can see of the live tensors, as plain Python data that compares between libraries.

Each observed fact has an expression that shows it (``t3.grad_fn.next_functions[0][0].name()``), so that a
difference can be printed as a line of a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

GRAPH_DEPTH = 4

ADDRESS = re.compile(r"0x[0-9a-f]+")
TRIGGERED = re.compile(r"\s*\(Triggered internally at .*?\)", re.DOTALL)
SENTENCE_END = re.compile(r"\n|\.\s+(?=[A-Z])|\.$|\s*Hint:")


def first_sentence(text: str) -> str:
    """The part of a message that both libraries share: torch's first sentence, without addresses."""
    text = ADDRESS.sub("0x...", TRIGGERED.sub("", text)).strip()
    return SENTENCE_END.split(text, maxsplit=1)[0].strip()


class Raised(NamedTuple):
    """An exception, where a value was expected or as the outcome of a step."""

    error: str
    sentence: str


def raised(error: Exception) -> Raised:
    return Raised(type(error).__name__, first_sentence(str(error)))


def unqualified(name: object) -> str:
    """``torch.float64`` and ``retrograd.float64`` are the same dtype."""
    return str(name).rpartition(".")[2]


class Node(NamedTuple):
    """A node of the graph. ``number`` tells nodes apart; ``leaf`` is the tensor an AccumulateGrad feeds."""

    name: str
    number: int
    leaf: str | None
    edges: tuple[tuple[Node | None, int], ...] | None


class Tensor(NamedTuple):
    """What is visible of one tensor that is not the pool's own: a gradient, or one saved by a node."""

    pool_name: str | None
    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    values: list[Any]


class Fact(NamedTuple):
    """``aspect`` groups facts of one kind; lower ``rank`` is the better explanation of a failure."""

    aspect: str
    expression: str
    value: Any
    rank: int


def telling_strides(shape: Any, strides: Any) -> tuple[int, ...]:
    """Strides without those that say nothing: of dimensions of size 1, and of empty tensors.

    torch's depend on how the tensor came about, NumPy's follow other rules, and nothing else depends on them.
    """
    return () if 0 in shape else tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])


# Cheap facts, in order of how directly they explain a failure. ``{0}`` is the name of the tensor.
FIELDS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("dtype", "{0}.dtype", lambda t: unqualified(t.dtype)),
    ("shape", "tuple({0}.shape)", lambda t: tuple(t.shape)),
    ("values", "{0}.tolist()", lambda t: t.tolist()),
    ("requires_grad", "{0}.requires_grad", lambda t: t.requires_grad),
    ("is_leaf", "{0}.is_leaf", lambda t: t.is_leaf),
    ("_version", "{0}._version", lambda t: t._version),
    ("_is_view", "{0}._is_view()", lambda t: t._is_view()),
    ("is_inference", "{0}.is_inference()", lambda t: t.is_inference()),
    ("output_nr", "{0}.output_nr", lambda t: t.output_nr),
    ("retains_grad", "{0}.retains_grad", lambda t: t.retains_grad),
    ("stride", "{0}.stride()", lambda t: telling_strides(t.shape, t.stride())),
    ("is_contiguous", "{0}.is_contiguous()", lambda t: t.is_contiguous()),
    ("storage_offset", "{0}.storage_offset()", lambda t: t.storage_offset() if 0 not in t.shape else None),
)
GETTERS = tuple(getter for _, _, getter in FIELDS)
RANK = {aspect: rank for rank, (aspect, _, _) in enumerate(FIELDS)}
BASE_RANK, GRAD_RANK, GRAPH_RANK, SAVED_RANK = 20, 30, 40, 60

_saved_names_of_type: dict[type, tuple[str, ...]] = {}


def saved_names(node: Any) -> tuple[str, ...]:
    """Names of the saved attributes; ``dir`` is slow, and torch's node types are fixed."""
    names = _saved_names_of_type.get(type(node))
    if names is None:
        names = tuple(sorted(name for name in dir(node) if name.startswith("_saved_")))
        if type(node).__module__ == "torch":
            _saved_names_of_type[type(node)] = names
    return names


class Observer:
    """One look at all live tensors of a namespace."""

    def __init__(self, library: Any, namespace: dict[str, Any]) -> None:
        self.tensor_type = library.Tensor
        pool = {name: value for name, value in namespace.items() if name[0] == "t" and name[1:].isdigit()}
        self.tensors = {n: v for n, v in pool.items() if v is None or isinstance(v, self.tensor_type)}
        self.pool_names: dict[int, str] = {}
        for name, tensor in self.tensors.items():
            if tensor is not None:  # the same tensor may be alive under two names
                self.pool_names.setdefault(id(tensor), name)
        self.numbers: dict[int, int] = {}
        self.kept_alive: list[Any] = []  # ids are only meaningful while the nodes live
        self.seen: dict[tuple[int, int], Node] = {}

    def observe(self) -> dict[str, Any]:
        return {name: None if t is None else self.look_at(t) for name, t in self.tensors.items()}

    def look_at(self, tensor: Any) -> tuple[Any, ...]:
        try:
            fields = tuple([getter(tensor) for getter in GETTERS])
        except Exception:
            fields = tuple([guarded(getter, tensor) for getter in GETTERS])
        return (
            fields,
            guarded(self.base_of, tensor),
            guarded(self.grad_of, tensor),
            guarded(self.graph_of, tensor),
            guarded(self.saved_by, tensor),
        )

    def base_of(self, tensor: Any) -> Any:
        base = tensor._base
        return None if base is None else self.pool_names.get(id(base), "a tensor outside the pool")

    def grad_of(self, tensor: Any) -> Any:
        grad = tensor.grad
        if grad is None:
            return None
        return (self.describe(grad), guarded(lambda g: g._version, grad), guarded(self.name_of_grad_fn, grad))

    @staticmethod
    def name_of_grad_fn(tensor: Any) -> str | None:
        return None if tensor.grad_fn is None else tensor.grad_fn.name()

    def describe(self, tensor: Any) -> Tensor:
        return Tensor(
            self.pool_names.get(id(tensor)),
            unqualified(tensor.dtype),
            tuple(tensor.shape),
            tensor.requires_grad,
            tensor.tolist(),
        )

    def graph_of(self, tensor: Any) -> Node | None:
        node = tensor.grad_fn
        return None if node is None else self.node(node, GRAPH_DEPTH)

    def node(self, node: Any, depth: int) -> Node:
        key = (id(node), depth)
        known = self.seen.get(key)
        if known is not None:
            return known
        number = self.numbers.get(id(node))
        if number is None:
            number = self.numbers[id(node)] = len(self.numbers)
            self.kept_alive.append(node)
        edges = None
        leaf = None
        if depth:
            following = node.next_functions
            edges = tuple([(None if n is None else self.node(n, depth - 1), nr) for n, nr in following])
            if not following and hasattr(node, "variable"):
                leaf = self.pool_names.get(id(node.variable))
        self.seen[key] = observed = Node(node.name(), number, leaf, edges)
        return observed

    def saved_by(self, tensor: Any) -> dict[str, Any] | None:
        node = tensor.grad_fn
        if node is None:
            return None
        return {name: self.saved_attribute(node, name) for name in saved_names(node)}

    def saved_attribute(self, node: Any, name: str) -> Any:
        try:
            return self.saved(getattr(node, name))
        except Exception as error:
            return raised(error)

    def saved(self, value: Any) -> Any:
        if isinstance(value, self.tensor_type):
            return self.describe(value)
        if isinstance(value, (tuple, list)):
            return tuple(self.saved(item) for item in value)
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        return unqualified(ADDRESS.sub("0x...", repr(value)))


def guarded(getter: Callable[[Any], Any], subject: Any) -> Any:
    try:
        return getter(subject)
    except Exception as error:
        return raised(error)


# -- from observations back to expressions ------------------------------------------------------------------


def facts_of(name: str, observed: Any) -> Iterator[Fact]:
    """The observations of one tensor as single facts with the expressions that show them."""
    yield Fact("is None", f"{name} is None", observed is None, -1)
    if observed is None:
        return
    fields, base, grad, graph, saved = observed
    for (aspect, expression, _), value in zip(FIELDS, fields, strict=True):
        yield Fact(aspect, expression.format(name), value, RANK[aspect])
    owner = f"[name for name, value in locals().items() if value is {name}._base]"
    yield Fact("_base", owner, base, BASE_RANK)
    yield from grad_facts(f"{name}.grad", grad)
    yield from graph_facts(f"{name}.grad_fn", graph, {})
    yield from saved_facts(f"{name}.grad_fn", saved)


def grad_facts(expression: str, grad: Any) -> Iterator[Fact]:
    if grad is None or isinstance(grad, Raised):
        yield Fact("grad is None", f"{expression} is None", grad, GRAD_RANK)
        return
    tensor, version, grad_fn = grad
    yield Fact("grad is None", f"{expression} is None", "a tensor", GRAD_RANK)
    yield from tensor_facts("grad", expression, tensor, GRAD_RANK + 1)
    yield Fact("grad grad_fn", f"{expression}.grad_fn", grad_fn, GRAD_RANK + 5)
    yield Fact("grad _version", f"{expression}._version", version, GRAD_RANK + 6)


def tensor_facts(aspect: str, expression: str, tensor: Tensor, rank: int) -> Iterator[Fact]:
    yield Fact(f"{aspect} dtype", f"{expression}.dtype", tensor.dtype, rank)
    yield Fact(f"{aspect} shape", f"tuple({expression}.shape)", tensor.shape, rank)
    yield Fact(f"{aspect} values", f"{expression}.tolist()", tensor.values, rank)
    yield Fact(f"{aspect} requires_grad", f"{expression}.requires_grad", tensor.requires_grad, rank + 1)
    owner = f"[name for name, value in locals().items() if value is {expression}]"
    yield Fact(f"{aspect} identity", owner, tensor.pool_name, rank + 2)


def graph_facts(expression: str, node: Any, first_seen: dict[int, str], depth: int = 0) -> Iterator[Fact]:
    """Names and edges of the graph below a node, nearest first within each branch."""
    aspect = "grad_fn name" if depth == 0 else f"next_functions at depth {depth}"
    rank = GRAPH_RANK + 2 * depth  # a name explains more than what hangs below it
    if node is None or isinstance(node, Raised):
        yield Fact(aspect, expression, node, rank)
        return
    yield Fact(aspect, f"{expression}.name()", node.name, rank)
    if node.leaf is not None:
        owner = f"[name for name, value in locals().items() if value is {expression}.variable]"
        yield Fact(f"variable of {unqualified(node.name)}", owner, node.leaf, rank + 1)
    earlier = first_seen.setdefault(node.number, expression)
    yield Fact("node identity", f"{expression} is {earlier}", earlier, GRAPH_RANK + 10)
    if node.edges is None:
        return
    yield Fact("number of next_functions", f"len({expression}.next_functions)", len(node.edges), rank + 1)
    for index, (child, input_nr) in enumerate(node.edges):
        edge = f"{expression}.next_functions[{index}]"
        yield Fact("input number of an edge", f"{edge}[1]", input_nr, rank + 1)
        yield from graph_facts(f"{edge}[0]", child, first_seen, depth + 1)


def saved_facts(expression: str, saved: Any) -> Iterator[Fact]:
    if saved is None or isinstance(saved, Raised):
        yield Fact("saved names", expression, saved, SAVED_RANK)
        return
    names = f"[name for name in dir({expression}) if name.startswith('_saved_')]"
    yield Fact("saved names", names, list(saved), SAVED_RANK)
    for name, value in saved.items():
        yield from saved_value_facts(f"{expression}.{name}", value)


def saved_value_facts(expression: str, value: Any) -> Iterator[Fact]:
    if isinstance(value, Tensor):
        yield Fact("saved kind", expression, "a tensor", SAVED_RANK + 1)
        yield from tensor_facts("saved", expression, value, SAVED_RANK + 2)
    elif isinstance(value, Raised):
        yield Fact("saved kind", expression, value, SAVED_RANK + 1)
    elif isinstance(value, tuple) and any(isinstance(item, Tensor) for item in value):
        yield Fact("saved kind", f"len({expression})", len(value), SAVED_RANK + 1)
        for index, item in enumerate(value):
            yield from saved_value_facts(f"{expression}[{index}]", item)
    else:
        yield Fact("saved kind", expression, "plain", SAVED_RANK + 1)
        yield Fact("saved plain value", expression, value, SAVED_RANK + 6)
