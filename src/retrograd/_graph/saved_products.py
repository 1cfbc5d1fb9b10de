"""What torch shows of the nodes of matrix products with something added, linear layers among them: see `saved_names.py`.

A linear layer is one node here and several in torch; it shows what torch's outermost node shows. Shapes are read from what
was saved, or from the leaf that an operand is; those of other operands that were not saved are not known: None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .guards import Freed


def _operand(node: Any, name: str) -> Any:
    """Find the array of an operand: saved, or a leaf's."""
    if type(node.guard) is not Freed and getattr(node, name) is not None:
        return node.saved_tensor(name)._array
    edge = node._edges[node.input_of[name]]
    return getattr(edge, "_array", None)


def _sizes(name: str, turned: bool = False) -> Callable[[Any], Any]:
    def read(node: Any) -> Any:
        array = _operand(node, name)
        shape = None if array is None else tuple(array.shape)
        return shape if shape is None or not turned else shape[::-1]

    return read


def _strides(name: str, turned: bool = False) -> Callable[[Any], Any]:
    def read(node: Any) -> Any:
        if node._edges[node.input_of[name]] is None:
            return ()
        array = _operand(node, name)
        steps = None if array is None else tuple(step // array.itemsize for step in array.strides)
        return steps if steps is None or not turned else steps[::-1]

    return read


def _turned_weights(node: Any) -> Any:
    node.check_freed()
    if node._edges[node.input_of["x"]] is None:
        return None  # never saved
    node.check_saved(("y",))
    return node.saved_tensor("y").t()


def _rows_and_features(node: Any) -> Any:
    """Return the shape of torch's product, before it is given the shape of the result."""
    x, y = _operand(node, "x"), _operand(node, "y")
    return None if x is None or y is None else (math.prod(x.shape[:-1]), y.shape[0])


def _one(node: Any) -> int:
    return 1


_VIEW = {"self_sym_sizes": _rows_and_features}
_OPERANDS = {
    "mat2": _turned_weights,
    "mat2_sym_sizes": _sizes("y", turned=True),
    "mat2_sym_strides": _strides("y", turned=True),
}
_ADDED = {"alpha": "alpha", "beta": "beta"}

# (primitive, node) -> names
PRODUCT_NAMES: dict[tuple[str, str], dict[str, Any]] = {
    ("affine", "AddmmBackward0"): {
        **_OPERANDS,
        "alpha": _one,
        "beta": _one,
        "mat1": "x",
        "mat1_sym_sizes": _sizes("x"),
        "mat1_sym_strides": _strides("x"),
    },
    ("affine", "ViewBackward0"): _VIEW,
    ("linear_map", "MmBackward0"): {
        **_OPERANDS,
        "self": "x",
        "self_sym_sizes": _sizes("x"),
        "self_sym_strides": _strides("x"),
    },
    ("linear_map", "UnsafeViewBackward0"): _VIEW,
    ("linear_map", "SqueezeBackward4"): {**_VIEW, "dim": lambda node: 0},
    ("addmm", "AddmmBackward0"): {
        **_ADDED,
        "mat1": "x",
        "mat1_sym_sizes": _sizes("x"),
        "mat1_sym_strides": _strides("x"),
        "mat2": "y",
        "mat2_sym_sizes": _sizes("y"),
        "mat2_sym_strides": _strides("y"),
    },
    ("addmm", "AddmvBackward0"): {**_ADDED, "mat": "x", "vec": "y"},
    ("addmm", "BaddbmmBackward0"): {**_ADDED, "batch1": "x", "batch2": "y"},
    ("addr", "AddrBackward0"): {**_ADDED, "vec1": "x", "vec2": "y"},
}
