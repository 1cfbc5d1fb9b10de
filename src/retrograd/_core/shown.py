"""What torch shows of the nodes of an operation: the values it saved, under torch's names, and its edges.

Note [What torch shows]
A node's rules read names of our own (`x`, `out`, `axis`, `x_shape`). Without a declaration torch's names for them are those of
`USUAL`, read backwards. Where torch differs, the operation says so, once for all its nodes or for some of them:

    where = elementwise("where", shows="condition=x", ...)
    clip = elementwise("clip", shows={None: "max=high min=low self", "ClampMinBackward0": "min=low self"}, ...)
    layer_norm.shows("bias input=x weight", normalized_shape=_inner_shape, ...)

A word is torch's name, `=` what it is: a name that the rules read, or a number that never changes. Without `=` it is the usual name,
or the same name. What no rule reads, such as the dim as the caller gave it, is in the node's `shown`, where the public function has
put it (`=given` where a rule reads something else under that name). Anything else is a function of the node. The words of a fused
operation are its inputs and its parameters. What torch keeps and we do not is computed when somebody asks; what cannot be known
from the node is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

Reader = Callable[[Any], Any]

USUAL = {"self": "x", "other": "y", "result": "out", "keepdim": "keepdims", "self_sym_sizes": "x_shape"}
OURS = {ours: torchs for torchs, ours in USUAL.items()} | {"axis": "dim"}
NUMBERS = {"0": 0, "1": 1, "2": 2, "False": False, "True": True}


class Shown:
    """What an operation says of its nodes. See Note [What torch shows]."""

    inputs: tuple[str, ...]

    def __init__(self, shows: str | dict[str | None, str] | None) -> None:
        names = shows if isinstance(shows, dict) else {} if shows is None else {None: shows}
        self._names: dict[str | None, tuple[str, dict[str, Reader]]] = {
            node: (text, {}) for node, text in names.items()
        }
        self.shown_edges: dict[str, tuple[int, ...]] = {}  # by node: positions of the inputs that torch has edges for

    def shows(self, names: str, /, *nodes: str, **readers: Reader) -> None:
        """Declare the saved values that torch shows of some nodes; without nodes, of all."""
        for node in nodes or (None,):
            self._names[node] = names, readers

    def shows_edges(self, node: str, *positions: int) -> None:
        """Declare the inputs that torch counts as differentiable, where there are rules for more."""
        self.shown_edges[node] = positions

    def names_shown(self, node: str, read: Collection[str], other: Callable[[str], Reader]) -> dict[str, Any] | None:
        """Return {torch's name: the name of an attribute that rules read, or a function of the node}, None if not declared."""
        declared = self._names.get(node, self._names.get(None))
        if declared is None:
            return None
        found: dict[str, Any] = {}
        for word in declared[0].split():
            name, _, ours = word.partition("=")
            ours = ours or USUAL.get(name, name)
            if ours in NUMBERS:
                found[name] = constant(NUMBERS[ours])
            else:
                found[name] = ours if ours in read else other(name if ours == "given" else ours)
        return found | declared[1]


# ---- readers ----
def constant(value: Any) -> Reader:
    """Show the same value of every node."""
    return lambda node: value


def unsigned(value: Any) -> Any:
    """Show a number as torch's nodes do: a negative int64 as uint64."""
    if isinstance(value, (tuple, list)):
        return tuple(unsigned(one) for one in value)
    return value + (1 << 64) if isinstance(value, int) and not isinstance(value, bool) and value < 0 else value


def given(name: str) -> Reader:
    """Read what the public function left in the node's `shown`; nodes that a rule recorded have none."""

    def read(node: Any) -> Any:
        values = getattr(node, "shown", None)
        return None if values is None else unsigned(values[name])

    return read


def static(name: str) -> Reader:
    """Read a parameter that rules read, as torch shows numbers."""
    return lambda node: unsigned(getattr(node, name))


def parameter(name: str) -> Reader:
    """Read a parameter of a fused operation."""
    return lambda node: unsigned(node.params[name])


def second_output(node: Any) -> Any:
    """Read the indices of max, min and sort."""
    node.check_saved(("out",))
    return node.saved_tensor("out")[1]


def index_tensors(node: Any) -> Any:
    """Read the index tensors as they were given, masks included, None for dimensions not indexed."""
    node.check_freed()
    values = getattr(node, "shown", None)
    if values is None:
        return None
    node.check_saved()
    if node.guard is None or "indices" not in node.guard.packed:
        return values["indices"]
    unpacked = iter(node.saved_tensor("indices"))
    return tuple(one if one is None else next(unpacked) for one in values["indices"])


def numel(node: Any) -> int:
    """Count the elements of the input."""
    return math.prod(node.x_shape)


# ---- readers of fused operations ----
def saved_array(node: Any, name: str) -> Any:
    """Read an input as an array."""
    node.check_freed()
    tensor = node.saved_tensor(name)
    return None if tensor is None else tensor._array


def in_memory(value: Any) -> Any:
    """Make an array of a number."""
    return value if hasattr(value, "reshape") and not isinstance(value, np.generic) else np.asarray(value)


def residual(at: int, shape: Callable[[Any], tuple[int, ...]]) -> Reader:
    """Read what the forward has left for the backward, in torch's shape and in float32 at least."""

    def read(node: Any) -> Any:
        node.check_freed()
        kept = in_memory(node._kept()[at])
        dtype = saved_array(node, node.array_names[0]).dtype
        return kept.reshape(shape(node)).astype(np.float32 if dtype.itemsize < 4 else dtype)

    return read
