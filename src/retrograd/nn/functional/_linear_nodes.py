"""The record of a linear layer: one node, written without the detours that other operations can afford.

torch's graph has a transposition of the weights before the product. Here the product takes the weights as they are;
`next_functions` shows the transposition all the same.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from ..._core.levels import creation_numbers
from ..._core.passes import ones, times_transposed
from ..._core.primitive import engine_state
from ..._graph.guards import fresh
from ..._graph.node import Meta, Node, face_of, node_class
from ..._graph.unpacked import computing_with_unpacked, settled
from ..._ops import affine as a
from ..._ops import shape as s
from ..._places import user_frame, users_files
from ...autograd._gathered import gather
from ...tensor import _base
from ...tensor._base import LEAF
from ...tensor._recording.flat import guarded_tensor

NDARRAY = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
get_frame = sys._getframe
generic_pull_back, generic_straight = Node.pull_back_some, Node.straight


def _pull_back(self: Any, g: Any, graph: bool, mask: Any = None) -> Any:
    """Return the gradients of bias, input and weights by one BLAS call each."""
    edges = self._edges if mask is None else mask
    if graph or type(g) is not NDARRAY or type(self.meta) is Meta:
        return generic_pull_back(self, g, graph, mask)
    if len(edges) > 2 and edges[0] is not None and self.bias_shape != g.shape[-1:]:
        return generic_pull_back(self, g, graph, mask)
    if fresh(self):
        return _products(self, g, edges)
    self.check_saved()
    if self.guard is None or not self.guard.packed:
        return _products(self, g, edges)
    saved = self.values(False)
    with computing_with_unpacked(self):  # by the same products: a checkpoint gives the same bits
        return settled(self, g, _products(saved, g, edges))


def _products(saved: Any, g: Any, edges: Any) -> Any:
    *rest, ex, ey = edges
    rows = g if g.ndim == 2 else g.reshape(math.prod(g.shape[:-1]), g.shape[-1])
    gx = gy = None
    if ex is not None:
        gx = rows.dot(saved.y)
        if g.ndim != 2:
            gx = gx.reshape((*g.shape[:-1], gx.shape[1]))
    if ey is not None:
        x = saved.x
        gy = rows.T.dot(x if x.ndim == 2 else x.reshape(rows.shape[0], x.shape[-1]))
    if not rest:
        return gx, gy
    if edges[0] is None:
        return None, gx, gy
    return ones(rows.shape[0], rows.dtype).dot(rows), gx, gy


def _straight(self: Any, g: Any, freed: Any, mine: bool = False) -> Any:
    if self.extra is not None or self.meta is not None:
        return generic_straight(self, g, freed)
    edges = self._edges
    if (
        len(edges) == 3
        and edges[0] is not None
        and type(g) is NDARRAY
        and g.ndim == 2
        and len(self.bias_shape) == 1
        and self.bias_shape[0] == (shape := g.shape)[1]
        and fresh(self)
    ):  # a layer with a bias, and rows: the same products, written out
        eb, ex, ey = edges
        if ey is not None and gather(engine_state.task, eb, ey, g, self.x):
            gb = gy = None
        else:
            gb, gy = ones(shape[0], g.dtype).dot(g), None if ey is None else g.T.dot(self.x)
        pairs = [(eb, gb), (ex, None if ex is None else g.dot(self.y)), (ey, gy)]
    else:
        return generic_straight(self, g, freed)
    if freed is not None:
        self.x = self.y = None
        self.guard = freed
    return pairs


def _next_functions(self: Any) -> tuple[tuple[Any, int], ...]:
    *others, weights = self._edges
    if weights is None:
        return tuple([face_of(edge) for edge in self._edges])
    turned: Any = node_class(s.permute_dims, "TBackward0")()
    turned._edges = (weights,)
    turned.seq = creation_numbers()
    turned.axes = (1, 0)
    turned.meta = turned.guard = turned.extra = turned._storage = turned.code = None
    return (*[face_of(edge) for edge in others], (turned, 0))


def _layer_class(primitive: Any, name: str) -> Any:
    cls: Any = node_class(primitive, name)
    cls.pull_back = cls.pull_back_some = _pull_back
    cls.straight = _straight
    cls.next_functions = property(_next_functions)
    return cls


# By whether there is a bias, and the number of dimensions of the input up to 3; the names of torch's outermost steps
NAMES = {
    True: ("", "ViewBackward0", "AddmmBackward0", "ViewBackward0"),
    False: ("", "SqueezeBackward4", "MmBackward0", "UnsafeViewBackward0"),
}
WITH_BIAS, WITHOUT_BIAS = (
    [_layer_class(primitive, name) for name in NAMES[biased][1:]]
    for primitive, biased in ((a.affine, True), (a.linear_map, False))
)


def record_layer(input: Any, weight: Any, bias: Any, tracking: bool) -> Any:
    """Compute a layer of tensors on plain arrays, and record it; None if anything about them is unusual."""
    x, y = input._array, weight._array
    if type(x) is not NDARRAY or type(y) is not NDARRAY or ((d := x.dtype) is not F32 and d is not F64):
        return None
    shape, weights = x.shape, y.shape
    if y.dtype is not d or len(weights) != 2 or not shape or (width := shape[-1]) != weights[1]:
        return None
    if bias is not None:
        b = bias._array
        if type(b) is not NDARRAY or b.dtype is not d or b.shape != weights[:1]:
            return None
    rank = len(shape)
    if rank == 2:
        out = times_transposed(x, y, shape[0], width, weights[0])
    elif rank == 1:
        out = x.dot(y.T)
    else:
        few = math.prod(shape[:-1])
        out = times_transposed(x.reshape(few, width), y, few, width, weights[0])
    if bias is not None:
        out += b
    if rank > 2:
        out = out.reshape((*shape[:-1], weights[0]))
    result = _base.new_tensor()
    result._array = out
    result._storage = result._extra = result._edge = None
    if not tracking:
        return result
    ex, ey = input._edge, weight._edge
    eb = None if bias is None else bias._edge
    if ex is None and ey is None and eb is None:
        return result
    node = (WITHOUT_BIAS if bias is None else WITH_BIAS)[rank - 1 if rank < 3 else 2]()
    guard = None
    node.x = node.y = None
    if ey is not None:
        node.x = x
        if input._storage is not None or ex is None:
            guard = guarded_tensor(guard, "x", input)
        if ey is LEAF:
            ey = weight
    if ex is not None:
        node.y = y
        if weight._storage is not None or ey is None:
            guard = guarded_tensor(guard, "y", weight)
        if ex is LEAF:
            ex = input
    if bias is None:
        node._edges = (ex, ey)
    else:
        node._edges = (bias if eb is LEAF else eb, ex, ey)
        node.bias_shape = b.shape
    node.guard = guard
    node.meta = node.extra = node._storage = None
    frame = get_frame(3)  # this, `linear` and its public form are ours
    if (code := frame.f_code).co_filename not in users_files:
        frame = user_frame(frame)
        code = frame.f_code
    node.code = code
    node.lasti = frame.f_lasti
    node.seq = creation_numbers()
    result._edge = node
    return result
