"""Recording operations with several float outputs, which their own rules may read: factors of matrices.

Other nodes keep, of several outputs, the indices alone (see `save_arrays` in `_recording/record.py`). What is recorded here keeps
those that its rules read: as arrays for a plain backward; for second order as Tensors that come from the node's own slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.primitive import Primitive
from ..._graph import node as graph
from ..._graph.node import Guard, Node, Slot
from ..._modes import current_mode
from .._aliasing.views import NOWHERE
from .._base import storage_of, wrap
from .record import record
from .saved import pack

__all__ = ["record_keeping_outputs"]


class _KeepsOutputs(Node):
    """What such nodes do differently from other nodes."""

    __slots__ = ()

    def saved_tensor(self, name: str) -> Any:
        if name != "out":
            return super().saved_tensor(name)
        self.check_freed()
        guard = self.guard
        if guard is not None and "out" in guard.packed:
            arrays = [None if one is None else self._unpack(one, None)._array for one in guard.packed["out"]]
        else:
            arrays = self.out
        return tuple(
            None if a is None else wrap(a, Slot(self, i) if a.dtype.kind in "fc" else None)
            for i, a in enumerate(arrays)
        )


def _saved_output(at: int) -> property:
    def read(self: Any) -> Any:
        self.check_freed()
        self.check_saved(("out",))
        return self.saved_tensor("out")[at]

    return property(read)


def _prepare(primitive: Primitive, name: str, shown: Sequence[str]) -> None:
    """Make the class of an operation's nodes before the first is made."""
    made = graph._make_node_class(primitive, name)
    body: dict[str, Any] = {"__slots__": (), "hooked_outputs": None}
    body |= {f"_saved_{one}": _saved_output(at) for at, one in enumerate(shown)}
    graph._classes[primitive.name, name] = type(name, (_KeepsOutputs, made), body)


def record_keeping_outputs(
    primitive: Primitive,
    args: Sequence[Any],
    params: dict[str, Any],
    name: str,
    shown: Sequence[str],
    constant: int | None = None,
) -> Any:
    """Run and record a primitive with several float outputs, which its rules may read.

    `shown` are torch's names for the outputs that a node keeps, the first ones: rules read no others. The output number
    `constant` has no derivative.
    """
    if (primitive.name, name) not in graph._classes:
        _prepare(primitive, name, shown)
    results = record(primitive, args, params, name)
    for one in results:
        if type(edge := one._edge) is Slot:
            if "out" in edge.node.array_names:
                _keep(edge.node, results, len(shown))
            if constant is not None:
                results[constant]._edge = None
            break
    return results


def _keep(node: Any, results: Sequence[Any], count: int) -> None:
    """Keep the first few results; a write into another is nothing to the node."""
    guard = node.guard = node.guard or Guard()
    mode = current_mode()
    kept, others = results[:count], (None,) * (len(results) - count)
    if mode.saved_hooks:
        guard.packed["out"] = tuple([pack(wrap(r._array, NOWHERE), mode) for r in kept]) + others
        node.out = True  # the hooks hold the values now
    else:
        node.out = tuple([r._array for r in kept]) + others
        guard.versions["out"] = [(storage_of(r), 0) for r in kept]
