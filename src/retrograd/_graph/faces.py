"""What else torch shows of nodes: the names that `dir` lists, and what is known of the gradients that arrive."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.primitive import ELEMENTWISE
from .._device import device
from .._dtypes import dtype, from_numpy

FACE = frozenset({
    "_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata", "name", "next_functions",
    "register_hook", "register_prehook", "requires_grad", "variable",
})  # fmt: skip


def names_of(node: Any) -> list[str]:
    """List what torch lists of a built-in operation; our own methods are nobody's business."""
    names = object.__dir__(node)
    if hasattr(node, "_forward_cls"):  # a custom Function's ctx
        return list(names)
    return [name for name in names if name in FACE or name.startswith(("__", "_saved_", "_raw_saved_"))]


class InputMetadata:
    """Shape, dtype and device of a gradient that arrives at a node."""

    is_cpp_nested_tensor = False
    is_nested_tensor = False

    def __init__(self, facts: Any) -> None:
        self.shape: list[int] = list(facts.shape)
        self.dtype: dtype = from_numpy(facts.dtype)
        self.device: device = (
            device("cuda", facts.device.id) if hasattr(getattr(facts, "device", None), "id") else device("cpu")
        )


class _Facts:
    def __init__(self, shape: tuple[int, ...], of: Any) -> None:
        self.shape, self.dtype, self.device = shape, of.dtype, getattr(of, "device", None)


def input_metadata(node: Any) -> tuple[InputMetadata, ...]:
    """Describe the outputs of a node; only some nodes of built-in operations know theirs."""
    if hasattr(node, "variable"):
        return (InputMetadata(node.variable._array),)
    if node.primitive is None and hasattr(node, "_forward_cls"):
        outputs = () if node.meta is None else node.meta.outputs
        return tuple([InputMetadata(_Facts(one.shape, one)) for one in outputs])
    found = _output(node)
    if found is None:
        raise AttributeError(
            f"'{type(node).__name__}' object has no attribute '_input_metadata'\nHint: the node of a built-in operation keeps "
            "what its backward reads, which says nothing about its output."
        )
    return (InputMetadata(found),)


def _output(node: Any) -> Any:
    """Find the shape and dtype of the output of a built-in operation, from what is saved."""
    while getattr(node, "primitive", None) is not None and node.num_outputs == 1:
        out: Any = getattr(node, "out", None)
        if hasattr(out, "shape"):
            return _Facts(tuple(out.shape), out)
        if node.primitive.kind != ELEMENTWISE:
            return None
        found = _of_operands(node)
        if found is not None or node.meta is not None or node.keeps_shapes:
            return found
        node = next(one for one in node._edges if one is not None)  # what has a gradient is like the output
    return getattr(node, "_array", None)


def _of_operands(node: Any) -> Any:
    operands = []
    for at, (name, edge) in enumerate(zip(node.primitive.inputs, node._edges, strict=False)):
        saved = getattr(node, name, None)
        if isinstance(saved, (bool, int, float, complex)):
            continue
        if not hasattr(saved, "shape"):
            saved = getattr(edge, "_array", None)
        if saved is None and node.meta is not None:
            facts = node.meta.inputs[at]
            saved = None if facts is None else _Facts(facts.shape, facts)
        if saved is None:
            return None
        operands.append(saved)
    return _Facts(np.broadcast_shapes(*[tuple(one.shape) for one in operands]), operands[0]) if operands else None
